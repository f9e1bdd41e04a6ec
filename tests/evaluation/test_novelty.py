"""A training sketch is found again, however it is turned, mirrored, reordered or reversed, and another is not."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.corpora import open_sketches
from support.drawn_sets import parts, rows, sets, shuffled, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.novelty import GRIDS, measure_novelty
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.geometry import Arc, Circle, Line, Primitive, Sketch, normalize
from sketchdnn.representation import Compact, encode
from sketchdnn.representation.symmetric import NUM_SYMMETRIES, symmetric_keys, turned

BRACKET: list[Primitive] = [*square(), Arc((-0.4, 0.3), 0.37, 0.2, 1.9), Circle((0.55, 0.21), 0.13, True)]


def same(a: Compact, b: Compact, levels: int) -> bool:
    return bool(symmetric_keys(a, levels)[0] == symmetric_keys(b, levels)[0])


@pytest.mark.parametrize("levels", GRIDS)
@pytest.mark.parametrize("symmetry", range(NUM_SYMMETRIES))
def test_a_turned_or_mirrored_copy_is_found(levels: int, symmetry: int) -> None:
    assert same(rows(BRACKET), shuffled(turned(rows(BRACKET), symmetry), 3), levels)


@pytest.mark.parametrize("levels", GRIDS)
def test_direction_of_lines_and_empty_rows_do_not_count(levels: int) -> None:
    turned_round = [replace(p, start=p.end, end=p.start) if isinstance(p, Line) else p for p in BRACKET]
    roomy = encode([Sketch(tuple(turned_round))], max_primitives=30)
    assert same(rows(BRACKET), roomy, levels)


@pytest.mark.parametrize("levels", GRIDS)
def test_what_is_moved_bent_or_flagged_otherwise_is_another_sketch(levels: int) -> None:
    arc, circle = BRACKET[4:]
    cell = 2 / levels
    others: list[list[Primitive]] = [
        [*square(), arc, Circle((0.55 + cell, 0.21), 0.13, True)],
        [*square(), arc, Circle((0.55, 0.21), 0.13 + cell, True)],
        [*square(), arc, Circle((0.55, 0.21), 0.13)],
        [*square(), Arc((-0.4, 0.3), 0.37, 0.2, 1.9 + cell * math.pi), circle],
        [*square(), arc],
        [*square(), arc, circle, circle],
    ]
    assert not any(same(rows(BRACKET), rows(other), levels) for other in others)


def test_a_little_inexact_copy_of_round_numbers_is_found_on_the_coarse_grid_alone() -> None:
    plate = rows([*square(), Circle((0.5, 0.25), 0.25), Circle((-0.5, 0), 1 / 3)])
    copy = jitter_ends(plate, 0.004, seed=0)
    assert same(plate, copy, 24)
    assert not same(plate, copy, 256)


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99), st.sampled_from(GRIDS))
def test_keys_do_not_depend_on_symmetry_or_order(compact: Compact, symmetry: int, seed: int, levels: int) -> None:
    other = shuffled(turned(compact, symmetry), seed)
    np.testing.assert_array_equal(symmetric_keys(compact, levels), symmetric_keys(other, levels))


def test_copies_are_counted_and_repeats_too() -> None:
    train, test = parts(60)[:40], parts(60)[40:]
    copied = shuffled(turned(train[:10], 5), 1)
    samples = Compact(*(np.concatenate([getattr(c, n) for c in (copied, copied)]) for n in Compact.__slots__))
    found = measure_novelty(samples, train, test)
    for repeats in found.repeats:
        assert repeats.found.value == 1
        assert repeats.unique.value <= 0.5
        assert repeats.real_found.value < 1
    assert max(found.neighbors.samples) == 0
    assert (found.samples, found.train, found.test, found.equal) == (20, 40, 20, 20)


def test_unique_shares_are_compared_at_the_same_size() -> None:
    """Eight samples, the last four repeats of the first, beside four test sketches: as many count of each."""
    samples = parts(60)[[0, 1, 2, 3, 0, 1, 2, 3]]
    for found, equal in (
        (measure_novelty(samples, parts(60), parts(60)[40:44]), 4),
        (measure_novelty(samples, parts(60), samples), 8),
    ):
        assert found.equal == equal
        finest = found.repeats[-1]
        assert finest.unique.value == 0.5
        assert finest.unique_of_equal.value == finest.real_unique.value == 4 / equal


def test_finer_grids_find_no_more() -> None:
    found = measure_novelty(jitter_ends(parts(120)[:60], 0.01, seed=2), parts(120), parts(120)[60:])
    values = [repeats.found.value for repeats in found.repeats]
    assert values[-1] == 0
    assert values[0] >= values[1] >= values[2]


def test_empty_sets_are_refused() -> None:
    with pytest.raises(GeometryError, match="no sketches"):
        measure_novelty(parts(5)[:0], parts(5), parts(5))


def test_real_sketches_are_themselves_and_rarely_each_other(real_data: Path) -> None:
    some = encode([normalize(s)[0] for s in open_sketches(real_data, 400) if len(s) <= 16])
    keys = symmetric_keys(some, 256)
    np.testing.assert_array_equal(keys, symmetric_keys(shuffled(turned(some, 6), 0), 256))
