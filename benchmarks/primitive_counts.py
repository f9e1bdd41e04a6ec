"""Sketches of each number of primitives beside real ones: FID, KID, ends that meet, and closed profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from sketchdnn.data.config import SPLITS
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.evaluation.features import Extractor, sketch_features
from sketchdnn.evaluation.metrics import frechet_estimate, kernel_distance
from sketchdnn.evaluation.samples import generate_samples, normalize_split
from sketchdnn.evaluation.scores import Features
from sketchdnn.evaluation.validity import LOOSE_TOLERANCE, is_closed, measure_gaps
from sketchdnn.generation import GenerateRequest
from sketchdnn.geometry import profile
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.systems import System

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

# Fewer real sketches of a number are not compared.
_MIN_SKETCHES = 40
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


def score_primitive_counts(
    system: System,
    dataset: Dataset,
    extractor: Extractor,
    numbers: Sequence[int],
    count: int = 1000,
    *,
    seed: int = 0,
    steps: int = 50,
    on_stage: OnStage = ignore_stage,
) -> PrimitiveCountBenchmark:
    """Generate sketches of each number of primitives and score them beside real ones.

    Args:
        system: The model, on the device of the extractor.
        dataset: The corpus; it should hold sketches of all the numbers.
        extractor: The features of FID.
        numbers: Numbers of primitives.
        count: The most sketches of each number; there are no more than the training or the other splits have.
        seed: Of the sketches, and of the choice of real ones.
        steps: Denoising steps.
        on_stage: Called with the name of each stage.

    Raises:
        SketchError: If the corpus has too few sketches of one of the numbers.
    """
    splits = [dataset.split(name).compact for name in SPLITS]
    train, *held_out = (normalize_split(each, is_normalized=dataset.half_extent == 1) for each in splits)
    rng = np.random.default_rng(seed)
    scores = []
    for number in numbers:
        real, reference = _with_count([train], number, rng), _with_count(held_out, number, rng)
        size = min(count, len(real), len(reference))
        if size < _MIN_SKETCHES:
            raise SketchError(f"the corpus has only {size} sketches of {number} primitives to compare with")
        on_stage(f"{number} primitives")
        request = GenerateRequest.parse(count=size, primitives=number, seed=seed, steps=steps, repair=False)
        generated = generate_samples(system, "", request).compact
        features = sketch_features(reference[:size], extractor)
        sets = [_score(each, features, extractor) for each in (generated, real[:size])]
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
