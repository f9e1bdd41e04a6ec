"""Many sketches as columns: one row per primitive, one numpy array per attribute.

A corpus is filtered, measured and normalized in this form. Columns that a kind does not use hold zero. `x, y` is a
line's start, a circle's or arc's center, or a point; `x2, y2` is a line's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError

from .primitives import Arc, Circle, Kind, Line, Point, Primitive
from .sketch import Sketch

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PrimitiveTable:
    """`owner[i]` is the index of the sketch of primitive i: non-decreasing, below `num_sketches`."""

    num_sketches: int
    owner: NDArray[np.int64]
    kind: NDArray[np.uint8]
    construction: NDArray[np.bool_]
    x: Floats
    y: Floats
    x2: Floats
    y2: Floats
    radius: Floats
    start_angle: Floats
    sweep: Floats

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of primitives of each sketch."""
        return np.bincount(self.owner, minlength=self.num_sketches).astype(np.int64)

    def select(self, keep: NDArray[np.bool_]) -> PrimitiveTable:
        """The sketches where `keep` is true, renumbered."""
        rows = keep[self.owner]
        renumber = np.cumsum(keep) - 1
        columns = {f.name: getattr(self, f.name)[rows] for f in fields(self)[1:]}
        columns["owner"] = renumber[columns["owner"]]
        return PrimitiveTable(int(keep.sum()), **columns)


def sketches_to_table(sketches: Sequence[Sequence[Primitive] | Sketch]) -> PrimitiveTable:
    """The primitives of sketches as a table, in order."""
    rows = [(i, *_row(p)) for i, sketch in enumerate(sketches) for p in sketch]
    owner, kind, construction, *numbers = np.array(rows, dtype=np.float64).reshape(-1, 10).T
    labels = owner.astype(np.int64), kind.astype(np.uint8), construction.astype(np.bool_)
    return PrimitiveTable(len(sketches), *labels, *map(np.copy, numbers))


def table_to_sketches(table: PrimitiveTable) -> list[Sketch]:
    """The sketches of a table.

    Raises:
        GeometryError: A row is no valid primitive.
    """
    sketches: list[list[Primitive]] = [[] for _ in range(table.num_sketches)]
    names = [f.name for f in fields(table)[1:]]
    for owner, kind, construction, *numbers in zip(*(getattr(table, name).tolist() for name in names), strict=True):
        sketches[owner].append(_primitive(kind, construction, *numbers))
    return [Sketch(tuple(primitives)) for primitives in sketches]


def _row(p: Primitive) -> tuple[float, ...]:
    """kind, construction, x, y, x2, y2, radius, start_angle, sweep."""
    match p:
        case Line(start, end):
            return (Kind.LINE, p.construction, *start, *end, 0, 0, 0)
        case Circle(center, radius):
            return (Kind.CIRCLE, p.construction, *center, 0, 0, radius, 0, 0)
        case Arc(center, radius, start_angle, sweep):
            return (Kind.ARC, p.construction, *center, 0, 0, radius, start_angle, sweep)
        case Point(at):
            return (Kind.POINT, p.construction, *at, 0, 0, 0, 0, 0)


def _primitive(kind: int, construction: bool, *numbers: float) -> Primitive:
    x, y, x2, y2, radius, start_angle, sweep = numbers
    match kind:
        case Kind.LINE:
            return Line((x, y), (x2, y2), construction)
        case Kind.CIRCLE:
            return Circle((x, y), radius, construction)
        case Kind.ARC:
            return Arc((x, y), radius, start_angle, sweep, construction)
        case Kind.POINT:
            return Point((x, y), construction)
    raise GeometryError(f"no primitive has kind {kind}")
