"""Whatever is drawn, in whatever order: every curve is accounted for, and a large drawing takes seconds, not hours."""

from __future__ import annotations

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outlines import backwards, drawn_area, permuted, polygon, rectangle, turned
from support.strategies import sketches

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Profile, Sketch, profile

PI = math.pi


@given(sketches(max_size=10), st.randoms(use_true_random=False), st.integers(0, 3), st.booleans())
def test_whatever_is_drawn_every_curve_is_accounted_for(
    sketch: Sketch, dice: random.Random, quarters: int, mirrored: bool
) -> None:
    """Quarter turns, since any other changes the box, and with it what is within the tolerance."""
    found = profile(sketch)
    curves = {i for i, p in enumerate(sketch) if not isinstance(p, Point) and not p.construction}
    assert accounted(found) == curves
    order = list(range(len(sketch)))
    dice.shuffle(order)
    shuffled = permuted(sketch.primitives, order)
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
def test_tangles_on_a_grid_are_accounted_for_in_any_order(
    items: list[Primitive], dice: random.Random, angle: float
) -> None:
    """Corners, overlaps, branches and crossings that random places never give."""
    found = profile(items)
    assert accounted(found) == set(range(len(items)))
    for loop in found.loops:
        assert abs(drawn_area(items, loop)) == pytest.approx(abs(loop.area), abs=1e-4)
    order = list(range(len(items)))
    dice.shuffle(order)
    assert told(profile([turned(p, angle) for p in permuted(items, order)])) == told(found)


def accounted(found: Profile) -> set[int]:
    """Every curve of loops, chains and what is set aside; a chain's or a set-aside curve is nowhere else."""
    in_loops = {e.primitive for loop in found.loops for e in loop.edges}
    in_chains = [e.primitive for chain in found.chains for e in chain.edges]
    assert len(in_chains) == len(set(in_chains))
    assert not in_loops & set(in_chains)
    assert not (in_loops | set(in_chains)) & set(found.ignored)
    return in_loops | set(in_chains) | set(found.ignored)


def assert_alike(a: Profile, b: Profile, scale: float = 1.0) -> None:
    """Equal in all that must not depend on order, direction, place and turn; b drawn at `scale`."""
    assert told(a) == told(b)
    assert sorted(loop.depth for loop in a.loops) == sorted(loop.depth for loop in b.loops)
    assert sorted(len(loop.edges) for loop in a.loops) == sorted(len(loop.edges) for loop in b.loops)
    areas = [sorted(loop.area for loop in found.loops) for found in (a, b)]
    assert areas[1] == pytest.approx([area * scale**2 for area in areas[0]], rel=1e-6, abs=1e-6)
    lengths = [sorted(chain.length for chain in found.chains) for found in (a, b)]
    assert lengths[1] == pytest.approx([length * scale for length in lengths[0]], rel=1e-6)


def told(found: Profile) -> dict[str, object]:
    """What is wrong, in numbers."""
    return {
        "branches": sorted(len(branch.primitives) for branch in found.branches),
        "crossings": sum(m.crosses for m in found.meetings),
        "touches": sum(not m.crosses for m in found.meetings),
        "overlaps": len(found.overlaps),
        "set aside": len(found.ignored),
        "extrudable": found.is_extrudable,
    }


def test_a_thousand_curves_take_seconds_at_most() -> None:
    dice = random.Random(5)

    def anywhere() -> tuple[float, float]:
        return (dice.random(), dice.random())

    begin = time.process_time()
    plate = [*rectangle(-1, -1, 40, 40), *(Circle((i, j), 0.3) for i in range(31) for j in range(31))]
    assert len(profile(plate).holes) == 961
    tangle = profile([Line(anywhere(), anywhere()) for _ in range(1000)])
    assert not tangle.is_complete
    assert tangle.reasons[-1] == "So many curves come close to each other that not all were compared."
    assert len(profile([Line((0, 0), (math.cos(k), math.sin(k))) for k in range(500)]).chains) == 500
    gear = [(r * math.cos(k / 500 * TAU), r * math.sin(k / 500 * TAU)) for k in range(500) for r in (9.5, 10)]
    assert profile(polygon(*gear)).is_extrudable
    assert time.process_time() - begin < 20


@pytest.mark.slow
def test_a_hundred_thousand_curves_do_not_fill_the_memory() -> None:
    plate = [*rectangle(-1, -1, 400, 400), *(Circle((i, j), 0.3) for i in range(316) for j in range(316))]
    assert len(profile(plate).holes) == 316 * 316
