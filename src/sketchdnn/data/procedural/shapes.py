"""The building blocks of procedural parts: random dimensions, closed outlines, and patterns of holes.

Outlines run counter-clockwise around the origin unless stated otherwise; their lines and arcs join exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec, arc_from_sweep

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DesignRng:
    """A random generator of dimensions and choices."""

    generator: np.random.Generator

    def length(self, low: float, high: float, step: float = 0.5) -> float:
        """A round length: a positive multiple of `step`."""
        return max(step, round(float(self.generator.uniform(low, high)) / step) * step)

    def share(self, whole: float, low: float, high: float, step: float = 0.5) -> float:
        """A round length between two shares of another."""
        return self.length(low * whole, high * whole, step)

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.generator.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return float(self.generator.random()) < probability

    def choice(self, *options: T) -> T:
        return options[int(self.generator.integers(len(options)))]


@dataclass(frozen=True, slots=True)
class PartDesign:
    """A part: its solid geometry, optional construction geometry with the most common first, and likely points."""

    solid: Sequence[Primitive]
    construction: Sequence[Primitive]
    points: Sequence[Vec]


ORIGIN: Vec = (0.0, 0.0)


def outline(corners: Sequence[Vec], fillets: float | Sequence[float] = 0.0) -> list[Primitive]:
    """A closed polygon with rounded corners: one radius for all, or one for each; 0 is a sharp corner."""
    radii = [fillets] * len(corners) if isinstance(fillets, int | float) else list(fillets)
    bends = [_bend(*corner, radius) for corner, radius in zip(_with_neighbors(corners), radii, strict=True)]
    parts: list[Primitive] = []
    for (_, leave, arc), (enter, _, _) in zip(bends, [*bends[1:], bends[0]], strict=True):
        if arc:
            parts.append(arc)
        if math.dist(leave, enter) > 1e-9:  # two fillets may use up a whole side
            parts.append(Line(leave, enter))
    return parts


def chamfered(corners: Sequence[Vec], cut: float) -> list[Vec]:
    """The polygon with each corner cut off, `cut` along both sides."""
    triples = _with_neighbors(corners)
    return [_towards(corner, other, cut) for before, corner, after in triples for other in (before, after)]


def holes(centers: Iterable[Vec], radius: float) -> list[Primitive]:
    return [Circle(center, radius) for center in centers]


def perhaps_holes(rng: DesignRng, chance: float, centers: Iterable[Vec], low: float, high: float) -> list[Primitive]:
    """With this probability, holes of one radius between `low` and `high`."""
    return holes(centers, rng.length(low, high)) if rng.chance(chance) else []


def center_lines(width: float, height: float) -> list[Primitive]:
    """A cross through the origin that reaches slightly beyond a part of this size."""
    x, y = 0.58 * width, 0.58 * height
    return [Line((-x, 0.0), (x, 0.0)), Line((0.0, -y), (0.0, y))]


def polar(radius: float, angle: float, center: Vec = ORIGIN) -> Vec:
    return (center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle))


def mirrored(primitive: Primitive) -> Primitive:
    """The mirror image about the y axis."""
    return _transformed(primitive, lambda p: (-p[0], p[1]), lambda arc: math.pi - arc.end_angle)


def rotated(primitive: Primitive, angle: float) -> Primitive:
    """Rotated about the origin; quarter turns are exact."""
    cos, sin = (round(f(angle)) if angle % (TAU / 4) == 0 else f(angle) for f in (math.cos, math.sin))

    def rotate(p: Vec) -> Vec:
        return (cos * p[0] - sin * p[1], sin * p[0] + cos * p[1])

    return _transformed(primitive, rotate, lambda arc: (arc.start_angle + angle) % TAU)


def _transformed(primitive: Primitive, point: Callable[[Vec], Vec], start_angle: Callable[[Arc], float]) -> Primitive:
    """The image of a primitive under a map of points; `start_angle` is that of the image of an arc."""
    match primitive:
        case Line(start, end):
            return replace(primitive, start=point(start), end=point(end))
        case Circle(center):
            return replace(primitive, center=point(center))
        case Arc(center):
            return replace(primitive, center=point(center), start_angle=start_angle(primitive))
        case Point(at):
            return replace(primitive, at=point(at))


def _with_neighbors(corners: Sequence[Vec]) -> Iterator[tuple[Vec, Vec, Vec]]:
    """Each corner of a closed polygon between the one before and the one after."""
    return zip([corners[-1], *corners[:-1]], corners, [*corners[1:], corners[0]], strict=True)


def _bend(before: Vec, corner: Vec, after: Vec, radius: float) -> tuple[Vec, Vec, Arc | None]:
    """The start and end of a rounded corner, and its arc."""
    if radius <= 0:
        return corner, corner, None
    (x1, y1), (x2, y2) = (corner[0] - before[0], corner[1] - before[1]), (after[0] - corner[0], after[1] - corner[1])
    turn = math.atan2(x1 * y2 - y1 * x2, x1 * x2 + y1 * y2)
    reach = radius * math.tan(abs(turn) / 2)
    enter, leave = _towards(corner, before, reach), _towards(corner, after, reach)
    return enter, leave, arc_from_sweep(enter, leave, turn)


def _towards(p: Vec, q: Vec, distance: float) -> Vec:
    part = distance / math.dist(p, q)
    return (p[0] + part * (q[0] - p[0]), p[1] + part * (q[1] - p[1]))
