"""Ideas that follow from the geometry of a part: closings, mirror images, rows and round corners."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from sketchdnn.generation import CompleteRequest
from sketchdnn.generation.geometric_ideas import geometric_ideas
from sketchdnn.generation.goals import resolve_goal
from sketchdnn.generation.suggestions import Finisher
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, profile
from sketchdnn.geometry.mirror import Mirror, missing_images

CORNERS = ((0.0, 0.0), (80.0, 0.0), (80.0, 40.0), (0.0, 40.0))
SIDES = tuple(Line(a, b) for a, b in pairwise((*CORNERS, CORNERS[0])))
HOLE = Circle((15, 20), 5)
# An L with a step: its upper half is missing.
STEPPED = (Line((0, 0), (0, 10)), Line((0, 0), (50, 0)), Line((50, 0), (50, 10)))


def ideas(*part: Primitive) -> list[tuple[Primitive, ...]]:
    sketch = Sketch(part)
    return geometric_ideas(sketch, resolve_goal(sketch, None))


def rounded_plate(radius: float) -> tuple[Primitive, ...]:
    """A plate of 80 by 40 with round corners."""
    w, h, r = 80.0, 40.0, radius
    sides = [Line((r, 0), (w - r, 0)), Line((w, r), (w, h - r)), Line((w - r, h), (r, h)), Line((0, h - r), (0, r))]
    centers = [(w - r, r), (w - r, h - r), (r, h - r), (r, r)]
    return (*sides, *(Arc(at, r, (k - 1) * math.pi / 2, math.pi / 2) for k, at in enumerate(centers)))


def test_open_plate_is_closed_by_a_line_and_its_mirror_image() -> None:
    found = ideas(*SIDES[:3])
    assert (SIDES[3],) in [tuple(Line(p.end, p.start) for p in idea if isinstance(p, Line)) for idea in found] + found
    assert any(len(missing_images((*SIDES[:3], *idea), Mirror(0, 0.0), 1e-9)) == 0 for idea in found)
    assert all(profile((*SIDES[:3], *idea)).is_extrudable for idea in found)


def test_two_sides_are_closed_by_a_corner() -> None:
    found = ideas(*SIDES[:2])
    assert (Line((0, 0), (0, 40)), Line((0, 40), (80, 40))) in [
        tuple(sorted((Line(*sorted((p.start, p.end))) for p in idea if isinstance(p, Line)), key=lambda p: p.start))
        for idea in found
    ]


def test_two_chains_are_joined_in_the_way_that_closes() -> None:
    top_and_bottom = (SIDES[0], SIDES[2])
    found = [
        set(map(frozenset, ((p.start, p.end) for p in idea if isinstance(p, Line)))) for idea in ideas(*top_and_bottom)
    ]
    assert {frozenset((CORNERS[0], CORNERS[3])), frozenset((CORNERS[1], CORNERS[2]))} in found


def test_half_of_something_is_mirrored_in_its_open_ends() -> None:
    found = ideas(*STEPPED, Circle((10, 4), 2))
    whole = [idea for idea in found if any(isinstance(p, Circle) and p.center == (10, 16) for p in idea)]
    assert whole
    assert all(profile((*STEPPED, Circle((10, 4), 2), *idea)).is_extrudable for idea in whole)


def test_crossing_lines_show_the_axis_of_what_is_missing() -> None:
    left = (SIDES[0], SIDES[2], SIDES[3], HOLE)  # all but the right side and its hole
    assert any({p.kind for p in idea} == {SIDES[1].kind, HOLE.kind} and len(idea) == 2 for idea in ideas(*left))
    assert all(profile((*left, *idea)).is_extrudable for idea in ideas(*left))


def test_missing_mirror_images_of_holes() -> None:
    corner = Circle((10, 10), 4)
    centers = [{p.center for p in idea if isinstance(p, Circle)} for idea in ideas(*SIDES, corner)]
    assert {(70, 10)} in centers
    assert {(10, 30)} in centers
    assert {(70, 10), (10, 30), (70, 30)} in centers


def test_holes_in_free_places_are_symmetric_and_lie_inside() -> None:
    assert ideas(*SIDES) == [(Circle((40, 20), 10),)]
    ((left, right),) = ideas(*SIDES, Circle((40, 20), 4))
    assert isinstance(left, Circle)
    assert right == replace(left, center=(80 - left.center[0], 20))
    assert left.radius == 4
    triangle = (Line((0, 0), (9, 1)), Line((9, 1), (2, 7)), Line((2, 7), (0, 0)))
    ((hole,),) = ideas(*triangle)
    assert profile((*triangle, hole)).is_extrudable
    assert [loop.depth for loop in profile((*triangle, hole)).loops] == [0, 1]
    beside = tuple(replace(p, start=(p.start[0] + 90, p.start[1]), end=(p.end[0] + 90, p.end[1])) for p in SIDES)
    assert (Circle((40, 20), 10), Circle((130, 20), 10)) in ideas(*SIDES, *beside)


def turned(p: Line | Arc, angle: float, by: complex, *, mirrored: bool) -> Line | Arc:
    """The curve mirrored in the x axis, if asked for, then turned about the origin and moved."""

    def move(at: tuple[float, float]) -> tuple[float, float]:
        moved = cmath.rect(1, angle) * (complex(*at).conjugate() if mirrored else complex(*at)) + by
        return moved.real, moved.imag

    if isinstance(p, Line):
        return Line(move(p.start), move(p.end))
    start = angle - p.end_angle if mirrored else angle + p.start_angle
    return replace(p, center=move(p.center), start_angle=start)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("angle", [0.0, math.pi / 2, 1.1])
def test_open_chain_becomes_a_copy_of_another_loop(angle: float, mirrored: bool) -> None:
    arc = Arc((20, 5), 5, -math.pi / 2, math.pi)
    loop = (Line((0, 0), (20, 0)), arc, Line((20, 10), (4, 10)), Line((4, 10), (0, 0)))
    copy = [turned(p, angle, 90 + 40j, mirrored=mirrored) for p in loop]
    idea, *_ = ideas(*loop, *copy[:2])
    assert len(idea) == 2
    assert not missing(copy[2:], idea)
    assert profile((*loop, *copy[:2], *idea)).is_extrudable


def missing(expected: Sequence[Primitive], idea: Sequence[Primitive]) -> list[Primitive]:
    """The lines that are not in the idea, in either direction."""

    def ends(p: Primitive) -> list[tuple[float, float]]:
        assert isinstance(p, Line)
        return sorted((round(x, 6), round(y, 6)) for x, y in (p.start, p.end))

    return [p for p in expected if ends(p) not in [ends(q) for q in idea]]


def test_each_of_several_chains_is_closed_by_a_line() -> None:
    parts = [tuple(turned(p, 0, 60j * k, mirrored=False) for p in SIDES[:3]) for k in range(4)]
    whole = tuple(p for part in parts for p in part)
    found = [idea for idea in ideas(*whole) if len(idea) == 4]
    assert any(len(profile((*whole, *idea)).loops) == 4 and profile((*whole, *idea)).is_extrudable for idea in found)


def test_bridge_closes_what_a_line_would_cross() -> None:
    corners = [(30.0, 12.0), (30.0, 40.0), (-10.0, 40.0), (-10.0, -10.0), (20.0, -10.0), (20.0, 5.0), (28.0, 5.0)]
    part = tuple(Line(a, b) for a, b in pairwise(corners))
    straight = Line(corners[-1], corners[0])
    assert not profile((*part, straight)).chains
    assert any(profile((*part, *idea)).is_extrudable for idea in ideas(*part))


def test_narrow_slot_of_a_large_part_keeps_its_width() -> None:
    slot = tuple(Line(a, b) for a, b in pairwise([(20.0, 10.0), (20.3, 10.0), (20.3, 14.0), (20.0, 14.0)]))
    sketch = Sketch((*SIDES, *slot))
    assert resolve_goal(sketch, None) == "close"
    finisher = Finisher(CompleteRequest(part=sketch), sketch, "close")
    first, *_ = finisher.choose(finisher.finish(*finisher.geometric_candidates()))
    assert profile(first.sketch).is_extrudable
    assert len(profile(first.sketch).holes) == 1


def test_row_and_circle_of_holes_go_on() -> None:
    row = [Circle((x, 20), 4) for x in (20, 35, 50)]
    assert (Circle((65, 20), 4),) in ideas(*SIDES, *row)
    uneven = [Circle((x, 20), 4) for x in (12, 35, 50)]
    assert all(len(idea) != 1 for idea in ideas(*SIDES, *uneven))
    disk, on_circle = Circle((0, 0), 40), [Circle((25, 0), 4), Circle((0, 25), 4)]
    rest = next(idea for idea in ideas(disk, *on_circle) if len(idea) == 2)
    assert sorted(p.center for p in rest if isinstance(p, Circle)) == [
        pytest.approx((-25, 0)),
        pytest.approx((0, -25)),
    ]


@pytest.mark.parametrize(("holes", "radius"), [((), 4.0), ((Circle((8, 8), 3),), 3.0)])
def test_round_corners_take_holes(holes: tuple[Circle, ...], radius: float) -> None:
    found = ideas(*rounded_plate(8), *holes)
    assert any(
        {p.radius for p in idea if isinstance(p, Circle)} == {radius} and len(idea) == 4 - len(holes) for idea in found
    )


def test_extending_takes_no_idea_and_a_line_may_close_an_arc() -> None:
    assert geometric_ideas(Sketch(SIDES), "extend") == []
    assert ideas(Arc((0, 0), 1, 0, 6.2), Point((3, 3))) != []  # closed by a line


def test_ideas_are_repaired_scored_and_marked_as_geometry() -> None:
    part = Sketch((*SIDES[:3], HOLE))
    finisher = Finisher(CompleteRequest(part=part), part, "close")
    chosen = finisher.choose(finisher.finish(*finisher.geometric_candidates()))
    assert len(chosen) == 4
    assert {each.origin for each in chosen} == {"geometry"}
    assert all(each.sketch.primitives[:4] == part.primitives and each.shortfall is None for each in chosen)
    assert all(profile(each.sketch).is_extrudable and each.sketch.constraints for each in chosen)
    asked = Finisher(CompleteRequest(part=part, kinds="line=1"), part, "close")
    assert len(asked.finish(*asked.geometric_candidates())) == 1
    without = Finisher(CompleteRequest(part=part, geometry=False), part, "close")
    assert without.geometric_candidates() == ([], [])
