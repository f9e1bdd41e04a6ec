"""Constraints as values: relations between parts of the primitives of a sketch, referred to by index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sketchdnn.errors import GeometryError

from .primitives import Kind, Point, Primitive, Vec


class Part(StrEnum):
    """A part of a primitive; the second group is outside the sketch and needs no primitive."""

    WHOLE = "whole"
    START = "start"
    END = "end"
    CENTER = "center"
    POINT = "point"

    EXTERNAL = "external"
    ORIGIN = "origin"
    X_AXIS = "x_axis"
    Y_AXIS = "y_axis"

    __hash__ = str.__hash__  # that of `Enum` is slow, and references are keys of many dictionaries


OUTSIDE = frozenset({Part.EXTERNAL, Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS})
PARTS_OF_KIND: Mapping[Kind, frozenset[Part]] = {
    Kind.LINE: frozenset({Part.WHOLE, Part.START, Part.END}),
    Kind.CIRCLE: frozenset({Part.WHOLE, Part.CENTER}),
    Kind.ARC: frozenset({Part.WHOLE, Part.START, Part.END, Part.CENTER}),
    Kind.POINT: frozenset({Part.WHOLE, Part.POINT}),
}


class ConstraintType(StrEnum):
    """The supported relations. All others of a file are `OTHER`, with the name that the file uses."""

    COINCIDENT = "coincident"
    POINT_ON_CURVE = "point_on_curve"
    HORIZONTAL = "horizontal"
    VERTICAL = "vertical"
    PARALLEL = "parallel"
    PERPENDICULAR = "perpendicular"
    COLLINEAR = "collinear"
    TANGENT = "tangent"
    EQUAL = "equal"
    CONCENTRIC = "concentric"
    MIDPOINT = "midpoint"
    SYMMETRIC = "symmetric"
    FIX = "fix"
    DISTANCE = "distance"
    HORIZONTAL_DISTANCE = "horizontal_distance"
    VERTICAL_DISTANCE = "vertical_distance"
    LENGTH = "length"
    RADIUS = "radius"
    DIAMETER = "diameter"
    ANGLE = "angle"
    OTHER = "other"

    __hash__ = str.__hash__


# Dimensions whose value is a length and scales with the sketch. An angle is in radians.
LENGTHS = frozenset(
    map(ConstraintType, ("distance", "horizontal_distance", "vertical_distance", "length", "radius", "diameter"))
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A part of primitive number `primitive`, or something outside the sketch when that is None."""

    primitive: int | None
    part: Part = Part.WHOLE

    def __post_init__(self) -> None:
        if (self.primitive is None) != (self.part in OUTSIDE):
            raise GeometryError(f"a reference to primitive {self.primitive} cannot mean '{self.part}'")
        if self.primitive is not None and self.primitive < 0:
            raise GeometryError(f"a reference to primitive {self.primitive}: indices start at 0")


EXTERNAL = Ref(None, Part.EXTERNAL)
# The reference to a part: the same object again where it was made before, which takes a fifth of the time.
shared_ref = lru_cache(maxsize=8192)(Ref)


@dataclass(frozen=True, slots=True)
class Constraint:
    """A relation between `refs`, in the order of the relation; dimensions have a `value` in the sketch's units.

    `extra` holds other data of a file (a direction, a label), so that writing it back loses nothing.
    """

    type: ConstraintType
    refs: tuple[Ref, ...]
    value: float | None = None
    name: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.refs:
            raise GeometryError(f"a {self.type} constraint refers to nothing")
        if self.value is not None and not math.isfinite(self.value):
            raise GeometryError(f"a {self.type} constraint has the value {self.value}")
        if self.type is ConstraintType.OTHER and not self.name:
            raise GeometryError("a constraint of type 'other' needs the name its file gives it")

    def renumber(self, numbers: Mapping[int, int]) -> Constraint:
        """The same constraint on primitives with other numbers."""
        refs = tuple(ref if ref.primitive is None else Ref(numbers[ref.primitive], ref.part) for ref in self.refs)
        return replace(self, refs=refs)

    def refers_to(self, *parts: Part) -> bool:
        """Whether it refers to one of some parts outside the sketch."""
        return any(ref.primitive is None and ref.part in parts for ref in self.refs)


def ref_point(ref: Ref, primitives: Sequence[Primitive]) -> Vec | None:
    """The point of a reference; None for a whole curve, an axis, or external geometry.

    >>> from sketchdnn.geometry import Circle
    >>> ref_point(Ref(0, Part.CENTER), [Circle((1, 2), 3)]), ref_point(Ref(0), [Circle((1, 2), 3)])
    ((1, 2), None)
    """
    if ref.primitive is None:
        return (0.0, 0.0) if ref.part is Part.ORIGIN else None
    primitive = primitives[ref.primitive]
    if isinstance(primitive, Point):
        return primitive.at
    if ref.part is Part.WHOLE:
        return None
    at: Vec = getattr(primitive, ref.part.value)
    return at
