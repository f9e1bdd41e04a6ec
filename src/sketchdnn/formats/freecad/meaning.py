"""FreeCAD's relations in our words.

An angle between lines refers to an end of each where FreeCAD does: the angle is then between the ways that lead away
from those ends. A tangent or perpendicular pair may name where it meets, by ends of the two or by a third place.
Distances along an axis are signed, from the first place to the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Kind, Part, Primitive, Ref

from .relation import DIMENSIONS, ORIGIN, X_AXIS, Y_AXIS, At, Code, Pos, Relation

_OUTSIDE: Mapping[At, Ref] = {
    ORIGIN: Ref(None, Part.ORIGIN),
    At(Y_AXIS.geo, Pos.START): Ref(None, Part.ORIGIN),
    X_AXIS: Ref(None, Part.X_AXIS),
    Y_AXIS: Ref(None, Part.Y_AXIS),
}
_PARTS = {Pos.WHOLE: Part.WHOLE, Pos.START: Part.START, Pos.END: Part.END, Pos.CENTER: Part.CENTER}
_TYPES: Mapping[Code, ConstraintType] = {
    Code.COINCIDENT: ConstraintType.COINCIDENT,
    Code.HORIZONTAL: ConstraintType.HORIZONTAL,
    Code.VERTICAL: ConstraintType.VERTICAL,
    Code.PARALLEL: ConstraintType.PARALLEL,
    Code.TANGENT: ConstraintType.TANGENT,
    Code.DISTANCE: ConstraintType.DISTANCE,
    Code.DISTANCE_X: ConstraintType.HORIZONTAL_DISTANCE,
    Code.DISTANCE_Y: ConstraintType.VERTICAL_DISTANCE,
    Code.ANGLE: ConstraintType.ANGLE,
    Code.PERPENDICULAR: ConstraintType.PERPENDICULAR,
    Code.RADIUS: ConstraintType.RADIUS,
    Code.EQUAL: ConstraintType.EQUAL,
    Code.POINT_ON_OBJECT: ConstraintType.POINT_ON_CURVE,
    Code.SYMMETRIC: ConstraintType.SYMMETRIC,
    Code.BLOCK: ConstraintType.FIX,
    Code.DIAMETER: ConstraintType.DIAMETER,
}


class OnMissingGeometryError(ValueError):
    """A relation with geometry that is no primitive of ours, or that is not there."""


def constraint_of(relation: Relation, geometry: Sequence[int | None], primitives: Sequence[Primitive]) -> Constraint:
    """The constraint that a relation means; `geometry[g]` is the primitive that FreeCAD's geometry g became, if any."""
    refs = tuple(_ref(at, geometry, primitives) for at in relation.at)
    type_ = _TYPES.get(relation.code, ConstraintType.OTHER)
    match relation.code, refs:
        case (Code.DISTANCE, (_,)):
            type_ = ConstraintType.LENGTH
        case (Code.TANGENT, (a, b)) if _is_line(a, primitives) and _is_line(b, primitives):
            type_ = ConstraintType.COLLINEAR
        case (Code.DISTANCE_X | Code.DISTANCE_Y, (Ref(int(line), Part.WHOLE),)):
            refs = (Ref(line, Part.START), Ref(line, Part.END))
        case (Code.DISTANCE_X | Code.DISTANCE_Y, (point,)):
            refs = (_OUTSIDE[ORIGIN], point)
        case (Code.ANGLE, (_, _)):  # with an axis, whose start is not the origin here but a way along it
            refs = tuple(
                _OUTSIDE[At(at.geo)] if at in _OUTSIDE else ref for at, ref in zip(relation.at, refs, strict=True)
            )
    name = _name(relation.code) if type_ is ConstraintType.OTHER else None
    return Constraint(type_, refs, relation.value if relation.code in DIMENSIONS else None, name, _extra(relation))


def _ref(at: At, geometry: Sequence[int | None], primitives: Sequence[Primitive]) -> Ref:
    if at.geo < 0:
        return _OUTSIDE.get(at, EXTERNAL)
    index = geometry[at.geo] if at.geo < len(geometry) else None
    if index is None:
        raise OnMissingGeometryError(f"geometry {at.geo}")
    if primitives[index].kind is Kind.POINT and at.pos is not Pos.WHOLE:
        return Ref(index, Part.POINT)
    return Ref(index, _PARTS[at.pos])


def _is_line(ref: Ref, primitives: Sequence[Primitive]) -> bool:
    if ref.primitive is None:
        return ref.part in (Part.X_AXIS, Part.Y_AXIS)
    return ref.part is Part.WHOLE and primitives[ref.primitive].kind is Kind.LINE


def _extra(relation: Relation) -> dict[str, Any]:
    """What else FreeCAD says; `offset` is the turn that it locks a tangent or perpendicular pair to."""
    extra: dict[str, Any] = {}
    if relation.label:
        extra["label"] = relation.label
    if not relation.driving:
        extra["driving"] = False
    if not relation.active:
        extra["active"] = False
    if relation.value and relation.code in (Code.TANGENT, Code.PERPENDICULAR):
        extra["offset"] = relation.value
    return extra


def _name(code: Code) -> str:
    """FreeCAD's own word.

    >>> _name(Code.SNELLS_LAW)
    'SnellsLaw'
    """
    return code.name.title().replace("_", "")
