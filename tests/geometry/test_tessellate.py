"""Polylines stay as close to their curve as promised, and no finer than that needs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import arcs, circles, lines, points

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, tessellate

TOLERANCES = st.floats(1e-5, 2.0)


def worst(center: tuple[float, float], radius: float, places: np.ndarray) -> float:
    """How far the chords of a polyline stray from their circle: in the middle of each."""
    middles = (places[1:] + places[:-1]) / 2
    return float(np.max(radius - np.hypot(*(middles - center).T)))


@given(arcs, TOLERANCES)
def test_arcs_are_followed_closely(arc: Arc, tolerance: float) -> None:
    places = tessellate(arc, tolerance)
    assert (tuple(places[0]), tuple(places[-1])) == (arc.start, arc.end)
    np.testing.assert_allclose(np.hypot(*(places - arc.center).T), arc.radius)
    assert worst(arc.center, arc.radius, places) <= tolerance * (1 + 1e-6) + 1e-12
    length = sum(math.dist(a, b) for a, b in pairwise(places.tolist()))
    assert length <= arc.length * (1 + 1e-9)  # it goes there directly, not the other way round
    assert length >= arc.length * 0.9


@given(circles, TOLERANCES)
def test_circles_close(circle: Circle, tolerance: float) -> None:
    places = tessellate(circle, tolerance)
    assert tuple(places[0]) == tuple(places[-1])
    assert len(places) >= 5
    assert worst(circle.center, circle.radius, places) <= max(tolerance * (1 + 1e-6), 1e-12)


@given(circles, st.floats(1e-5, 1e-2))
def test_no_more_steps_than_needed(circle: Circle, tolerance: float) -> None:
    places = tessellate(circle, tolerance)
    steps = len(places) - 1
    fewer = steps - 1
    assert fewer < 4 or circle.radius * (1 - math.cos(math.pi / fewer)) > tolerance * (1 - 1e-6)


@given(lines, points, TOLERANCES)
def test_straight_things_need_nothing_more(line: Line, point: Point, tolerance: float) -> None:
    assert tessellate(line, tolerance).tolist() == [list(line.start), list(line.end)]
    assert tessellate(point, tolerance).tolist() == [list(point.at)]


@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, math.inf])
def test_a_tolerance_is_above_zero(tolerance: float) -> None:
    for p in (Line((0, 0), (1, 0)), Circle((0, 0), 1)):
        with pytest.raises(GeometryError, match="above zero"):
            tessellate(p, tolerance)


@pytest.mark.parametrize("tolerance", [1e-300, 1e-13])
def test_a_tolerance_beyond_reason_is_refused_before_it_fills_the_memory(tolerance: float) -> None:
    with pytest.raises(GeometryError, match="too fine"):
        tessellate(Circle((0, 0), 1e3), tolerance)
