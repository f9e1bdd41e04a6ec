"""Sketches of each number of primitives beside real ones: FID, KID, ends that meet, and closed profiles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from sketchdnn.data.config import SPLITS
from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.features import Extractor, sketch_features
from sketchdnn.evaluation.metrics import frechet_estimate, kernel_distance
from sketchdnn.evaluation.samples import generate_samples, normalize_split
from sketchdnn.evaluation.scores import Features
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, is_closed, measure_gaps
from sketchdnn.generation import GenerateRequest
from sketchdnn.geometry import profile
from sketchdnn.geometry.quantities import parse_int_range
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.systems import System

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table
from .samples import cached_samples, weights_hash

# Fewer real sketches of a number are not compared.
_MIN_SKETCHES = 40
_FIELDS = ("kind", "construction", "params")
_COLUMNS = ("primitives", "sketches", "FID", "real", "KID × 1000", "real", "ends meet", "real", "closed", "real")
_PAGE = """# Sketches by number of primitives

    {command}

Sketches of `generate --primitives N --no-repair` for each N, and as many real ones. Both are scored against the same
held-out sketches of N primitives, those of the validation and test splits. "Real" is the training split in place of
generated sketches. In brackets, 95 % intervals.

{table}

- **FID** of so few sketches is far above that of 10,000; compare it with the real one beside it. **KID** does not
  depend on their number.
- **ends meet**: line and arc ends within 0.02 of another end, where the larger side is 2.
- **closed**: every curve is part of a loop; ends within {tolerance} of the size count as joined.
"""


@dataclass(frozen=True, slots=True)
class SetScore:
    """The scores of generated or real sketches with one number of primitives."""

    fid: Estimate
    kid: float
    ends: Estimate
    closed: Estimate


@dataclass(frozen=True, slots=True)
class CountScore:
    """Generated and real sketches with one number of primitives."""

    primitives: int
    sketches: int
    generated: SetScore
    real: SetScore

    def row(self) -> tuple[str, ...]:
        both = (self.generated, self.real)
        return (
            f"{self.primitives}",
            f"{self.sketches:,}",
            *(f"{each.fid.value:.1f} ({each.fid.low:.1f}–{each.fid.high:.1f})" for each in both),
            *(f"{1000 * each.kid:.1f}" for each in both),
            *(percent(each.ends) for each in both),
            *(percent(each.closed) for each in both),
        )


@dataclass(frozen=True, slots=True)
class PrimitiveCountBenchmark:
    """The scores of each number of primitives."""

    scores: tuple[CountScore, ...]

    def table(self) -> Table:
        return rich_table("Sketches by number of primitives", _COLUMNS, (score.row() for score in self.scores))

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        table = markdown_table(_COLUMNS, (score.row() for score in self.scores))
        return _PAGE.format(command=command, table=table, tolerance=LOOSE_TOLERANCE)


@dataclass(frozen=True, slots=True)
class PrimitiveCountTask:
    """The numbers of primitives to generate, and the real sketches to compare with.

    Attributes:
        sizes: The number of sketches for each number of primitives.
        real: As many sketches of the training split.
        reference: As many of the validation and test splits.
        seed: Of the sketches.
        steps: Denoising steps.
    """

    sizes: Mapping[int, int]
    real: Mapping[int, Compact]
    reference: Mapping[int, Compact]
    seed: int = 0
    steps: int = 50

    def request(self, number: int) -> GenerateRequest:
        return GenerateRequest.parse(
            count=self.sizes[number], primitives=number, seed=self.seed, steps=self.steps, repair=False
        )

    def identity(self, system: System) -> dict[str, str]:
        """What stored samples depend on."""
        sampler = system.resolve(SamplingOptions(None, self.steps)).sampler_name
        settings = {"sizes": dict(self.sizes), "seed": self.seed, "steps": self.steps, "sampler": sampler}
        return {"primitive counts": json.dumps(settings | {"model": weights_hash(system)})}


def parse_numbers(text: str) -> list[int]:
    """Numbers of primitives: a range, single ones, or both.

    >>> parse_numbers("3..5,8,12")
    [3, 4, 5, 8, 12]
    """
    numbers: set[int] = set()
    for word in text.split(","):
        low, high = parse_int_range(word, "--primitives", "3..16 or 4,8,12")
        numbers.update(range(low, high + 1))
    return sorted(numbers)


def choose_task(
    dataset: Dataset, numbers: Sequence[int], count: int = 1000, *, seed: int = 0, steps: int = 50
) -> PrimitiveCountTask:
    """The task for some numbers of primitives.

    Args:
        dataset: The corpus; it should hold sketches of all the numbers.
        numbers: Numbers of primitives.
        count: The most sketches of each number; there are no more than the training or the other splits have.
        seed: Of the sketches, and of the choice of real ones.
        steps: Denoising steps.

    Raises:
        SketchError: If the corpus has too few sketches of one of the numbers.
    """
    splits = [dataset.split(name).compact for name in SPLITS]
    train, *held_out = (normalize_split(each, is_normalized=dataset.half_extent == 1) for each in splits)
    rng = np.random.default_rng(seed)
    sizes: dict[int, int] = {}
    real: dict[int, Compact] = {}
    reference: dict[int, Compact] = {}
    for number in numbers:
        some, others = _with_count([train], number, rng), _with_count(held_out, number, rng)
        size = min(count, len(some), len(others))
        if size < _MIN_SKETCHES:
            raise SketchError(f"the corpus has only {size} sketches of {number} primitives to compare with")
        sizes[number], real[number], reference[number] = size, some[:size], others[:size]
    return PrimitiveCountTask(sizes, real, reference, seed, steps)


def sample_primitive_counts(
    system: System, task: PrimitiveCountTask, cache: Path | None = None, on_stage: OnStage = ignore_stage
) -> Mapping[int, Compact]:
    """Sketches of each number of primitives, generated or read from the cache."""

    def sample() -> Mapping[str, Tensor]:
        tensors = {}
        for number in task.sizes:
            on_stage(f"generating {number} primitives")
            compact = generate_samples(system, "", task.request(number)).compact
            for name in _FIELDS:
                tensors[f"{number}.{name}"] = torch.from_numpy(getattr(compact, name))
        return tensors

    samples = cached_samples(cache, task.identity(system), sample)
    return {number: Compact(*(samples[f"{number}.{name}"].numpy() for name in _FIELDS)) for number in task.sizes}


def score_primitive_counts(
    samples: Mapping[int, Compact], task: PrimitiveCountTask, extractor: Extractor, on_stage: OnStage = ignore_stage
) -> PrimitiveCountBenchmark:
    """Score the sketches of each number of primitives beside real ones."""
    scores = []
    for number, size in task.sizes.items():
        on_stage(f"scoring {number} primitives")
        features = sketch_features(task.reference[number], extractor)
        sets = [_score(each, features, extractor) for each in (samples[number], task.real[number])]
        scores.append(CountScore(number, size, *sets))
    return PrimitiveCountBenchmark(tuple(scores))


def _with_count(splits: Sequence[Compact], number: int, rng: np.random.Generator) -> Compact:
    """The sketches with so many primitives, in random order."""
    found = [each[np.flatnonzero(each.counts == number)] for each in splits]
    arrays = zip(*((each.kind, each.construction, each.params) for each in found), strict=True)
    rows = Compact(*map(np.concatenate, arrays))
    return rows[rng.permutation(len(rows))]


def _score(sketches: Compact, reference: Features, extractor: Extractor) -> SetScore:
    features = sketch_features(sketches, extractor)
    closed = sum(is_closed(profile(each.sketch, LOOSE_TOLERANCE)) for each in decode_compact(sketches))
    return SetScore(
        frechet_estimate(reference, features),
        kernel_distance(reference, features).value,
        measure_gaps(sketches).within_loose,
        share_estimate(closed, len(sketches)),
    )
