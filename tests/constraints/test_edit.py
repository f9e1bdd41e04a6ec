"""Edits of dimensions and added constraints: the nearest solution, or a sentence that names the conflict."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.noisy_sketches import CLOSED, LEVEL, PLATE, arbitrarily_constrained, constraint

from sketchdnn.constraints import ConstrainOptions, constrain, solve, solve_edited
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch, profile

T = ConstraintType
CORNERS = [(0.0, 0.0), (40.0, 0.0), (40.0, 20.0), (0.0, 20.0)]
RECTANGLE = Sketch(
    tuple(Line(a, b) for a, b in zip(CORNERS, [*CORNERS[1:], CORNERS[0]], strict=True)), (*CLOSED, *LEVEL)
)
SIDES = (constraint(T.LENGTH, 0, value=40.0), constraint(T.LENGTH, 1, value=30.0))
JOINED = [constraint(T.COINCIDENT, Ref(i, Part.END), Ref((i + 1) % 3, Part.START)) for i in range(3)]
TRIANGLE = Sketch((Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 0))), (*JOINED, *SIDES))
PART = constrain(PLATE, ConstrainOptions(repair=False, dimensions=True)).sketch


def add(sketch: Sketch, *added: Constraint) -> tuple[Sketch, int]:
    """The sketch with further constraints, and the index of the first of them."""
    return replace(sketch, constraints=(*sketch.constraints, *added)), len(sketch.constraints)


def residual(sketch: Sketch) -> float:
    return max((value for value in constraint_residuals(sketch, sketch.constraints) if value is not None), default=0.0)


@pytest.mark.parametrize("value", [40.0, 80.0, 41.0, 4000.0, 0.5])
def test_a_side_gets_its_length_and_the_shape_stays(value: float) -> None:
    result = solve_edited(*add(RECTANGLE, constraint(T.LENGTH, 0, value=value)))
    first, second, third, fourth = result.sketch.primitives
    assert (result.message, result.dof) == (None, 3)
    assert first.end[0] - first.start[0] == pytest.approx(value, rel=1e-9)
    assert third.start[0] - third.end[0] == pytest.approx(value, rel=1e-9)
    assert second.length == pytest.approx(20) == fourth.length
    assert first.end == second.start


def test_a_conflict_is_named_and_nothing_moves() -> None:
    sketch, changed = add(RECTANGLE, constraint(T.LENGTH, 0, value=80.0))
    sketch = replace(sketch, constraints=(*sketch.constraints, constraint(T.LENGTH, 2, value=40.0)))
    result = solve_edited(sketch, changed)
    assert (result.sketch, result.message) == (sketch, "length 80 (line 0) conflicts with length 40 (line 2)")


def test_a_value_out_of_reach_says_how_far_it_goes() -> None:
    sketch, changed = add(TRIANGLE, constraint(T.LENGTH, 2, value=90.0))
    result = solve_edited(sketch, changed)
    names = "length 40 (line 0) and length 30 (line 1)"
    assert result.message == f"length 90 (line 2) conflicts with {names}: 70 is as far as it goes"
    assert result.sketch == sketch


def test_a_label_is_named() -> None:
    width = Constraint(T.LENGTH, (Ref(2),), 40.0, extra={"label": "width"})
    sketch, changed = add(RECTANGLE, constraint(T.LENGTH, 0, value=80.0), width)
    assert solve_edited(sketch, changed).message == "length 80 (line 0) conflicts with length 40 'width' (line 2)"


def test_a_triangle_does_not_fold_over() -> None:
    area = profile(solve(TRIANGLE).sketch).area
    for value in (60.0, 12.0, 69.0):
        result = solve_edited(*add(TRIANGLE, constraint(T.LENGTH, 2, value=value)))
        assert result.message is None
        points = np.array([line.start for line in result.sketch])
        (a, b), (c, d) = points[1] - points[0], points[2] - points[0]
        assert a * d - b * c > 0
    assert area == pytest.approx(600)


@pytest.mark.parametrize(("degrees", "turned"), [(20, 20), (150, 150), (89, 89)])
def test_an_angle_is_turned_without_a_flip(degrees: float, turned: float) -> None:
    lines = Sketch(
        (Line((0, 0), (10, 0)), Line((0, 0), (8, 6))),
        (constraint(T.COINCIDENT, Ref(0, Part.START), Ref(1, Part.START)),),
    )
    result = solve_edited(*add(lines, constraint(T.ANGLE, 0, 1, value=math.radians(degrees))))
    first, second = (np.subtract(line.end, line.start) for line in result.sketch)
    angle = math.atan2(first[0] * second[1] - first[1] * second[0], first @ second)
    assert math.degrees(angle) == pytest.approx(turned)
    assert [line.length for line in result.sketch] == pytest.approx([10, 10], rel=0.02)


@pytest.mark.parametrize("sweep", [0.1, 1.5, 3.5, 6.0])
def test_a_sweep_is_any_angle_below_a_full_turn(sweep: float) -> None:
    (arc,) = solve_edited(*add(Sketch((Arc((0, 0), 10, 0, 0.3),)), constraint(T.ANGLE, 0, value=sweep))).sketch
    assert isinstance(arc, Arc)
    assert arc.sweep == pytest.approx(sweep)


@pytest.mark.parametrize(
    ("kind", "refs"), [(T.HORIZONTAL, (0,)), (T.PERPENDICULAR, (0, 1)), (T.PARALLEL, (0, 2)), (T.EQUAL, (0, 1))]
)
def test_an_added_relation_turns_lines_and_keeps_their_lengths(kind: ConstraintType, refs: tuple[int, ...]) -> None:
    lines = Sketch((Line((0, 0), (0, 10)), Line((3, 0), (3, 12)), Line((0, 30), (20, 30))))
    result = solve_edited(*add(lines, constraint(kind, *refs)))
    assert result.message is None
    assert residual(result.sketch) <= 1e-9
    lengths = [after.length / before.length for before, after in zip(lines, result.sketch, strict=True)]
    assert 0.85 < min(lengths) <= max(lengths) < 1.15


def test_the_distance_of_a_circle_is_that_of_its_center() -> None:
    sketch = Sketch(
        (Line((0, 0), (0, 10)), Circle((40, 5), 10)), (constraint(T.FIX, 0), constraint(T.RADIUS, 1, value=10.0))
    )
    result = solve_edited(*add(sketch, constraint(T.DISTANCE, 1, 0, value=30.0)))
    assert result.sketch.primitives[1].center == pytest.approx((30, 5))


def test_both_ends_of_a_line_cannot_meet() -> None:
    sketch, changed = add(
        Sketch((Line((0, 0), (9, 0)),)), constraint(T.COINCIDENT, Ref(0, Part.START), Ref(0, Part.END))
    )
    result = solve_edited(sketch, changed)
    assert result.sketch == sketch
    assert "would make a primitive collapse" in (result.message or "")


def test_without_an_index_all_constraints_that_do_not_hold_are_solved() -> None:
    sketch, _ = add(RECTANGLE, constraint(T.LENGTH, 0, value=80.0), constraint(T.LENGTH, 1, value=5.0))
    result = solve_edited(sketch)
    assert [line.length for line in result.sketch] == pytest.approx([80, 5, 80, 5])
    assert solve_edited(result.sketch).sketch == result.sketch


def test_a_missing_constraint_is_refused() -> None:
    with pytest.raises(GeometryError, match="there is no constraint 8"):
        solve_edited(RECTANGLE, 8)
    assert solve_edited(Sketch(()), None).dof == 0


@settings(max_examples=40)
@given(st.data(), st.floats(0.4, 2.5))
def test_an_edit_holds_or_says_why_not(data: st.DataObject, factor: float) -> None:
    indices = [i for i, c in enumerate(PART.constraints) if c.value is not None]
    changed = data.draw(st.sampled_from(indices))
    value = (PART.constraints[changed].value or 0.0) * factor
    edited = tuple(replace(c, value=value) if i == changed else c for i, c in enumerate(PART.constraints))
    sketch = replace(PART, constraints=edited)
    result = solve_edited(sketch, changed)
    assert result.sketch.constraints == sketch.constraints
    if result.message:
        assert result.sketch == sketch
        return
    assert residual(result.sketch) <= 1e-9
    assert result.dof == 0
    undone = replace(result.sketch, constraints=PART.constraints)
    back = solve_edited(undone, changed).sketch
    assert all(np.allclose(p.at(0.3), q.at(0.3), atol=1e-5) for p, q in zip(PART, back, strict=True) if p.length)


@settings(max_examples=40)
@given(arbitrarily_constrained(), st.data())
def test_arbitrary_constraints_never_fail(sketch: Sketch, data: st.DataObject) -> None:
    changed = data.draw(st.none() | st.integers(0, len(sketch.constraints) - 1) if sketch.constraints else st.none())
    result = solve_edited(sketch, changed)
    if result.message:
        assert result.sketch == sketch
    elif not solve(result.sketch).conflicting:
        assert residual(result.sketch) <= 1e-8
