"""Curves meet where they cross or touch, and overlap where they share a stretch."""

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.outlines import backwards, permuted, rectangle, turned
from support.strategies import primitives, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Overlap, Point, Primitive, Sketch, Vec, overlaps
from sketchdnn.geometry.intersections import Curve, Extent, contact_points, distance_to_curve, endpoints
from sketchdnn.geometry.proximity import MAX_RESULTS

TINY = 1e-6
NEAR = st.floats(-3, 3)
POINT = st.tuples(NEAR, NEAR)
LINES = st.tuples(POINT, POINT).filter(lambda t: math.dist(*t) > 0.1).map(lambda t: Line(*t))
CIRCLES = st.builds(Circle, POINT, st.floats(0.1, 3))
ARCS = st.builds(Arc, POINT, st.floats(0.1, 3), st.floats(-4, 4), st.floats(0.1, TAU - 0.1))
CURVES = st.one_of(LINES, CIRCLES, ARCS)


def crossings_of(a: Curve, b: Curve) -> list[Vec]:
    return [point for point, crosses in contact_points(a, b, TINY) if crosses]


def side(curve: Curve, point: tuple[float, float]) -> float:
    """Positive on one side of a curve's line or circle, negative on the other."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = curve.start, curve.end
        return ((x1 - x0) * (point[1] - y0) - (y1 - y0) * (point[0] - x0)) / curve.length
    return math.dist(point, curve.center) - curve.radius


def along(curve: Curve, count: int) -> list[tuple[float, float]]:
    off = 0.1234 / TAU if isinstance(curve, Circle) else 0.0
    return [curve.at(off + k / count) for k in range(count + 1)]


@given(CURVES, CURVES)
def test_crossings_agree_with_side_changes_along_a_curve(a: Curve, b: Curve) -> None:
    """An independent count: the changes of side along one curve, close to the other."""
    steps = along(a, 2000)
    sides = [side(b, point) for point in steps]
    reach = 3 * a.length / 2000
    # Skip close cases: an end on the other curve, or a graze.
    assume(all(distance_to_curve(b, end) > 2 * reach for end in endpoints(a)))
    assume(all(distance_to_curve(a, end) > 2 * reach for end in endpoints(b)))
    if not (isinstance(a, Line) and isinstance(b, Line)):
        turning = [abs(s) for r, s, t in zip(sides, sides[1:], sides[2:], strict=False) if (s - r) * (t - s) <= 0]
        assume(all(s > 2 * reach for s in turning))
    crossings = sum(
        (s < 0) != (t < 0) and distance_to_curve(b, point) < reach
        for s, t, point in zip(sides, sides[1:], steps, strict=False)
    )
    found = crossings_of(a, b)
    assert len(found) == crossings
    assert all(distance_to_curve(curve, point) < TINY for curve in (a, b) for point in found)


@given(CURVES, CURVES)
def test_contact_points_are_symmetric(a: Curve, b: Curve) -> None:
    there, back = (sorted(contact_points(x, y, TINY)) for x, y in ((a, b), (b, a)))
    assert [crosses for _, crosses in there] == [crosses for _, crosses in back]
    assert all(math.dist(p, q) < 1e-6 for (p, _), (q, _) in zip(there, back, strict=True))


@given(ARCS, st.floats(0.5, 3), st.booleans(), st.floats(0, TAU), st.sampled_from([1e-8, 1e-6, 1e-4]))
def test_tangent_continuation_is_no_contact(
    arc: Arc, length: float, at_start: bool, turn: float, tolerance: float
) -> None:
    angle = arc.start_angle if at_start else arc.end_angle
    heading = angle + (-math.pi / 2 if at_start else math.pi / 2)
    x, y = arc.start if at_start else arc.end
    line = Line((x, y), (x + length * math.cos(heading), y + length * math.sin(heading)))
    # A major arc may cross its own tangent elsewhere.
    found = contact_points(turned(arc, turn), turned(line, turn), tolerance)  # type: ignore[arg-type]
    joint = turned(line, turn).start  # type: ignore[union-attr]
    assert all(math.dist(point, joint) > 0.05 * arc.radius for point, _ in found)


@given(st.floats(0.2, 3), st.floats(0.2, 3), st.floats(0, TAU), st.booleans())
def test_touching_circles_do_not_cross(r: float, s: float, angle: float, inside: bool) -> None:
    assume(not inside or abs(r - s) > 0.05)
    apart = abs(r - s) if inside else r + s
    a, b = Circle((0, 0), r), Circle((apart * math.cos(angle), apart * math.sin(angle)), s)
    ((point, crosses),) = contact_points(a, b, TINY)
    assert not crosses
    assert max(distance_to_curve(a, point), distance_to_curve(b, point)) < 1e-5
    closer = -0.01 if inside and s > r else 0.01
    assert len(crossings_of(a, Circle(b.center, s + closer))) == 2
    assert contact_points(a, Circle(b.center, s - closer), TINY) == []


def test_contacts_at_the_tolerance_at_tangents_and_at_joints() -> None:
    tolerance = 2.0**-20

    def at(height: float) -> list[bool]:
        return [crosses for _, crosses in contact_points(Line((-2, height), (2, height)), Circle((0, 0), 1), tolerance)]

    assert at(1 - tolerance) == at(1) == at(1 + tolerance) == [False]
    assert (at(1 - 2 * tolerance), at(1 + 2 * tolerance)) == ([True, True], [])
    for start, points in (((-2, 1), [((0, 1), False)]), ((0, 1), [((0, 1), False)]), ((0.5, 1), [])):
        assert contact_points(Line(start, (2, 1)), Circle((0, 0), 1), TINY) == points
    wall = Line((0, 0), (4, 0))
    assert contact_points(wall, Line((1, 0), (1, 2)), TINY) == [((1, 0), False)]
    assert contact_points(wall, Line((1, 1e-7), (1, 2)), TINY) == [((1, 1e-7), False)]
    assert contact_points(wall, Line((1, 1e-3), (1, 2)), TINY) == []
    assert crossings_of(wall, Line((1, -1e-3), (1, 2))) == [(1, 0)]
    line, circle = Line((0, 0), (4, 0)), Circle((0, 0), 1)
    joined = [Line((4, 0), (4, 3)), Line((4 + 5e-7, -5e-7), (4, 3)), Line((4, 0), (0, 1e-3))]  # a narrow wedge
    overlapping = [Line((1, 0), (6, 0)), Line((1, 1e-7), (6, -1e-7))]
    pairs: list[tuple[Curve, Curve]] = [(line, other) for other in (*joined, *overlapping)]
    pairs += [(Arc((0, 0), 1, 0, 2), Arc((0, 0), 1, 1, 2)), (circle, Circle((1e-8, 0), 1))]
    for a, b in pairs:
        assert contact_points(a, b, TINY) == []
    for radius in (1.0, 10.0, 1e4):  # rounded tangent joints
        for off in (-5e-5, 5e-5):
            arc = Arc((off, radius + off), radius, -math.pi / 2, 0.8)
            assert contact_points(Line((-1, 0), (0, 0)), arc, 1e-4) == []


DUPLICATE, CONTAINED, PARTIAL = Extent.DUPLICATE, Extent.CONTAINED, Extent.PARTIAL
FRAME: list[Primitive] = rectangle(-10, -10, 20, 20)  # gives the sketch a size, and overlaps nothing below


def arc(start: float, sweep: float) -> Arc:
    return Arc((1.0, 2.0), 3.0, start, sweep)


CASES: list[tuple[Primitive, Primitive, Extent | None, float]] = [
    (Line((0, 0), (4, 0)), Line((0, 0), (4, 0)), DUPLICATE, 4),
    (Line((0, 0), (4, 0)), Line((4, 0), (0, 0)), DUPLICATE, 4),
    (Line((0, 0), (4, 0)), Line((1, 0), (3, 0)), CONTAINED, 2),
    (Line((0, 0), (4, 0)), Line((4, 0), (1, 0)), CONTAINED, 3),
    (Line((0, 0), (4, 0)), Line((3, 0), (6, 0)), PARTIAL, 1),
    (Line((0, 0), (4, 0)), Line((4, 0), (6, 0)), None, 0),  # end to end
    (Line((0, 0), (4, 0)), Line((5, 0), (6, 0)), None, 0),
    (Line((0, 0), (4, 0)), Line((0, 0.1), (4, 0.1)), None, 0),
    (Line((0, 0), (4, 0)), Line((0, 0), (4, 0.1)), None, 0),
    (Circle((1, 2), 3), Circle((1, 2), 3), DUPLICATE, 6 * math.pi),
    (Circle((1, 2), 3), Circle((1, 2), 2.9), None, 0),
    (Circle((1, 2), 3), Circle((1.1, 2), 3), None, 0),
    (Circle((1, 2), 3), arc(5, 2), CONTAINED, 6),
    (arc(0, 2), arc(0, 2), DUPLICATE, 6),
    (arc(0, 2), arc(math.tau, 2), DUPLICATE, 6),
    (arc(0, 2), arc(1, 2), PARTIAL, 3),
    (arc(0, 3), arc(1, 1), CONTAINED, 3),
    (arc(0, 2), arc(2, 2), None, 0),  # end to end
    (arc(0, 2), arc(-3, 3), None, 0),
    (arc(0, 2), arc(3, 2), None, 0),
    (arc(0, 5), arc(4, 5), PARTIAL, 3 * (1 + 9 - math.tau)),  # at both ends
    (arc(0, 2), arc(-1, 2), PARTIAL, 3),
    (Point((1, 1)), Point((1, 1)), DUPLICATE, 0),
    (Point((1, 1)), Point((1, 1.1)), None, 0),
    (Point((0, 0)), Line((0, 0), (4, 0)), None, 0),
    (Line((0, 0), (4, 0)), Arc((2, 1e6), 1e6, -math.pi / 2, 1e-6), CONTAINED, 1),  # too flat to tell from a line
]


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("angle", [0.0, 1.0, 4.0])
def test_known_overlaps(angle: float, mirrored: bool) -> None:
    for a, b, extent, length in CASES:
        expected = () if extent is None else (Overlap(0, 1, extent, pytest.approx(length, abs=1e-3)),)
        for pair in ([a, b], [b, a]):
            assert overlaps([turned(p, angle, mirrored=mirrored) for p in (*pair, *FRAME)], 1e-5) == expected


def test_copies_tolerance_construction_and_bounds_of_the_search() -> None:
    a, b = Line((0, 0), (10, 0)), Line((1e-6, 5e-6), (10, -5e-6))
    assert ([o.extent for o in overlaps([a, b], 1e-6)], overlaps([a, b], 1e-8)) == ([DUPLICATE], ())
    guides = [Line((0, 0), (4, 0), construction=True), Line((1, 0), (5, 0), construction=True)]
    assert (overlaps([Line((0, 0), (4, 0)), guides[0]]), [o.extent for o in overlaps(guides)]) == ((), [PARTIAL])
    copies = overlaps([Circle((0, 0), 1)] * 4 + [Circle((5, 0), 1)])
    assert ([(o.first, o.second) for o in copies], overlaps([])) == ([(0, 1), (0, 2), (0, 3)], ())
    assert overlaps([Point((3, 3)), Point((3, 3))]) == (Overlap(0, 1, DUPLICATE, 0.0),)
    with pytest.raises(GeometryError, match="share of the size"):
        overlaps([Point((0, 0)), Point((1, 0))], 2.0)
    assert len(overlaps([Circle((0, 0), 1)] * 20_000)) == 19_999
    rng = random.Random(1)
    heap = [Circle((1e-7 * rng.random(), 0), 1) for _ in range(20_000)]
    assert len(overlaps(heap)) == MAX_RESULTS


@given(st.lists(primitives, min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(0, 3))
def test_overlaps_are_invariant(items: list[Primitive], rng: random.Random, quarters: int) -> None:
    """Quarter turns only: others change the box, and so the tolerance."""
    items = items + items[: len(items) // 2]
    mixed = map(backwards, permuted(items, rng.sample(range(len(items)), len(items))))
    shuffled = [turned(p, quarters * math.pi / 2, mirrored=True, scale=3, by=(5, 7)) for p in mixed]
    plain, other = overlaps(items), overlaps(shuffled)
    assert sorted(o.extent for o in plain) == sorted(o.extent for o in other)
    assert sorted(3 * o.length for o in plain) == pytest.approx(sorted(o.length for o in other), abs=1e-5)


@given(sketches())
def test_all_copies_are_found(sketch: Sketch) -> None:
    once = {o.second for o in overlaps(sketch) if o.extent is DUPLICATE}
    twice = {o.second for o in overlaps([*sketch, *sketch]) if o.extent is DUPLICATE}
    assert twice == once | set(range(len(sketch), 2 * len(sketch)))
