"""Free places inside the outlines of a part: where a hole has the most room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sketchdnn.geometry import Circle, Loop, Point, Profile, Sketch, Vec, bounds

from .distinct import sample_places

# Places along the larger side of the box of an outline.
_GRID = 25
# A place with this share of the most room has almost the most.
_ALMOST = 0.95
# Points on each curve of a polygon.
_PER_CURVE = 12

Floats = NDArray[np.float64]


class FreePlace(NamedTuple):
    """A place inside an outline, and its distance from the nearest curve."""

    at: Vec
    room: float


def free_places(part: Sketch, shape: Profile) -> list[FreePlace]:
    """For each outline of a part, the place nearest to its center with almost the most room.

    >>> from sketchdnn.geometry import Line, profile
    >>> corners = [(0, 0), (40, 0), (40, 20), (0, 20)]
    >>> plate = Sketch(tuple(Line(corners[i - 1], corners[i]) for i in range(4)))
    >>> free_places(plate, profile(plate))
    [FreePlace(at=(20.0, 10.0), room=10.0)]
    """
    size = bounds(part).size
    curves = [p for p in part if not p.construction]
    tree = cKDTree(sample_places(curves, size))
    found = []
    for number, loop in enumerate(shape.loops):
        if loop.is_hole:
            continue
        inner = [other for other in shape.loops if other.parent == number]
        grid = _grid(part, loop)
        free = _contains(_polygon(part, loop), grid)
        for other in inner:
            free &= ~_contains(_polygon(part, other), grid)
        at = grid[free]
        if len(at):
            rooms, _ = tree.query(at)
            best = int(np.argmax(rooms >= _ALMOST * rooms.max()))
            found.append(FreePlace((float(at[best, 0]), float(at[best, 1])), float(rooms[best])))
    return found


def _grid(part: Sketch, loop: Loop) -> Floats:
    """Places about the center of an outline's box, the nearest first; of equal ones, those level with it or above."""
    box = bounds([part.primitives[edge.primitive_index] for edge in loop.edges])
    steps = (np.arange(_GRID) - _GRID // 2) * box.size / _GRID
    x, y = np.meshgrid(steps + box.center[0], steps + box.center[1])
    places = np.stack([x.ravel(), y.ravel()], axis=1)
    off = np.sort(np.round(np.abs(places - box.center) / box.size, 6), axis=1)
    return places[np.lexsort((off[:, 0], off[:, 1]))]


def _polygon(part: Sketch, loop: Loop) -> Floats:
    """Points along a loop."""
    points: list[Vec] = []
    for edge in loop.edges:
        curve = part.primitives[edge.primitive_index]
        if isinstance(curve, Point):  # none is in a loop
            continue
        count = 4 * _PER_CURVE if isinstance(curve, Circle) else _PER_CURVE
        places = [curve.at(k / count) for k in range(count + 1)]
        points += places[:-1] if edge.forward else places[:0:-1]
    return np.array(points)


def _contains(polygon: Floats, places: Sequence[Vec] | Floats) -> NDArray[np.bool_]:
    """Which places lie inside a polygon, by the number of sides that a ray to the right crosses."""
    at = np.asarray(places)
    start, end = polygon, np.roll(polygon, -1, axis=0)
    x, y = at[:, :1], at[:, 1:]
    spans = (start[:, 1] > y) != (end[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = start[:, 0] + (y - start[:, 1]) / (end[:, 1] - start[:, 1]) * (end[:, 0] - start[:, 0])
    return np.asarray((spans & (x < crossing)).sum(axis=1) % 2 == 1)
