"""Curves as lines and arcs: within the tolerance, joined end to end, ends exact."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Bezier, EllipticArc, Line, ParametricCurve, Vec, approximate, quadratic_bezier


def some_curves(count: int) -> Iterator[ParametricCurve]:
    """Curves of all kinds with random coordinates, loops, cusps and a few that run back on themselves."""
    dice = random.Random(0)

    def place() -> Vec:
        return (round(dice.uniform(-100, 100), 3), round(dice.uniform(-100, 100), 3))

    for _ in range(count):
        yield Bezier((place(), place(), place(), place()))
        yield quadratic_bezier(place(), place(), place())
        yield EllipticArc(place(), place(), place(), dice.uniform(-7, 7), dice.uniform(0.1, TAU))
        yield EllipticArc(place(), place(), place())
    yield EllipticArc((0, 0), (0, 0), (0, 5), 0, 2)
    yield Bezier(((0, 0), (30, 30), (0, 30), (30, 0)))
    yield Bezier(((0, 0), (40, 40), (-40, 40), (0, 0)))


def distance(place: Vec, shape: Line | Arc) -> float:
    if isinstance(shape, Line):
        (ax, ay), (bx, by) = shape.start, shape.end
        dx, dy = bx - ax, by - ay
        t = min(1.0, max(0.0, ((place[0] - ax) * dx + (place[1] - ay) * dy) / (dx * dx + dy * dy)))
        return math.dist(place, (ax + t * dx, ay + t * dy))
    angle = math.atan2(place[1] - shape.center[1], place[0] - shape.center[0])
    if (angle - shape.start_angle) % TAU <= shape.sweep:
        return abs(math.dist(place, shape.center) - shape.radius)
    return min(math.dist(place, shape.start), math.dist(place, shape.end))


@pytest.mark.parametrize("tolerance", [0.01, 1.0])
def test_approximation_stays_within_tolerance_and_keeps_ends(tolerance: float) -> None:
    for curve in some_curves(8):
        pieces = approximate(curve, tolerance)
        low, high = curve.breaks[0], curve.breaks[-1]
        for k in range(101):
            place = curve.at(low + (high - low) * k / 100)[0]
            assert min(distance(place, piece) for piece in pieces) <= tolerance, curve
        ends = [{piece.start, piece.end} for piece in pieces]
        for wanted, found in ((curve.ends[0], ends[0]), (curve.ends[1], ends[-1])):
            assert min(math.dist(wanted, end) for end in found) < 1e-10
        for before, after in pairwise(ends):
            assert min(math.dist(a, b) for a in before for b in after) < 1e-10


def test_simple_curves_become_few_primitives() -> None:
    quarter = Bezier(((10, 0), (10, 5.5228475), (5.5228475, 10), (0, 10)))
    (arc,) = approximate(quarter, 0.01)
    assert isinstance(arc, Arc)
    assert (*arc.center, arc.radius) == pytest.approx((0, 0, 10), abs=1e-4)
    assert approximate(Bezier(((0, 0), (0, 0), (5, 5), (9, 9))), 0.01) == (Line((0, 0), (9, 9)),)
    assert len(approximate(EllipticArc((0, 0), (50, 0), (0, 20)), 0.01)) < 60


def test_curve_without_length_or_with_impossible_numbers_is_refused() -> None:
    for curve in (
        Bezier(((1, 1),) * 4),
        Bezier(((0, 0), (math.inf, 0), (1, 1), (2, 0))),
        EllipticArc((0, 0), (1e300, 0), (0, 1)),
    ):
        with pytest.raises(GeometryError):
            approximate(curve, 0.01)
