"""A sketch as an Onshape feature: what its REST API takes to make one, entities and constraints alike.

Onshape has fewer words than we do. Where reading a constraint back would give another one, its `name`, a text that
Onshape makes nothing of, holds our own as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, Kind, Part, Primitive, Ref, Sketch
from sketchdnn.geometry.constraints import LENGTHS
from sketchdnn.geometry.records import constraint_to_dict, parse_constraint

from .json_files import dump_json, parse_json
from .sketchgraphs.constraints import NAMES, NOTE, Scalar, file_form, note_of, plain, quantity
from .sketchgraphs.entities import entity_of

Json = dict[str, Any]

_GEOMETRY = {
    Kind.LINE: ("BTMSketchCurveSegment-155", "BTCurveGeometryLine-117"),
    Kind.ARC: ("BTMSketchCurveSegment-155", "BTCurveGeometryCircle-115"),
    Kind.CIRCLE: ("BTMSketchCurve-4", "BTCurveGeometryCircle-115"),
}
# Parts with an id of their own.
_PARTS = {
    Kind.LINE: {"startPointId": Part.START, "endPointId": Part.END},
    Kind.ARC: {"startPointId": Part.START, "endPointId": Part.END, "centerId": Part.CENTER},
    Kind.CIRCLE: {"centerId": Part.CENTER},
    Kind.POINT: {},
}
_OWN = ("startParam", "endParam", "isConstruction")  # of the entity, not of its geometry
_ENUMS = {
    "direction": "DimensionDirection",
    "alignment": "DimensionAlignment",
    "halfSpace0": "DimensionHalfSpace",
    "halfSpace1": "DimensionHalfSpace",
    "halfSpace2": "DimensionHalfSpace",
    "halfSpace3": "DimensionHalfSpace",
    "projectionType": "SketchProjectionType",
}
_FLAGS = frozenset({"driven", "aligned", "clockwise", "flipped", "openPattern"})
_QUANTITIES = frozenset({"length", "angle", "patterng", "patternc1", "patternc2"})
# On the plane "Top" the other two default planes are seen edge-on and stand for the axes.
_OUTSIDE = {
    Part.ORIGIN: ('qCreatedBy(makeId("Origin"), EntityType.VERTEX)',),
    Part.X_AXIS: ('qCreatedBy(makeId("Front"), EntityType.FACE)',),
    Part.Y_AXIS: ('qCreatedBy(makeId("Right"), EntityType.FACE)',),
    Part.EXTERNAL: (),  # something that only the document it came from has
}


def feature_of(sketch: Sketch, number: int = 1) -> Json:
    """The feature that makes a sketch on the plane "Top". Without units it is taken as meters, as Onshape measures."""
    sketch = sketch.in_units("m")
    name = sketch.extra.get("name")
    return {
        "btType": "BTMSketch-151",
        "featureType": "newSketch",
        "name": name if isinstance(name, str) and name else f"Sketch {number}",
        "suppressed": False,
        "parameters": [_queries("sketchPlane", ('qCreatedBy(makeId("Top"), EntityType.FACE)',))],
        "entities": [_entity(i, primitive) for i, primitive in enumerate(sketch)],
        "constraints": [_constraint(i, c, sketch.primitives) for i, c in enumerate(sketch.constraints)],
    }


def noted(text: object, params: Json) -> Json:
    """The parameters of a constraint, with what its name says beyond them if that is a note of ours."""
    if not isinstance(text, str) or not text.startswith("{"):
        return params
    try:
        note = parse_constraint(parse_json(text))
    except SketchError:
        return params
    params = {**plain(note.extra), **params, NOTE: text}
    if note.name is not None:
        params["name"] = note.name
    if note.value is not None and note.type not in LENGTHS:
        params["value"] = note.value
    elif note.value is not None and quantity(params.get("length"), is_angle=False) == abs(note.value):
        params["length"] = f"{note.value!r} METER"  # a signed distance, which Onshape knows without its sign
    return params


def _entity(index: int, primitive: Primitive) -> Json:
    _, fields = entity_of(primitive)
    own = {key: fields.pop(key) for key in _OWN if key in fields}
    entity: Json = {"entityId": _id(Ref(index))}
    if primitive.kind is Kind.POINT:
        return {"btType": "BTMSketchPoint-158", **entity, **own, "isUserPoint": True, **fields}
    type_, curve = _GEOMETRY[primitive.kind]
    parts = {key: _id(Ref(index, part)) for key, part in _PARTS[primitive.kind].items()}
    return {"btType": type_, **entity, **parts, **own, "geometry": {"btType": curve, **fields}}


def _constraint(index: int, constraint: Constraint, primitives: Sequence[Primitive]) -> Json:
    code, params = file_form(constraint)
    roles = _roles(NAMES[code], len(constraint.refs))
    parameters = [_reference(ref, role) for ref, role in zip(constraint.refs, roles, strict=True)]
    said = {key: value for key, value in params.items() if _can_be_said(key, value)}
    return {
        "btType": "BTMSketchConstraint-2",
        "constraintType": NAMES[code].upper(),
        "entityId": f"c{index}",
        "name": _note(constraint, params, said, primitives),
        "parameters": parameters + [_parameter(key, value) for key, value in said.items()],
    }


def _note(
    constraint: Constraint, params: dict[str, Scalar], said: dict[str, Scalar], primitives: Sequence[Primitive]
) -> str:
    """What reading needs to know beyond the parameters that are said: the kind and places, a sign, other words."""
    as_read = tuple(_as_read(ref, primitives) for ref in constraint.refs)
    signed = constraint.type in LENGTHS and constraint.value is not None and constraint.value < 0
    unsaid = {key: value for key, value in params.items() if key not in said}
    if not (note_of(constraint, as_read, said, primitives) or signed or unsaid):
        return ""
    value = constraint.value if signed or "value" in unsaid else None
    extra = {key: value for key, value in unsaid.items() if key not in ("name", "value")}
    return dump_json(constraint_to_dict(Constraint(constraint.type, constraint.refs, value, constraint.name, extra)))


def _as_read(ref: Ref, primitives: Sequence[Primitive]) -> Ref:
    if ref.primitive is None:
        return Ref(None, Part.EXTERNAL)
    return Ref(ref.primitive, Part.POINT) if primitives[ref.primitive].kind is Kind.POINT else ref


def _roles(name: str, count: int) -> tuple[str, ...]:
    """What Onshape calls the places of a constraint, in our order."""
    if name == "Mirror" and count == 3:
        return ("First", "Second", "Mirror")
    if name == "Midpoint" and count in (2, 3):
        return ("Midpoint", "Entity1", "Entity2")[3 - count :]
    return ("First", "Second")[:count] if count <= 2 else tuple(map(str, range(count)))


def _reference(ref: Ref, role: str) -> Json:
    if ref.primitive is None:
        return _queries(f"external{role}", _OUTSIDE[ref.part])
    return {"btType": "BTMParameterString-149", "parameterId": f"local{role}", "value": _id(ref)}


def _id(ref: Ref) -> str:
    has_part = ref.part not in (Part.WHOLE, Part.POINT)
    return f"e{ref.primitive}.{ref.part.value}" if has_part else f"e{ref.primitive}"


def _queries(key: str, queries: Sequence[str]) -> Json:
    asked = [{"btType": "BTMIndividualQuery-138", "queryString": f"query={query};"} for query in queries]
    return {"btType": "BTMParameterQueryList-148", "parameterId": key, "queries": asked}


def _can_be_said(key: str, value: Scalar) -> bool:
    if isinstance(value, bool):
        return key in _FLAGS
    return isinstance(value, str) and (key in _ENUMS or key in _QUANTITIES)


def _parameter(key: str, value: Scalar) -> Json:
    if isinstance(value, bool):
        return {"btType": "BTMParameterBoolean-144", "parameterId": key, "value": value}
    if key in _ENUMS:
        return {"btType": "BTMParameterEnum-145", "parameterId": key, "enumName": _ENUMS[key], "value": value}
    words = str(value).replace(" METER", "*m").replace(" DEGREE", "*deg")
    if key == "length":
        words = words.removeprefix("-")
    return {"btType": "BTMParameterQuantity-147", "parameterId": key, "expression": words, "isInteger": False}
