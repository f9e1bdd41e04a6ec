"""Boxes are tight, normalization can be undone, and tables hold sketches exactly."""

import math
import random
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.noisy_sketches import T, constraint
from support.strategies import assert_same, primitives, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, bounds, normalize, tessellate
from sketchdnn.geometry.bounds import primitive_bounds, row_bounds, table_bounds
from sketchdnn.geometry.table import sketches_to_table, table_to_sketches

CORPORA = st.lists(st.lists(primitives, max_size=6), max_size=8)


@given(sketches())
def test_box_contains_the_sketch_and_touches_it(sketch: Sketch) -> None:
    box = bounds(sketch)
    fine = 1e-5 * box.size
    points = np.concatenate([tessellate(p, fine) for p in sketch])
    low, high = points.min(axis=0), points.max(axis=0)
    rounding = 1e-9 * max(1.0, box.size)
    assert (low >= np.array(box.low) - rounding).all()
    assert (high <= np.array(box.high) + rounding).all()
    np.testing.assert_allclose(low, box.low, atol=fine + rounding)
    np.testing.assert_allclose(high, box.high, atol=fine + rounding)


@given(st.lists(primitives, min_size=1, max_size=6))
def test_boxes_of_primitives_agree_with_those_of_a_table(items: list[Primitive]) -> None:
    boxes = np.concatenate(row_bounds(sketches_to_table([items])), axis=1)
    np.testing.assert_allclose([primitive_bounds(p) for p in items], boxes, rtol=1e-12, atol=1e-9)


def test_box_of_arcs_and_its_sides() -> None:
    box = bounds([Arc((0, 0), 1, math.radians(30), math.radians(30))])
    root = math.sqrt(3) / 2
    assert (*box.low, *box.high) == pytest.approx((0.5, 0.5, root, root))
    over_the_top = bounds([Arc((0, 0), 1, math.radians(80), math.radians(20))])
    assert (over_the_top.high[1], over_the_top.low[1]) == (1, pytest.approx(math.sin(math.radians(80))))
    plain = bounds([Arc((2, 3), 1.5, 0.4, 4)])
    for turns in (-3, -1, 1, 5):
        box = bounds([Arc((2, 3), 1.5, 0.4 + turns * math.tau, 4)])
        assert (*box.low, *box.high) == pytest.approx((*plain.low, *plain.high))
    box = bounds([Line((1, 2), (4, 3)), Circle((2, 2), 1)])
    assert (box.low, box.high) == ((1, 1), (4, 3))
    assert (box.width, box.height, box.size, box.center) == (3, 2, 3, (2.5, 2))
    for tiny in (5e-324, 1e-310, 1e-200):
        assert bounds([Line((0, 0), (tiny, 0)), Point((0, tiny))]).size == 0
    assert bounds([Line((0, 0), (1e-100, 0))]).size == 1e-100
    with pytest.raises(GeometryError, match="empty"):
        bounds([])


@given(CORPORA)
def test_table_has_the_box_of_each_sketch(corpus: list[list[Primitive]]) -> None:
    for items, row in zip(corpus, table_bounds(sketches_to_table(corpus)), strict=True):
        expected = [*bounds(items).low, *bounds(items).high] if items else [math.inf, math.inf, -math.inf, -math.inf]
        assert row.tolist() == expected


@given(sketches(units="in"), st.sampled_from([0.5, 1.0, 3.0]))
def test_normalization_centers_scales_and_can_be_undone(sketch: Sketch, half_extent: float) -> None:
    normalized, placement = normalize(sketch, half_extent)
    assert normalized.units is None
    assert bounds(normalized).center == pytest.approx((0, 0), abs=1e-9)
    assert bounds(normalized).size == pytest.approx(2 * half_extent)
    restored = placement.restore(normalized)
    assert restored.units == "in"
    assert_same(sketch, restored, 1e-9)


@given(sketches(), st.floats(0.1, 10), st.tuples(st.floats(-20, 20), st.floats(-20, 20)))
def test_normalization_is_independent_of_position_and_size(
    sketch: Sketch, scale: float, by: tuple[float, float]
) -> None:
    assert_same(normalize(sketch)[0], normalize(sketch.moved(scale, by))[0], 1e-8)


def test_normalization_scales_dimensions_and_refuses_sketches_without_extent() -> None:
    constraints = (constraint(T.DIAMETER, 0, value=10.0), constraint(T.ANGLE, 0, value=1.0))
    sketch = Sketch((Circle((30, 0), 5),), constraints, "mm")
    normalized, placement = normalize(sketch)
    assert ([c.value for c in normalized.constraints], placement.restore(normalized)) == ([2.0, 1.0], sketch)
    for items in ((Point((3, 3)),), (Point((1, 1)), Point((1, 1)))):
        with pytest.raises(GeometryError, match="no extent"):
            normalize(Sketch(items))
    with pytest.raises(GeometryError):
        normalize(Sketch((Point((0, 0)), Point((5e-324, 0)))))
    with pytest.raises(GeometryError, match="empty"):
        normalize(Sketch(()))
    for half_extent in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(GeometryError, match="half extent"):
            normalize(Sketch((Line((0, 0), (1, 0)),)), half_extent)


@given(CORPORA, st.randoms(use_true_random=False))
def test_table_holds_and_selects_sketches_exactly(corpus: list[list[Primitive]], rng: random.Random) -> None:
    table = sketches_to_table(corpus)
    assert ([list(sketch) for sketch in table_to_sketches(table)], table.num_sketches) == (corpus, len(corpus))
    assert (table.counts.tolist(), len(table)) == ([len(items) for items in corpus], sum(map(len, corpus)))
    keep = np.array([rng.random() < 0.5 for _ in corpus], dtype=bool)
    selected, expected = table.select(keep), [c for c, k in zip(corpus, keep, strict=True) if k]
    for f in fields(selected):
        np.testing.assert_array_equal(getattr(selected, f.name), getattr(sketches_to_table(expected), f.name))


def test_table_refuses_rows_that_are_no_primitive() -> None:
    table = sketches_to_table([[Line((0, 0), (1, 0))]])
    with pytest.raises(GeometryError, match="no primitive has kind 9"):
        table_to_sketches(replace(table, kind=np.array([9], dtype=np.uint8)))
    with pytest.raises(GeometryError, match="not a number"):
        table_to_sketches(replace(table, x=np.array([np.nan])))
