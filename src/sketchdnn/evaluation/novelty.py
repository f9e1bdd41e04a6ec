"""Is it new? Samples that are a training sketch again, samples that repeat each other, and how close the nearest
training sketch is; what real sketches that were held out do is always beside it.

What counts as the same sketch, on a grid and up to symmetry, is said in `representation.symmetric`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sketchdnn.representation import Compact
from sketchdnn.representation.fingerprint import Keys
from sketchdnn.representation.symmetric import symmetric_keys

from .curves import check
from .estimate import Estimate, share_estimate
from .neighbors import Neighbors, neighbors

GRIDS = (24, 64, 256)


@dataclass(frozen=True, slots=True)
class Repeats:
    """On a grid of so many levels: the share of samples found in the training split, and of real test sketches.

    `unique` is how many different sketches there are among the samples, as a share of all. It falls with their number,
    so `unique_of_equal` and `real_unique` compare the samples and the test split at the same size, the smaller of both.
    """

    levels: int
    found: Estimate
    real_found: Estimate
    unique: Estimate
    unique_of_equal: Estimate
    real_unique: Estimate


@dataclass(frozen=True, slots=True)
class Novelty:
    """Of `samples` samples against `train` training sketches, with `test` held-out real ones beside them."""

    samples: int
    train: int
    test: int
    equal: int
    repeats: tuple[Repeats, ...]
    neighbors: Neighbors


def novelty(
    samples: Compact,
    train: Compact,
    test: Compact,
    *,
    device: str = "cpu",
    on_progress: Callable[[float], None] | None = None,
) -> Novelty:
    """Look for every sample, and for every test sketch, in the training split."""
    for each in (samples, train, test):
        check(each)
    equal = min(len(samples), len(test))
    repeats = tuple(_repeats(samples, train, test, levels) for levels in GRIDS)
    near = neighbors(samples, train, test, device=device, on_progress=on_progress)
    return Novelty(len(samples), len(train), len(test), equal, repeats, near)


def _repeats(samples: Compact, train: Compact, test: Compact, levels: int) -> Repeats:
    ours, known, real = (symmetric_keys(each, levels) for each in (samples, train, test))
    equal = min(len(ours), len(real))
    return Repeats(
        levels,
        share_estimate(int(np.isin(ours, known).sum()), len(ours)),
        share_estimate(int(np.isin(real, known).sum()), len(real)),
        _unique(ours),
        _unique(ours[:equal]),
        _unique(real[:equal]),
    )


def _unique(keys: Keys) -> Estimate:
    return share_estimate(len(np.unique(keys)), len(keys))
