"""Crossings are found where two curves cross, and nowhere else."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.outlines import turned

from sketchdnn.geometry import TAU, Arc, Circle, Line, Vec
from sketchdnn.geometry.intersections import Curve, distance_to_curve, endpoints, meeting_points

TINY = 1e-6
NEAR = st.floats(-3, 3)
PLACE = st.tuples(NEAR, NEAR)
LINES = st.tuples(PLACE, PLACE).filter(lambda t: math.dist(*t) > 0.1).map(lambda t: Line(*t))
CIRCLES = st.builds(Circle, PLACE, st.floats(0.1, 3))
ARCS = st.builds(Arc, PLACE, st.floats(0.1, 3), st.floats(-4, 4), st.floats(0.1, TAU - 0.1))
CURVES = st.one_of(LINES, CIRCLES, ARCS)


def crossings_of(a: Curve, b: Curve) -> list[Vec]:
    return [point for point, crosses in meeting_points(a, b, TINY) if crosses]


def side(curve: Curve, place: tuple[float, float]) -> float:
    """Positive on one side of a curve's line or circle, negative on the other."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = curve.start, curve.end
        return ((x1 - x0) * (place[1] - y0) - (y1 - y0) * (place[0] - x0)) / curve.length
    return math.dist(place, curve.center) - curve.radius


def along(curve: Curve, count: int) -> list[tuple[float, float]]:
    match curve:
        case Line((x0, y0), (x1, y1)):
            return [(x0 + (x1 - x0) * k / count, y0 + (y1 - y0) * k / count) for k in range(count + 1)]
        case Arc():
            return [curve.at(k / count) for k in range(count + 1)]
        case Circle((x, y), r):
            # From somewhere that no other curve is likely to pass.
            angles = [0.1234 + TAU * k / count for k in range(count + 1)]
            return [(x + r * math.cos(angle), y + r * math.sin(angle)) for angle in angles]


@given(CURVES, CURVES)
def test_crossings_are_where_walking_along_changes_sides(a: Curve, b: Curve) -> None:
    """An independent count: walk along one curve, and see how often the side of the other changes beside it."""
    steps = along(a, 2000)
    sides = [side(b, place) for place in steps]
    reach = 3 * a.length / 2000
    # Skip what is too close to call: an end on the other curve, or a graze.
    assume(all(distance_to_curve(b, end) > 2 * reach for end in endpoints(a)))
    assume(all(distance_to_curve(a, end) > 2 * reach for end in endpoints(b)))
    if not (isinstance(a, Line) and isinstance(b, Line)):
        turning = [abs(s) for r, s, t in zip(sides, sides[1:], sides[2:], strict=False) if (s - r) * (t - s) <= 0]
        assume(all(s > 2 * reach for s in turning))
    crossings = sum(
        (s < 0) != (t < 0) and distance_to_curve(b, place) < reach
        for s, t, place in zip(sides, sides[1:], steps, strict=False)
    )
    found = crossings_of(a, b)
    assert len(found) == crossings
    for place in found:
        assert distance_to_curve(a, place) < TINY
        assert distance_to_curve(b, place) < TINY


@given(CURVES, CURVES)
def test_the_order_of_two_curves_does_not_matter(a: Curve, b: Curve) -> None:
    there, back = (sorted(meeting_points(x, y, TINY)) for x, y in ((a, b), (b, a)))
    assert [crosses for _, crosses in there] == [crosses for _, crosses in back]
    for (p, _), (q, _) in zip(there, back, strict=True):
        assert math.dist(p, q) < 1e-6


@given(ARCS, st.floats(0.5, 3), st.booleans(), st.floats(0, TAU), st.sampled_from([1e-8, 1e-6, 1e-4]))
def test_a_tangent_line_that_goes_on_from_an_arc_does_not_meet_it(
    arc: Arc, length: float, at_start: bool, turn: float, tolerance: float
) -> None:
    angle = arc.start_angle if at_start else arc.end_angle
    heading = angle + (-math.pi / 2 if at_start else math.pi / 2)
    x, y = arc.start if at_start else arc.end
    line = Line((x, y), (x + length * math.cos(heading), y + length * math.sin(heading)))
    # A major arc may come round and truly cross its own tangent: only the joint is asked about.
    found = meeting_points(turned(arc, turn), turned(line, turn), tolerance)  # type: ignore[arg-type]
    joint = turned(line, turn).start  # type: ignore[union-attr]
    assert all(math.dist(place, joint) > 0.05 * arc.radius for place, _ in found)


@given(st.floats(0.2, 3), st.floats(0.2, 3), st.floats(0, TAU), st.booleans())
def test_circles_that_touch_do_not_cross(r: float, s: float, angle: float, inside: bool) -> None:
    assume(not inside or abs(r - s) > 0.05)
    apart = abs(r - s) if inside else r + s
    a, b = Circle((0, 0), r), Circle((apart * math.cos(angle), apart * math.sin(angle)), s)
    ((place, crosses),) = meeting_points(a, b, TINY)
    assert not crosses
    assert distance_to_curve(a, place) < 1e-5
    assert distance_to_curve(b, place) < 1e-5
    closer = -0.01 if inside and s > r else 0.01
    assert len(crossings_of(a, Circle(b.center, s + closer))) == 2
    assert meeting_points(a, Circle(b.center, s - closer), TINY) == []


def test_a_tangent_line_touches_once() -> None:
    assert meeting_points(Line((-2, 1), (2, 1)), Circle((0, 0), 1), TINY) == [((0, 1), False)]
    assert meeting_points(Line((0, 1), (2, 1)), Circle((0, 0), 1), TINY) == [((0, 1), False)]  # with its end
    assert meeting_points(Line((0.5, 1), (2, 1)), Circle((0, 0), 1), TINY) == []


def test_a_line_touches_a_circle_as_deep_as_the_tolerance() -> None:
    """Up to the tolerance, from inside or outside, it touches; deeper it crosses twice; farther it misses."""
    tolerance = 2.0**-20

    def at(height: float) -> list[bool]:
        return [crosses for _, crosses in meeting_points(Line((-2, height), (2, height)), Circle((0, 0), 1), tolerance)]

    assert at(1 - tolerance) == at(1) == at(1 + tolerance) == [False]
    assert at(1 - 2 * tolerance) == [True, True]
    assert at(1 + 2 * tolerance) == []


def test_an_end_inside_another_curve_touches() -> None:
    wall = Line((0, 0), (4, 0))
    assert meeting_points(wall, Line((1, 0), (1, 2)), TINY) == [((1, 0), False)]
    assert meeting_points(wall, Line((1, 1e-7), (1, 2)), TINY) == [((1, 1e-7), False)]
    assert meeting_points(wall, Line((1, 1e-3), (1, 2)), TINY) == []
    assert crossings_of(wall, Line((1, -1e-3), (1, 2))) == [(1, 0)]


def test_joined_ends_are_no_meeting() -> None:
    corner = [Line((0, 0), (4, 0)), Line((4, 0), (4, 3))]
    assert meeting_points(*corner, TINY) == []
    assert meeting_points(Line((0, 0), (4, 0)), Line((4 + 5e-7, -5e-7), (4, 3)), TINY) == []
    assert meeting_points(Line((0, 0), (4, 0)), Line((4, 0), (0, 1e-3)), TINY) == []  # a narrow wedge


def test_curves_on_top_of_each_other_do_not_meet() -> None:
    assert meeting_points(Line((0, 0), (4, 0)), Line((1, 0), (6, 0)), TINY) == []
    assert meeting_points(Line((0, 0), (4, 0)), Line((1, 1e-7), (6, -1e-7)), TINY) == []
    assert meeting_points(Arc((0, 0), 1, 0, 2), Arc((0, 0), 1, 1, 2), TINY) == []
    assert meeting_points(Circle((0, 0), 1), Circle((1e-8, 0), 1), TINY) == []


@pytest.mark.parametrize("radius", [1.0, 10.0, 1e4])
def test_shallow_crossings_near_a_joint_are_no_crossings(radius: float) -> None:
    """A line and an arc rounded to five digits where they should be tangent: the gap is what the tolerance allows."""
    tolerance = 1e-4
    line = Line((-1, 0), (0, 0))
    for off in (-5e-5, 5e-5):
        arc = Arc((off, radius + off), radius, -math.pi / 2, 0.8)
        assert meeting_points(line, arc, tolerance) == []
