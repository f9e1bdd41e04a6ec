"""The curves and closed shapes of a sketch, measured once for all searches for defects.

All lengths are fractions of the sketch's size, the larger side of its box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Profile, Sketch, Vec, normalize, profile
from sketchdnn.geometry.bounds import row_bounds
from sketchdnn.geometry.proximity import near_points
from sketchdnn.geometry.table import sketches_to_table

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Two numbers this close are meant to be equal: files often keep four or five digits.
EXACT = 1e-3
# Ends this close are meant to be joined.
JOINED = 1e-2


@dataclass(frozen=True, slots=True)
class Shape:
    """A closed loop.

    Attributes:
        primitives: The indices of its primitives.
        center: The center of its box.
        width: The width of its box.
        height: The height of its box.
        area: The area inside.
        depth: The number of loops around it.
        is_circle: Whether it is one full circle.
    """

    primitives: tuple[int, ...]
    center: Vec
    width: float
    height: float
    area: float
    depth: int
    is_circle: bool

    def is_copy(self, other: Shape, tolerance: float = EXACT) -> bool:
        """Whether both have the same size and number of primitives, in some orientation by quarter turns."""
        if self.is_circle != other.is_circle or len(self.primitives) != len(other.primitives):
            return False
        mine, others = sorted((self.width, self.height)), sorted((other.width, other.height))
        return max(abs(a - b) for a, b in zip(mine, others, strict=True)) <= 2 * tolerance


class Anatomy:
    """A sketch of size one, its profile, and arrays of what its primitives are and where they are."""

    def __init__(self, sketch: Sketch) -> None:
        normalized, _ = normalize(sketch, 0.5)
        self.primitives: tuple[Primitive, ...] = normalized.primitives
        self.profile: Profile = profile(normalized, JOINED)
        low, high = row_bounds(sketches_to_table([self.primitives]))
        self.shapes: list[Shape] = []
        for loop in self.profile.loops:
            members = [edge.primitive_index for edge in loop.edges]
            (x0, y0), (x1, y1) = low[members].min(axis=0).tolist(), high[members].max(axis=0).tolist()
            is_circle = isinstance(self.primitives[members[0]], Circle)
            center = ((x0 + x1) / 2, (y0 + y1) / 2)
            shape = Shape(tuple(members), center, x1 - x0, y1 - y0, abs(loop.area), loop.depth, is_circle)
            self.shapes.append(shape)

    def __len__(self) -> int:
        return len(self.primitives)

    @cached_property
    def outline(self) -> Shape | None:
        """The shape of the largest area."""
        return max(self.shapes, key=lambda shape: shape.area, default=None)

    @cached_property
    def curves(self) -> list[int]:
        """The indices of all primitives but points and construction geometry."""
        return [i for i, p in enumerate(self.primitives) if not p.construction and not isinstance(p, Point)]

    @cached_property
    def label(self) -> NDArray[np.int64]:
        """Equal for primitives of the same kind, construction or not."""
        return np.array([2 * p.kind + p.construction for p in self.primitives])

    @cached_property
    def descriptor(self) -> Floats:
        """`prim, 7`: two ends and a middle, and a radius of a circle. Ends and middle of a circle are its center."""
        return np.array([_descriptor(p) for p in self.primitives], np.float64).reshape(-1, 7)

    @cached_property
    def curve_distance(self) -> Floats:
        """`curve, curve`: the distance between curves in their interiors; infinite for those that share an end."""
        curves = [self.primitives[i] for i in self.curves]
        distance = interior_distances(curves)
        ends = [(end, i) for i, curve in enumerate(curves) for end in ends_of(curve)]
        for k, m, dx, dy in near_points([end for end, _ in ends], JOINED):
            if math.hypot(dx, dy) <= JOINED:
                i, j = ends[k][1], ends[m][1]
                distance[i, j] = distance[j, i] = math.inf
        return distance


def ends_of(p: Primitive) -> tuple[Vec, ...]:
    """Both ends of a line or arc, none of others."""
    return (p.start, p.end) if isinstance(p, Line | Arc) else ()


def share_end(a: Primitive, b: Primitive) -> bool:
    """Whether two curves have a common end."""
    return any(math.dist(p, q) <= JOINED for p in ends_of(a) for q in ends_of(b))


def _descriptor(p: Primitive) -> tuple[float, ...]:
    match p:
        case Line((x0, y0), (x1, y1)):
            return (x0, y0, x1, y1, (x0 + x1) / 2, (y0 + y1) / 2, 0.0)
        case Circle((x, y), radius):
            return (x, y, x, y, x, y, radius)
        case Arc():
            return (*p.start, *p.end, *p.mid, 0.0)
        case Point((x, y)):
            return (x, y, x, y, x, y, 0.0)


_INTERIOR = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)


def interior_distances(curves: Sequence[Primitive]) -> Floats:
    """`curve, curve`: the least distance from samples inside one curve to the other curve; infinite for itself."""
    count = len(curves)
    if not count:
        return np.zeros((0, 0))
    samples = np.array([[curve.at(f) for f in _INTERIOR] for curve in curves if not isinstance(curve, Point)])
    points = samples.reshape(-1, 2)
    lines = [k for k, curve in enumerate(curves) if isinstance(curve, Line)]
    one_way = np.empty((count, count))
    from_lines = _line_distances([curves[k] for k in lines], points).reshape(len(lines), count, len(_INTERIOR))
    one_way[:, lines] = from_lines.min(axis=2).T
    for k, curve in enumerate(curves):
        if isinstance(curve, Circle | Arc):
            one_way[:, k] = _rim_distance(curve, points).reshape(count, -1).min(axis=1)
    distance: Floats = np.minimum(one_way, one_way.T)
    np.fill_diagonal(distance, math.inf)
    return distance


def _line_distances(lines: Sequence[Primitive], points: Floats) -> Floats:
    """`line, point`: the distances of points from lines."""
    ends = np.array([ends_of(line) for line in lines]).reshape(-1, 2, 2)
    (x0, y0), (dx, dy) = ends[:, 0].T[..., None], (ends[:, 1] - ends[:, 0]).T[..., None]
    x, y = points[:, 0] - x0, points[:, 1] - y0
    along = np.clip((x * dx + y * dy) / (dx * dx + dy * dy), 0.0, 1.0)
    return np.asarray(np.hypot(x - along * dx, y - along * dy))


def _rim_distance(curve: Circle | Arc, points: Floats) -> Floats:
    x, y = points.T
    (cx, cy), radius = curve.center, curve.radius
    rim = np.abs(np.hypot(x - cx, y - cy) - radius)
    if isinstance(curve, Circle):
        return np.asarray(rim)
    beside = (np.arctan2(y - cy, x - cx) - curve.start_angle) % math.tau <= curve.sweep
    ends = np.minimum(*(np.hypot(x - ex, y - ey) for ex, ey in ends_of(curve)))
    return np.asarray(np.where(beside, rim, ends))
