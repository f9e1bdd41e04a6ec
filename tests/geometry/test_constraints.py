"""Constraints are values that refer to what can exist."""

from __future__ import annotations

import math

import pytest

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Part, Ref
from sketchdnn.geometry.constraints import LENGTHS, OUTSIDE


@pytest.mark.parametrize("part", sorted(set(Part) - OUTSIDE))
def test_a_part_of_a_primitive_needs_one(part: Part) -> None:
    assert Ref(3, part).primitive == 3
    with pytest.raises(GeometryError, match="cannot mean"):
        Ref(None, part)


@pytest.mark.parametrize("part", sorted(OUTSIDE))
def test_what_lies_outside_belongs_to_no_primitive(part: Part) -> None:
    assert Ref(None, part).primitive is None
    with pytest.raises(GeometryError, match="cannot mean"):
        Ref(0, part)


def test_indices_start_at_zero() -> None:
    with pytest.raises(GeometryError, match="start at 0"):
        Ref(-1, Part.START)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_dimension_is_a_number(value: float) -> None:
    with pytest.raises(GeometryError, match="has the value"):
        Constraint(ConstraintType.DISTANCE, (EXTERNAL,), value)


def test_a_constraint_relates_something() -> None:
    with pytest.raises(GeometryError, match="refers to nothing"):
        Constraint(ConstraintType.HORIZONTAL, ())


def test_an_unknown_relation_keeps_its_name() -> None:
    assert Constraint(ConstraintType.OTHER, (EXTERNAL,), name="Projected").name == "Projected"
    with pytest.raises(GeometryError, match="needs the name"):
        Constraint(ConstraintType.OTHER, (EXTERNAL,))


def test_constraints_are_values() -> None:
    a, b = (Constraint(ConstraintType.RADIUS, (Ref(0),), 2.5, extra={"label": ["d1"]}) for _ in range(2))
    assert a == b
    assert len({a, b}) == 1  # hashable, whatever a file put into extra


def test_angles_are_no_lengths() -> None:
    assert ConstraintType.ANGLE not in LENGTHS
    assert {ConstraintType.DISTANCE, ConstraintType.RADIUS, ConstraintType.DIAMETER, ConstraintType.LENGTH} <= LENGTHS
