"""Profiles of drawn and random shapes: loops, areas, nesting, and the reasons against an extrusion."""

import math
import random
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outlines import backwards, d_shape, drawn_area, permuted, polygon, rectangle, slot, turned
from support.strategies import sketches

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Profile, Sketch, loops, profile

PI = math.pi


# The primitives of a shape, the area of its material, and the depth of each loop.
KNOWN: dict[str, tuple[list[Primitive], float, list[int]]] = {
    "square": (rectangle(0, 0, 2, 2), 4, [0]),
    "square with a round hole": ([*rectangle(0, 0, 4, 4), Circle((2, 2), 1)], 16 - PI, [0, 1]),
    "slot": (slot(4, 1), 8 + PI, [0]),
    "annulus": ([Circle((0, 0), 3), Circle((0, 0), 2)], 5 * PI, [0, 1]),
    "half disc": (d_shape(2, PI), 2 * PI, [0]),
    "disc less a segment": (d_shape(1, 3 * PI / 2), 3 * PI / 4 + 0.5, [0]),
    "segment": (d_shape(1, PI / 2), PI / 4 - 0.5, [0]),
    "island in a hole": ([*rectangle(0, 0, 10, 10), *rectangle(1, 1, 8, 8), Circle((5, 5), 2)], 36 + 4 * PI, [0, 1, 2]),
    "plate with two holes, one a slot": (
        [*rectangle(-6, -3, 12, 6), *slot(2, 1), Circle((4, 0), 1)],
        72 - (4 + PI) - PI,
        [0, 1, 1],
    ),
    "two plates side by side": ([*rectangle(0, 0, 1, 1), *rectangle(2, 0, 1, 1)], 2, [0, 0]),
    "bite out of a square": (
        [Line((0, 0), (4, 0)), Line((4, 0), (4, 4)), Line((4, 4), (0, 4)), Arc((0, 2), 2, -PI / 2, PI)],
        16 - 2 * PI,
        [0],
    ),
    "hole in the mouth of a C, not in its material": (
        [*polygon((0, 0), (10, 0), (10, 2), (2, 2), (2, 8), (10, 8), (10, 10), (0, 10)), Circle((6, 5), 2)],
        100 - 48 + 4 * PI,
        [0, 0],
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KNOWN)
def test_known_shapes(name: str, seed: int) -> None:
    items, area, depths = KNOWN[name]
    rng = random.Random(seed)
    order = list(range(len(items)))
    scale = 1.0
    if seed:
        rng.shuffle(order)
        scale = 10 ** rng.uniform(-4, 4)
        angle, by = rng.uniform(0, 6), (scale * rng.uniform(-9, 9), scale * rng.uniform(-9, 9))
        items = [turned(p, angle, mirrored=seed == 2, scale=scale, by=by) for p in items]
        items = [backwards(p) if rng.random() < 0.5 else p for p in permuted(items, order)]
    found = profile(items)
    assert (found.is_extrudable, found.reasons, sorted(loop.depth for loop in found.loops)) == (True, (), depths)
    assert (found.area, len(found.holes)) == (pytest.approx(area * scale**2, rel=1e-9), sum(d % 2 for d in depths))
    assert sorted(e.primitive_index for loop in found.loops for e in loop.edges) == list(range(len(items)))
    for loop in found.loops:
        assert (loop.area < 0, drawn_area(items, loop)) == (loop.is_hole, pytest.approx(loop.area, rel=1e-4))
        assert (loop.parent is None) == (loop.depth == 0)
        if loop.parent is not None:
            assert found.loops[loop.parent].depth == loop.depth - 1


def test_ignored_primitives_open_chains_gaps_and_self_intersections() -> None:
    plate = [*rectangle(0, 0, 4, 4), Circle((2, 2), 1)]
    guides = [Line((-5, 2), (9, 2), True), Circle((2, 2), 1, True), Arc((0, 0), 1, 0, 1, True)]
    noise = [Point((1, 1)), Point((0, 0)), *guides]
    found = profile([*noise, *plate])
    assert (found.is_extrudable, found.area) == (True, profile(plate).area)
    assert min(e.primitive_index for loop in found.loops for e in loop.edges) == len(noise)
    for items in ([], [Point((0, 0))], guides[:1]):
        found = profile(items)
        assert (found.reasons, found.loops, found.chains) == (("There is no closed loop.",), (), ())
    found = profile([*rectangle(0, 0, 4, 4)[:3], Circle((9, 9), 1)])
    (chain,) = found.chains
    assert [(e.primitive_index, e.forward) for e in chain.edges] == [(0, True), (1, True), (2, True)]
    assert (chain.start, chain.end, chain.length, len(found.loops)) == ((0, 0), (0, 4), 12, 1)
    assert found.reasons == ("1 chain is left open, such as primitives 0, 1 and 2.",)
    for gap, closes in ((0.5e-4, True), (2e-4, False)):
        items = [*rectangle(0, 0, 1, 1)[:3], Line((0, 1), (0, gap))]
        assert [profile(items, t).is_extrudable for t in (1e-4, 1e-3, 1e-6)] == [closes, True, False]
    found = profile(polygon((0, 0), (2, 2), (2, 0), (0, 2)))
    (contact,) = found.contacts
    assert (contact.first, contact.second, contact.crosses, len(found.loops)) == (0, 2, True, 1)
    assert contact.at == pytest.approx((1, 1))
    assert found.reasons == ("Curves cross in 1 place, such as primitives 0 and 2.",)


def test_branches_shared_curves_and_shared_corners() -> None:
    loops = profile(polygon((0, 0), (1, 1), (2, 2), (2, 0), (1, 1), (0, 2)))
    assert ([loop.area for loop in loops.loops], [branch.at for branch in loops.branches]) == ([1, 1], [(1, 1)])
    found = profile([*rectangle(0, 0, 2, 2), Line((2, 2), (4, 4))])  # with an open end
    assert [sorted(e.primitive_index for e in loop.edges) for loop in found.loops] == [[0, 1, 2, 3]]
    assert [[e.primitive_index for e in chain.edges] for chain in found.chains] == [[4]]
    (branch,) = found.branches
    assert (branch.at, branch.primitives) == ((2, 2), (1, 2, 4))
    assert found.reasons[1:] == ("More than two ends meet in 1 place, such as the ends of primitives 1, 2 and 4.",)
    bridge = profile([*rectangle(0, 0, 1, 1), Line((1, 1), (3, 3)), *rectangle(3, 3, 1, 1)])
    assert (len(bridge.loops), [[e.primitive_index for e in chain.edges] for chain in bridge.chains]) == (2, [[4]])
    found = profile([*polygon((0, 0), (2, 0), (5, 0), (5, 4), (2, 4), (0, 4)), Line((2, 0), (2, 4))])  # two rooms
    assert sorted((loop.area, loop.depth) for loop in found.loops) == [(8, 0), (12, 0)]
    assert Counter(e.primitive_index for loop in found.loops for e in loop.edges)[6] == 2
    found = profile([*rectangle(0, 0, 4, 4), *rectangle(0, 0, 1, 1)])
    # The short sides lie along the long ones: that is an overlap besides the branch.
    assert [o.extent for o in found.overlaps] == ["contained", "contained"]
    found = profile([*rectangle(0, 0, 4, 4), *polygon((0, 0), (2, 1), (1, 2))])
    assert ([loop.depth for loop in found.loops], len(found.branches)) == ([0, 1], 1)
    assert found.area == pytest.approx(16 - 1.5)


def test_tangent_curves_at_a_branch_are_ordered_by_curvature() -> None:
    """Even where rounding has tilted the middle one across a neighbor."""
    for tilt, angle in product((-1e-5, 0, 1e-5), (0, 1, 2, 4)):
        tip = (2, tilt)
        items = [Line((0, 0), tip), Arc((0, 1), 1, -PI / 2, PI / 2), Arc((0, -1), 1, 0, PI / 2)]
        found = profile([turned(p, angle) for p in (*items, Line((1, 1), tip), Line((1, -1), tip))])
        assert [loop.area for loop in found.loops] == pytest.approx([1.5 - PI / 4] * 2, abs=1e-4)
        assert ([len(loop.edges) for loop in found.loops], len(found.branches)) == ([3, 3], 2)


def test_crossing_and_touching_loops_and_those_with_a_shared_side() -> None:
    found = profile([*rectangle(0, 0, 4, 4), Circle((4, 2), 1)])
    assert ([loop.depth for loop in found.loops], [m.crosses for m in found.contacts]) == ([0, 0], [True, True])
    assert found.reasons == ("Curves cross in 2 places, such as primitives 1 and 4.",)
    corner = polygon((0, 0), (6, 0), (6, 2), (2, 2), (2, 6), (0, 6))  # the circle is within its box
    assert [loop.depth for loop in profile([*corner, Circle((2.5, 2.5), 1)]).loops] == [0, 0]
    hole = profile([*rectangle(0, 0, 4, 4), Circle((3, 2), 1)])
    assert [loop.depth for loop in hole.loops] == [0, 1]
    assert hole.reasons == ("Curves touch in 1 place, such as primitives 1 and 4.",)
    corner = profile([*rectangle(0, 0, 4, 4), *polygon((4, 2), (6, 1), (6, 3))])  # on a side
    assert ({m.crosses for m in corner.contacts}, [loop.depth for loop in corner.loops]) == ({False}, [0, 0])
    # Whichever shared side comes first: it cannot decide.
    for (x, depth), first, quarters in product(((0, 1), (-2, 0)), range(4), range(4)):
        pocket = rectangle(x, 1, 2, 2)
        items = [*rectangle(0, 0, 4, 4), *pocket[first:], *pocket[:first]]
        found = profile([turned(p, quarters * PI / 2) for p in items])
        assert ([loop.depth for loop in found.loops], len(found.overlaps)) == ([0, depth], 1)


def test_duplicates_almost_full_arcs_exact_areas_and_holes_on_chords() -> None:
    square = rectangle(0, 0, 4, 4)
    found = profile([*square, backwards(square[2]), Circle((2, 2), 1), Circle((2, 2), 1)])
    assert (found.unused, found.branches, found.area) == ((4, 6), (), pytest.approx(16 - PI))
    assert found.reasons == ("2 pairs of curves overlap, such as primitives 2 and 4.",)
    short = profile([*polygon((0, 0), (4, 0), (4, 4), (0, 4), (0, 1e-5))])
    assert (short.is_extrudable, short.unused) == (True, (4,))
    found = profile([Arc((3, 1), 2, 0.5, TAU - 1e-6)])
    assert (found.is_extrudable, found.area) == (True, pytest.approx(4 * PI))
    assert profile([Arc((3, 1), 2, 0.5, TAU - 1e-2)]).reasons[0] == "There is no closed loop."
    for radius in (1e2, 1e4, 1e6):
        sweep = 2 * math.asin(1 / radius)  # a chord of length 2
        arc = Arc((0, 0), radius, 0, sweep)
        # A flat segment is two thirds of its chord times its height.
        height = 2 * radius * math.sin(sweep / 4) ** 2
        assert profile([arc, Line(arc.end, arc.start)], 1e-9).area == pytest.approx(2 / 3 * 2 * height, rel=5e-5)
    assert profile([turned(p, by=(1e7, -1e7)) for p in slot(4, 1)]).area == pytest.approx(8 + PI, rel=1e-7)
    link = [*slot(95, 26.5), Circle((47.5, 0), 10.5), Circle((-47.5, 0), 10.5)]
    for angle in (0.0, 0.3, PI / 2):
        assert sorted(loop.depth for loop in profile([turned(p, angle) for p in link]).loops) == [0, 1, 1]


@given(sketches(max_size=10), st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_every_curve_is_used_once(sketch: Sketch, rng: random.Random, quarters: int, mirrored: bool) -> None:
    """Quarter turns only: others change the box, and so the tolerance."""
    found = profile(sketch)
    curves = {i for i, p in enumerate(sketch) if not isinstance(p, Point) and not p.construction}
    assert used_primitives(found) == curves
    shuffled = permuted(sketch.primitives, rng.sample(range(len(sketch)), len(sketch)))
    assert_alike(found, profile(shuffled))
    moved = [turned(backwards(p), quarters * PI / 2, mirrored=mirrored, scale=2, by=(3, 4)) for p in shuffled]
    assert_alike(found, profile(moved), 2)


GRID = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda p: (float(p[0]), float(p[1])))
GRID_LINES = st.tuples(GRID, GRID).filter(lambda t: t[0] != t[1]).map(lambda t: Line(*t))
GRID_ARCS = st.builds(
    Arc, GRID, st.sampled_from([1.0, 2.0]), st.sampled_from([0, PI / 2, PI]), st.sampled_from([PI / 2, PI])
)
GRID_CIRCLES = st.builds(Circle, GRID, st.sampled_from([0.5, 1.0]))


@given(
    st.lists(st.one_of(GRID_LINES, GRID_LINES, GRID_ARCS, GRID_CIRCLES), min_size=1, max_size=14),
    st.randoms(use_true_random=False),
    st.floats(0.1, 6),
)
def test_tangles_on_a_grid_are_independent_of_order(items: list[Primitive], rng: random.Random, angle: float) -> None:
    """Corners, overlaps, branches and crossings that random points never have."""
    found = profile(items)
    assert used_primitives(found) == set(range(len(items)))
    for loop in found.loops:
        assert abs(drawn_area(items, loop)) == pytest.approx(abs(loop.area), abs=1e-4)
    order = rng.sample(range(len(items)), len(items))
    assert defect_counts(profile([turned(p, angle) for p in permuted(items, order)])) == defect_counts(found)


def used_primitives(found: Profile) -> set[int]:
    """The curves of loops, chains and `unused`; those of a chain and unused ones are in nothing else."""
    in_loops = {e.primitive_index for loop in found.loops for e in loop.edges}
    in_chains = [e.primitive_index for chain in found.chains for e in chain.edges]
    assert len(in_chains) == len(set(in_chains))
    assert not in_loops & set(in_chains)
    assert not (in_loops | set(in_chains)) & set(found.unused)
    return in_loops | set(in_chains) | set(found.unused)


def assert_alike(a: Profile, b: Profile, scale: float = 1.0) -> None:
    """Equal in all that does not depend on order, direction, position and rotation; b is drawn at `scale`."""
    assert defect_counts(a) == defect_counts(b)
    assert sorted(loop.depth for loop in a.loops) == sorted(loop.depth for loop in b.loops)
    assert sorted(len(loop.edges) for loop in a.loops) == sorted(len(loop.edges) for loop in b.loops)
    areas = [sorted(loop.area for loop in found.loops) for found in (a, b)]
    assert areas[1] == pytest.approx([area * scale**2 for area in areas[0]], rel=1e-6, abs=1e-6)
    lengths = [sorted(chain.length for chain in found.chains) for found in (a, b)]
    assert lengths[1] == pytest.approx([length * scale for length in lengths[0]], rel=1e-6)


def defect_counts(found: Profile) -> dict[str, object]:
    return {
        "branches": sorted(len(branch.primitives) for branch in found.branches),
        "crossings": sum(m.crosses for m in found.contacts),
        "touches": sum(not m.crosses for m in found.contacts),
        "overlaps": len(found.overlaps),
        "unused": len(found.unused),
        "extrudable": found.is_extrudable,
    }


def test_thousands_of_curves() -> None:
    rng = random.Random(5)

    def anywhere() -> tuple[float, float]:
        return (rng.random(), rng.random())

    plate = [*rectangle(-1, -1, 40, 40), *(Circle((i, j), 0.3) for i in range(31) for j in range(31))]
    assert len(profile(plate).holes) == 961
    tangle = profile([Line(anywhere(), anywhere()) for _ in range(1000)])
    assert not tangle.is_complete
    assert tangle.reasons[-1] == "So many curves come close to each other that not all were compared."
    assert len(profile([Line((0, 0), (math.cos(k), math.sin(k))) for k in range(500)]).chains) == 500
    gear = [(r * math.cos(k / 500 * TAU), r * math.sin(k / 500 * TAU)) for k in range(500) for r in (9.5, 10)]
    assert profile(polygon(*gear)).is_extrudable


@pytest.mark.slow
def test_hundred_thousand_curves() -> None:
    plate = [*rectangle(-1, -1, 400, 400), *(Circle((i, j), 0.3) for i in range(316) for j in range(316))]
    assert len(profile(plate).holes) == 316 * 316


def test_many_closed_curves_are_nested_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rings = [Circle((x, 0.0), radius) for x in (0.0, 30.0) for radius in (1.0, 2.0, 5.0, 7.0, 12.0)]
    few = profile(rings)
    monkeypatch.setattr(loops, "_FEW", 0)
    assert profile(rings) == few
    assert [loop.depth for loop in few.loops] == [4, 3, 2, 1, 0] * 2
