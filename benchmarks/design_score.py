"""How well the score of design tells real sketches from corrupted ones, and the fit of its weights.

Every corrupted sketch is compared with its original, so both have the same features but for the defect. Whole sketches
are judged, and completions: a part of a real sketch, and its true rest or a corrupted one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sketchdnn.design
from sketchdnn.data.loader import Dataset
from sketchdnn.design.defect import DefectKind
from sketchdnn.design.score import WEIGHTS, Weights, features, find_defects, load_weights
from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.samples import normalize_split
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write
from sketchdnn.representation import decode_compact

from .completion_cases import find_cases
from .corruptions import CorruptionKind, corrupt
from .results import OnStage, ignore_stage

Floats = NDArray[np.float64]

KINDS = tuple(DefectKind)
# Ridge penalties, of which the one with the least loss on validation sketches is taken.
PENALTIES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)
# A kind of corruption with fewer originals is not reported.
LEAST = 10


class Pair(NamedTuple):
    """A real sketch and a corrupted one, with the number of primitives that are given in both."""

    real: Sketch
    corrupted: Sketch
    num_given: int = 0


class Measured(NamedTuple):
    """The features of pairs, `pair, kind of defect`, and whose pairs they are."""

    real: Floats
    corrupted: Floats
    num_primitives: NDArray[np.int64]


Pairs = Mapping[CorruptionKind, Sequence[Pair]]


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
                rows.append((row, other, len(real)))
        if rows:
            first, second, counts = zip(*rows, strict=True)
            measured[kind] = Measured(np.array(first), np.array(second), np.array(counts))
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
        whole = measure_features(whole_pairs(islice(sketches, _LIMIT), size, seed))
        completions = measure_features(completion_pairs(split_sketches(data, split, seed + 1), size, seed))
        splits.append(_stack([*whole.values(), *completions.values()]))
    train, validation = splits
    fitted = [_fit(train, penalty) for penalty in PENALTIES]
    best = min(fitted, key=lambda theta: _loss(theta, validation, 0.0)[0])
    weights = {kind: round(float(w), 3) for kind, w in zip(KINDS, best[1:], strict=True) if w >= 0.0005}
    return Weights(round(float(best[0]), 3), weights)


# So many sketches are searched for places for corruptions.
_LIMIT = 8000


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
