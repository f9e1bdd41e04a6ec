"""The four kinds of primitive of a sketch as frozen, checked values, and the notations of an arc.

Angles are radians, counter-clockwise, y up. An `Arc` always runs counter-clockwise from `start` to `end`. Files and
models write arcs in other forms, which are converted exactly:

| form | used by |
|---|---|
| center, radius, two angles | our JSON, DXF ARC, FreeCAD, SketchGraphs |
| ends and sweep | our representation, HPSketch |
| ends and bulge = tan(sweep / 4) | DXF polylines; negative runs clockwise |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from sketchdnn.errors import GeometryError

Vec = tuple[float, float]

TAU = 2 * math.pi
# Squares and sums of such numbers stay finite.
LARGEST_COORDINATE = 1e12


class Kind(IntEnum):
    """The kinds of primitives, in the order of the paper's columns."""

    LINE = 0
    CIRCLE = 1
    ARC = 2
    POINT = 3

    @property
    def label(self) -> str:
        """The name in files and reports.

        >>> Kind.ARC.label
        'arc'
        """
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Line:
    """A segment from `start` to `end`."""

    kind: ClassVar[Kind] = Kind.LINE
    start: Vec
    end: Vec
    construction: bool = False

    def __post_init__(self) -> None:
        _check_numbers("a line", *self.start, *self.end)
        if self.start == self.end:
            raise GeometryError(f"a line needs two different ends, both are {self.start}")

    @property
    def length(self) -> float:
        return math.dist(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Circle:
    """A full circle."""

    kind: ClassVar[Kind] = Kind.CIRCLE
    center: Vec
    radius: float
    construction: bool = False

    def __post_init__(self) -> None:
        _check_numbers("a circle", *self.center, self.radius)
        _check_radius("a circle", self.radius)

    @property
    def length(self) -> float:
        return TAU * self.radius


@dataclass(frozen=True, slots=True)
class Arc:
    """Part of a circle, counter-clockwise from `start_angle` through `sweep`, strictly between 0 and 2π."""

    kind: ClassVar[Kind] = Kind.ARC
    center: Vec
    radius: float
    start_angle: float
    sweep: float
    construction: bool = False

    def __post_init__(self) -> None:
        _check_numbers("an arc", *self.center, self.radius, self.start_angle, self.sweep)
        _check_radius("an arc", self.radius)
        if not 0 < self.sweep < TAU:
            raise GeometryError(f"an arc's sweep lies between 0 and 2π, not {self.sweep}")
        if self.start == self.end:
            raise GeometryError(f"an arc needs two different ends, both are {self.start}")

    @property
    def end_angle(self) -> float:
        return self.start_angle + self.sweep

    @property
    def start(self) -> Vec:
        return self.at(0.0)

    @property
    def end(self) -> Vec:
        return self.at(1.0)

    @property
    def mid(self) -> Vec:
        return self.at(0.5)

    @property
    def length(self) -> float:
        return self.radius * self.sweep

    def at(self, fraction: float) -> Vec:
        """The point a fraction of the way along the arc."""
        angle = self.start_angle + fraction * self.sweep
        return (self.center[0] + self.radius * math.cos(angle), self.center[1] + self.radius * math.sin(angle))


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    kind: ClassVar[Kind] = Kind.POINT
    at: Vec
    construction: bool = False

    def __post_init__(self) -> None:
        _check_numbers("a point", *self.at)

    @property
    def length(self) -> float:
        return 0.0


Primitive = Line | Circle | Arc | Point


def _check_numbers(what: str, *numbers: float) -> None:
    for number in numbers:
        if not -LARGEST_COORDINATE <= number <= LARGEST_COORDINATE:  # false for NaN too
            reason = "is not a number" if math.isnan(number) else f"is beyond ±{LARGEST_COORDINATE:g}"
            raise GeometryError(f"{what} has a coordinate that {reason}")


def _check_radius(what: str, radius: float) -> None:
    if radius <= 0:
        raise GeometryError(f"{what}'s radius must be above zero, not {radius}")


def arc_from_angles(
    center: Vec, radius: float, start_angle: float, end_angle: float, *, construction: bool = False
) -> Arc:
    """The counter-clockwise arc between two angles, which may differ by full turns.

    >>> arc_from_angles((0, 0), 1, math.pi / 2, 0).sweep == 3 * math.pi / 2
    True
    """
    if not (math.isfinite(start_angle) and math.isfinite(end_angle)):
        raise GeometryError("an arc has an angle that is not a number")
    return Arc(center, radius, start_angle, (end_angle - start_angle) % TAU, construction)


def arc_from_sweep(start: Vec, end: Vec, sweep: float, *, construction: bool = False) -> Arc:
    """The arc from `start` to `end` that turns through `sweep`; a negative sweep runs clockwise."""
    if sweep < 0:
        start, end, sweep = end, start, -sweep
    chord = math.dist(start, end)
    half_sine = math.sin(sweep / 2) if 0 < sweep < TAU else 0.0
    if not 0 < chord < math.inf or half_sine <= 0:
        raise GeometryError(f"no arc turns through {sweep} between ends {chord} apart")
    # The center is to the left of the chord's middle, by a distance that is negative past the semicircle: it is
    # chord/2 · cot(sweep/2), written so that nothing is divided by a vanishing cosine.
    height = chord / 2 * math.cos(sweep / 2) / half_sine
    return _arc_on_chord(start, end, chord / (2 * half_sine), height, sweep, construction)


def arc_from_bulge(start: Vec, end: Vec, bulge: float, *, construction: bool = False) -> Arc:
    """The DXF polyline form: bulge = tan(sweep / 4), negative for a clockwise arc."""
    return arc_from_sweep(start, end, 4 * math.atan(bulge), construction=construction)


def bulge(arc: Arc) -> float:
    """tan(sweep / 4), the DXF polyline scalar; always positive since our arcs run counter-clockwise."""
    return math.tan(arc.sweep / 4)


def _arc_on_chord(start: Vec, end: Vec, radius: float, height: float, sweep: float, construction: bool) -> Arc:
    """The arc whose center lies `height` to the left of the middle of its chord."""
    chord = math.dist(start, end)
    ux, uy = (end[0] - start[0]) / chord, (end[1] - start[1]) / chord
    center = ((start[0] + end[0]) / 2 - height * uy, (start[1] + end[1]) / 2 + height * ux)
    start_angle = math.atan2(start[1] - center[1], start[0] - center[0])
    return Arc(center, radius, start_angle, sweep, construction)
