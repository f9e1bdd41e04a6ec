"""Constraints of SketchGraphs and Onshape: their names, codes and parameters, and the conversion to ours.

A dimension is text such as "0.0127 METER" (Onshape: "12.7*mm", "0.5 in"). A number with a unit becomes the value of the
constraint. Any other text, such as "#width/2", stays in `Constraint.extra`, so that writing loses nothing. A distance
along an axis has a type of its own here and a `direction` in the file.

Three parameters are our own: `name`, `value`, and the note `sketchdnn`. The note holds the type and references of a
constraint that would otherwise be read as another one: on the origin or an axis, a point on a curve, or references
whose order matters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.formats.checks import losses_in_format
from sketchdnn.formats.format import Losses
from sketchdnn.formats.json_files import dump_json, parse_json
from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Kind, Part, Primitive, Ref, Sketch
from sketchdnn.geometry.constraints import LENGTHS, ref_point
from sketchdnn.geometry.records import constraint_to_dict, parse_constraint

# In the order of their codes; Onshape spells them in capitals.
NAMES = (
    "Coincident", "Projected", "Mirror", "Distance", "Horizontal", "Parallel", "Vertical", "Tangent", "Length",
    "Perpendicular", "Midpoint", "Equal", "Diameter", "Offset", "Radius", "Concentric", "Fix", "Angle",
    "Circular_Pattern", "Pierce", "Linear_Pattern", "Centerline_Dimension", "Intersected", "Silhoutted", "Quadrant",
    "Normal", "Minor_Diameter", "Major_Diameter", "Rho", "Unknown",
)  # fmt: skip
NOTE = "sketchdnn"
_LOST_PARAMETER = "a constraint's parameter that is neither a number, a word nor a flag"

_TYPES = {name: ConstraintType(name.lower()) for name in NAMES if name.lower() in set(ConstraintType)}
_TYPES["Mirror"] = ConstraintType.SYMMETRIC
# SketchGraphs has no names for these: a point on a curve and two lines in line are coincident there.
_NAMES = {type_: name for name, type_ in _TYPES.items()} | {
    ConstraintType.POINT_ON_CURVE: "Coincident",
    ConstraintType.COLLINEAR: "Coincident",
}
_DIRECTIONAL = ("Distance", "Length")
_DIRECTED = {ConstraintType.HORIZONTAL_DISTANCE: "HORIZONTAL", ConstraintType.VERTICAL_DISTANCE: "VERTICAL"}
_DIRECTIONS = {"MINIMUM": None} | {direction: type_ for type_, direction in _DIRECTED.items()}

# One of three points is the middle if the others are this many times farther from their mean, and farther than this
# part of the coordinates.
_FARTHER, _SAME_POINT = 10, 1e-9


Scalar = bool | int | float | str


def decode_constraint(name: str, refs: tuple[Ref, ...], params: Mapping[str, Any]) -> Constraint:
    """The constraint of a name of `NAMES` and its parameters; `GeometryError` if it is not valid."""
    extra = plain(params)
    if len(extra) != len(params):
        raise GeometryError(f"a {name} constraint has a parameter that is neither a number, a word nor a flag")
    note = _parse_note(extra.pop(NOTE, None), name, refs)
    type_ = _type_of(name, extra)
    if name in _DIRECTIONAL and extra.get("direction") in _DIRECTIONS:
        del extra["direction"]
    if note is not None:
        type_, refs = note.type, note.refs
    label = str(extra.pop("name", "")) or (name if type_ is ConstraintType.OTHER else None)
    key = _quantity_of(type_)
    value = _value(key, extra.get(key))
    if value is not None:
        del extra[key]
    return Constraint(type_, refs, value, label, extra)


def encode_constraint(constraint: Constraint) -> tuple[int, dict[str, Scalar]]:
    """The code and parameters of a constraint whose value is in meters or radians."""
    type_, params = constraint.type, plain(constraint.extra)
    params.pop(NOTE, None)
    direction = _DIRECTED.get(type_, "MINIMUM")
    name = _name_of(constraint)
    if name in _DIRECTIONAL:
        params = {"direction": direction, **params}
    if constraint.name and constraint.name != name:
        params["name"] = constraint.name
    if constraint.value is not None:
        key = _quantity_of(type_)
        params[key] = _text(key, float(constraint.value))
    return NAMES.index(name), params


def ambiguity_note(
    constraint: Constraint, refs: tuple[Ref, ...], params: Mapping[str, Any], primitives: Sequence[Primitive]
) -> dict[str, Scalar]:
    """The note of a constraint whose parameters and references would otherwise be read back as another one."""
    type_ = _type_of(_name_of(constraint), params)
    if (type_, canonical_refs(type_, refs, primitives)) == (constraint.type, constraint.refs):
        return {}
    name = constraint.name if constraint.type is ConstraintType.OTHER else None
    return {NOTE: dump_json(constraint_to_dict(Constraint(constraint.type, constraint.refs, name=name)))}


def canonical_refs(type_: ConstraintType, refs: tuple[Ref, ...], primitives: Sequence[Primitive]) -> tuple[Ref, ...]:
    """References in the order of the relation, as far as kinds and coordinates decide it.

    The mirrored parts come before the axis, the midpoint before the ends. SketchGraphs orders references by node.
    """
    if type_ is ConstraintType.MIDPOINT and len(refs) == 3:
        return _middle_first(refs, primitives)
    if len(refs) != {ConstraintType.SYMMETRIC: 3, ConstraintType.MIDPOINT: 2}.get(type_):
        return refs
    lines = [r for r in refs if r.part is Part.WHOLE and _kind(r, primitives) is Kind.LINE]
    return (*(r for r in refs if r not in lines), *lines) if len(lines) == 1 else refs


def quantity(text: object, *, is_angle: bool) -> float | None:
    """Meters or radians; None for text that is not a number with a unit.

    >>> quantity("0.5 in", is_angle=False), quantity("12*millimeter", is_angle=False), quantity("#d", is_angle=False)
    (0.0127, 0.012, None)
    """
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    number, unit = Decimal(match["number"]), match["unit"].lower()
    value = math.inf
    if is_angle and unit in ("rad", "radian", "radians"):
        value = float(number)
    elif is_angle and unit in ("deg", "degree", "degrees"):
        value = math.radians(float(number))
    elif not is_angle and unit in _METERS:
        value = float(number * _METERS[unit])
    return value if math.isfinite(value) else None


def plain(params: Mapping[str, Any]) -> dict[str, Scalar]:
    """The parameters that are numbers, words or flags."""
    return {key: value for key, value in params.items() if type(key) is str and _is_plain(value)}


def losses_in_meters(sketch: Sketch, name: str, keys: Collection[str] = ()) -> Losses:
    """What a file of SketchGraphs or Onshape does not hold of a sketch; see `losses_in_format`."""
    losses = losses_in_format(sketch, name, constraints=True, keys=keys, units="m")
    if lost := sum(len(constraint.extra) - len(plain(constraint.extra)) for constraint in sketch.constraints):
        losses.left_out[_LOST_PARAMETER] = lost
    return losses


def _parse_note(text: object, name: str, refs: tuple[Ref, ...]) -> Constraint | None:
    """The constraint of a note, if it is written with the same name and references."""
    if not isinstance(text, str):
        return None
    try:
        note = parse_constraint(parse_json(text))
    except SketchError:
        return None
    is_same = _name_of(note) == name and Counter(_file_ref(ref, refs) for ref in note.refs) == Counter(refs)
    return note if is_same else None


def _file_ref(ref: Ref, refs: tuple[Ref, ...]) -> Ref:
    """A reference as the file holds it: everything outside is external, and a point is one node."""
    if ref.primitive is None:
        return EXTERNAL
    point = Ref(ref.primitive, Part.POINT)
    return point if ref.part is Part.WHOLE and point in refs else ref


def _type_of(name: str, params: Mapping[str, Any]) -> ConstraintType:
    type_ = _TYPES.get(name, ConstraintType.OTHER)
    if name in _DIRECTIONAL:
        return _DIRECTIONS.get(str(params.get("direction"))) or type_
    return type_


def _name_of(constraint: Constraint) -> str:
    """The name of `NAMES` for a constraint."""
    if constraint.type is ConstraintType.OTHER:
        return constraint.name if constraint.name in NAMES else "Unknown"
    if constraint.type in _DIRECTED:
        # Along an axis: a distance between two parts, or the length of one line.
        return "Distance" if len(constraint.refs) > 1 else "Length"
    return _NAMES[constraint.type]


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _quantity_of(type_: ConstraintType) -> str:
    """The parameter of the value: an official one for a dimension, else our own."""
    return "angle" if type_ is ConstraintType.ANGLE else "length" if type_ in LENGTHS else "value"


def _value(key: str, param: object) -> float | None:
    if key == "value":
        return param if isinstance(param, float) else None
    return quantity(param, is_angle=key == "angle")


def _text(key: str, value: float) -> Scalar:
    return value if key == "value" else f"{_degrees(value)} DEGREE" if key == "angle" else f"{value!r} METER"


def _degrees(radians: float) -> str:
    """The shortest text that is read back as exactly this angle, so that "60.0 DEGREE" is written as it was read.

    Some angles in radians correspond to no float in degrees; their text is the nearest.
    """
    degrees = math.degrees(radians)
    texts = (repr(float(f"{degrees:.{digits}g}")) for digits in (12, 15, 16, 17))
    return next((text for text in texts if math.radians(float(text)) == radians), repr(degrees))


def _middle_first(refs: tuple[Ref, ...], primitives: Sequence[Primitive]) -> tuple[Ref, ...]:
    """Three references with the midpoint of the others first; unchanged if none clearly is one."""
    points = [point for ref in refs if (point := ref_point(ref, primitives)) is not None]
    if len(points) < 3:
        return refs
    # The midpoint of the other two is the mean of all three.
    xs, ys = zip(*points, strict=True)
    offsets = [math.dist(point, (sum(xs) / 3, sum(ys) / 3)) for point in points]
    middle, *others = sorted(range(3), key=offsets.__getitem__)
    least = max(_SAME_POINT * max(map(abs, xs + ys)), _FARTHER * offsets[middle])
    return (refs[middle], *(refs[i] for i in sorted(others))) if offsets[others[0]] > least else refs


def _kind(ref: Ref, primitives: Sequence[Primitive]) -> Kind | None:
    return None if ref.primitive is None else primitives[ref.primitive].kind


# Few digits suffice for any dimension. Decimal converts 0.2 in to exactly 0.00508 m.
_QUANTITY = re.compile(
    r"\s*+(?P<number>[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)"
    r"\s*+\*?\s*+(?P<unit>[a-zA-Z]+)\s*+"
)
_UNITS = {
    "1": "m meter meters", "0.01": "cm centimeter centimeters", "0.001": "mm millimeter millimeters",
    "0.0254": "in inch inches", "0.3048": "ft foot feet", "0.9144": "yd yard yards",
}  # fmt: skip
_METERS = {word: Decimal(size) for size, words in _UNITS.items() for word in words.split()}
