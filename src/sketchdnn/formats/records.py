"""A sketch as JSON data: the record that our `.json` and `.jsonl` files hold, and the compact rows of a corpus.

A primitive is an object with named fields, or in a corpus a row such as `["L", 0, x1, y1, x2, y2]`. Keys that we do
not know are kept: those of the record in `Sketch.extra`, those of primitive 3 in `Sketch.extra["primitives"]["3"]`,
those of a constraint in `Constraint.extra`. Files are not trusted: whatever they hold, reading gives a sketch or a
`SketchError`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Constraint, ConstraintType, Part, Primitive, Ref, Sketch

from .record_primitives import Record, from_object, from_row, number, to_object, to_row

_SKETCH_KEYS = ("primitives", "constraints", "units")
_CONSTRAINT_KEYS = ("type", "refs", "value", "name")
_PARTS = {part.value: part for part in Part}
_TYPES = {type_.value: type_ for type_ in ConstraintType}


def to_record(sketch: Sketch, *, compact: bool = False) -> Record:
    """The sketch as data that `json` can write; `compact` for the rows of a corpus."""
    primitives: list[Any] = [to_row(p) if compact else to_object(p) for p in sketch]
    extras = sketch.extra.get("primitives")
    if isinstance(extras, Mapping) and not compact:
        primitives = [_with_extra(p, extras.get(str(i)), tuple(p)) for i, p in enumerate(primitives)]
    record: Record = {"primitives": primitives}
    if sketch.constraints:
        record["constraints"] = [_to_constraint_object(c) for c in sketch.constraints]
    if sketch.units is not None:
        record["units"] = sketch.units
    return _with_extra(record, sketch.extra, _SKETCH_KEYS)


def from_record(record: object) -> Sketch:
    """The sketch that a record means; raises `SketchError` for one that means none."""
    if not isinstance(record, dict) or not isinstance(record.get("primitives"), list):
        raise SketchError("a record without a list 'primitives'")
    primitives, kept = _primitives(record["primitives"])
    constraints = record.get("constraints", [])
    units = record.get("units")
    if not isinstance(constraints, list) or not (units is None or isinstance(units, str)):
        raise SketchError("'constraints' must be a list and 'units' a word")
    extra = {key: value for key, value in record.items() if key not in _SKETCH_KEYS}
    if kept:
        extra["primitives"] = kept
    _check_finite(extra)
    return Sketch(primitives, tuple(map(_from_constraint_object, constraints)), units, extra)


def read_record(data: bytes) -> Sketch:
    """The sketch that JSON text means, read strictly: UTF-8, no NaN or Infinity, no key twice, bounded depth."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SketchError("text that is not UTF-8") from error
    return from_record(loads(text))


def write_record(sketch: Sketch, *, compact: bool = False) -> str:
    """One line of JSON. What came with the sketch but is no JSON is refused rather than lost."""
    return dumps(to_record(sketch, compact=compact))


def dumps(value: object) -> str:
    """JSON on one line, all in ASCII so that no text can spoil it."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SketchError(f"a sketch cannot be written as JSON: {error}") from error


def constraint_to_text(constraint: Constraint) -> str:
    """One constraint of a record as JSON."""
    return dumps(_to_constraint_object(constraint))


def constraint_from_text(text: str) -> Constraint:
    """The constraint that JSON text means, read as strictly as a record."""
    return _from_constraint_object(loads(text))


def loads(text: str) -> object:
    """The value that JSON text means: no NaN or Infinity, no key twice, bounded depth; `SketchError` otherwise."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise SketchError("JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        raise SketchError(f"not JSON: {error.msg}, line {error.lineno}, column {error.colno}") from error
    except SketchError:
        raise
    except ValueError as error:  # Python refuses to read a number of thousands of digits
        raise SketchError("a number too large to read") from error


def _primitives(items: list[Any]) -> tuple[tuple[Primitive, ...], Record]:
    """The primitives, and by index the keys of theirs that are not ours."""
    primitives: list[Primitive] = []
    kept: Record = {}
    for index, item in enumerate(items):
        try:
            if isinstance(item, list):
                primitives.append(from_row(item))
                continue
            primitive, unknown = from_object(item)
        except SketchError as error:
            raise SketchError(f"primitive {index}: {error}") from error
        primitives.append(primitive)
        if unknown:
            kept[str(index)] = unknown
    return tuple(primitives), kept


def _to_constraint_object(constraint: Constraint) -> Record:
    refs = [[ref.part.value] if ref.primitive is None else [ref.primitive, ref.part.value] for ref in constraint.refs]
    record: Record = {"type": constraint.type.value, "refs": refs}
    if constraint.value is not None:
        record["value"] = constraint.value
    if constraint.name is not None:
        record["name"] = constraint.name
    return _with_extra(record, constraint.extra, _CONSTRAINT_KEYS)


def _from_constraint_object(item: object) -> Constraint:
    if not isinstance(item, dict) or not isinstance(item.get("refs"), list):
        raise SketchError("a constraint without a list 'refs'")
    type_, value, name = item.get("type"), item.get("value"), item.get("name")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise SketchError("a constraint of an unknown type; use 'other' with a 'name'")
    if not (name is None or isinstance(name, str)):
        raise SketchError("a constraint's 'name' must be a word")
    unknown = {key: kept for key, kept in item.items() if key not in _CONSTRAINT_KEYS}
    _check_finite(unknown)
    refs = tuple(map(_ref, item["refs"]))
    return Constraint(_TYPES[type_], refs, None if value is None else number(value, "value"), name, unknown)


def _ref(item: object) -> Ref:
    match item:
        case [str(part)] if part in _PARTS:
            return Ref(None, _PARTS[part])
        case [int(index), str(part)] if part in _PARTS and not isinstance(index, bool):
            return Ref(index, _PARTS[part])
    raise SketchError('a reference of an unknown form; use [0, "start"] or ["external"]')


def _with_extra(record: Record, extra: object, ours: tuple[str, ...]) -> Record:
    """What a file held besides goes back to where it was; our own keys win."""
    return {**record, **{k: v for k, v in extra.items() if k not in ours}} if isinstance(extra, Mapping) else record


def _check_finite(kept: Record) -> None:
    """Walked rather than written out, which would take several times the memory."""
    left: list[Any] = [kept]
    while left:
        match left.pop():
            case dict() as items:
                left.extend(items.values())
            case list() as items:
                left.extend(items)
            case float() as value if not math.isfinite(value):
                raise SketchError("a number that is infinite")


def _refuse_constant(word: str) -> None:
    raise SketchError(f"{word} where a number belongs")


def _unique(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise SketchError("an object with a key that appears twice")
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
