"""Primitives on top of each other are named, with how much they share."""

from __future__ import annotations

import math
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.outlines import backwards, permuted, rectangle, turned
from support.strategies import primitives, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Overlap, Point, Primitive, Sketch, overlaps
from sketchdnn.geometry.intersections import Extent

DUPLICATE, CONTAINED, PARTIAL = Extent.DUPLICATE, Extent.CONTAINED, Extent.PARTIAL
FRAME: list[Primitive] = rectangle(-10, -10, 20, 20)  # gives the sketch a size, and overlaps nothing below
SAME_CIRCLE = {"center": (1.0, 2.0), "radius": 3.0}


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


@pytest.mark.parametrize(("a", "b", "extent", "length"), CASES)
@pytest.mark.parametrize("angle", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("mirrored", [False, True])
def test_known_overlaps(
    a: Primitive, b: Primitive, extent: Extent | None, length: float, angle: float, mirrored: bool
) -> None:
    for pair in ([a, b], [b, a]):
        drawing = [turned(p, angle, mirrored=mirrored) for p in (*pair, *FRAME)]
        found = overlaps(drawing, 1e-5)
        if extent is None:
            assert found == ()
        else:
            assert found == (Overlap(0, 1, extent, pytest.approx(length, abs=1e-3)),)


def test_a_little_off_is_still_the_same() -> None:
    a, b = Line((0, 0), (10, 0)), Line((1e-6, 5e-6), (10, -5e-6))
    (found,) = overlaps([a, b], 1e-6)
    assert found.extent is DUPLICATE
    assert overlaps([a, b], 1e-8) == ()


def test_construction_along_an_edge_is_no_mistake() -> None:
    assert overlaps([Line((0, 0), (4, 0)), Line((0, 0), (4, 0), construction=True)]) == ()
    guides = [Line((0, 0), (4, 0), construction=True), Line((1, 0), (5, 0), construction=True)]
    assert [o.extent for o in overlaps(guides)] == [PARTIAL]


def test_copies_are_counted_against_the_first() -> None:
    found = overlaps([Circle((0, 0), 1)] * 4 + [Circle((5, 0), 1)])
    assert [(o.first, o.second) for o in found] == [(0, 1), (0, 2), (0, 3)]


@given(st.lists(primitives, min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(0, 3))
def test_order_direction_place_and_mirror_do_not_matter(
    items: list[Primitive], dice: random.Random, quarters: int
) -> None:
    """Quarter turns, since any other changes the box, and with it what is within the tolerance."""
    items = items + items[: len(items) // 2]
    order = list(range(len(items)))
    dice.shuffle(order)
    shuffled = [
        turned(backwards(p), quarters * math.pi / 2, mirrored=True, scale=3, by=(5, 7)) for p in permuted(items, order)
    ]
    plain, other = overlaps(items), overlaps(shuffled)
    assert sorted(o.extent for o in plain) == sorted(o.extent for o in other)
    assert sorted(3 * o.length for o in plain) == pytest.approx(sorted(o.length for o in other), abs=1e-5)


@given(sketches())
def test_every_copy_is_found(sketch: Sketch) -> None:
    once = {o.second for o in overlaps(sketch) if o.extent is DUPLICATE}
    twice = {o.second for o in overlaps([*sketch, *sketch]) if o.extent is DUPLICATE}
    assert twice == once | set(range(len(sketch), 2 * len(sketch)))


def test_nothing_overlaps_nothing() -> None:
    assert overlaps([]) == ()
    assert overlaps([Point((3, 3)), Point((3, 3))]) == (Overlap(0, 1, DUPLICATE, 0.0),)


def test_the_tolerance_is_a_share_of_the_size() -> None:
    with pytest.raises(GeometryError, match="share of the size"):
        overlaps([Point((0, 0)), Point((1, 0))], 2.0)


def test_a_heap_of_copies_takes_no_more_than_a_moment() -> None:
    begin = time.process_time()
    assert len(overlaps([Circle((0, 0), 1)] * 20_000)) == 19_999
    dice = random.Random(1)
    heap = [Circle((1e-7 * dice.random(), 0), 1) for _ in range(20_000)]
    assert len(overlaps(heap)) == 10_000  # the search stops there
    assert time.process_time() - begin < 10
