"""The four kinds of primitive a sketch is made of, as frozen values that refuse to be impossible.

Angles are radians, counter-clockwise, y up. An arc always runs counter-clockwise from `start` to `end`; its other forms
(three points, bulge, signed radius, ...) are in `arcs`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from sketchdnn.errors import GeometryError

Vec = tuple[float, float]

TAU = 2 * math.pi
# Nothing a person draws is further out, and squares and sums of such numbers stay finite.
LARGEST_COORDINATE = 1e12


class Kind(IntEnum):
    """What a primitive is, in the order of the paper's columns."""

    LINE = 0
    CIRCLE = 1
    ARC = 2
    POINT = 3

    @property
    def label(self) -> str:
        """The word used in files and reports.

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
    """Part of a circle, counter-clockwise from `start_angle` through `sweep`, which lies strictly between 0 and 2π."""

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
    """A single marked place."""

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
