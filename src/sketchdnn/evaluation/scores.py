"""How like the data sketches look: every score on features, its floor beside it, and how it takes damage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from sketchdnn.representation import Compact

from .corruption import drop_primitives, jitter_ends
from .features import Extractor, sketch_features
from .frechet import frechet_at_infinity, frechet_distance, frechet_estimate
from .gaps import gaps
from .kid import kid
from .manifold import authors_precision_recall, density_coverage, precision_recall
from .settings import Sizes
from .stages import Stages
from .wording import plain

# How much real sketches are damaged to see whether scores notice.
DAMAGE: tuple[tuple[str, float], ...] = (
    ("jitter", 0.005),
    ("jitter", 0.02),
    ("jitter", 0.05),
    ("drop", 0.1),
    ("drop", 0.3),
)

Features = Float[Tensor, "sketch feature"]
OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """Features of the samples, of the chosen test sketches, and of the chosen training sketches."""

    samples: Features
    test: Features
    train: Features


class Judge:
    """Looks at sketches through one extractor. Features of real sketches are kept in `cache`."""

    def __init__(self, extractor: Extractor, cache: Path | None, stages: Stages, seed: int) -> None:
        self._extractor = extractor
        self._cache = cache
        self._stages = stages
        self._seed = seed

    def look(self, samples: Compact, test: Compact, train: Compact, sizes: Sizes) -> Seen:
        """Take the features of all sets; of the samples, only of as many as are compared."""
        return Seen(
            self._features("features of the samples", samples[: max(sizes.test, sizes.train)], None),
            self._features("features of held-out sketches", test, self._cache),
            self._features("features of the training split", train, self._cache),
        )

    def scores(self, seen: Seen, sizes: Sizes, split: str = "test") -> dict[str, Any]:
        """Against the test split, or the one in its place, and against the training split if there is enough of it."""
        found = {
            "test": {
                "samples": sizes.test,
                "references": sizes.test,
                "reference": f"{split} split",
                "floor_of": f"the same {split} sketches against {sizes.test:,} training sketches",
                "system": self._score("scores against held-out sketches", seen.test, seen.samples[: sizes.test]),
                "floor": self._score("floor of held-out sketches", seen.test, seen.train[: sizes.test]),
            }
        }
        if sizes.train:
            near, far = seen.train[: sizes.train], seen.train[sizes.train : 2 * sizes.train]
            found["train"] = {
                "samples": sizes.train,
                "references": sizes.train,
                "reference": "training split",
                "floor_of": f"the same training sketches against {sizes.train:,} others of their split",
                "system": self._score("scores against the training split", near, seen.samples[: sizes.train]),
                "floor": self._score("floor of the training split", near, far),
            }
        return found

    def scores_again(self, name: str, others: Compact, seen: Seen, sizes: Sizes) -> dict[str, Any]:
        """Other sketches in the place of the samples, against the same references."""
        features = self._features(f"features of the {name} samples", others[: max(sizes.test, sizes.train)], None)
        stage = f"scores of the {name} samples"
        found = {"test": {"system": self._score(stage, seen.test, features[: sizes.test])}}
        if sizes.train:
            near = seen.train[: sizes.train]
            found["train"] = {"system": self._score(stage, near, features[: sizes.train])}
        return found

    def corruption(self, test: Compact, seen: Seen, floor: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The test sketches, more and more damaged, against training sketches: undamaged they score the floor."""
        reference = seen.train[: len(test)]
        scores = {"fid": floor["fid"], "kid": floor["kid"], **_gaps(test)}
        found = [{"kind": "none", "amount": 0.0, "name": "undamaged", **scores}]
        for kind, amount in DAMAGE:
            damage = jitter_ends if kind == "jitter" else drop_primitives
            name = f"noise {amount:g} on ends" if kind == "jitter" else f"{100 * amount:g} % of primitives dropped"
            worse = damage(test, amount, self._seed)
            features = self._features("features of damaged sketches", worse, self._cache)
            with self._stages("scores of damaged sketches"):
                fid = {"value": plain(frechet_distance(reference, features))}
                scores = {"fid": fid, "kid": plain(kid(reference, features)), **_gaps(worse)}
            found.append({"kind": kind, "amount": amount, "name": name, **scores})
        return found

    def _features(self, name: str, compact: Compact, cache: Path | None) -> Features:
        with self._stages(name) as tell:
            return sketch_features(compact, self._extractor, cache=cache, on_progress=tell)

    def _score(self, name: str, real: Features, fake: Features) -> dict[str, Any]:
        with self._stages(name) as tell:
            found: dict[str, Any] = plain(_all_scores(real, fake, self._seed, tell))
            return found


def _all_scores(real: Features, fake: Features, seed: int, tell: OnProgress) -> dict[str, Any]:
    """Every score by its name. Precision and recall come in two kinds that must not be confused."""
    fid = frechet_estimate(real, fake)
    tell(0.2)
    beyond = frechet_at_infinity(real, fake, whole=fid, seed=seed, on_progress=lambda done: tell(0.2 + 0.6 * done))
    discrepancy = kid(real, fake)
    tell(0.85)
    standard, authors = precision_recall(real, fake), authors_precision_recall(real, fake)
    balls = density_coverage(real, fake)
    return {
        "fid": fid,
        "fid_infinity": beyond,
        "kid": {**plain(discrepancy), "standard_error": discrepancy.standard_error},
        "precision": standard.precision,
        "recall": standard.recall,
        "authors_precision": authors.precision,
        "authors_recall": authors.recall,
        "density": balls.density,
        "coverage": balls.coverage,
    }


def _gaps(compact: Compact) -> dict[str, Any]:
    """What a damaged set is shown by, beside its scores."""
    found = gaps(compact)
    return {"median_gap": plain(found.median), "within_loose": plain(found.within_loose)}
