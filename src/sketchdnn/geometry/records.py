"""Primitives and constraints as JSON-compatible data, and the checks that untrusted data passes on the way back.

A primitive is a dictionary of named fields, or a compact row such as `["L", 0, x1, y1, x2, y2]`. Unknown keys are
preserved: those of a record in `Sketch.extra`, those of primitive 3 in `Sketch.extra["primitives"]["3"]`, those of a
constraint in `Constraint.extra`. Whatever the data holds, parsing returns a value or raises `SketchError`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sketchdnn.errors import SketchError

from .constraints import Constraint, ConstraintType, Part, Ref
from .primitives import TAU, Arc, Circle, Line, Point, Primitive, arc_from_angles

if TYPE_CHECKING:
    from .sketch import Sketch

Record = dict[str, Any]

_SKETCH_KEYS = ("primitives", "constraints", "units")
_CONSTRAINT_KEYS = ("type", "refs", "value", "name")
_FIELDS = {
    "line": ("start", "end"),
    "circle": ("center", "radius"),
    "arc": ("center", "radius", "start_angle", "end_angle"),
    "point": ("at",),
}
_OWN_KEYS = {kind: ("type", "construction", *fields) for kind, fields in _FIELDS.items()}
_POINTS = ("start", "end", "center", "at")
_ROW_LENGTHS = {"L": 6, "C": 5, "A": 7, "P": 4}
_PARTS = {part.value: part for part in Part}
_TYPES = {type_.value: type_ for type_ in ConstraintType}


def sketch_to_dict(sketch: Sketch, *, compact: bool) -> Record:
    """The record of a sketch; `compact` writes primitives as rows, without extra keys of their own."""
    items: list[Any] = [_primitive_to_row(p) if compact else primitive_to_dict(p) for p in sketch]
    extras = sketch.extra.get("primitives")
    if isinstance(extras, Mapping) and not compact:
        items = [_add_extra(item, extras.get(str(i)), tuple(item)) for i, item in enumerate(items)]
    record: Record = {"primitives": items}
    if sketch.constraints:
        record["constraints"] = [constraint_to_dict(constraint) for constraint in sketch.constraints]
    if sketch.units is not None:
        record["units"] = sketch.units
    return _add_extra(record, sketch.extra, _SKETCH_KEYS)


def primitive_to_dict(primitive: Primitive) -> Record:
    """`{"type": "line", "construction": false, "start": [0, 0], "end": [1, 0]}`, and likewise for the other kinds."""
    kind = primitive.kind.label
    record: Record = {"type": kind, "construction": primitive.construction}
    for name in _FIELDS[kind]:
        value = getattr(primitive, name)
        record[name] = list(value) if name in _POINTS else value
    if isinstance(primitive, Arc):
        record["end_angle"] = _end_angle(primitive)
    return record


def _primitive_to_row(primitive: Primitive) -> list[Any]:
    """`["L", construction, x1, y1, x2, y2]`, and likewise for the other kinds."""
    kind, construction, *fields = primitive_to_dict(primitive).values()
    numbers = [number for field in fields for number in (field if isinstance(field, list) else [field])]
    return [kind[0].upper(), int(construction), *numbers]


def parse_sketch(record: object) -> tuple[tuple[Primitive, ...], tuple[Constraint, ...], str | None, Record]:
    """The fields of the sketch that a record describes.

    Raises:
        SketchError: If the record describes none.
    """
    if not isinstance(record, dict) or not isinstance(record.get("primitives"), list):
        raise SketchError("a record without a list 'primitives'")
    primitives: list[Primitive] = []
    unknown_keys: Record = {}
    for index, item in enumerate(record["primitives"]):
        try:
            primitive, unknown = (_parse_row(item), None) if isinstance(item, list) else _parse_primitive(item)
        except SketchError as error:
            raise SketchError(f"primitive {index}: {error}") from error
        primitives.append(primitive)
        if unknown:
            unknown_keys[str(index)] = unknown
    constraints, units = record.get("constraints", []), record.get("units")
    if not isinstance(constraints, list) or not (units is None or isinstance(units, str)):
        raise SketchError("'constraints' must be a list and 'units' a word")
    extra = {key: value for key, value in record.items() if key not in _SKETCH_KEYS}
    if unknown_keys:
        extra["primitives"] = unknown_keys
    _check_finite(extra)
    return tuple(primitives), tuple(map(parse_constraint, constraints)), units, extra


def _parse_row(row: list[Any]) -> Primitive:
    """The primitive of a compact row."""
    letter = row[0] if row else None
    if not isinstance(letter, str) or _ROW_LENGTHS.get(letter) != len(row) or row[1] not in (0, 1):
        raise SketchError("a row of an unknown form; it is L, C, A or P with its numbers")
    numbers = [value if type(value) is float else _number(value, "coordinate") for value in row[2:]]
    return _primitive(letter, bool(row[1]), *numbers)


def _primitive(letter: str, construction: bool, x: float, y: float, *rest: float) -> Primitive:
    match letter:
        case "L":
            return Line((x, y), (rest[0], rest[1]), construction)
        case "C":
            return Circle((x, y), rest[0], construction)
        case "A":
            return arc_from_angles((x, y), *rest, construction=construction)
    return Point((x, y), construction)


def constraint_to_dict(constraint: Constraint) -> Record:
    """`{"type": "coincident", "refs": [[0, "start"], ["origin"]]}`, with `value`, `name` and extra keys where set."""
    refs = [[ref.part.value] if ref.primitive is None else [ref.primitive, ref.part.value] for ref in constraint.refs]
    record: Record = {"type": constraint.type.value, "refs": refs}
    optional = {"value": constraint.value, "name": constraint.name}
    record |= {key: value for key, value in optional.items() if value is not None}
    return _add_extra(record, constraint.extra, _CONSTRAINT_KEYS)


def parse_constraint(item: object) -> Constraint:
    """The constraint that a dictionary describes; `SketchError` if it describes none."""
    if not isinstance(item, dict) or not isinstance(item.get("refs"), list):
        raise SketchError("a constraint without a list 'refs'")
    type_, value, name = item.get("type"), item.get("value"), item.get("name")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise SketchError("a constraint of an unknown type; use 'other' with a 'name'")
    if not (name is None or isinstance(name, str)):
        raise SketchError("a constraint's 'name' must be a word")
    extra = {key: entry for key, entry in item.items() if key not in _CONSTRAINT_KEYS}
    _check_finite(extra)
    refs = tuple(map(_parse_ref, item["refs"]))
    return Constraint(_TYPES[type_], refs, None if value is None else _number(value, "value"), name, extra)


def _add_extra(record: Record, extra: object, own_keys: tuple[str, ...]) -> Record:
    """The record with the extra keys of the file that it came from; `own_keys` are never overwritten."""
    return {**record, **{k: v for k, v in extra.items() if k not in own_keys}} if isinstance(extra, Mapping) else record


def _parse_primitive(item: object) -> tuple[Primitive, Record]:
    """The primitive, and its unknown keys."""
    if not isinstance(item, dict):
        raise SketchError("a primitive that is neither an object nor a row")
    kind = item.get("type")
    construction = item.get("construction", False)
    if not isinstance(construction, bool):
        raise SketchError("'construction' must be true or false")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise SketchError("a primitive of an unknown type; it is line, circle, arc or point")
    numbers = [number for field in _FIELDS[kind] for number in _parse_field(item, field)]
    unknown = {key: value for key, value in item.items() if key not in _OWN_KEYS[kind]}
    return _primitive(kind[0].upper(), construction, *numbers), unknown


def _parse_field(item: Record, key: str) -> Sequence[float]:
    """The numbers of a field: one, or two coordinates."""
    value = item.get(key)
    if key not in _POINTS:
        return [_number(value, key)]
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise SketchError(f"'{key}' must be two numbers")
    return [_number(coordinate, key) for coordinate in value]


def _parse_ref(item: object) -> Ref:
    match item:
        case [str(part)] if part in _PARTS:
            return Ref(None, _PARTS[part])
        case [int(index), str(part)] if part in _PARTS and not isinstance(index, bool):
            return Ref(index, _PARTS[part])
    raise SketchError('a reference of an unknown form; use [0, "start"] or ["external"]')


def _number(value: object, key: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise SketchError(f"'{key}' must be made of numbers")
    try:
        return float(value)
    except OverflowError:
        return math.inf  # which every primitive refuses


def _check_finite(extra: Record) -> None:
    """Refuse infinite numbers. Traversed rather than serialized, which would take several times the memory."""
    stack: list[Any] = [extra]
    while stack:
        match stack.pop():
            case dict() as items:
                stack.extend(items.values())
            case list() as items:
                stack.extend(items)
            case float() as value if not math.isfinite(value):
                raise SketchError("a number that is infinite")


def _end_angle(arc: Arc) -> float:
    """The end angle, less than a full turn after the start: a rounded full turn would be read back as no turn."""
    end = arc.end_angle
    while end - arc.start_angle >= TAU:
        end = math.nextafter(end, -math.inf)
    return end
