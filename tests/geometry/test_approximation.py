"""Polylines, lines and arcs stay within the tolerance of their curves, with exact ends."""

import math
import random
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import arcs, circles, lines, points

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Bezier, Circle, EllipticArc, Line, Point, Vec
from sketchdnn.geometry.approximation import ParametricCurve, approximate, quadratic_bezier, tessellate
from sketchdnn.geometry.intersections import distance_to_curve

TOLERANCES = st.floats(1e-5, 2.0)


def worst(center: tuple[float, float], radius: float, polyline: np.ndarray) -> float:
    """The largest distance of the middle of a chord from its circle."""
    middles = (polyline[1:] + polyline[:-1]) / 2
    return float(np.max(radius - np.hypot(*(middles - center).T)))


@given(arcs, TOLERANCES)
def test_polyline_of_an_arc_is_within_the_tolerance(arc: Arc, tolerance: float) -> None:
    polyline = tessellate(arc, tolerance)
    assert (tuple(polyline[0]), tuple(polyline[-1])) == (arc.start, arc.end)
    np.testing.assert_allclose(np.hypot(*(polyline - arc.center).T), arc.radius)
    assert worst(arc.center, arc.radius, polyline) <= tolerance * (1 + 1e-6) + 1e-12
    length = sum(math.dist(a, b) for a, b in pairwise(polyline.tolist()))
    assert length <= arc.length * (1 + 1e-9)  # it goes there directly, not the other way round
    assert length >= arc.length * 0.9


@given(circles, TOLERANCES)
def test_polyline_of_a_circle_is_closed_and_has_no_needless_steps(circle: Circle, tolerance: float) -> None:
    polyline = tessellate(circle, tolerance)
    assert tuple(polyline[0]) == tuple(polyline[-1])
    assert len(polyline) >= 5
    assert worst(circle.center, circle.radius, polyline) <= max(tolerance * (1 + 1e-6), 1e-12)
    fewer = len(polyline) - 2
    assert fewer < 4 or circle.radius * (1 - math.cos(math.pi / fewer)) > tolerance * (1 - 1e-6)


@given(lines, points, TOLERANCES)
def test_lines_and_points_are_exact(line: Line, point: Point, tolerance: float) -> None:
    assert tessellate(line, tolerance).tolist() == [list(line.start), list(line.end)]
    assert tessellate(point, tolerance).tolist() == [list(point.at)]


def test_invalid_tolerances_are_refused() -> None:
    for tolerance in (0.0, -1.0, math.nan, math.inf):
        for p in (Line((0, 0), (1, 0)), Circle((0, 0), 1)):
            with pytest.raises(GeometryError, match="above zero"):
                tessellate(p, tolerance)
    for tolerance in (1e-300, 1e-13):
        with pytest.raises(GeometryError, match="too fine"):
            tessellate(Circle((0, 0), 1e3), tolerance)


def some_curves(count: int) -> Iterator[ParametricCurve]:
    """Curves of all kinds with random coordinates, loops, cusps and a few that run back on themselves."""
    rng = random.Random(0)

    def random_point() -> Vec:
        return (round(rng.uniform(-100, 100), 3), round(rng.uniform(-100, 100), 3))

    for _ in range(count):
        yield Bezier((random_point(), random_point(), random_point(), random_point()))
        yield quadratic_bezier(random_point(), random_point(), random_point())
        yield EllipticArc(random_point(), random_point(), random_point(), rng.uniform(-7, 7), rng.uniform(0.1, TAU))
        yield EllipticArc(random_point(), random_point(), random_point())
    yield EllipticArc((0, 0), (0, 0), (0, 5), 0, 2)
    yield Bezier(((0, 0), (30, 30), (0, 30), (30, 0)))
    yield Bezier(((0, 0), (40, 40), (-40, 40), (0, 0)))


@pytest.mark.parametrize("tolerance", [0.01, 1.0])
def test_approximation_stays_within_tolerance_and_keeps_ends(tolerance: float) -> None:
    for curve in some_curves(8):
        pieces = approximate(curve, tolerance)
        low, high = curve.breaks[0], curve.breaks[-1]
        for k in range(101):
            point = curve.at(low + (high - low) * k / 100)[0]
            assert min(distance_to_curve(piece, point) for piece in pieces) <= tolerance, curve
        ends = [{piece.start, piece.end} for piece in pieces]
        for wanted, found in ((curve.ends[0], ends[0]), (curve.ends[1], ends[-1])):
            assert min(math.dist(wanted, end) for end in found) < 1e-10
        for before, after in pairwise(ends):
            assert min(math.dist(a, b) for a in before for b in after) < 1e-10


def test_simple_curves_become_few_primitives_and_impossible_ones_are_refused() -> None:
    quarter = Bezier(((10, 0), (10, 5.5228475), (5.5228475, 10), (0, 10)))
    (arc,) = approximate(quarter, 0.01)
    assert isinstance(arc, Arc)
    assert (*arc.center, arc.radius) == pytest.approx((0, 0, 10), abs=1e-4)
    assert approximate(Bezier(((0, 0), (0, 0), (5, 5), (9, 9))), 0.01) == (Line((0, 0), (9, 9)),)
    assert len(approximate(EllipticArc((0, 0), (50, 0), (0, 20)), 0.01)) < 60
    for curve in (
        Bezier(((1, 1),) * 4),
        Bezier(((0, 0), (math.inf, 0), (1, 1), (2, 0))),
        EllipticArc((0, 0), (1e300, 0), (0, 1)),
    ):
        with pytest.raises(GeometryError):
            approximate(curve, 0.01)
