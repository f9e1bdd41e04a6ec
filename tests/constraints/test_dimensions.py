"""Dimensions settle a sketch: together with its constraints they leave nothing free, and none of them is idle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sketchdnn.constraints.dimensions import dimensions
from support.outlines import rectangle, slot
from support.strategies import numbers, sketches

from sketchdnn.constraints import infer
from sketchdnn.geometry import (
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Kind,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
    bounds,
)

T = ConstraintType
FREEDOMS = {Kind.LINE: 4, Kind.CIRCLE: 3, Kind.ARC: 5, Kind.POINT: 2}


def place(sketch: Sketch, ref: Ref) -> tuple[float, float]:
    if ref.primitive is None:
        return (0.0, 0.0)
    p = sketch.primitives[ref.primitive]
    match ref.part:
        case Part.START:
            return p.start
        case Part.END:
            return p.end
        case Part.CENTER:
            return p.center
    return p.at


def measured(constraint: Constraint, sketch: Sketch) -> float:
    """What a dimension says, measured on a sketch; of a relation, how far it is from holding."""
    of = sketch.primitives[constraint.refs[0].primitive] if constraint.refs[0].primitive is not None else None
    match constraint.type:
        case T.LENGTH:
            return of.length
        case T.RADIUS:
            return of.radius
        case T.DIAMETER:
            return 2 * of.radius
        case T.HORIZONTAL:
            return of.end[1] - of.start[1]
        case T.VERTICAL:
            return of.end[0] - of.start[0]
        case T.POINT_ON_CURVE:
            return place(sketch, constraint.refs[0])[constraint.refs[1].part is Part.X_AXIS]
        case T.HORIZONTAL_DISTANCE | T.VERTICAL_DISTANCE:
            a, b = (place(sketch, ref) for ref in constraint.refs)
            axis = constraint.type is T.VERTICAL_DISTANCE
            return b[axis] - a[axis]
    raise AssertionError(constraint)


@settings(max_examples=60)
@given(sketches(max_size=8))
def test_without_constraints_there_are_as_many_as_freedoms_and_they_hold(sketch: Sketch) -> None:
    found = dimensions(sketch)
    assert len(found) == sum(FREEDOMS[p.kind] for p in sketch)
    assert len(set(found)) == len(found)
    size = bounds(sketch).size
    for dimension in found:
        assert measured(dimension, sketch) == pytest.approx(dimension.value or 0.0, abs=1e-6 * size)


@settings(max_examples=30)
@given(st.data(), sketches(max_size=4))
def test_no_other_sketch_close_by_measures_the_same(data: st.DataObject, sketch: Sketch) -> None:
    """Whatever moves a little changes a dimension: that is what it means to be settled."""
    found = dimensions(sketch)
    size = bounds(sketch).size
    index = data.draw(st.integers(0, len(sketch) - 1))
    way = data.draw(st.lists(st.floats(-1, 1), min_size=5, max_size=5))
    step = 1e-4 * min(size, *(p.length or size for p in sketch))
    moved = nudged(sketch.primitives[index], way, step)
    other = replace(sketch, primitives=(*sketch.primitives[:index], moved, *sketch.primitives[index + 1 :]))
    change = np.abs(np.subtract(numbers(moved), numbers(sketch.primitives[index]))).max()
    assume(change > 0.1 * step)
    off = max(abs(measured(d, other) - measured(d, sketch)) for d in found)
    assert off > 1e-5 * change


def nudged(p: Primitive, way: list[float], step: float) -> Primitive:
    a, b, c, d, e = (step * w for w in way)
    match p:
        case Line((x0, y0), (x1, y1)):
            return replace(p, start=(x0 + a, y0 + b), end=(x1 + c, y1 + d))
        case Circle((x, y), r):
            return replace(p, center=(x + a, y + b), radius=r + c)
        case Arc((x, y), r, start, sweep):
            return Arc((x + a, y + b), r + c, start + d / r, sweep + e / r)
        case Point((x, y)):
            return replace(p, at=(x + a, y + b))


def test_a_rectangle_needs_two_lengths_and_a_place() -> None:
    plate = Sketch(tuple(rectangle(10, 20, 30, 40)))
    found = dimensions(plate, infer(plate))
    assert [d.type for d in found] == [T.LENGTH, T.LENGTH, T.HORIZONTAL_DISTANCE, T.VERTICAL_DISTANCE]
    assert [d.value for d in found] == [30, 40, 10, 20]


def test_a_slot_on_the_origin_needs_no_distance_that_is_nothing() -> None:
    """Its middle lies on the axes: no distance of 0, which no CAD program likes."""
    found = dimensions(Sketch(tuple(slot(20.0, 5.0))), infer(Sketch(tuple(slot(20.0, 5.0)))))
    assert T.RADIUS in {d.type for d in found}
    assert all(d.value is None or abs(d.value) > 1e-6 for d in found)


def test_dimensions_that_are_there_are_not_said_again() -> None:
    hole = Sketch((Circle((3.0, 4.0), 2.0),), (Constraint(T.RADIUS, (Ref(0),), 2.0),))
    assert [d.type for d in dimensions(hole)] == [T.HORIZONTAL_DISTANCE, T.VERTICAL_DISTANCE]
    again = replace(hole, constraints=(*hole.constraints, *dimensions(hole)))
    assert dimensions(again) == ()


def test_of_nothing_and_of_too_much_there_are_none() -> None:
    assert dimensions(Sketch(())) == ()
    assert dimensions(Sketch(tuple(Point((float(i), 0.0)) for i in range(800)))) == ()
