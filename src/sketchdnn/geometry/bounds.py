"""Bounding boxes, and sketches centered and scaled to a standard size.

Boxes are tight: an arc counts by the part that is drawn, not by its whole circle.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import GeometryError

from .primitives import TAU, Circle, Kind, Line, Point, Primitive, Vec
from .sketch import Sketch
from .table import Floats, PrimitiveTable

# Squares and inverses of larger numbers stay within the range of floating point.
SMALLEST_EXTENT = 1e-150
# The directions in which a circle reaches furthest along each axis.
_ALONG_X = ((1.0, 0.0), (-1.0, math.pi))
_ALONG_Y = ((1.0, math.pi / 2), (-1.0, -math.pi / 2))


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned box from `low` to `high`, corners included."""

    low: Vec
    high: Vec

    @property
    def width(self) -> float:
        return self.high[0] - self.low[0]

    @property
    def height(self) -> float:
        return self.high[1] - self.low[1]

    @property
    def size(self) -> float:
        """The larger side, to which tolerances are relative; 0 if it is below `SMALLEST_EXTENT`."""
        size = max(self.width, self.height)
        return size if size >= SMALLEST_EXTENT else 0.0

    @property
    def center(self) -> Vec:
        return ((self.low[0] + self.high[0]) / 2, (self.low[1] + self.high[1]) / 2)

    def is_within(self, other: Box, slack: float) -> bool:
        """Whether it sticks out of another box by no more than `slack`."""
        (x0, y0), (x1, y1) = other.low, other.high
        inside = self.low[0] >= x0 - slack and self.low[1] >= y0 - slack
        return inside and self.high[0] <= x1 + slack and self.high[1] <= y1 + slack


def bounds(sketch: Sketch | Sequence[Primitive]) -> Box:
    """The smallest box around all primitives.

    >>> from sketchdnn.geometry import Arc
    >>> box = bounds([Arc((0, 0), 1, 0, math.pi / 2)])
    >>> round(box.width, 9), round(box.height, 9)
    (1.0, 1.0)
    """
    if len(sketch) == 0:
        raise GeometryError("an empty sketch has no bounds")
    low_x, low_y, high_x, high_y = zip(*map(primitive_bounds, sketch), strict=True)
    return Box((float(min(low_x)), float(min(low_y))), (float(max(high_x)), float(max(high_y))))


def primitive_bounds(p: Primitive) -> tuple[float, float, float, float]:
    """Low x, low y, high x and high y of one primitive."""
    if isinstance(p, Point):
        return (*p.at, *p.at)
    if isinstance(p, Circle):
        (x, y), r = p.center, p.radius
        return x - r, y - r, x + r, y + r
    (x0, y0), (x1, y1) = p.start, p.end
    # A third of the time of `min` and `max`.
    low_x, high_x = (x1, x0) if x1 < x0 else (x0, x1)
    low_y, high_y = (y1, y0) if y1 < y0 else (y0, y1)
    if isinstance(p, Line):
        return low_x, low_y, high_x, high_y
    (x, y), r, start, sweep = p.center, p.radius, p.start_angle, p.sweep
    xs = [x + sign * r for sign, direction in _ALONG_X if (direction - start) % TAU <= sweep]
    ys = [y + sign * r for sign, direction in _ALONG_Y if (direction - start) % TAU <= sweep]
    return min((low_x, *xs)), min((low_y, *ys)), max((high_x, *xs)), max((high_y, *ys))


def table_bounds(table: PrimitiveTable) -> Floats:
    """Low x, low y, high x, high y of each sketch of a table; inf and −inf for an empty sketch."""
    lows = np.full((table.num_sketches, 2), np.inf)
    highs = np.full((table.num_sketches, 2), -np.inf)
    low, high = row_bounds(table)
    starts = np.flatnonzero(np.diff(table.owner, prepend=-1))
    if len(starts):
        owners = table.owner[starts]
        lows[owners] = np.minimum.reduceat(low, starts)
        highs[owners] = np.maximum.reduceat(high, starts)
    return np.concatenate([lows, highs], axis=1)


def row_bounds(table: PrimitiveTable) -> tuple[Floats, Floats]:
    """The low and the high corner of each primitive of a table."""
    at = np.stack([table.x, table.y], axis=1)
    other = np.where((table.kind == Kind.LINE)[:, None], np.stack([table.x2, table.y2], axis=1), at)
    reach = np.where(table.kind == Kind.CIRCLE, table.radius, 0.0)[:, None]
    low, high = np.minimum(at, other) - reach, np.maximum(at, other) + reach
    arcs = np.flatnonzero(table.kind == Kind.ARC)
    low[arcs], high[arcs] = _arc_bounds(at[arcs], table.radius[arcs], table.start_angle[arcs], table.sweep[arcs])
    return low, high


def _arc_bounds(center: Floats, radius: Floats, start: Floats, sweep: Floats) -> tuple[Floats, Floats]:
    """An arc reaches the extreme of its circle in each axis direction within its sweep."""
    angles = np.stack([start, start + sweep], axis=1)
    ends = np.stack([np.cos(angles), np.sin(angles)], axis=2)  # arc, end, axis
    low, high = ends.min(axis=1), ends.max(axis=1)
    for axis, direction, extreme in ((0, 0.0, high), (1, math.pi / 2, high), (0, math.pi, low), (1, -math.pi / 2, low)):
        passed = np.mod(direction - start, TAU) <= sweep
        extreme[passed, axis] = 1.0 if extreme is high else -1.0
    return center + radius[:, None] * low, center + radius[:, None] * high


@dataclass(frozen=True, slots=True)
class Placement:
    """The original position of a normalized sketch: point = center + scale · normalized point, in `units`."""

    center: Vec
    scale: float
    units: str | None = None

    def restore(self, sketch: Sketch) -> Sketch:
        """The inverse of `normalize`: original size, position and units."""
        return replace(sketch.moved(self.scale, self.center), units=self.units)


def normalize(sketch: Sketch, half_extent: float = 1.0) -> tuple[Sketch, Placement]:
    """Center the tight box of a sketch on the origin and scale its larger side to 2·half_extent.

    Returns:
        The normalized sketch, and its placement, which restores the original.

    >>> from sketchdnn.geometry import Circle
    >>> small, placement = normalize(Sketch((Circle((30, 0), 5),), units="mm"))
    >>> small.primitives[0].radius, placement.restore(small).primitives[0]
    (1.0, Circle(center=(30.0, 0.0), radius=5.0, construction=False))
    """
    box = bounds(sketch)
    if not 0 < half_extent < math.inf:
        raise GeometryError(f"a sketch cannot be scaled to half extent {half_extent}")
    scale = box.size / (2 * half_extent)
    if box.size == 0 or scale < sys.float_info.min:
        raise GeometryError("a sketch of no extent cannot be scaled to a standard size")
    placed = sketch.moved(1 / scale, (-box.center[0] / scale, -box.center[1] / scale))
    return replace(placed, units=None), Placement(box.center, scale, sketch.units)
