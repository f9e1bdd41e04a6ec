"""Gaps of drawings whose gaps are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import parts, pulled_square, rows, sets, shuffled, square

from sketchdnn.evaluation.curves import end_gaps
from sketchdnn.evaluation.scores import drop_primitives, jitter_ends
from sketchdnn.evaluation.validity import measure_gaps
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch
from sketchdnn.representation import Compact, encode
from sketchdnn.representation.symmetric import NUM_SYMMETRIES, turned


def test_a_square_has_no_gaps() -> None:
    found = measure_gaps(rows(square()))
    assert found.median.value == 0
    assert found.within_fine.value == found.within_loose.value == found.sketches_within_loose.value == 1


@pytest.mark.parametrize(("by", "fine", "loose", "whole"), [(0.004, 8, 8, 1), (0.01, 6, 8, 1), (0.03, 6, 6, 0)])
def test_an_end_pulled_away_leaves_a_gap_on_both_sides(by: float, fine: int, loose: int, whole: int) -> None:
    compact = rows(pulled_square(by))
    distance = end_gaps(compact)[0, :4]
    assert sorted(distance.ravel().tolist())[-2:] == pytest.approx([by, by], abs=1e-6)
    found = measure_gaps(compact)
    assert found.within_fine.value == pytest.approx(fine / 8)
    assert found.within_loose.value == pytest.approx(loose / 8)
    assert found.sketches_within_loose.value == whole


def test_the_own_other_end_circles_and_points_do_not_count() -> None:
    short = Line((0, 0), (0.001, 0))
    compact = rows([short, Circle((0, 0), 1), Point((0, 0)), Point((0.001, 0))], [Circle((0, 0), 1)])
    distance = end_gaps(compact)
    assert np.isinf(distance[0, 0]).all()
    assert np.isnan(distance[0, 1:]).all()
    assert np.isnan(distance[1]).all()
    found = measure_gaps(compact)
    assert found.within_loose.value == 0
    assert found.sketches_within_loose.value == 0  # of the one sketch that has ends


def test_ends_of_arcs_and_of_construction_count() -> None:
    half = Arc((0, 0), 1, 0, math.pi)
    assert end_gaps(rows([half, Line((-1, 0), (1, 0), True)]))[0, :2].max() == pytest.approx(0, abs=1e-6)


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_turning_and_reordering_change_no_gap(compact: Compact, symmetry: int, seed: int) -> None:
    before, after = end_gaps(compact), end_gaps(shuffled(turned(compact, symmetry), seed))
    for one, other in zip(before.reshape(len(before), -1), after.reshape(len(after), -1), strict=True):
        np.testing.assert_allclose(np.sort(one), np.sort(other), atol=1e-12)


def test_large_sets_are_measured_in_pieces_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    compact = parts(40)
    whole = end_gaps(compact)
    monkeypatch.setattr("sketchdnn.evaluation.gaps.CHUNK", 3 * 4 * 16**2)
    np.testing.assert_array_equal(end_gaps(compact), whole)


def test_noise_opens_gaps_and_more_noise_opens_more() -> None:
    found = [measure_gaps(jitter_ends(parts(200), sigma, seed=0)) for sigma in (0, 0.005, 0.02, 0.05)]
    for name in ("within_fine", "within_loose", "sketches_within_loose"):
        values = [getattr(each, name).value for each in found]
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1]
    medians = [each.median.value for each in found]
    assert medians == sorted(set(medians))


def test_missing_primitives_leave_ends_alone() -> None:
    values = [
        measure_gaps(drop_primitives(parts(200), share, seed=0)).within_loose.value for share in (0, 0.1, 0.2, 0.4)
    ]
    assert values == sorted(set(values), reverse=True)


def test_any_number_of_rows_will_do() -> None:
    many = encode([Sketch(tuple(square()))], max_primitives=40)
    assert measure_gaps(many) == measure_gaps(rows(square()))
