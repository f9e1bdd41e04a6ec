"""The meaning of the entities of SketchGraphs and Onshape, whose fields are the same.

Meters and radians. A line is a point, a direction and two positions along it. A circle or arc has a direction from
which its parameters count, clockwise or not. Our arcs run counter-clockwise, so a clockwise arc is reversed: its start
is the end in the file. Entities are collected first and converted to columns together, for the speed of numpy.
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

from .pickles import EntityType

_CIRCLE_FIELDS = ("isConstruction", "xCenter", "yCenter", "radius")
FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.LINE: ("isConstruction", "pntX", "pntY", "dirX", "dirY", "startParam", "endParam"),
    Kind.CIRCLE: _CIRCLE_FIELDS,
    Kind.ARC: (*_CIRCLE_FIELDS, "xDir", "yDir", "clockwise", "startParam", "endParam"),
    Kind.POINT: ("isConstruction", "x", "y"),
}
_KINDS: Mapping[int, Kind] = {EntityType[kind.name]: kind for kind in Kind}
_UNSUPPORTED: Mapping[int, str] = {
    EntityType.ELLIPSE: "an ellipse", EntityType.SPLINE: "a spline", EntityType.CONIC: "a conic",
}  # fmt: skip

NO_NUMBER = "an entity with a field that is missing or no number"
NO_EXTENT: Mapping[Kind, str] = {
    Kind.LINE: "a line of no length", Kind.CIRCLE: "a circle without a radius",
    Kind.ARC: "an arc without a radius or sweep, or of a full turn", Kind.POINT: NO_NUMBER,
}  # fmt: skip
# Ends closer than this, relative to the coordinates that they are computed from, may be the same number.
_SAME_END = 1e-14


@dataclass(frozen=True, slots=True)
class Columns:
    """The entities of many sketches as columns.

    Attributes:
        table: The valid entities.
        is_valid: For each entity, in the order they were added, whether it is in the table.
        clockwise: For each entity, whether it is an arc that was reversed.
        skipped: The sketch and the reason of each entity that is not in the table.
    """

    table: PrimitiveTable
    is_valid: NDArray[np.bool_]
    clockwise: NDArray[np.bool_]
    skipped: list[tuple[int, str]]


class EntityCollector:
    """Collects the entities of many sketches."""

    def __init__(self) -> None:
        self._owner: list[int] = []
        self._kind: list[Kind] = []
        self._rows: dict[Kind, list[tuple[Any, ...]]] = {kind: [] for kind in Kind}
        self._skipped: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._owner)

    def add(self, owner: int, label: int, fields: Mapping[str, Any]) -> bool:
        """Add an entity; False if it is skipped at once.

        Args:
            owner: The index of its sketch, which never decreases.
            label: An `EntityType`.
            fields: Anything that a file holds.
        """
        try:
            kind = _KINDS[label]
            self._rows[kind].append(_GETTERS[kind](fields))
        except (KeyError, TypeError):
            self.skip(owner, NO_NUMBER if label in _KINDS else _UNSUPPORTED.get(label, "an entity of unknown type"))
            return False
        self._owner.append(owner)
        self._kind.append(kind)
        return True

    def skip(self, owner: int, reason: str) -> None:
        """Count an entity that is not a primitive."""
        self._skipped.append((owner, reason))

    def columns(self, num_sketches: int) -> Columns:
        """All entities that are valid primitives, and the reasons of the others."""
        count = len(self._owner)
        owner, kind = np.array(self._owner, np.int64), np.array(self._kind, np.uint8)
        named = {name: np.zeros(count) for name in ("x", "y", "x2", "y2", "radius", "start_angle", "sweep")}
        construction, clockwise, is_valid = np.zeros((3, count), np.bool_)
        skipped = list(self._skipped)
        for k, rows in self._rows.items():
            at = np.flatnonzero(kind == k)
            raw = _numbers(rows, len(FIELDS[k]))
            is_number = np.isfinite(raw).all(axis=0)
            with np.errstate(all="ignore"):  # overflows and NaNs are found right below
                columns, has_extent = _CONVERSIONS[k](*raw[1:])
            for name, numbers in columns.items():
                named[name][at] = numbers
                is_number &= np.abs(numbers) <= LARGEST_COORDINATE
            construction[at] = raw[0] != 0
            if k is Kind.ARC:
                clockwise[at] = raw[_CLOCKWISE] != 0
            is_valid[at] = is_number & has_extent
            skipped += [(o, NO_NUMBER) for o in owner[at[~is_number]].tolist()]
            skipped += [(o, NO_EXTENT[k]) for o in owner[at[is_number & ~has_extent]].tolist()]
        valid = {name: column[is_valid] for name, column in named.items()}
        table = PrimitiveTable(num_sketches, owner[is_valid], kind[is_valid], construction[is_valid], **valid)
        return Columns(table, is_valid, clockwise, skipped)


def primitive_to_entity(primitive: Primitive) -> tuple[EntityType, dict[str, Any]]:
    """The entity of a primitive, with its fields in the order of the official files."""
    fields: dict[str, Any] = {"isConstruction": primitive.construction}
    match primitive:
        case Line((x, y), (x2, y2)):
            length = primitive.length
            fields |= {"dirX": (x2 - x) / length, "dirY": (y2 - y) / length, "pntX": x, "pntY": y}
            fields |= {"startParam": 0.0, "endParam": length}
        case Circle((x, y), radius) | Arc((x, y), radius):
            fields |= {"clockwise": False, "xCenter": x, "yCenter": y, "xDir": 1.0, "yDir": 0.0, "radius": radius}
        case Point((x, y)):
            fields |= {"x": x, "y": y}
    if isinstance(primitive, Arc):
        fields |= {"startParam": primitive.start_angle, "endParam": primitive.end_angle}
    # Integers of a sketch are floats in the file.
    floats = {key: value if isinstance(value, bool) else float(value) for key, value in fields.items()}
    return EntityType[primitive.kind.name], floats


_GETTERS = {kind: itemgetter(*names) for kind, names in FIELDS.items()}
_CLOCKWISE = FIELDS[Kind.ARC].index("clockwise")

Floats = NDArray[np.float64]
# Columns of the table, and whether each entity has an extent.
Conversion = tuple[dict[str, Floats], NDArray[np.bool_]]


def _line(x: Floats, y: Floats, dir_x: Floats, dir_y: Floats, start: Floats, end: Floats) -> Conversion:
    x1, y1, x2, y2 = x + start * dir_x, y + start * dir_y, x + end * dir_x, y + end * dir_y
    return {"x": x1, "y": y1, "x2": x2, "y2": y2}, (x1 != x2) | (y1 != y2)


def _arc(
    x: Floats, y: Floats, radius: Floats, dir_x: Floats, dir_y: Floats, clockwise: Floats, start: Floats, end: Floats
) -> Conversion:
    zero = np.arctan2(dir_y, dir_x)
    start_angle = np.where(clockwise != 0, zero - end, zero + start)
    start_angle = start_angle - TAU * np.round(start_angle / TAU)
    # Some arcs of real files end below their start: the span is modulo a turn.
    sweep = np.mod(end - start, TAU)
    chord = 2 * radius * np.sin(sweep / 2)
    apart = chord > _SAME_END * (np.abs(x) + np.abs(y) + radius)
    columns = {"x": x, "y": y, "radius": radius, "start_angle": start_angle, "sweep": sweep}
    return columns, (radius > 0) & (sweep > 0) & (sweep < TAU) & apart


_CONVERSIONS: Mapping[Kind, Callable[..., Conversion]] = {
    Kind.LINE: _line,
    Kind.CIRCLE: lambda x, y, radius: ({"x": x, "y": y, "radius": radius}, radius > 0),
    Kind.ARC: _arc,
    Kind.POINT: lambda x, y: ({"x": x, "y": y}, np.ones(len(x), np.bool_)),
}


def _numbers(rows: list[tuple[Any, ...]], width: int) -> Floats:
    """A row of numbers for each field; NaN where the file holds anything else."""
    values = list(chain.from_iterable(rows))
    if not {float, bool}.issuperset(map(type, values)):
        values = list(map(_number, values))
    return np.array(values, np.float64).reshape(-1, width).T


def _number(value: object) -> float:
    try:
        return float(value) if type(value) in (float, int, bool) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
