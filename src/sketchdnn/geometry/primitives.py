"""The four kinds of primitives: immutable classes that check their values, and conversions between forms of an arc.

Angles are in radians and increase counter-clockwise; the y axis points up. An `Arc` always runs counter-clockwise from
`start` to `end`. Files and models describe arcs in one of three forms, which are equivalent up to rounding:

| form | used by |
|---|---|
| center, radius, start angle and end angle | the JSON files of this package, DXF ARC, FreeCAD, SketchGraphs |
| start, end and sweep | the rows that the models generate, HPSketch |
| start, end and bulge = tan(sweep / 4) | DXF polylines; a negative bulge runs clockwise |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar

from sketchdnn.errors import GeometryError

Vec = tuple[float, float]

TAU = 2 * math.pi
# The largest absolute value of a coordinate, radius or angle. Sums of squares of such values do not overflow.
LARGEST_COORDINATE = 1e12
_LOW, _HIGH = -LARGEST_COORDINATE, LARGEST_COORDINATE


class Kind(IntEnum):
    """The kinds of primitives, numbered as the columns of the SketchDNN paper."""

    LINE = 0
    CIRCLE = 1
    ARC = 2
    POINT = 3

    @property
    def label(self) -> str:
        """The name of the kind in files and reports.

        >>> Kind.ARC.label
        'arc'
        """
        return self.name.lower()

    __hash__ = int.__hash__  # that of `Enum` is slow


@dataclass(frozen=True, slots=True)
class Line:
    """A segment from `start` to `end`."""

    kind: ClassVar[Kind] = Kind.LINE
    start: Vec
    end: Vec
    construction: bool = False

    def __post_init__(self) -> None:
        (x0, y0), (x1, y1) = self.start, self.end
        if not (_LOW <= x0 <= _HIGH and _LOW <= y0 <= _HIGH and _LOW <= x1 <= _HIGH and _LOW <= y1 <= _HIGH):
            _check_values("a line", x0, y0, x1, y1)
        if x0 == x1 and y0 == y1:
            raise GeometryError(f"a line needs two different ends, both are {self.start}")

    @property
    def length(self) -> float:
        return math.dist(self.start, self.end)

    def at(self, fraction: float) -> Vec:
        """Return the point at a fraction of the line: 0 is its start, 1 is its end."""
        (x0, y0), (x1, y1) = self.start, self.end
        return (x0 + fraction * (x1 - x0), y0 + fraction * (y1 - y0))


@dataclass(frozen=True, slots=True)
class Circle:
    """A full circle."""

    kind: ClassVar[Kind] = Kind.CIRCLE
    center: Vec
    radius: float
    construction: bool = False

    def __post_init__(self) -> None:
        _check_values("a circle", *self.center, radius=self.radius)

    @property
    def length(self) -> float:
        return TAU * self.radius

    def at(self, fraction: float) -> Vec:
        """Return the point at a fraction of the circle, counter-clockwise from its point of largest x."""
        return on_circle(self.center, self.radius, fraction * TAU)


@dataclass(frozen=True, slots=True)
class Arc:
    """Part of a circle, from `start_angle` counter-clockwise by the angle `sweep`, where 0 < sweep < 2π.

    `start` and `end` are its ends.
    """

    kind: ClassVar[Kind] = Kind.ARC
    center: Vec
    radius: float
    start_angle: float
    sweep: float
    construction: bool = False
    # Computed once: they are asked for many times.
    start: Vec = field(init=False, repr=False, compare=False)
    end: Vec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_values("an arc", *self.center, self.start_angle, self.sweep, radius=self.radius)
        if not 0 < self.sweep < TAU:
            raise GeometryError(f"an arc's sweep lies between 0 and 2π, not {self.sweep}")
        object.__setattr__(self, "start", self.at(0.0))
        object.__setattr__(self, "end", self.at(1.0))
        if self.start == self.end:
            raise GeometryError(f"an arc needs two different ends, both are {self.start}")

    @property
    def end_angle(self) -> float:
        return self.start_angle + self.sweep

    @property
    def mid(self) -> Vec:
        return self.at(0.5)

    @property
    def length(self) -> float:
        return self.radius * self.sweep

    def at(self, fraction: float) -> Vec:
        """Return the point at a fraction of the arc: 0 is its start, 1 is its end."""
        return on_circle(self.center, self.radius, self.start_angle + fraction * self.sweep)


@dataclass(frozen=True, slots=True)
class Point:
    """A single point at the position `at`."""

    kind: ClassVar[Kind] = Kind.POINT
    at: Vec
    construction: bool = False

    def __post_init__(self) -> None:
        _check_values("a point", *self.at)

    @property
    def length(self) -> float:
        """Zero, so that all primitives have a length."""
        return 0.0


Primitive = Line | Circle | Arc | Point


def on_circle(center: Vec, radius: float, angle: float) -> Vec:
    """Return the point of a circle at an angle."""
    return (center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle))


def _check_values(what: str, *values: float, radius: float = 1.0) -> None:
    for value in (*values, radius):
        if not _LOW <= value <= _HIGH:  # the comparison is False for NaN
            reason = "is not a number" if math.isnan(value) else f"is beyond ±{LARGEST_COORDINATE:g}"
            raise GeometryError(f"{what} has a value that {reason}")
    if radius <= 0:
        raise GeometryError(f"{what}'s radius must be above zero, not {radius}")


def transformed(
    p: Primitive, point: Callable[[Vec], Vec], radius: Callable[[float], float], start_angle: float | None = None
) -> Primitive:
    """Return a primitive with other points and another radius; an arc may get another start angle."""
    match p:
        case Line(start, end):
            return Line(point(start), point(end), p.construction)
        case Point(at):
            return Point(point(at), p.construction)
        case Circle(center, r):
            return Circle(point(center), radius(r), p.construction)
        case Arc(center, r):
            angle = p.start_angle if start_angle is None else start_angle
            return Arc(point(center), radius(r), angle, p.sweep, p.construction)


def arc_from_angles(
    center: Vec, radius: float, start_angle: float, end_angle: float, *, construction: bool = False
) -> Arc:
    """Return the arc that runs counter-clockwise from one angle to another.

    The angles may have any size: the sweep is their difference modulo 2π.

    >>> arc_from_angles((0, 0), 1, math.pi / 2, 0).sweep == 3 * math.pi / 2
    True
    """
    return Arc(center, radius, start_angle, (end_angle - start_angle) % TAU, construction)


def arc_from_sweep(start: Vec, end: Vec, sweep: float, *, construction: bool = False) -> Arc:
    """Return the arc from `start` to `end` with the given sweep.

    A negative sweep runs clockwise from `start` to `end`. The result is then the same curve with its ends swapped, as
    an `Arc` always runs counter-clockwise.
    """
    if sweep < 0:
        start, end, sweep = end, start, -sweep
    chord = math.dist(start, end)
    sin_half_sweep = math.sin(sweep / 2) if 0 < sweep < TAU else 0.0
    if not 0 < chord < math.inf or sin_half_sweep <= 0:
        raise GeometryError(f"there is no arc with a sweep of {sweep} between ends at a distance of {chord}")
    # The center is to the left of the middle of the chord at the distance chord/2 · cot(sweep/2), negative if
    # sweep > π; computed as cos/sin because tan is infinite at sweep = π.
    center_offset = chord / 2 * math.cos(sweep / 2) / sin_half_sweep
    ux, uy = (end[0] - start[0]) / chord, (end[1] - start[1]) / chord
    center = ((start[0] + end[0]) / 2 - center_offset * uy, (start[1] + end[1]) / 2 + center_offset * ux)
    start_angle = math.atan2(start[1] - center[1], start[0] - center[0])
    return Arc(center, chord / (2 * sin_half_sweep), start_angle, sweep, construction)


def arc_from_bulge(start: Vec, end: Vec, bulge: float, *, construction: bool = False) -> Arc:
    """Return the arc of a segment of a DXF polyline: bulge = tan(sweep / 4), negative for a clockwise arc."""
    return arc_from_sweep(start, end, 4 * math.atan(bulge), construction=construction)


def bulge(arc: Arc) -> float:
    """Return tan(sweep / 4), the bulge of a DXF polyline; it is positive, as an `Arc` runs counter-clockwise."""
    return math.tan(arc.sweep / 4)
