"""Boxes are tight: nothing drawn sticks out, and every side is touched."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import primitives, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, bounds, tessellate
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.table import sketches_to_table


@given(sketches())
def test_boxes_contain_what_is_drawn_and_touch_it(sketch: Sketch) -> None:
    box = bounds(sketch)
    fine = 1e-5 * box.size
    drawn = np.concatenate([tessellate(p, fine) for p in sketch])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    rounding = 1e-9 * max(1.0, box.size)
    assert (low >= np.array(box.low) - rounding).all()
    assert (high <= np.array(box.high) + rounding).all()
    np.testing.assert_allclose(low, box.low, atol=fine + rounding)
    np.testing.assert_allclose(high, box.high, atol=fine + rounding)


def test_an_arc_counts_by_its_real_extent() -> None:
    box = bounds([Arc((0, 0), 1, math.radians(30), math.radians(30))])
    root = math.sqrt(3) / 2
    assert (*box.low, *box.high) == pytest.approx((0.5, 0.5, root, root))
    over_the_top = bounds([Arc((0, 0), 1, math.radians(80), math.radians(20))])
    assert over_the_top.high[1] == 1
    assert over_the_top.low[1] == pytest.approx(math.sin(math.radians(80)))


@pytest.mark.parametrize("turns", [-3, -1, 0, 1, 5])
def test_full_turns_in_an_angle_do_not_matter(turns: int) -> None:
    arc = Arc((2, 3), 1.5, 0.4 + turns * math.tau, 4)
    plain = bounds([Arc((2, 3), 1.5, 0.4, 4)])
    assert (*bounds([arc]).low, *bounds([arc]).high) == pytest.approx((*plain.low, *plain.high))


def test_sides_and_center() -> None:
    box = bounds([Line((1, 2), (4, 3)), Circle((2, 2), 1)])
    assert (box.low, box.high) == ((1, 1), (4, 3))
    assert (box.width, box.height, box.size, box.center) == (3, 2, 3, (2.5, 2))


def test_nothing_has_no_bounds() -> None:
    with pytest.raises(GeometryError, match="empty"):
        bounds([])


@given(st.lists(st.lists(primitives, max_size=4), max_size=6))
def test_a_table_gives_the_box_of_each_sketch(corpus: list[list[Primitive]]) -> None:
    boxes = table_bounds(sketches_to_table(corpus))
    for items, row in zip(corpus, boxes, strict=True):
        if items:
            box = bounds(items)
            assert row.tolist() == [*box.low, *box.high]
        else:
            assert row.tolist() == [math.inf, math.inf, -math.inf, -math.inf]


def test_extent_too_small_to_divide_by_is_none() -> None:
    for tiny in (5e-324, 1e-310, 1e-200):
        assert bounds([Line((0, 0), (tiny, 0)), Point((0, tiny))]).size == 0
    assert bounds([Line((0, 0), (1e-100, 0))]).size == 1e-100
