"""Likeness scores of samples, with the floor of real sketches beside them, and the corruption check.

The corruption check scores real sketches that were damaged by a known amount: a valid score gets worse with every step
of damage. The same seed gives the same noise, only stronger, and drops the same primitives first. Corrupted sketches
are normalized again, like every set.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Kind
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import collapsed

from . import metrics
from .curves import check_sketches, has_ends, has_primitive
from .estimates import to_json
from .features import Extractor, sketch_features
from .protocol import Sizes
from .validity import measure_gaps

# The steps of the corruption check.
CORRUPTIONS = (("jitter", 0.005), ("jitter", 0.02), ("jitter", 0.05), ("drop", 0.1), ("drop", 0.3))
MIN_RADIUS = 1e-4

Features = Float[Tensor, "sketch feature"]
# Called with the name of a stage and the share of it that is done.
OnStage = Callable[[str, float], None]


def ignore_stage(name: str, share: float) -> None:
    """Stages that nobody wants to know."""


class StageTimer:
    """Measures the seconds of named stages; repeated names add up. On a GPU it waits for pending work."""

    def __init__(self, on_stage: OnStage = ignore_stage, device: str = "cpu") -> None:
        self.seconds: dict[str, float] = {}
        self._on_stage = on_stage
        self._device = torch.device(device)

    @contextmanager
    def __call__(self, name: str) -> Iterator[Callable[[float], None]]:
        """Time a stage; yields a function that takes the share of it that is done."""
        self._on_stage(name, 0.0)
        start = time.perf_counter()
        try:
            yield lambda share: self._on_stage(name, min(1.0, share))
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self._on_stage(name, 1.0)


class FeatureSets(NamedTuple):
    """Features of the samples, of the selected test sketches, and of the selected training sketches."""

    samples: Features
    test: Features
    train: Features


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores sets of sketches with one extractor. Features of real sketches are cached in `cache`."""

    extractor: Extractor
    cache: Path | None
    timer: StageTimer
    seed: int

    def extract(self, samples: Compact, test: Compact, train: Compact, sizes: Sizes) -> FeatureSets:
        """The features of all sets; of the samples, only of those that are compared."""
        return FeatureSets(
            self._features("features of the samples", samples[: max(sizes.test, sizes.train)], None),
            self._features("features of held-out sketches", test, self.cache),
            self._features("features of the training split", train, self.cache),
        )

    def score(self, features: FeatureSets, sizes: Sizes, split: str = "test") -> dict[str, Any]:
        """Scores against the reference split, and against the training split if it is large enough."""
        floor = f"the same {split} sketches against {sizes.test:,} training sketches"
        samples, test, train = features.samples, features.test, features.train
        scores = {"test": self._compare(f"{split} split", floor, test, samples[: sizes.test], train[: sizes.test])}
        if sizes.train:
            first, second = train[: sizes.train], train[sizes.train : 2 * sizes.train]
            floor = f"the same training sketches against {sizes.train:,} others of their split"
            scores["train"] = self._compare("training split", floor, first, samples[: sizes.train], second)
        return scores

    def score_repaired(self, repaired: Compact, features: FeatureSets, sizes: Sizes) -> dict[str, Any]:
        """Scores of the repaired samples against the same references."""
        samples = self._features("features of the repaired samples", repaired[: max(sizes.test, sizes.train)], None)
        stage = "scores of the repaired samples"
        scores = {"test": {"system": self._score(stage, features.test, samples[: sizes.test])}}
        if sizes.train:
            reference = features.train[: sizes.train]
            scores["train"] = {"system": self._score(stage, reference, samples[: sizes.train])}
        return scores

    def score_corruptions(self, test: Compact, features: FeatureSets, floor: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Scores of more and more corrupted test sketches against training sketches; undamaged they are the floor."""
        reference = features.train[: len(test)]
        scores = {"fid": floor["fid"], "kid": floor["kid"], **_gap_scores(test)}
        steps = [{"kind": "none", "amount": 0.0, "name": "undamaged", **scores}]
        for kind, amount in CORRUPTIONS:
            corrupt = jitter_ends if kind == "jitter" else drop_primitives
            name = f"noise {amount:g} on ends" if kind == "jitter" else f"{100 * amount:g} % of primitives dropped"
            corrupted = corrupt(test, amount, self.seed)
            damaged = self._features("features of damaged sketches", corrupted, self.cache)
            with self.timer("scores of damaged sketches"):
                fid = {"value": to_json(metrics.frechet_distance(reference, damaged))}
                kid = to_json(metrics.kernel_distance(reference, damaged))
                scores = {"fid": fid, "kid": kid, **_gap_scores(corrupted)}
            steps.append({"kind": kind, "amount": amount, "name": name, **scores})
        return steps

    def _compare(
        self, name: str, floor: str, reference: Features, samples: Features, others: Features
    ) -> dict[str, Any]:
        """The scores of samples and of other real sketches against one reference set."""
        return {
            "samples": len(reference),
            "references": len(reference),
            "reference": name,
            "floor_of": floor,
            "system": self._score(f"scores against the {name}", reference, samples),
            "floor": self._score(f"floor of the {name}", reference, others),
        }

    def _features(self, stage: str, compact: Compact, cache: Path | None) -> Features:
        with self.timer(stage) as on_progress:
            return sketch_features(compact, self.extractor, cache=cache, on_progress=on_progress)

    def _score(self, stage: str, real: Features, fake: Features) -> dict[str, Any]:
        with self.timer(stage) as on_progress:
            fid = metrics.frechet_estimate(real, fake)
            on_progress(0.2)
            fid_infinity = metrics.frechet_at_infinity(
                real, fake, full=fid, seed=self.seed, on_progress=lambda done: on_progress(0.2 + 0.6 * done)
            )
            kid = metrics.kernel_distance(real, fake)
            on_progress(0.85)
            authors = metrics.authors_precision_recall(real, fake)._asdict()
            scores = {
                "fid": fid,
                "fid_infinity": fid_infinity,
                "kid": {**to_json(kid), "standard_error": kid.standard_error},
                **metrics.precision_recall(real, fake)._asdict(),
                **{f"authors_{name}": score for name, score in authors.items()},
                **metrics.density_coverage(real, fake)._asdict(),
            }
            return dict(to_json(scores))


def jitter_ends(compact: Compact, sigma: float, seed: int) -> Compact:
    """Add independent Gaussian noise to every end, center, point and radius. An arc keeps its sweep."""
    if not 0 <= sigma < np.inf:
        raise GeometryError(f"noise has a standard deviation of zero or more, not {sigma}")
    check_sketches(compact)
    noise = sigma * np.random.default_rng(seed).standard_normal(compact.params.shape)
    circles = compact.kind == Kind.CIRCLE
    params = compact.params.astype(np.float64)
    params[..., layout.START] += np.where(has_primitive(compact)[..., None], noise[..., layout.START], 0.0)
    params[..., layout.END] += np.where(has_ends(compact)[..., None], noise[..., layout.END], 0.0)
    radius = np.abs(params[..., layout.RADIUS] + noise[..., layout.RADIUS])
    params[..., layout.RADIUS] = np.where(circles, np.maximum(radius, MIN_RADIUS), params[..., layout.RADIUS])
    return _normalize(compact.kind, compact.construction, params, fallback=compact)


def drop_primitives(compact: Compact, share: float, seed: int) -> Compact:
    """Drop each primitive with probability `share`; one stays in every sketch, with an extent if there is one."""
    if not 0 <= share <= 1:
        raise GeometryError(f"the share of primitives to drop lies between 0 and 1, not {share}")
    check_sketches(compact)
    draws = np.random.default_rng(seed).random(compact.kind.shape)
    exists = has_primitive(compact)
    draws = np.where(exists, draws, -1.0)
    # The last one to drop has an extent of its own: a point only if there is nothing else.
    last = np.where(exists & (compact.kind != Kind.POINT), draws + 1, draws).argmax(axis=1)
    keep = exists & (draws >= share)
    keep[np.arange(len(compact)), last] |= exists.any(axis=1)
    kind = np.where(keep, compact.kind, np.uint8(layout.NONE))
    params = np.where(keep[..., None], compact.params, 0.0).astype(np.float64)
    dropped = _normalize(kind, compact.construction & keep, params, fallback=compact)
    return dropped.permuted(np.argsort(dropped.kind == layout.NONE, axis=1, kind="stable"))


def _normalize(
    kind: NDArray[np.uint8], construction: NDArray[np.bool_], params: NDArray[np.float64], *, fallback: Compact
) -> Compact:
    """Center the sketches and scale them to a larger side of 2; those without extent are taken from `fallback`."""
    raw = Compact(kind, construction, params.astype(np.float32))
    box = table_bounds(sketches_to_table([decoded.sketch for decoded in decode_compact(raw)]))
    size = (box[:, 2:] - box[:, :2]).max(axis=1)
    has_extent = size > 0
    center = np.where(has_extent[:, None], (box[:, :2] + box[:, 2:]) / 2, 0.0)[:, None]
    scale = np.where(has_extent, size / 2, 1.0)[:, None, None]
    params = params.copy()
    start, end = ((params[..., part] - center) / scale for part in (layout.START, layout.END))
    radius = np.where(kind == Kind.CIRCLE, params[..., layout.RADIUS] / scale[..., 0], params[..., layout.RADIUS])
    params[..., layout.RADIUS] = radius
    params[..., layout.START] = np.where(has_primitive(raw)[..., None], start, params[..., layout.START])
    params[..., layout.END] = np.where(has_ends(raw)[..., None], end, params[..., layout.END])
    normalized = Compact(kind, construction, params.astype(np.float32))
    valid = has_extent & ~collapsed(normalized)
    return Compact(
        np.where(valid[:, None], normalized.kind, fallback.kind),
        np.where(valid[:, None], normalized.construction, fallback.construction),
        np.where(valid[:, None, None], normalized.params, fallback.params),
    )


def _gap_scores(compact: Compact) -> dict[str, Any]:
    gaps = measure_gaps(compact)
    return {"median_gap": to_json(gaps.median), "within_loose": to_json(gaps.within_loose)}
