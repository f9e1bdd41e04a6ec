"""What each relation demands, as equations that are zero when it holds.

The geometry is a list of numbers, and the equations are analytic in them: they can be evaluated with complex numbers,
so that a step along i gives an exact derivative. That is why nothing here takes an absolute value or an `atan2`.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Primitive

from .relation import ORIGIN, X_AXIS, Y_AXIS, At, Code, Pos, Relation

_STEP = 1e-30
# What is smaller than this part of the sketch is rounding.
NOTHING = 1e-9


class _V(NamedTuple):
    """A vector of the plane."""

    x: complex
    y: complex

    def __sub__(self, other: _V) -> _V:
        return _V(self.x - other.x, self.y - other.y)

    def dot(self, other: _V) -> complex:
        return self.x * other.x + self.y * other.y

    def cross(self, other: _V) -> complex:
        return self.x * other.y - self.y * other.x

    def length(self) -> complex:
        return cmath.sqrt(self.dot(self))

    def unit(self) -> _V:
        length = self.length()
        if abs(length) < NOTHING:
            raise ZeroDivisionError("what has no length has no direction")
        return _V(self.x / length, self.y / length)

    def left(self) -> _V:
        return _V(-self.y, self.x)

    def turned(self, angle: float) -> _V:
        c, s = cmath.cos(angle), cmath.sin(angle)
        return _V(c * self.x - s * self.y, s * self.x + c * self.y)


class Geometry:
    """Primitives as numbers, measured in `scale`, so that lengths and angles are of one size."""

    def __init__(self, primitives: Sequence[Primitive], scale: float) -> None:
        self.kinds = [p.kind for p in primitives]
        self.scale = scale
        self.numbers: list[list[complex]] = [_numbers(p, scale) for p in primitives]

    def kind(self, at: At) -> Kind:
        """An axis is as good as a line."""
        return self.kinds[at.geo] if at.geo >= 0 else Kind.LINE

    def point(self, at: At) -> _V:
        if at.geo < 0:
            return {ORIGIN: _V(0, 0), At(Y_AXIS.geo, Pos.START): _V(0, 0)}[at]
        n = self.numbers[at.geo]
        match self.kinds[at.geo], at.pos:
            case (Kind.LINE, Pos.END):
                return _V(n[2], n[3])
            case (Kind.ARC, Pos.START | Pos.END):
                angle = n[3] if at.pos is Pos.START else n[4]
                return _V(n[0] + n[2] * cmath.cos(angle), n[1] + n[2] * cmath.sin(angle))
        return _V(n[0], n[1])

    def ends(self, at: At) -> tuple[_V, _V]:
        """Two places of a line or axis."""
        if at.geo < 0:
            return _V(0, 0), {X_AXIS.geo: _V(1, 0), Y_AXIS.geo: _V(0, 1)}[at.geo]
        return self.point(At(at.geo, Pos.START)), self.point(At(at.geo, Pos.END))

    def is_nothing(self, at: At) -> bool:
        """A line so short that only rounding tells its ends apart."""
        return self.kind(at) is Kind.LINE and abs((self.ends(at)[1] - self.ends(at)[0]).length()) < NOTHING

    def direction(self, at: At) -> _V:
        """Of a line, away from the end that is named."""
        start, end = self.ends(at)
        return (start - end if at.pos is Pos.END else end - start).unit()

    def center(self, at: At) -> _V:
        return self.point(At(at.geo, Pos.CENTER))

    def radius(self, at: At) -> complex:
        return self.numbers[at.geo][2]

    def offset(self, point: _V, at: At) -> complex:
        """How far a point lies off a curve, on which side."""
        if self.kind(at) is Kind.LINE:
            return (self.direction(At(at.geo))).cross(point - self.ends(at)[0])
        return (point - self.center(at)).length() - self.radius(at)

    def tangent(self, point: _V, at: At) -> _V:
        """The direction of a curve at a point on it."""
        return self.direction(At(at.geo)) if self.kind(at) is Kind.LINE else (point - self.center(at)).unit().left()


def residuals(relation: Relation, geometry: Geometry) -> list[float]:
    """By how much a relation is missed, in parts of the scale or radians; `ArithmeticError` where it means nothing."""
    if any(geometry.is_nothing(at) for at in relation.at):
        raise ZeroDivisionError("a line of no length")
    return [equation.real for equation in _EQUATIONS[relation.code](relation, geometry)]


def gradients(relation: Relation, geometry: Geometry) -> tuple[list[tuple[int, int]], list[list[float]]]:
    """Which numbers a relation depends on, as (geometry, position), and its equations' derivatives by each of them."""
    geos = sorted({at.geo for at in relation.at if at.geo >= 0})
    where = [(geo, i) for geo in geos for i in range(len(geometry.numbers[geo]))]
    columns = []
    for geo, i in where:
        number = geometry.numbers[geo][i]
        geometry.numbers[geo][i] = number + _STEP * 1j
        columns.append([e.imag / _STEP for e in _EQUATIONS[relation.code](relation, geometry)])
        geometry.numbers[geo][i] = number
    return where, [list(row) for row in zip(*columns, strict=True)]


def _numbers(primitive: Primitive, scale: float) -> list[complex]:
    match primitive:
        case Line(start, end):
            return [complex(c / scale) for c in (*start, *end)]
        case Circle(center, radius):
            return [complex(c / scale) for c in (*center, radius)]
        case Arc(center, radius):
            angles = complex(primitive.start_angle), complex(primitive.end_angle)
            return [*(complex(c / scale) for c in (*center, radius)), *angles]
        case Point(at):
            return [complex(c / scale) for c in at]


def _positive(number: complex) -> complex:
    return number if number.real >= 0 else -number


def _coincident(r: Relation, g: Geometry) -> list[complex]:
    return list(g.point(r.at[0]) - g.point(r.at[1]))


def _level(axis: int) -> Callable[[Relation, Geometry], list[complex]]:
    def equations(r: Relation, g: Geometry) -> list[complex]:
        a, b = g.ends(r.at[0]) if len(r.at) == 1 else (g.point(r.at[0]), g.point(r.at[1]))
        return [a[axis] - b[axis]]

    return equations


def _parallel(r: Relation, g: Geometry) -> list[complex]:
    return [g.direction(r.at[0]).cross(g.direction(r.at[1]))]


def _contact(r: Relation, g: Geometry) -> tuple[list[complex], _V, _V]:
    """For curves said to meet at a place: what that alone demands, and the direction of each there."""
    first, second = r.at[:2]
    if len(r.at) == 3:
        point = g.point(r.at[2])
        return [], g.tangent(point, first), g.tangent(point, second)
    point = g.point(first)
    if second.pos is Pos.WHOLE:
        return [g.offset(point, second)], g.tangent(point, first), g.tangent(point, second)
    other = g.point(second)
    return list(point - other), g.tangent(point, first), g.tangent(other, second)


def _names_contact(r: Relation) -> bool:
    return len(r.at) == 3 or r.at[0].pos is not Pos.WHOLE


def _tangent(r: Relation, g: Geometry) -> list[complex]:
    if _names_contact(r):
        equations, u, v = _contact(r, g)
        return [*equations, u.cross(v)]
    first, second = sorted(r.at, key=lambda at: g.kind(at) is not Kind.LINE)  # a line comes first
    if g.kind(second) is Kind.LINE:
        return [g.offset(end, first) for end in g.ends(second)]
    if g.kind(first) is Kind.LINE:
        return [_positive(g.offset(g.center(second), first)) - g.radius(second)]
    apart, a, b = (g.center(first) - g.center(second)).length(), g.radius(first), g.radius(second)
    if abs(apart) < NOTHING:
        raise ZeroDivisionError("circles about one center are the same or do not touch")
    return [min(apart - a - b, apart - _positive(a - b), key=abs)]  # from outside or from inside


def _perpendicular(r: Relation, g: Geometry) -> list[complex]:
    if _names_contact(r):
        equations, u, v = _contact(r, g)
        return [*equations, u.dot(v)]
    first, second = sorted(r.at, key=lambda at: g.kind(at) is not Kind.LINE)
    if g.kind(second) is Kind.LINE:
        return [g.direction(first).dot(g.direction(second))]
    return [g.offset(g.center(second), first)]


def _distance(r: Relation, g: Geometry) -> list[complex]:
    if len(r.at) == 1:
        start, end = g.ends(r.at[0])
        return [(end - start).length() - r.value / g.scale]
    point, other = g.point(r.at[0]), r.at[1]
    apart = _positive(g.offset(point, other)) if other.pos is Pos.WHOLE else (point - g.point(other)).length()
    return [apart - r.value / g.scale]


def _distance_along(axis: int) -> Callable[[Relation, Geometry], list[complex]]:
    def equations(r: Relation, g: Geometry) -> list[complex]:
        if len(r.at) == 2:
            a, b = g.point(r.at[0]), g.point(r.at[1])
        else:
            a, b = g.ends(r.at[0]) if r.at[0].pos is Pos.WHOLE else (_V(0, 0), g.point(r.at[0]))
        return [b[axis] - a[axis] - r.value / g.scale]

    return equations


def _angle(r: Relation, g: Geometry) -> list[complex]:
    if len(r.at) == 1 and g.kind(r.at[0]) is Kind.ARC:
        numbers = g.numbers[r.at[0].geo]
        return [numbers[4] - numbers[3] - r.value]
    if len(r.at) == 3:
        _, u, v = _contact(r, g)
        return [u.turned(r.value).cross(v)]  # a curve has no direction of its own, so neither has the angle
    u, v = g.direction(r.at[0] if len(r.at) == 2 else X_AXIS), g.direction(r.at[-1])
    u = u.turned(r.value)
    return [u.cross(v) + (2 if u.dot(v).real < 0 else 0)]


def _equal(r: Relation, g: Geometry) -> list[complex]:
    def size(at: At) -> complex:
        if g.kind(at) is Kind.LINE:
            start, end = g.ends(at)
            return (end - start).length()
        return g.radius(at)

    return [size(r.at[0]) - size(r.at[1])]


def _symmetric(r: Relation, g: Geometry) -> list[complex]:
    a, b, about = g.point(r.at[0]), g.point(r.at[1]), r.at[2]
    middle = _V((a.x + b.x) / 2, (a.y + b.y) / 2)
    if about.pos is Pos.WHOLE:
        return [g.offset(middle, about), (b - a).dot(g.direction(about))]
    return list(middle - g.point(about))


_EQUATIONS: Mapping[Code, Callable[[Relation, Geometry], list[complex]]] = {
    Code.COINCIDENT: _coincident,
    Code.HORIZONTAL: _level(1),
    Code.VERTICAL: _level(0),
    Code.PARALLEL: _parallel,
    Code.TANGENT: _tangent,
    Code.DISTANCE: _distance,
    Code.DISTANCE_X: _distance_along(0),
    Code.DISTANCE_Y: _distance_along(1),
    Code.ANGLE: _angle,
    Code.PERPENDICULAR: _perpendicular,
    Code.RADIUS: lambda r, g: [g.radius(r.at[0]) - r.value / g.scale],
    Code.EQUAL: _equal,
    Code.POINT_ON_OBJECT: lambda r, g: [g.offset(g.point(r.at[0]), r.at[1])],
    Code.SYMMETRIC: _symmetric,
    Code.BLOCK: lambda r, g: [number - number.real for number in g.numbers[r.at[0].geo]],  # stay as you are
    Code.DIAMETER: lambda r, g: [2 * g.radius(r.at[0]) - r.value / g.scale],
}
