"""Constraints of SketchGraphs and Onshape: their names, codes and parameters, and what they are here.

A dimension is text such as "0.0127 METER" (Onshape: "12.7*mm", "0.5 in"). One that we can read becomes the constraint's
value; one that we cannot, such as "#width/2", stays among the other parameters in `Constraint.extra`, so that writing
loses nothing. A distance that counts along an axis has a type of its own here and a `direction` in the file. Three
parameters are ours alone: `name`, `value`, and the note `sketchdnn`, the type and references of a constraint that would
be read as another: on the origin or an axis, a point on a curve, places in an order that matters. The official library
refuses a sequence with a parameter that it does not know, so a file holds those beside the sequence (`notes`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.formats.json_files import dump_json, parse_json
from sketchdnn.geometry import EXTERNAL, Constraint, ConstraintType, Kind, Part, Primitive, Ref
from sketchdnn.geometry.constraints import LENGTHS, ref_point
from sketchdnn.geometry.records import constraint_to_dict, parse_constraint

# In the order of their codes; Onshape spells them in capitals.
NAMES = (
    "Coincident",
    "Projected",
    "Mirror",
    "Distance",
    "Horizontal",
    "Parallel",
    "Vertical",
    "Tangent",
    "Length",
    "Perpendicular",
    "Midpoint",
    "Equal",
    "Diameter",
    "Offset",
    "Radius",
    "Concentric",
    "Fix",
    "Angle",
    "Circular_Pattern",
    "Pierce",
    "Linear_Pattern",
    "Centerline_Dimension",
    "Intersected",
    "Silhoutted",
    "Quadrant",
    "Normal",
    "Minor_Diameter",
    "Major_Diameter",
    "Rho",
    "Unknown",
)
NOTE = "sketchdnn"
SUBNODE = 101  # an edge that ties a part to its entity: structure, not a constraint

_TYPES = {
    "Coincident": ConstraintType.COINCIDENT,
    "Mirror": ConstraintType.SYMMETRIC,
    "Distance": ConstraintType.DISTANCE,
    "Horizontal": ConstraintType.HORIZONTAL,
    "Parallel": ConstraintType.PARALLEL,
    "Vertical": ConstraintType.VERTICAL,
    "Tangent": ConstraintType.TANGENT,
    "Length": ConstraintType.LENGTH,
    "Perpendicular": ConstraintType.PERPENDICULAR,
    "Midpoint": ConstraintType.MIDPOINT,
    "Equal": ConstraintType.EQUAL,
    "Diameter": ConstraintType.DIAMETER,
    "Radius": ConstraintType.RADIUS,
    "Concentric": ConstraintType.CONCENTRIC,
    "Fix": ConstraintType.FIX,
    "Angle": ConstraintType.ANGLE,
}
# What SketchGraphs has no name for is coincident there: a point with a curve it lies on, a line with a line.
_NAMES = {type_: name for name, type_ in _TYPES.items()} | {
    ConstraintType.POINT_ON_CURVE: "Coincident",
    ConstraintType.COLLINEAR: "Coincident",
}
_DIRECTIONS = {
    "MINIMUM": None,
    "HORIZONTAL": ConstraintType.HORIZONTAL_DISTANCE,
    "VERTICAL": ConstraintType.VERTICAL_DISTANCE,
}
_DIRECTIONAL = ("Distance", "Length")
_DIRECTED = {type_: direction for direction, type_ in _DIRECTIONS.items() if type_}

# Of three places, one is the middle if the others are this many times farther from it, and are not all one place, by
# their coordinates.
_FARTHER, _ONE_PLACE = 10, 1e-9

Scalar = bool | int | float | str


def constraint_of(name: str, refs: tuple[Ref, ...], params: Mapping[str, Any]) -> Constraint:
    """The constraint that a name of `NAMES` and its parameters mean; `GeometryError` if it cannot be one."""
    extra = plain(params)
    if len(extra) != len(params):
        raise GeometryError(f"a {name} constraint has a parameter that is neither a number, a word nor a flag")
    note = _recalled(extra.pop(NOTE, None), name, refs)
    type_ = _type_of(name, extra)
    if name in _DIRECTIONAL and extra.get("direction") in _DIRECTIONS:
        del extra["direction"]
    if note is not None:
        type_, refs = note.type, note.refs
    own_name = str(extra.pop("name", "")) or (name if type_ is ConstraintType.OTHER else None)
    key = _quantity_of(type_)
    value = _value(key, extra.get(key))
    if value is not None:
        del extra[key]
    return Constraint(type_, refs, value, own_name, extra)


def file_form(constraint: Constraint) -> tuple[int, dict[str, Scalar]]:
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


def note_of(
    constraint: Constraint, refs: tuple[Ref, ...], params: Mapping[str, Any], primitives: Sequence[Primitive]
) -> dict[str, Scalar]:
    """The note that a constraint needs if its parameters, and references as they are read back, would mean another."""
    type_ = _type_of(_name_of(constraint), params)
    if (type_, in_reading_order(type_, refs, primitives)) == (constraint.type, constraint.refs):
        return {}
    name = constraint.name if constraint.type is ConstraintType.OTHER else None
    return {NOTE: dump_json(constraint_to_dict(Constraint(constraint.type, constraint.refs, name=name)))}


def in_reading_order(type_: ConstraintType, refs: tuple[Ref, ...], primitives: Sequence[Primitive]) -> tuple[Ref, ...]:
    """References as the relation reads them, as far as kinds and places tell: what is mirrored, then the axis; the
    midpoint, then what it is the middle of. SketchGraphs lists them by number alone."""
    if type_ is ConstraintType.MIDPOINT and len(refs) == 3:
        return _middle_first(refs, primitives)
    if len(refs) != {ConstraintType.SYMMETRIC: 3, ConstraintType.MIDPOINT: 2}.get(type_):
        return refs
    lines = [r for r in refs if r.part is Part.WHOLE and _kind(r, primitives) is Kind.LINE]
    return (*(r for r in refs if r not in lines), *lines) if len(lines) == 1 else refs


def quantity(text: object, *, is_angle: bool) -> float | None:
    """Meters or radians; None for text that is more than a number and its unit.

    >>> quantity("0.5 in", is_angle=False), quantity("12*millimeter", is_angle=False), quantity("#d", is_angle=False)
    (0.0127, 0.012, None)
    """
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    number, unit = Decimal(match["number"]), match["unit"].lower()
    value = math.inf
    if is_angle and unit in _RADIANS:
        value = float(number)
    elif is_angle and unit in _DEGREES:
        value = math.radians(float(number))
    elif not is_angle and unit in _METERS:
        value = float(number * _METERS[unit])
    return value if math.isfinite(value) else None


def plain(params: Mapping[str, Any]) -> dict[str, Scalar]:
    """Numbers, words and flags: all that a parameter of a constraint can be."""
    return {key: value for key, value in params.items() if type(key) is str and _is_plain(value)}


def _recalled(text: object, name: str, refs: tuple[Ref, ...]) -> Constraint | None:
    """What a note says, if it is one and says no more than which of the constraints written alike is meant."""
    if not isinstance(text, str):
        return None
    try:
        note = parse_constraint(parse_json(text))
    except SketchError:
        return None
    is_same = _name_of(note) == name and Counter(_written(ref, refs) for ref in note.refs) == Counter(refs)
    return note if is_same else None


def _written(ref: Ref, refs: tuple[Ref, ...]) -> Ref:
    """What the file, which has these, can say of a reference: all outside is external, and a point is one node."""
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
    """The name of `NAMES` that a constraint is written under."""
    if constraint.type is ConstraintType.OTHER:
        return constraint.name if constraint.name in NAMES else "Unknown"
    if constraint.type in _DIRECTED:
        # Along an axis: between two places it is a distance, along one line a length.
        return "Distance" if len(constraint.refs) > 1 else "Length"
    return _NAMES[constraint.type]


def _is_plain(value: object) -> bool:
    match value:
        case bool() | str():
            return True
        case int():
            return -(1 << 63) <= value < 1 << 63
        case float():
            return math.isfinite(value)
    return False


def _quantity_of(type_: ConstraintType) -> str:
    """The parameter that holds the value: of a dimension as in the official files, of anything else one of our own."""
    return "angle" if type_ is ConstraintType.ANGLE else "length" if type_ in LENGTHS else "value"


def _value(key: str, param: object) -> float | None:
    if key == "value":
        return param if isinstance(param, float) else None
    return quantity(param, is_angle=key == "angle")


def _text(key: str, value: float) -> Scalar:
    return value if key == "value" else f"{_degrees(value)} DEGREE" if key == "angle" else f"{value!r} METER"


def _degrees(radians: float) -> str:
    """The shortest text whose angle is exactly this one, so that "60.0 DEGREE" is written as it was read.

    Some angles are the radians of no float of degrees: for these, the nearest text, an angle off by rounding.
    """
    degrees = math.degrees(radians)
    texts = (repr(float(f"{degrees:.{digits}g}")) for digits in (12, 15, 16, 17))
    return next((text for text in texts if math.radians(float(text)) == radians), repr(degrees))


def _middle_first(refs: tuple[Ref, ...], primitives: Sequence[Primitive]) -> tuple[Ref, ...]:
    """Of three places the one first that clearly lies halfway between the others; as they are where none does."""
    at = [spot for ref in refs if (spot := ref_point(ref, primitives)) is not None]
    if len(at) < 3:
        return refs
    # What is halfway between the others is where all three are on average.
    xs, ys = zip(*at, strict=True)
    off = [math.dist(spot, (sum(xs) / 3, sum(ys) / 3)) for spot in at]
    middle, *others = sorted(range(3), key=off.__getitem__)
    least = max(_ONE_PLACE * max(map(abs, xs + ys)), _FARTHER * off[middle])
    return (refs[middle], *(refs[i] for i in sorted(others))) if off[others[0]] > least else refs


def _kind(ref: Ref, primitives: Sequence[Primitive]) -> Kind | None:
    return None if ref.primitive is None else primitives[ref.primitive].kind


# Few digits suffice for any dimension; Decimal keeps 0.2 in at 0.00508 m.
_QUANTITY = re.compile(
    r"\s*+(?P<number>[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)"
    r"\s*+\*?\s*+(?P<unit>[a-zA-Z]+)\s*+"
)
_METERS = {
    word: Decimal(size)
    for size, words in {
        "1": "m meter meters",
        "0.01": "cm centimeter centimeters",
        "0.001": "mm millimeter millimeters",
        "0.0254": "in inch inches",
        "0.3048": "ft foot feet",
        "0.9144": "yd yard yards",
    }.items()
    for word in words.split()
}
_DEGREES = frozenset({"deg", "degree", "degrees"})
_RADIANS = frozenset({"rad", "radian", "radians"})
