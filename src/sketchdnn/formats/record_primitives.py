"""A primitive as JSON data: an object with named fields in our own files, a row of letters and numbers in a corpus."""

from __future__ import annotations

import math
from typing import Any

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec, arc_from_angles

Record = dict[str, Any]

_FIELDS = {
    "line": ("type", "construction", "start", "end"),
    "circle": ("type", "construction", "center", "radius"),
    "arc": ("type", "construction", "center", "radius", "start_angle", "end_angle"),
    "point": ("type", "construction", "at"),
}
_ROW_LENGTHS = {"L": 6, "C": 5, "A": 7, "P": 4}


def to_object(p: Primitive) -> Record:
    """{"type": "line", "construction": false, "start": [0, 0], "end": [1, 0]} and its like."""
    match p:
        case Line(start, end):
            return {"type": "line", "construction": p.construction, "start": start, "end": end}
        case Circle(center, radius):
            return {"type": "circle", "construction": p.construction, "center": center, "radius": radius}
        case Arc(center, radius, start_angle):
            return {
                "type": "arc",
                "construction": p.construction,
                "center": center,
                "radius": radius,
                "start_angle": start_angle,
                "end_angle": _end_angle(p),
            }
        case Point(at):
            return {"type": "point", "construction": p.construction, "at": at}


def from_object(item: object) -> tuple[Primitive, Record]:
    """The primitive, and the keys that are not ours."""
    if not isinstance(item, dict):
        raise SketchError("a primitive that is neither an object nor a row")
    kind = item.get("type")
    construction = item.get("construction", False)
    if not isinstance(construction, bool):
        raise SketchError("'construction' must be true or false")
    primitive: Primitive
    match kind:
        case "line":
            primitive = Line(_place(item, "start"), _place(item, "end"), construction)
        case "circle":
            primitive = Circle(_place(item, "center"), number(item.get("radius"), "radius"), construction)
        case "arc":
            radius, start, end = (number(item.get(key), key) for key in ("radius", "start_angle", "end_angle"))
            primitive = arc_from_angles(_place(item, "center"), radius, start, end, construction=construction)
        case "point":
            primitive = Point(_place(item, "at"), construction)
        case _:
            raise SketchError("a primitive of an unknown type; it is line, circle, arc or point")
    return primitive, {key: value for key, value in item.items() if key not in _FIELDS[kind]}


def to_row(p: Primitive) -> list[Any]:
    """["L", construction, x1, y1, x2, y2] and its like."""
    construction = int(p.construction)
    match p:
        case Line(start, end):
            return ["L", construction, *start, *end]
        case Circle(center, radius):
            return ["C", construction, *center, radius]
        case Arc(center, radius, start_angle):
            return ["A", construction, *center, radius, start_angle, _end_angle(p)]
        case Point(at):
            return ["P", construction, *at]


def from_row(row: list[Any]) -> Primitive:
    """The primitive that a row of a corpus means."""
    letter = row[0] if row else None
    if not isinstance(letter, str) or _ROW_LENGTHS.get(letter) != len(row) or row[1] not in (0, 1):
        raise SketchError("a row of an unknown form; it is L, C, A or P with its numbers")
    construction = bool(row[1])
    x, y, *rest = [value if type(value) is float else number(value, "coordinate") for value in row[2:]]
    match letter:
        case "L":
            return Line((x, y), (rest[0], rest[1]), construction)
        case "C":
            return Circle((x, y), rest[0], construction)
        case "A":
            return arc_from_angles((x, y), *rest, construction=construction)
    return Point((x, y), construction)


def _place(item: Record, key: str) -> Vec:
    match item.get(key):
        case [x, y]:
            return (number(x, key), number(y, key))
    raise SketchError(f"'{key}' must be two numbers")


def number(value: object, key: str) -> float:
    """A number of a file as a float; `key` says where it stands."""
    if type(value) is float:
        return value
    if type(value) is not int:  # a bool is an int to Python, but no number here
        raise SketchError(f"'{key}' must be made of numbers")
    try:
        return float(value)
    except OverflowError:
        return math.inf  # which every primitive refuses


def _end_angle(arc: Arc) -> float:
    """The end angle, kept from rounding up to a full turn, which would be read back as no turn at all."""
    end = arc.end_angle
    while end - arc.start_angle >= TAU:
        end = math.nextafter(end, -math.inf)
    return end
