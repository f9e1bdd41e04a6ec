"""A normalized sketch has the standard size, and can be put back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import assert_same, sketches

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Point, Ref, Sketch, bounds, normalize


@given(sketches(units="in"), st.sampled_from([0.5, 1.0, 3.0]))
def test_normalizing_can_be_undone(sketch: Sketch, half_extent: float) -> None:
    placed, placement = normalize(sketch, half_extent)
    assert placed.units is None
    back = placement.restore(placed)
    assert back.units == "in"
    assert_same(sketch, back, 1e-9)


@given(sketches(), st.sampled_from([0.5, 1.0, 3.0]))
def test_the_box_is_centered_and_as_large_as_asked(sketch: Sketch, half_extent: float) -> None:
    box = bounds(normalize(sketch, half_extent)[0])
    assert box.center == pytest.approx((0, 0), abs=1e-9)
    assert box.size == pytest.approx(2 * half_extent)


@given(sketches(), st.floats(0.1, 10), st.tuples(st.floats(-20, 20), st.floats(-20, 20)))
def test_place_and_size_do_not_show(sketch: Sketch, scale: float, by: tuple[float, float]) -> None:
    assert_same(normalize(sketch)[0], normalize(sketch.moved(scale, by))[0], 1e-8)


def test_dimensions_follow_and_come_back() -> None:
    sketch = Sketch(
        (Circle((30, 0), 5),),
        (Constraint(ConstraintType.DIAMETER, (Ref(0),), 10.0), Constraint(ConstraintType.ANGLE, (Ref(0),), 1.0)),
        "mm",
    )
    placed, placement = normalize(sketch)
    assert [c.value for c in placed.constraints] == [2.0, 1.0]
    assert placement.restore(placed) == sketch


@pytest.mark.parametrize("items", [(Point((3, 3)),), (Point((1, 1)), Point((1, 1)))])
def test_what_has_no_extent_is_refused(items: tuple[Point, ...]) -> None:
    with pytest.raises(GeometryError, match="no extent"):
        normalize(Sketch(items))


def test_what_has_hardly_any_extent_is_refused_too() -> None:
    with pytest.raises(GeometryError):
        normalize(Sketch((Point((0, 0)), Point((5e-324, 0)))))


@pytest.mark.parametrize("half_extent", [0.0, -1.0, math.nan, math.inf])
def test_a_standard_size_is_a_size(half_extent: float) -> None:
    with pytest.raises(GeometryError, match="half extent"):
        normalize(Sketch((Line((0, 0), (1, 0)),)), half_extent)


def test_nothing_cannot_be_normalized() -> None:
    with pytest.raises(GeometryError, match="empty"):
        normalize(Sketch(()))
