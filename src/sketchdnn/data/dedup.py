"""Which of all candidates enter the corpus, in which split and at which place: decided from their keys alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .config import SPLITS, PrepareConfig
from .hashing import Keys, shares


@dataclass(frozen=True, slots=True)
class Survivors:
    """Candidates that are kept, in the order of the corpus: `index` into all candidates, and `split` by number.

    `group_sizes` counts how many groups of duplicates had one member, two, and so on. `repeated` counts, by split, what
    was left out because a sketch of an earlier split is its image under a symmetry of the square.
    """

    index: NDArray[np.int64]
    split: NDArray[np.int8]
    group_sizes: Counter[int]
    repeated: dict[str, int]

    def __len__(self) -> int:
        return len(self.index)

    def count(self, split: str) -> int:
        """How many fall into this split."""
        return int((self.split == SPLITS.index(split)).sum())


def survivors(
    duplicate: Keys, content: Keys, tie: Keys, split: Keys, symmetric: Keys, config: PrepareConfig
) -> Survivors:
    """One of each group of duplicates, the smallest by content and tie, ordered by split, content and tie.

    Nothing depends on the order of the candidates, so neither on the order of the input nor on how it was cut.
    """
    by_group = np.lexsort((tie, content, duplicate))
    first = np.flatnonzero(np.diff(duplicate[by_group], prepend=~duplicate[by_group[:1]]))
    sizes = np.diff(first, append=len(by_group))
    kept = by_group[first]
    part = split_of(split[kept], config)
    repeats = _repeats(symmetric[kept], part) if config.distinct_splits else np.zeros(len(kept), bool)
    repeated = {name: int((repeats & (part == number)).sum()) for number, name in enumerate(SPLITS)}
    kept, part = kept[~repeats], part[~repeats]
    order = np.lexsort((tie[kept], content[kept], part))
    group_sizes = Counter(dict(zip(*(c.tolist() for c in np.unique(sizes, return_counts=True)), strict=True)))
    return Survivors(kept[order].astype(np.int64), part[order], group_sizes, repeated)


def _repeats(symmetric: Keys, part: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which sketches equal one of an earlier split up to symmetry."""
    repeats = np.zeros(len(part), bool)
    for number in range(1, len(SPLITS)):
        here = part == number
        repeats[here] = np.isin(symmetric[here], symmetric[part < number])
    return repeats


def split_of(keys: Keys, config: PrepareConfig) -> NDArray[np.int8]:
    """The number of the split that each key falls into. Adding sketches to a corpus moves none of the others."""
    ends = np.cumsum(config.fractions)[:-1]
    return np.searchsorted(ends, shares(keys, config.split_seed), side="right").astype(np.int8)
