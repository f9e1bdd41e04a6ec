"""How well the design score separates real sketches from corrupted ones, and the fit of its weights.

Every corrupted sketch is compared with its original, so both have the same features but for the defect. Whole sketches
are scored, and completions: a part of a real sketch, and its true rest or a corrupted one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import sketchdnn.design
from sketchdnn.data.loader import Dataset
from sketchdnn.design.defect import DefectKind
from sketchdnn.design.score import WEIGHTS, Weights, features, find_defects, load_weights
from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.estimates import Estimate, normal_estimate
from sketchdnn.evaluation.samples import normalize_split
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.representation import decode_compact

from .completion_cases import find_cases
from .corruptions import CorruptionKind, corrupt
from .results import OnStage, ignore_stage, markdown_table, rich_table

Floats = NDArray[np.float64]

KINDS = tuple(DefectKind)
# Ridge penalties, of which the one with the least loss on validation sketches is taken.
PENALTIES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)
# A kind of corruption with fewer originals is not reported.
LEAST = 10
# So many sketches are searched for places for corruptions.
LIMIT = 8000
_COLUMNS = ("corruption", "sketches", "AUC", "lower than its original", "completions", "AUC", "lower than its original")
_PAGE = """# The score of designs on real and corrupted sketches

    {command}

Test sketches, each beside itself with one deliberate defect (`benchmarks/corruptions.py`). As a completion, part of the
sketch is given, and only the rest is corrupted and judged. The weights of the score were fitted on the training split
(`--fit`). In brackets, 95 % intervals.

{table}

- **AUC**: how often a random real sketch scores higher than a random corrupted one; equal scores count half.
- **lower than its original**: how often a corrupted sketch scores lower than the sketch it was made from; equal scores
  count half.
"""


class Pair(NamedTuple):
    """A real sketch and a corrupted one, with the number of primitives that are given in both."""

    real: Sketch
    corrupted: Sketch
    num_given: int = 0


class Measured(NamedTuple):
    """The features of pairs, `pair, kind of defect`."""

    real: Floats
    corrupted: Floats


Pairs = Mapping[CorruptionKind, Sequence[Pair]]


class Separation(NamedTuple):
    """How well the score separates the real from the corrupted sketches of some pairs."""

    pairs: int
    auc: Estimate
    paired: float

    def cells(self) -> tuple[str, ...]:
        auc = f"{self.auc.value:.3f} ({self.auc.low:.3f}–{self.auc.high:.3f})"
        return (f"{self.pairs:,}", auc, f"{self.paired:.1%}")


@dataclass(frozen=True, slots=True)
class DesignScoreBenchmark:
    """Real against corrupted test sketches, whole and as completions, by kind of corruption and in all."""

    rows: Mapping[str, tuple[Separation | None, Separation | None]]

    def cells(self) -> list[tuple[str, ...]]:
        missing = ("–",) * 3
        return [
            (name, *(cell for each in both for cell in (missing if each is None else each.cells())))
            for name, both in self.rows.items()
        ]

    def table(self) -> Table:
        return rich_table("Real against corrupted sketches", _COLUMNS, self.cells())

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(command=command, table=markdown_table(_COLUMNS, self.cells()))


def score_design_score(
    data: Path, *, per_kind: int = 200, seed: int = 0, on_stage: OnStage = ignore_stage
) -> DesignScoreBenchmark:
    """Score real and corrupted sketches of the test split with the weights of the package."""
    on_stage("whole sketches")
    whole = measure_features(whole_pairs(islice(split_sketches(data, "test", seed), LIMIT), per_kind, seed))
    on_stage("completions")
    completions = measure_features(completion_pairs(split_sketches(data, "test", seed + 1), per_kind, seed))
    rows: dict[str, tuple[Separation | None, Separation | None]] = {}
    for kind in CorruptionKind:
        both = [_separate([group[kind]] if kind in group else []) for group in (whole, completions)]
        if any(both):
            rows[kind] = (both[0], both[1])
    rows["all"] = (_separate(list(whole.values())), _separate(list(completions.values())))
    return DesignScoreBenchmark(rows)


def _separate(groups: Sequence[Measured]) -> Separation | None:
    """The separation of all pairs of the groups; None if they are too few."""
    real, corrupted = (_odds(np.concatenate([each[k] for each in groups])) if groups else np.zeros(0) for k in (0, 1))
    if len(real) < LEAST:
        return None
    higher = (real[:, None] > corrupted).astype(np.float64) + 0.5 * (real[:, None] == corrupted)
    # DeLong's variance: that of the placement of each sketch among the other set.
    variance = higher.mean(axis=1).var(ddof=1) / len(real) + higher.mean(axis=0).var(ddof=1) / len(corrupted)
    auc = normal_estimate(float(higher.mean()), float(variance) ** 0.5)
    auc = Estimate(auc.value, max(auc.low, 0.0), min(auc.high, 1.0))
    return Separation(len(real), auc, float(higher.diagonal().mean()))


def _odds(rows: Floats) -> Floats:
    weights = load_weights()
    return np.asarray(weights.intercept - rows @ np.array([weights.weights.get(kind, 0.0) for kind in KINDS]))


def whole_pairs(sketches: Iterable[Sketch], per_kind: int, seed: int = 0) -> Pairs:
    """Up to so many pairs of whole sketches for each kind of corruption."""
    return _corrupted(((sketch, 0) for sketch in sketches), per_kind, seed)


def completion_pairs(sketches: Iterable[Sketch], per_kind: int, seed: int = 0) -> Pairs:
    """Up to so many pairs of completions for each kind of corruption: the tasks of `completion_cases`."""
    cases = find_cases(sketches, 4 * per_kind, seed)
    order = np.random.default_rng(seed).permutation(len(cases))
    mixed = [cases[number] for number in order]
    originals = (replace(case.part, primitives=case.part.primitives + case.hidden) for case in mixed)
    return _corrupted(zip(originals, (len(case.part) for case in mixed), strict=True), per_kind, seed)


def _corrupted(originals: Iterable[tuple[Sketch, int]], per_kind: int, seed: int) -> Pairs:
    rng = np.random.default_rng(seed)
    pairs: dict[CorruptionKind, list[Pair]] = {kind: [] for kind in CorruptionKind}
    for sketch, num_given in originals:
        wanted = [kind for kind in CorruptionKind if len(pairs[kind]) < per_kind]
        if not wanted:
            break
        for kind in wanted:
            if (changed := corrupt(sketch, kind, rng, num_given)) is not None:
                pairs[kind].append(Pair(sketch, changed, num_given))
    return pairs


def split_sketches(data: Path, split: str, seed: int = 0) -> Iterator[Sketch]:
    """The sketches of a split in a random order in which all numbers of primitives take turns."""
    corpus = Dataset.open(data)
    compact = normalize_split(corpus.split(split).compact, is_normalized=corpus.half_extent == 1)
    order = np.random.default_rng(seed).permutation(len(compact))
    turn: Counter[int] = Counter()
    turns = []
    for count in compact.counts[order].tolist():
        turns.append(turn[count])
        turn[count] += 1
    for number in order[np.argsort(turns, kind="stable")]:
        (decoded,) = decode_compact(compact[number : number + 1])
        yield decoded.sketch


def measure_features(pairs: Pairs) -> dict[CorruptionKind, Measured]:
    """The features of each kind's pairs, without sketches that are too small to be measured."""
    cache: dict[tuple[Sketch, int], Floats | None] = {}
    measured = {}
    for kind, some in pairs.items():
        rows = []
        for real, corrupted, num_given in some:
            if (real, num_given) not in cache:
                cache[real, num_given] = _features(real, num_given)
            row, other = cache[real, num_given], _features(corrupted, num_given)
            if row is not None and other is not None:
                rows.append((row, other))
        if rows:
            first, second = zip(*rows, strict=True)
            measured[kind] = Measured(np.array(first), np.array(second))
    return measured


def _features(sketch: Sketch, num_given: int) -> Floats | None:
    try:
        found = features(find_defects(sketch, num_given))
    except GeometryError:
        return None
    return np.array([found.get(kind, 0.0) for kind in KINDS])


def fit_weights(data: Path, *, per_kind: int = 250, seed: int = 0, on_stage: OnStage = ignore_stage) -> Weights:
    """Fit the weights on the training split; the validation split chooses the penalty.

    Each kind of corruption counts alike, and so do whole sketches and completions.
    """
    splits = []
    for split, size in (("train", per_kind), ("validation", per_kind // 2)):
        on_stage(f"features of {split} sketches")
        sketches = split_sketches(data, split, seed)
        whole = measure_features(whole_pairs(islice(sketches, LIMIT), size, seed))
        completions = measure_features(completion_pairs(split_sketches(data, split, seed + 1), size, seed))
        splits.append(_stack([*whole.values(), *completions.values()]))
    train, validation = splits
    fitted = [_fit(train, penalty) for penalty in PENALTIES]
    best = min(fitted, key=lambda theta: _loss(theta, validation, 0.0)[0])
    weights = {kind: round(float(w), 3) for kind, w in zip(KINDS, best[1:], strict=True) if w >= 0.0005}
    return Weights(round(float(best[0]), 3), weights)


class _Sample(NamedTuple):
    real: Floats
    corrupted: Floats
    weight: Floats  # of each pair; adds up to 1


def _stack(groups: Sequence[Measured]) -> _Sample:
    weight = np.concatenate([np.full(len(group.real), 1 / len(group.real) / len(groups)) for group in groups])
    return _Sample(
        np.concatenate([group.real for group in groups]), np.concatenate([group.corrupted for group in groups]), weight
    )


def _fit(sample: _Sample, penalty: float) -> Floats:
    """The intercept, followed by the weights, none of them negative."""
    from scipy.optimize import minimize

    bounds = [(None, None)] + [(0.0, None)] * len(KINDS)
    result = minimize(_loss, np.ones(1 + len(KINDS)), (sample, penalty), "L-BFGS-B", jac=True, bounds=bounds)
    return np.asarray(result.x, np.float64)


def _loss(theta: Floats, sample: _Sample, penalty: float) -> tuple[float, Floats]:
    """The negative log likelihood of real and corrupted sketches, with its gradient."""
    real, corrupted = (theta[0] - rows @ theta[1:] for rows in (sample.real, sample.corrupted))
    loss = sample.weight @ (np.logaddexp(0, -real) + np.logaddexp(0, corrupted)) + penalty * (theta[1:] @ theta[1:])
    off = [sample.weight / (1 + np.exp(real)), sample.weight / (1 + np.exp(-corrupted))]
    slope = off[0] @ sample.real - off[1] @ sample.corrupted + 2 * penalty * theta[1:]
    return float(loss), np.concatenate([[off[1].sum() - off[0].sum()], slope])


def write_weights(weights: Weights) -> Path:
    """Replace the weights of the package."""
    path = Path(sketchdnn.design.__path__[0]) / WEIGHTS
    content = {"intercept": weights.intercept, "weights": {kind.value: w for kind, w in weights.weights.items()}}
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    load_weights.cache_clear()
    return path
