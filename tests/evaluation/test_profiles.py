"""What closes and what lies on top of what, in drawings where that is known."""

from __future__ import annotations

import pytest
from support.drawn_sets import pulled_square, square

from sketchdnn.evaluation.validity import EXACT_TOLERANCE, LOOSE_TOLERANCE, measure_profiles
from sketchdnn.geometry import Circle, Line, Point, Sketch


def sketch(*items: Line | Circle | Point) -> Sketch:
    return Sketch(tuple(items))


SQUARE, AJAR, OPEN = (Sketch(tuple(each)) for each in (square(), pulled_square(0.01), pulled_square(0.03)))


@pytest.mark.parametrize(("tolerance", "closed"), [(EXACT_TOLERANCE, 1 / 3), (LOOSE_TOLERANCE, 2 / 3)])
def test_a_square_closes_and_one_ajar_closes_loosely(tolerance: float, closed: float) -> None:
    found = measure_profiles([SQUARE, AJAR, OPEN], tolerance)
    assert found.closed.value == found.extrudable.value == pytest.approx(closed)
    assert found.overlapping.value == 0


def test_crossing_loops_close_but_cannot_be_extruded() -> None:
    found = measure_profiles([sketch(Circle((0, 0), 1), Circle((1, 0), 1))])
    assert (found.closed.value, found.extrudable.value) == (1, 0)


def test_points_and_construction_close_nothing() -> None:
    only = sketch(Circle((0, 0), 1, True), Point((0, 0)))
    assert measure_profiles([only, Sketch(())]).closed.value == 0


def test_overlaps_are_counted_by_sketch_and_by_primitive() -> None:
    doubled = sketch(*square(), Line((-0.5, -1), (0.5, -1)))
    found = measure_profiles([SQUARE, doubled])
    assert found.overlapping.value == 0.5
    assert found.primitives_overlapping.value == pytest.approx(2 / 9)


def test_progress_goes_from_nothing_towards_all() -> None:
    seen: list[float] = []
    measure_profiles([SQUARE] * 250, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert 0 < seen[-1] <= 1
