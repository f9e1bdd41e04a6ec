"""What an entity of SketchGraphs or Onshape means: the one place that knows its fields, for both formats.

Meters and radians. A line is a point, a direction and two places along it; a circle or arc has a direction from which
its parameters count, clockwise or not. An arc of ours runs counter-clockwise, so a clockwise one turns over: its start
is the file's end. Entities are gathered raw and turned into columns all at once, since numpy is where the speed is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Arc, Circle, Kind, Line, Point, Primitive
from sketchdnn.geometry.primitives import LARGEST_COORDINATE
from sketchdnn.geometry.table import PrimitiveTable

from .ops import EntityType

FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.LINE: ("isConstruction", "pntX", "pntY", "dirX", "dirY", "startParam", "endParam"),
    Kind.CIRCLE: ("isConstruction", "xCenter", "yCenter", "radius"),
    Kind.ARC: (
        "isConstruction",
        "xCenter",
        "yCenter",
        "radius",
        "xDir",
        "yDir",
        "clockwise",
        "startParam",
        "endParam",
    ),
    Kind.POINT: ("isConstruction", "x", "y"),
}
_KIND_OF: Mapping[int, Kind] = {
    EntityType.LINE: Kind.LINE,
    EntityType.CIRCLE: Kind.CIRCLE,
    EntityType.ARC: Kind.ARC,
    EntityType.POINT: Kind.POINT,
}
_NO_PRIMITIVE: Mapping[int, str] = {
    EntityType.ELLIPSE: "an ellipse",
    EntityType.SPLINE: "a spline",
    EntityType.CONIC: "a conic",
}

NO_NUMBER = "an entity with a field that is missing or no number"
NO_EXTENT: Mapping[Kind, str] = {
    Kind.LINE: "a line of no length",
    Kind.CIRCLE: "a circle without a radius",
    Kind.ARC: "an arc without a radius or sweep, or of a full turn",
    Kind.POINT: NO_NUMBER,
}
# Ends closer than this, against the coordinates they are computed from, may be the same number.
_SAME_END = 1e-14


@dataclass(frozen=True, slots=True)
class Columns:
    """The entities of many sketches as columns.

    `kept` and `clockwise` have an element an entity, in the order they were added; those not kept are not in the table,
    and `left_out` says for each whose it was and why.
    """

    table: PrimitiveTable
    kept: NDArray[np.bool_]
    clockwise: NDArray[np.bool_]
    left_out: list[tuple[int, str]]


class Entities:
    """Gathers the entities of many sketches."""

    def __init__(self) -> None:
        self._owner: list[int] = []
        self._kind: list[Kind] = []
        self._rows: dict[Kind, list[tuple[Any, ...]]] = {kind: [] for kind in Kind}
        self._left_out: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._owner)

    def add(self, owner: int, label: int, fields: Mapping[str, Any]) -> bool:
        """Add an entity of sketch number `owner`, which never falls; False if it is left out at once.

        `label` is an `EntityType`; `fields` may be anything a file holds.
        """
        kind = _KIND_OF.get(label)
        if kind is None:
            self.leave_out(owner, _NO_PRIMITIVE.get(label, "an entity of unknown type"))
            return False
        try:
            self._rows[kind].append(_GETTERS[kind](fields))
        except (KeyError, TypeError):
            self.leave_out(owner, NO_NUMBER)
            return False
        self._owner.append(owner)
        self._kind.append(kind)
        return True

    def leave_out(self, owner: int, reason: str) -> None:
        """Count an entity that is no primitive."""
        self._left_out.append((owner, reason))

    def columns(self, num_sketches: int) -> Columns:
        """All of them as primitives, less those that cannot be one."""
        count = len(self._owner)
        owner, kind = np.array(self._owner, np.int64), np.array(self._kind, np.uint8)
        named = {name: np.zeros(count) for name in ("x", "y", "x2", "y2", "radius", "start_angle", "sweep")}
        construction, clockwise, kept = np.zeros((3, count), np.bool_)
        left_out = list(self._left_out)
        for k, rows in self._rows.items():
            at = np.flatnonzero(kind == k)
            raw = _numbers(rows, len(FIELDS[k]))
            is_number = np.isfinite(raw).all(axis=0)
            with np.errstate(all="ignore"):  # what overflows or is no number is found right below
                meant, has_extent = _MEANING[k](*raw[1:])
            for name, numbers in meant.items():
                named[name][at] = numbers
                is_number &= np.abs(numbers) <= LARGEST_COORDINATE
            construction[at] = raw[0] != 0
            if k is Kind.ARC:
                clockwise[at] = raw[_CLOCKWISE] != 0
            kept[at] = is_number & has_extent
            left_out += [(o, NO_NUMBER) for o in owner[at[~is_number]].tolist()]
            left_out += [(o, NO_EXTENT[k]) for o in owner[at[is_number & ~has_extent]].tolist()]
        numbers_kept = {name: column[kept] for name, column in named.items()}
        table = PrimitiveTable(num_sketches, owner[kept], kind[kept], construction[kept], **numbers_kept)
        return Columns(table, kept, clockwise, left_out)


def entity_of(primitive: Primitive) -> tuple[EntityType, dict[str, Any]]:
    """The entity that means a primitive, its fields in the order of the official files."""
    fields: dict[str, Any] = {"isConstruction": primitive.construction}
    match primitive:
        case Line((x, y), (x2, y2)):
            length = primitive.length
            fields |= {"dirX": (x2 - x) / length, "dirY": (y2 - y) / length, "pntX": x, "pntY": y}
            return EntityType.LINE, _floats(fields | {"startParam": 0.0, "endParam": length})
        case Circle((x, y), radius):
            return EntityType.CIRCLE, _floats(fields | _circle(x, y, radius))
        case Arc((x, y), radius):
            ends = {"startParam": primitive.start_angle, "endParam": primitive.end_angle}
            return EntityType.ARC, _floats(fields | _circle(x, y, radius) | ends)
        case Point((x, y)):
            return EntityType.POINT, _floats(fields | {"x": x, "y": y})


def _circle(x: float, y: float, radius: float) -> dict[str, Any]:
    return {"clockwise": False, "xCenter": x, "yCenter": y, "xDir": 1.0, "yDir": 0.0, "radius": radius}


def _floats(fields: dict[str, Any]) -> dict[str, Any]:
    """A whole number in a sketch is a float in the file."""
    return {key: value if isinstance(value, bool) else float(value) for key, value in fields.items()}


_GETTERS: Mapping[Kind, Callable[[Mapping[str, Any]], tuple[Any, ...]]] = {
    kind: itemgetter(*names) for kind, names in FIELDS.items()
}

_CLOCKWISE = FIELDS[Kind.ARC].index("clockwise")

Floats = NDArray[np.float64]
# Columns of the table, and which entities are large enough to be a primitive.
Meaning = tuple[dict[str, Floats], NDArray[np.bool_]]


def _line(x: Floats, y: Floats, dir_x: Floats, dir_y: Floats, start: Floats, end: Floats) -> Meaning:
    x1, y1, x2, y2 = x + start * dir_x, y + start * dir_y, x + end * dir_x, y + end * dir_y
    return {"x": x1, "y": y1, "x2": x2, "y2": y2}, (x1 != x2) | (y1 != y2)


def _whole_circle(x: Floats, y: Floats, radius: Floats) -> Meaning:
    return {"x": x, "y": y, "radius": radius}, radius > 0


def _arc(
    x: Floats,
    y: Floats,
    radius: Floats,
    dir_x: Floats,
    dir_y: Floats,
    clockwise: Floats,
    start: Floats,
    end: Floats,
) -> Meaning:
    zero = np.arctan2(dir_y, dir_x)
    start_angle = np.where(clockwise != 0, zero - end, zero + start)
    start_angle = start_angle - TAU * np.round(start_angle / TAU)
    # Real files write some arcs with the end below the start: the span is meant modulo a turn.
    sweep = np.mod(end - start, TAU)
    chord = 2 * radius * np.sin(sweep / 2)
    apart = chord > _SAME_END * (np.abs(x) + np.abs(y) + radius)
    meant = {"x": x, "y": y, "radius": radius, "start_angle": start_angle, "sweep": sweep}
    return meant, (radius > 0) & (sweep > 0) & (sweep < TAU) & apart


def _point(x: Floats, y: Floats) -> Meaning:
    return {"x": x, "y": y}, np.ones(len(x), np.bool_)


_MEANING: Mapping[Kind, Callable[..., Meaning]] = {
    Kind.LINE: _line,
    Kind.CIRCLE: _whole_circle,
    Kind.ARC: _arc,
    Kind.POINT: _point,
}


def _numbers(rows: list[tuple[Any, ...]], width: int) -> Floats:
    """A row of numbers a field; not finite where a file holds anything else."""
    values = list(chain.from_iterable(rows))
    if not {float, bool}.issuperset(map(type, values)):
        values = list(map(_number, values))
    return np.array(values, np.float64).reshape(-1, width).T


def _number(value: object) -> float:
    if type(value) not in (float, int, bool):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
