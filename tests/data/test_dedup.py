"""Who stays: decided by what a sketch is, never by where it stood."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.data import PRESETS
from sketchdnn.data.candidates import assign_splits, select_candidates

OURS = PRESETS["ours"]
small = st.integers(0, 6)


@given(st.lists(st.tuples(small, small, small, small), min_size=0, max_size=40, unique=True), st.randoms())
def test_the_order_of_candidates_does_not_matter(rows: list[tuple[int, ...]], dice: object) -> None:
    def chosen(some: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], int]]:
        keys = np.array(some, np.uint64).reshape(-1, 4)
        kept = select_candidates(np.stack([*keys.T, keys[:, 0]]), replace(OURS, distinct_splits=False))
        return [(some[i], s) for i, s in zip(kept.index.tolist(), kept.split.tolist(), strict=True)]

    first = chosen(rows)
    mixed = list(rows)
    dice.shuffle(mixed)  # type: ignore[attr-defined]
    # Rows that agree in all but the split do not occur: what they stand for is the same in every respect.
    if len({row[:3] for row in rows}) == len(rows):
        assert chosen(mixed) == first
    assert len({row[0] for row, _ in first}) == len(first) == len({row[0] for row in rows})


def test_the_smallest_content_of_a_group_stays() -> None:
    keys = np.array([[5, 30, 1, 0], [5, 10, 9, 0], [5, 10, 2, 0], [8, 7, 0, 0]], np.uint64)
    kept = select_candidates(np.stack([*keys.T, keys[:, 0]]), OURS)
    assert sorted(kept.index.tolist()) == [2, 3]
    assert kept.group_sizes == {3: 1, 1: 1}


def test_shares_are_as_asked() -> None:
    keys = np.random.default_rng(0).integers(0, 2**63, 50_000).astype(np.uint64)
    for preset in PRESETS.values():
        counts = np.bincount(assign_splits(keys, preset), minlength=3) / len(keys)
        assert np.abs(counts - preset.fractions).max() < 0.01


def test_all_of_a_group_fall_together_and_the_seed_moves_them() -> None:
    keys = np.repeat(np.arange(1000, dtype=np.uint64), 5)
    split = assign_splits(keys, OURS).reshape(1000, 5)
    assert (split == split[:, :1]).all()
    assert (assign_splits(keys, replace(OURS, split_seed=1)) != split.reshape(-1)).any()


def test_no_share_no_sketch() -> None:
    keys = np.arange(1000, dtype=np.uint64)
    assert set(assign_splits(keys, replace(OURS, fractions=(1.0, 0.0, 0.0))).tolist()) == {0}


@given(st.lists(st.tuples(small, small), min_size=1, max_size=60))
def test_no_split_repeats_an_earlier_one_up_to_symmetry(rows: list[tuple[int, int]]) -> None:
    split, symmetric = np.array(rows, np.uint64).T
    number = np.arange(len(rows), dtype=np.uint64)
    kept = select_candidates(np.stack([number, number, number, split, symmetric]), OURS)
    there = [set(symmetric[kept.index[kept.split == part]].tolist()) for part in range(3)]
    assert not any(earlier & later for earlier, later in combinations(there, 2))
    # The earliest split keeps all of its own, and what is missing is counted.
    all_parts = assign_splits(split, OURS)
    assert (kept.split == all_parts.min()).sum() == (all_parts == all_parts.min()).sum()
    assert len(kept) + sum(kept.repeated.values()) == len(rows)
