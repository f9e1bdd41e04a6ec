"""Profiles: what closes, what encloses what and how much, and why a drawing cannot be extruded."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from support.outlines import backwards, d_shape, drawn_area, permuted, polygon, rectangle, slot, turned

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Sketch, profile

PI = math.pi


# name, primitives, area of the material, perimeter of all loops, depth of each loop
KNOWN: dict[str, tuple[list[Primitive], float, float, list[int]]] = {
    "square": (rectangle(0, 0, 2, 2), 4, 8, [0]),
    "square with a round hole": ([*rectangle(0, 0, 4, 4), Circle((2, 2), 1)], 16 - PI, 16 + TAU, [0, 1]),
    "slot": (slot(4, 1), 8 + PI, 8 + TAU, [0]),
    "annulus": ([Circle((0, 0), 3), Circle((0, 0), 2)], 5 * PI, 10 * PI, [0, 1]),
    "half disc": (d_shape(2, PI), 2 * PI, 2 * PI + 4, [0]),
    "disc less a segment": (d_shape(1, 3 * PI / 2), 3 * PI / 4 + 0.5, 3 * PI / 2 + math.sqrt(2), [0]),
    "segment": (d_shape(1, PI / 2), PI / 4 - 0.5, PI / 2 + math.sqrt(2), [0]),
    "island in a hole": (
        [*rectangle(0, 0, 10, 10), *rectangle(1, 1, 8, 8), Circle((5, 5), 2)],
        36 + 4 * PI,
        72 + 4 * PI,
        [0, 1, 2],
    ),
    "plate with two holes, one a slot": (
        [*rectangle(-6, -3, 12, 6), *slot(2, 1), Circle((4, 0), 1)],
        72 - (4 + PI) - PI,
        36 + 4 + 2 * PI + 2 * PI,
        [0, 1, 1],
    ),
    "two plates side by side": ([*rectangle(0, 0, 1, 1), *rectangle(2, 0, 1, 1)], 2, 8, [0, 0]),
    "bite out of a square": (
        [Line((0, 0), (4, 0)), Line((4, 0), (4, 4)), Line((4, 4), (0, 4)), Arc((0, 2), 2, -PI / 2, PI)],
        16 - 2 * PI,
        12 + 2 * PI,
        [0],
    ),
    "hole in the mouth of a C, not in its material": (
        [
            *polygon((0, 0), (10, 0), (10, 2), (2, 2), (2, 8), (10, 8), (10, 10), (0, 10)),
            Circle((6, 5), 2),
        ],
        100 - 48 + 4 * PI,
        10 * 2 + 8 * 2 + 2 * 2 + 6 + 10 + 4 * PI,
        [0, 0],
    ),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("seed", range(3))
def test_known_shapes(name: str, seed: int) -> None:
    """However it is turned, mirrored, scaled, moved, ordered, and drawn from whichever end."""
    items, area, perimeter, depths = KNOWN[name]
    dice = random.Random(seed)
    order = list(range(len(items)))
    scale = 1.0
    if seed:
        dice.shuffle(order)
        scale = 10 ** dice.uniform(-4, 4)
        angle, by = dice.uniform(0, 6), (scale * dice.uniform(-9, 9), scale * dice.uniform(-9, 9))
        items = [turned(p, angle, mirrored=seed == 2, scale=scale, by=by) for p in items]
        items = [backwards(p) if dice.random() < 0.5 else p for p in permuted(items, order)]
    found = profile(items)
    assert found.is_extrudable
    assert found.reasons == ()
    assert found.area == pytest.approx(area * scale**2, rel=1e-9)
    assert sum(loop.perimeter for loop in found.loops) == pytest.approx(perimeter * scale, rel=1e-9)
    assert sorted(loop.depth for loop in found.loops) == depths
    assert len(found.holes) == sum(depth % 2 for depth in depths)
    assert sorted(e.primitive for loop in found.loops for e in loop.edges) == list(range(len(items)))
    for loop in found.loops:
        assert (loop.area < 0) == loop.is_hole
        assert drawn_area(items, loop) == pytest.approx(loop.area, rel=1e-4)
        assert (loop.parent is None) == (loop.depth == 0)
        if loop.parent is not None:
            assert found.loops[loop.parent].depth == loop.depth - 1


def test_points_and_construction_play_no_part() -> None:
    plate = [*rectangle(0, 0, 4, 4), Circle((2, 2), 1)]
    noise = [
        Point((1, 1)),
        Point((0, 0)),
        Line((-5, 2), (9, 2), construction=True),
        Circle((2, 2), 1, construction=True),
        Arc((0, 0), 1, 0, 1, construction=True),
    ]
    found = profile([*noise, *plate])
    assert found.is_extrudable
    assert found.area == profile(plate).area
    assert min(e.primitive for loop in found.loops for e in loop.edges) == len(noise)


@pytest.mark.parametrize("items", [[], [Point((0, 0))], [Line((0, 0), (1, 0), construction=True)]])
def test_a_drawing_of_nothing_is_not_extrudable(items: list[Primitive]) -> None:
    found = profile(items)
    assert found.reasons == ("Nothing closes to a loop.",)
    assert (found.loops, found.chains) == ((), ())


def test_an_open_chain() -> None:
    found = profile([*rectangle(0, 0, 4, 4)[:3], Circle((9, 9), 1)])
    assert not found.is_extrudable
    (chain,) = found.chains
    assert [e.primitive for e in chain.edges] == [0, 1, 2]
    assert all(e.forward for e in chain.edges)
    assert (chain.start, chain.end, chain.length) == ((0, 0), (0, 4), 12)
    assert len(found.loops) == 1
    assert found.reasons == ("1 chain left open, such as primitives 0, 1 and 2.",)


def test_a_gap_closes_within_the_tolerance_and_not_beyond() -> None:
    for gap, closes in ((0.5e-4, True), (2e-4, False)):
        items = [*rectangle(0, 0, 1, 1)[:3], Line((0, 1), (0, gap))]
        assert profile(items).is_extrudable == closes
        assert profile(items, tolerance=1e-3).is_extrudable
        assert not profile(items, tolerance=1e-6).is_extrudable


def test_a_figure_of_eight_crosses_itself() -> None:
    found = profile(polygon((0, 0), (2, 2), (2, 0), (0, 2)))
    assert not found.is_extrudable
    (loop,) = found.loops
    (meeting,) = loop.self_intersections
    assert meeting.crosses
    assert meeting.at == pytest.approx((1, 1))
    assert (meeting.first, meeting.second) == (0, 2)
    assert found.reasons == ("Curves cross in 1 place, such as primitives 0 and 2.",)


def test_a_figure_of_eight_joined_in_the_middle_branches_into_two_loops() -> None:
    found = profile(polygon((0, 0), (1, 1), (2, 2), (2, 0), (1, 1), (0, 2)))
    assert [loop.area for loop in found.loops] == [1, 1]
    assert [branch.at for branch in found.branches] == [(1, 1)]
    assert not found.is_extrudable


def test_a_t_branch() -> None:
    found = profile([*rectangle(0, 0, 2, 2), Line((2, 2), (4, 4))])
    assert [sorted(e.primitive for e in loop.edges) for loop in found.loops] == [[0, 1, 2, 3]]
    assert [[e.primitive for e in chain.edges] for chain in found.chains] == [[4]]
    (branch,) = found.branches
    assert (branch.at, branch.primitives) == ((2, 2), (1, 2, 4))
    assert len(found.reasons) == 2
    assert "More than two ends meet in 1 place, such as those of primitives 1, 2 and 4." in found.reasons


def test_a_wall_between_two_rooms_belongs_to_both() -> None:
    rooms = [*polygon((0, 0), (2, 0), (5, 0), (5, 4), (2, 4), (0, 4)), Line((2, 0), (2, 4))]
    found = profile(rooms)
    assert sorted(loop.area for loop in found.loops) == [8, 12]
    assert Counter(e.primitive for loop in found.loops for e in loop.edges)[6] == 2
    assert [loop.depth for loop in found.loops] == [0, 0]
    assert not found.is_extrudable


def test_loops_that_share_a_corner_nest() -> None:
    found = profile([*rectangle(0, 0, 4, 4), *rectangle(0, 0, 1, 1)])
    # The short sides lie along the long ones: that is an overlap besides the branch.
    assert [o.extent for o in found.overlaps] == ["contained", "contained"]
    found = profile([*rectangle(0, 0, 4, 4), *polygon((0, 0), (2, 1), (1, 2))])
    assert [loop.depth for loop in found.loops] == [0, 1]
    assert found.area == pytest.approx(16 - 1.5)
    assert len(found.branches) == 1


@pytest.mark.parametrize("tilt", [-1e-5, 0, 1e-5])
@pytest.mark.parametrize("angle", [0, 1, 2, 4])
def test_curves_that_leave_a_branch_side_by_side_are_told_apart_by_how_they_bend(tilt: float, angle: float) -> None:
    """Even where rounding has tilted the one in the middle across a neighbor."""
    tip = (2, tilt)
    items = [Line((0, 0), tip), Arc((0, 1), 1, -PI / 2, PI / 2), Arc((0, -1), 1, 0, PI / 2)]
    items += [Line((1, 1), tip), Line((1, -1), tip)]
    found = profile([turned(p, angle) for p in items])
    assert [loop.area for loop in found.loops] == pytest.approx([1.5 - PI / 4] * 2, abs=1e-4)
    assert [len(loop.edges) for loop in found.loops] == [3, 3]
    assert len(found.branches) == 2


def test_a_bridge_between_two_loops_is_open() -> None:
    found = profile([*rectangle(0, 0, 1, 1), Line((1, 1), (3, 3)), *rectangle(3, 3, 1, 1)])
    assert len(found.loops) == 2
    assert [[e.primitive for e in chain.edges] for chain in found.chains] == [[4]]


def test_loops_that_cross_lie_in_neither() -> None:
    found = profile([*rectangle(0, 0, 4, 4), Circle((4, 2), 1)])
    assert [loop.depth for loop in found.loops] == [0, 0]
    assert [m.crosses for m in found.meetings] == [True, True]
    assert not any(loop.self_intersections for loop in found.loops)
    assert found.reasons == ("Curves cross in 2 places, such as primitives 1 and 4.",)


def test_loops_that_cross_within_the_same_box_lie_in_neither() -> None:
    corner = polygon((0, 0), (6, 0), (6, 2), (2, 2), (2, 6), (0, 6))
    found = profile([*corner, Circle((2.5, 2.5), 1)])
    assert [loop.depth for loop in found.loops] == [0, 0]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("quarters", range(4))
@pytest.mark.parametrize(("x", "depth"), [(0, 1), (-2, 0)])
def test_a_loop_flush_with_a_side_lies_on_its_own_side_of_it(first: int, quarters: int, x: float, depth: int) -> None:
    """Whichever of its sides is asked first: the one on both outlines cannot tell."""
    pocket = rectangle(x, 1, 2, 2)
    items = [*rectangle(0, 0, 4, 4), *pocket[first:], *pocket[:first]]
    found = profile([turned(p, quarters * PI / 2) for p in items])
    assert [loop.depth for loop in found.loops] == [0, depth]
    assert len(found.overlaps) == 1


def test_a_hole_that_touches_the_outline_is_told() -> None:
    found = profile([*rectangle(0, 0, 4, 4), Circle((3, 2), 1)])
    assert [loop.depth for loop in found.loops] == [0, 1]
    assert found.reasons == ("Curves touch in 1 place, such as primitives 1 and 4.",)


def test_a_corner_on_a_side_is_told() -> None:
    found = profile([*rectangle(0, 0, 4, 4), *polygon((4, 2), (6, 1), (6, 3))])
    assert not found.is_extrudable
    assert {m.crosses for m in found.meetings} == {False}
    assert [loop.depth for loop in found.loops] == [0, 0]


def test_duplicates_are_set_aside_and_told() -> None:
    square = rectangle(0, 0, 4, 4)
    found = profile([*square, backwards(square[2]), Circle((2, 2), 1), Circle((2, 2), 1)])
    assert found.ignored == (4, 6)
    assert found.area == pytest.approx(16 - PI)
    assert found.branches == ()
    assert found.reasons == ("2 pairs of curves overlap, such as primitives 2 and 4.",)


def test_a_line_shorter_than_the_tolerance_is_set_aside() -> None:
    found = profile([*polygon((0, 0), (4, 0), (4, 4), (0, 4), (0, 1e-5))])
    assert found.is_extrudable
    assert found.ignored == (4,)


def test_an_arc_that_almost_closes_is_a_loop_of_its_own() -> None:
    found = profile([Arc((3, 1), 2, 0.5, TAU - 1e-6)])
    assert found.is_extrudable
    assert found.area == pytest.approx(4 * PI)
    assert profile([Arc((3, 1), 2, 0.5, TAU - 1e-2)]).reasons[0] == "Nothing closes to a loop."


@pytest.mark.parametrize("radius", [1e2, 1e4, 1e6])
def test_areas_stay_exact_where_arcs_are_nearly_flat(radius: float) -> None:
    sweep = 2 * math.asin(1 / radius)  # a chord of length 2
    arc = Arc((0, 0), radius, 0, sweep)
    found = profile([arc, Line(arc.end, arc.start)], 1e-9)
    # A flat segment is two thirds of its chord times its height.
    height = 2 * radius * math.sin(sweep / 4) ** 2
    assert found.area == pytest.approx(2 / 3 * 2 * height, rel=5e-5)


def test_areas_stay_exact_far_from_the_origin() -> None:
    found = profile([turned(p, by=(1e7, -1e7)) for p in slot(4, 1)])
    assert found.area == pytest.approx(8 + PI, rel=1e-7)


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0, math.nan])
def test_the_tolerance_is_a_share_of_the_size(tolerance: float) -> None:
    with pytest.raises(GeometryError, match="share of the size"):
        profile(rectangle(0, 0, 1, 1), tolerance)


def test_eyes_on_the_chords_of_a_link_are_holes() -> None:
    """The middle of each eye lies on the chord of an end's arc, to the last bit or not."""
    for turn in (0.0, 0.3, math.pi / 2):
        c, s = math.cos(turn), math.sin(turn)

        def place(x: float, y: float, c: float = c, s: float = s) -> tuple[float, float]:
            return (c * x - s * y, s * x + c * y)

        link = Sketch(
            (
                Arc(place(0, 47.5), 26.5, turn, math.pi),
                Arc(place(0, -47.5), 26.5, turn + math.pi, math.pi),
                Line(place(-26.5, 47.5), place(-26.5, -47.5)),
                Line(place(26.5, -47.5), place(26.5, 47.5)),
                Circle(place(0, 47.5), 10.5),
                Circle(place(0, -47.5), 10.5),
            )
        )
        assert sorted(loop.depth for loop in profile(link).loops) == [0, 1, 1]
