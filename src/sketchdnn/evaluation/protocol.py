"""The settings of an evaluation, and the protocol: everything that a score depends on beside the sketches.

Scores may be compared if their protocols agree in how sketches are measured. How a system drew its sketches (number,
sampler, steps, seed) is part of the protocol id, but does not prevent a comparison.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError

from . import raster
from .features import NUM_FEATURES, Extractor

# Raised whenever a score is computed differently, so that old reports are not compared with new ones.
VERSION = 1
# The splits of held-out real sketches that samples can be compared with.
REFERENCE_SPLITS = ("test", "validation")
# The minimum for every score: density needs five neighbors.
MIN_SKETCHES = 6
# Sketches of a corpus that are hashed at a time.
_HASH_CHUNK = 1 << 14


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure and how much; the defaults are the full evaluation.

    Attributes:
        count: Number of samples.
        against_test: Samples compared with as many sketches of the reference split.
        against_train: Samples compared with as many of the training split; 0 for none.
        validity: Sketches of each set whose validity is measured.
        seed: Selects the references. Samples have a seed of their own.
        likelihood: Whether to measure likelihoods.
        likelihood_sketches: Their number; None for the whole split.
        likelihood_draws: Steps t per sketch.
        corruption: Whether to score corrupted real sketches.
        repaired: Whether to score the samples after repair too.
        split: The reference split. "validation" replaces the test split everywhere: select models and samplers by it.
    """

    count: int = 10_000
    against_test: int = 2_000
    against_train: int = 10_000
    validity: int = 2_000
    seed: int = 0
    likelihood: bool = True
    likelihood_sketches: int | None = None
    likelihood_draws: int = 16
    corruption: bool = True
    fast: bool = False
    repaired: bool = False
    split: str = "test"

    def __post_init__(self) -> None:
        if self.split not in REFERENCE_SPLITS:
            raise SketchError(f"'{self.split}' is no reference split; use {' or '.join(REFERENCE_SPLITS)}")
        if self.count < MIN_SKETCHES:
            raise SketchError(f"scores need a set of sketches: at least {MIN_SKETCHES}, not {self.count}")


_FEW = Settings(count=500, against_test=500, against_train=0, validity=500)
FAST = replace(_FEW, likelihood_sketches=64, likelihood_draws=4, corruption=False, fast=True)


def make_settings(*, fast: bool = False, **changes: Any) -> Settings:
    """The full or the fast settings with changes; a change to None keeps the default."""
    changes = {name: value for name, value in changes.items() if value is not None}
    return replace(FAST if fast else Settings(), **changes)


class Sizes(NamedTuple):
    """The number of sketches on both sides of a comparison with each split; 0 for none."""

    test: int
    train: int


def available_sizes(settings: Settings, samples: int, test: int, train: int) -> Sizes:
    """The sizes of `settings`, reduced to the available sketches: both sides of a comparison shrink together.

    Raises:
        SketchError: If there are too few for any score.
    """
    with_test = min(settings.against_test, samples, test, train)
    # The floor of the training split needs two disjoint halves.
    with_train = min(settings.against_train, samples, train // 2)
    if with_test < MIN_SKETCHES:
        raise SketchError(
            f"there is too little to compare: {samples:,} samples, {test:,} test and {train:,} training sketches, "
            f"and scores need at least {MIN_SKETCHES} of each"
        )
    return Sizes(with_test, with_train if with_train >= MIN_SKETCHES else 0)


def size_warnings(settings: Settings, sizes: Sizes, samples: int) -> list[str]:
    """Warnings that a report shows before its numbers."""
    warnings = []
    if settings.fast:
        warnings.append("This is the fast form: few samples, few references, no comparison with the training split.")
    for wanted, used, split in (
        (settings.against_test, sizes.test, settings.split),
        (settings.against_train, sizes.train, "training"),
    ):
        if used < wanted:
            warnings.append(
                f"{wanted:,} sketches were to be compared with the {split} split; there are enough for {used:,} "
                f"({samples:,} samples), so both sides were cut to that."
            )
    small = sorted({size for size in (sizes.test, sizes.train) if 0 < size < NUM_FEATURES})
    if small:
        warnings.append(
            f"FID from {' and '.join(f'{size:,}' for size in small)} sketches rests on fewer than the {NUM_FEATURES:,} "
            "dimensions of its features: its covariance is singular and the score too high by an amount that depends "
            "on the size. Compare it only with scores of the same protocol, and with the floor beside it."
        )
    return warnings


def _field(words: str, *, compared: bool = True, **default: Any) -> Any:
    """A field with its description; a comparison needs equal values if `compared`."""
    return field(metadata={"words": words, "compared": compared}, **default)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Rasterizer, extractor, corpus, sizes and seeds; and how the sketches were drawn, blank for a file."""

    version: int = _field("the version of the scores", default=VERSION)
    size: int = _field("the size of the images", default=raster.SIZE)
    stroke: float = _field("the width of the strokes", default=raster.STROKE)
    margin: float = _field("the margin of the images", default=raster.MARGIN)
    point_radius: float = _field("the radius of points", default=raster.POINT_RADIUS)
    construction_ink: float = _field("the darkness of construction", default=raster.CONSTRUCTION_INK)
    extractor: str = _field("the network of the features")
    data: str = _field("the corpus")
    against_test: int = _field("how many sketches are compared with held-out ones")
    against_train: int = _field("how many sketches are compared with the training split")
    validity: int = _field("how many sketches validity is measured on")
    seed: int = _field("the seed that selects references")
    likelihood_sketches: int = _field("how many sketches likelihoods are measured on")
    likelihood_draws: int = _field("how many steps t a likelihood is estimated from")
    fast: bool = _field("whether it is the fast form")
    samples: int = _field("the number of samples", compared=False, default=0)
    sampler: str = _field("the sampler", compared=False, default="")
    steps: int = _field("its steps", compared=False, default=0)
    sample_seed: int = _field("the seed of the samples", compared=False, default=0)

    @property
    def id(self) -> str:
        """A short name to quote with every number: resolution, sizes, and eight digits of a hash."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        sizes = f"{self.against_test}t" + (f"-{self.against_train}" if self.against_train else "")
        return f"{'fast-' if self.fast else ''}{self.size}px-{sizes}-{digest}"

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, **asdict(self)}

    @staticmethod
    def from_json(values: Any) -> Protocol:
        """The inverse of `to_json`; refuses anything else."""
        if not isinstance(values, dict):
            raise SketchError("its protocol is not an object")
        try:
            protocol = Protocol(**{name: value for name, value in values.items() if name != "id"})
        except TypeError as error:
            raise SketchError("its protocol is of another version of the program") from error
        if protocol.id != values.get("id"):
            raise SketchError("its protocol does not match its id; evaluate again")
        return protocol

    def differences(self, other: Protocol) -> list[str]:
        """The fields, in words, that prevent a comparison of scores."""
        # Sketches from a file have no likelihood, and so no settings of it.
        one_lacks_bits = not (self.likelihood_sketches and other.likelihood_sketches)
        ignored = {"likelihood_sketches", "likelihood_draws"} if one_lacks_bits else set()
        return [
            f"{f.metadata['words']} ({_short(getattr(self, f.name))} and {_short(getattr(other, f.name))})"
            for f in fields(self)
            if f.metadata["compared"] and f.name not in ignored and getattr(self, f.name) != getattr(other, f.name)
        ]


# Fields of a protocol, and their keys in the origin of samples.
ORIGIN = {"sampler": "sampler", "steps": "steps", "sample_seed": "seed"}


def make_protocol(
    dataset: Dataset, extractor: Extractor, settings: Settings, sizes: Sizes, samples: int, origin: Mapping[str, Any]
) -> Protocol:
    """The protocol of an evaluation of so many samples; `origin` describes how they were drawn."""
    has_bits = settings.likelihood and origin["kind"] == "model"
    split_size = len(dataset.split(settings.split))
    return Protocol(
        extractor=extractor.sha256,
        data=data_hash(dataset, settings.split),
        against_test=sizes.test,
        against_train=sizes.train,
        likelihood_sketches=min(split_size, settings.likelihood_sketches or split_size) if has_bits else 0,
        likelihood_draws=settings.likelihood_draws if has_bits else 0,
        samples=samples,
        **{name: getattr(settings, name) for name in ("validity", "seed", "fast")},
        **{name: origin[key] for name, key in ORIGIN.items() if key in origin},
    )


def refuse_incomparable(protocols: Mapping[str, Protocol]) -> None:
    """Refuse to compare scores of different protocols; the message names the differences."""
    (first, protocol), *others = protocols.items()
    for name, other in others:
        if differences := protocol.differences(other):
            raise SketchError(f"{first} and {name} cannot be compared: they differ in {'; '.join(differences)}")


def describe_protocol(values: Mapping[str, Any], *, is_autoregressive: bool = False) -> list[tuple[str, str]]:
    """A protocol in words, from its JSON form. Token models have no steps."""
    words = {f.name: f.metadata["words"] for f in fields(Protocol)}
    if is_autoregressive:
        values = {name: value for name, value in values.items() if name != "steps"} | {"sampler": "token by token"}
    yes_or_no = {True: "yes", False: "no"}
    return [
        (words.get(name, name), yes_or_no[value] if isinstance(value, bool) else str(value))
        for name, value in values.items()
        if values.get("sampler") or name not in ORIGIN
    ]


def data_hash(dataset: Dataset, split: str = "test") -> str:
    """The identity of a corpus: SHA-256 of the rows that scores depend on.

    Parameters are rounded to a millionth, since two machines may prepare the same files with other last bits.
    """
    digest = hashlib.sha256()
    for name in ("train", split):
        rows = dataset.split(name).compact
        for array in (rows.kind, rows.construction):
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array)  # type: ignore[arg-type]  # an array is a buffer
        digest.update(f"{rows.params.shape}".encode())
        for start in range(0, len(rows), _HASH_CHUNK):
            millionths = np.rint(rows.params[start : start + _HASH_CHUNK] * 2**20).astype(np.int64)
            digest.update(millionths)  # type: ignore[arg-type]
    return digest.hexdigest()


def _short(value: object) -> str:
    words = str(value)
    return words if len(words) <= 16 else words[:12] + "…"
