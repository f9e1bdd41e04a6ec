"""The equations of constraints: residuals, all their derivatives, and the rank of these.

FreeCAD's relations use the same equations.

Every relation has one form: two vectors v and w, each a weighted sum of points, combined in one of three ways (the
offset of w from the direction of v, the sine between them, the difference of their lengths), plus a weighted sum of
parameters. The equations of a sketch are therefore five constant matrices, and no relation needs a derivative of its
own.

Where a constraint can hold in several ways (tangent from outside or inside, a distance to either side), the drawn
sketch decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrf, dorgqr

from sketchdnn.geometry import Arc, Constraint, ConstraintType, Part, Ref

from .variables import Floats, Ints, Pair, VariableMap, Variables

Sum = tuple[tuple[int, float], ...]
Contacts = Mapping[frozenset[int], int]

SQUARE = (0.0, 1.0)
ALONG = (1.0, 0.0)
TINY = 1e-12
_FORMS = np.array([[1], [2], [3]])  # offsets, sines and lengths
_T = ConstraintType
# A constraint on several items relates the first to each of the others.
_PAIRWISE = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.COLLINEAR, _T.PARALLEL, _T.EQUAL})


# The residuals of equations, and their derivatives by the variables.
Evaluated = tuple[Floats, Floats]


class Form(IntEnum):
    """How v and w are combined: not at all, v̂ × w, v̂ × ŵ, |v| − |w|."""

    NONE = 0
    OFFSET = 1
    SINE = 2
    LENGTHS = 3


class Equation(NamedTuple):
    """form(v, w) + linear − constant = 0.

    v and w are sums of points, `linear` is a sum of parameters. w is rotated by `turn`, a cosine and a sine, first.
    """

    form: Form
    v: Sum = ()
    w: Sum = ()
    linear: Sum = ()
    constant: float = 0.0
    turn: tuple[float, float] = ALONG


class System:
    """Equations as matrices: vx, vy, wx, wy and the linear part of each are `base` + `steps` z.

    `kind` marks which equations are offsets, sines and lengths with ones and zeros.
    """

    def __init__(self, base: Floats, steps: Floats, kind: Floats) -> None:
        self.base, self.steps, self.kind = base, steps, kind

    def __len__(self) -> int:
        return int(self.base.shape[1])

    @property
    def num_free(self) -> int:
        """The number of free variables."""
        return int(self.steps.shape[2])

    def take(self, rows: Sequence[int] | Ints) -> System:
        """Some of the equations."""
        chosen = np.asarray(rows, dtype=int)
        return System(self.base[:, chosen], self.steps[:, chosen], self.kind[:, chosen])

    def concatenate(self, other: System) -> System:
        """These equations and others."""
        pairs = ((self.base, other.base), (self.steps, other.steps), (self.kind, other.kind))
        return System(*(np.concatenate(pair, axis=1) for pair in pairs))

    def evaluate(self, z: Floats) -> Evaluated:
        """The residual of each equation, and its derivatives by z. Vectors are complex numbers here."""
        five = self.base + self.steps @ z
        v, w = five[0] + 1j * five[1], five[2] + 1j * five[3]
        long, wide = np.abs(v), np.abs(w)
        v_length, w_length = np.maximum(long, TINY), np.maximum(wide, TINY)
        u, t = v / v_length, w / w_length
        offset, sine, lengths = self.kind
        angle = u.conj() * t
        reach = offset * wide + sine
        residuals: Floats = five[4] + reach * angle.imag + lengths * (long - wide)
        by_v = u * (lengths - 1j * (reach * angle.real / v_length))
        by_w = 1j * offset * u + t * (1j * (sine * angle.real / w_length) - lengths)
        by = np.array([by_v.real, by_v.imag, by_w.real, by_w.imag])
        rows: Floats = np.einsum("bi,bij->ij", by, self.steps[:4]) + self.steps[4]
        return residuals, rows


def build(equations: Sequence[Equation], variable_map: VariableMap) -> System:
    """The matrices of some equations: in plain Python, as most systems are small."""
    m, width = len(equations), len(variable_map.start)
    index: list[int] = variable_map.index.tolist()
    vy, wx, wy, linear_part = (part * m * width for part in (1, 2, 3, 4))
    places, weights = list[int](), list[float]()
    for row, (_, v, w, linear, _, (cos, sin)) in zip(range(0, m * width, width), equations, strict=True):
        for k, weight in v:
            places += (row + index[2 * k], row + vy + index[2 * k + 1])
            weights += (weight, weight)
        for k, weight in w:
            x, y = row + index[2 * k], row + index[2 * k + 1]
            if cos:
                places += (wx + x, wy + y)
                weights += (cos * weight, cos * weight)
            if sin:
                places += (wx + y, wy + x)
                weights += (-(sin * weight), sin * weight)
        for k, weight in linear:
            places.append(row + linear_part + index[k])
            weights.append(weight)
    vectors = np.bincount(np.array(places, dtype=int), weights, 5 * m * width).reshape(5, m, width)
    base = vectors @ variable_map.start
    base[4] -= [equation.constant for equation in equations]
    kind = (np.array([equation.form for equation in equations], dtype=int) == _FORMS).astype(float)
    return System(base, vectors[:, :, : variable_map.num_free] / variable_map.root, kind)


def vector(terms: Sum, f: Floats | Sequence[float]) -> tuple[float, float]:
    """A sum of points where the parameters are `f`."""
    x = y = 0.0
    for k, weight in terms:
        x += float(f[2 * k]) * weight
        y += float(f[2 * k + 1]) * weight
    return x, y


def residual(equation: Equation, f: Floats | Sequence[float]) -> float:
    """The residual of one equation where the parameters are `f`; of many, a list takes less time than an array."""
    (vx, vy), (wx, wy) = vector(equation.v, f), vector(equation.w, f)
    cos, sin = equation.turn
    wx, wy = cos * wx - sin * wy, sin * wx + cos * wy
    long, wide = math.hypot(vx, vy), math.hypot(wx, wy)
    rest = sum(float(f[k]) * weight for k, weight in equation.linear) - equation.constant
    if equation.form in (Form.NONE, Form.LENGTHS):
        return long - wide + rest  # no vectors have no length
    size = long if equation.form is Form.OFFSET else long * wide
    return (vx * wy - vy * wx) / max(size, TINY) + rest


def closest(equations: Sequence[Equation], f: Floats) -> Equation:
    """The equation with the smallest residual."""
    return min(equations, key=lambda equation: abs(residual(equation, f)))


def arc_equations(variables: Variables, arcs: Sequence[int] | None = None) -> list[Equation]:
    """The ends of all or some arcs lie on their circles: two equations for each arc."""
    circles = [(variables.first[i], variables.radius[i]) for i in (variables.arcs if arcs is None else arcs)]
    return [on_circle(end, circle) for circle in circles for end in (circle[0] + 1, circle[0] + 2)]


def constraint_equations(
    constraint: Constraint, variables: Variables, f: Floats, contacts: Contacts
) -> list[Equation] | None:
    """The equations of a constraint.

    Args:
        constraint: The constraint.
        variables: The sketch's variables.
        f: The parameters of the drawn sketch, which decide between several ways to hold.
        contacts: The point that two curves share. Tangency there has another equation than tangency anywhere.

    Returns:
        The equations; None for a constraint that the solver does not support.
    """
    refs, kind = constraint.refs, constraint.type
    for ref in refs:
        if ref.part is Part.EXTERNAL:
            return None
    if len(refs) > 2 and kind in _PAIRWISE:
        each = [constraint_equations(Constraint(kind, (refs[0], ref)), variables, f, contacts) for ref in refs[1:]]
        return None if None in each else [equation for several in each for equation in several or ()]
    match kind:
        case _T.COINCIDENT | _T.POINT_ON_CURVE | _T.COLLINEAR if len(refs) == 2:
            return _coincident(*refs, variables)
        case _T.CONCENTRIC | _T.HORIZONTAL | _T.VERTICAL:
            return _equal_parameters(constraint, variables)
        case _T.PARALLEL | _T.PERPENDICULAR if len(refs) == 2:
            line, other = map(variables.ends, refs)
            turn = SQUARE if kind is _T.PERPENDICULAR else ALONG
            return [Equation(Form.SINE, between(*line), between(*other), turn=turn)] if line and other else None
        case _T.TANGENT if len(refs) == 2:
            return _tangent(*refs, variables, f, contacts)
        case _T.EQUAL if len(refs) == 2:
            return equal_sizes([*map(variables.circle, refs)], [*map(variables.ends, refs)])
        case _T.MIDPOINT:
            return _midpoint(refs, variables)
        case _T.SYMMETRIC if len(refs) == 3:
            return _symmetric(refs, variables)
        case _T.FIX:
            return fixed(refs, variables, f)
    return None if constraint.value is None else _dimension(constraint, constraint.value, variables, f)


# Equations by point, line (two points) and circle (the center's point and the radius' parameter).


def between(a: int, b: int) -> Sum:
    """The vector from one point to another."""
    return ((b, 1.0), (a, -1.0))


def level(a: int, b: int, axis: int, constant: float = 0.0) -> Equation:
    """The difference of two points' coordinates along an axis: a − b."""
    return _equal(2 * a + axis, 2 * b + axis, constant)


def same_point(a: int, b: int) -> list[Equation]:
    return [level(a, b, axis) for axis in (0, 1)]


def on_line(point: int, line: Pair) -> Equation:
    return Equation(Form.OFFSET, between(*line), between(line[0], point))


def on_circle(point: int, circle: Pair) -> Equation:
    return Equation(Form.LENGTHS, between(circle[0], point), linear=((circle[1], -1.0),))


def midpoint(point: int, a: int, b: int) -> list[Equation]:
    sums = [((2 * point + axis, 1.0), (2 * a + axis, -0.5), (2 * b + axis, -0.5)) for axis in (0, 1)]
    return [Equation(Form.NONE, linear=linear) for linear in sums]


def symmetric(a: int, b: int, about: Pair) -> list[Equation]:
    """Two points mirrored about a line."""
    axis = between(*about)
    middle = Equation(Form.OFFSET, axis, ((a, 0.5), (b, 0.5), (about[0], -1.0)))
    return [middle, Equation(Form.OFFSET, axis, between(a, b), turn=SQUARE)]


def equal_sizes(circles: Sequence[Pair | None], lines: Sequence[Pair | None]) -> list[Equation] | None:
    """Two circles of one radius, or two lines of one length."""
    (one, two), (line, other) = circles, lines
    if one and two:
        return [_equal(one[1], two[1])]
    return [Equation(Form.LENGTHS, between(*line), between(*other))] if line and other else None


def tangent_line(line: Pair, circle: Pair, f: Floats) -> Equation:
    """A circle that touches a line, on the side where it is drawn."""
    center, radius = circle
    (ax, ay), (bx, by), (cx, cy) = (f[2 * k : 2 * k + 2].tolist() for k in (*line, center))
    side = 1.0 if (bx - ax) * (cy - ay) >= (by - ay) * (cx - ax) else -1.0
    return Equation(Form.OFFSET, between(*line), between(line[0], center), linear=((radius, -side),))


def tangent_circles(first: Pair, second: Pair, f: Floats) -> Equation:
    """Two circles that touch, from outside or inside as they are drawn."""
    (one, size), (two, other) = first, second
    apart = float(np.hypot(*(f[2 * one : 2 * one + 2] - f[2 * two : 2 * two + 2])))
    r, s = float(f[size]), float(f[other])
    outside = abs(apart - r - s) < abs(apart - abs(r - s))
    signs = (-1.0, -1.0) if outside else (-1.0, 1.0) if r > s else (1.0, -1.0)
    return Equation(Form.LENGTHS, between(two, one), linear=((size, signs[0]), (other, signs[1])))


def fixed(refs: Sequence[Ref], variables: Variables, f: Floats) -> list[Equation] | None:
    """Everything that references name stays as it is drawn."""
    equations: list[Equation] = []
    for ref in refs:
        if ref.primitive is None:
            return None
        point, circle = variables.point(ref), variables.circle(ref)
        points = [point] if point is not None else [circle[0]] if circle else variables.ends(ref) or ()
        parameters = [2 * k + axis for k in points for axis in (0, 1)] + ([circle[1]] if circle else [])
        equations += [Equation(Form.NONE, linear=((k, 1.0),), constant=float(f[k])) for k in parameters]
        if circle and isinstance(variables.primitives[ref.primitive], Arc):
            equations += [_fixed_end(end, circle[0], f) for end in (circle[0] + 1, circle[0] + 2)]
    return equations


def _fixed_end(end: int, center: int, f: Floats) -> Equation:
    """An arc's end does not move along the arc."""
    x, y = f[2 * end : 2 * end + 2] - f[2 * center : 2 * center + 2]
    r = float(np.hypot(x, y)) or 1.0
    linear = ((2 * end, -float(y) / r), (2 * end + 1, float(x) / r))
    return Equation(Form.NONE, linear=linear, constant=sum(float(f[k]) * weight for k, weight in linear))


def _equal_parameters(constraint: Constraint, variables: Variables) -> list[Equation] | None:
    """The equations of a constraint that only equates parameters."""
    pairs = variables.merged_parameters(constraint)
    return None if pairs is None else [_equal(a, b) for a, b in pairs]


def _equal(parameter: int, other: int, constant: float = 0.0) -> Equation:
    return Equation(Form.NONE, linear=((parameter, 1.0), (other, -1.0)), constant=constant)


def _coincident(first: Ref, second: Ref, variables: Variables) -> list[Equation] | None:
    """Two points, a point on a curve, or two curves of one kind on each other."""
    if pairs := variables.coinciding_parameters(first, second):
        return [_equal(a, b) for a, b in pairs]
    if variables.point(first) is None:
        first, second = second, first
    point, line, other, circle = variables.point(first), *map(variables.ends, (first, second)), variables.circle(second)
    if point is None:
        return [on_line(end, other) for end in line] if line and other else None
    if other:
        return [on_line(point, other)]
    return [on_circle(point, circle)] if circle else None


def _tangent(first: Ref, second: Ref, variables: Variables, f: Floats, contacts: Contacts) -> list[Equation] | None:
    line = variables.ends(first) or variables.ends(second)
    circles = [circle for circle in map(variables.circle, (first, second)) if circle]
    contact = contacts.get(frozenset(ref.primitive for ref in (first, second) if ref.primitive is not None))
    if line and len(circles) == 1:
        if contact is not None:
            return [Equation(Form.SINE, between(*line), between(circles[0][0], contact), turn=SQUARE)]
        return [tangent_line(line, circles[0], f)]
    if len(circles) != 2:
        return None
    if contact is not None:
        return [Equation(Form.SINE, between(circles[0][0], contact), between(circles[1][0], contact))]
    return [tangent_circles(circles[0], circles[1], f)]


def _midpoint(refs: Sequence[Ref], variables: Variables) -> list[Equation] | None:
    """The first of three points lies halfway between the others; or a point halfway along a line."""
    points = [point for ref in refs if (point := variables.point(ref)) is not None]
    if len(refs) == 2 and len(points) == 1:
        points += variables.ends(refs[1]) or variables.ends(refs[0]) or ()
    return midpoint(*points) if len(points) == 3 and len(refs) <= 3 else None


def _symmetric(refs: Sequence[Ref], variables: Variables) -> list[Equation] | None:
    """Two points about a line or axis, or about a point."""
    a, b, about = variables.point(refs[0]), variables.point(refs[1]), variables.ends(refs[2])
    if about is None:
        return _midpoint((refs[2], refs[0], refs[1]), variables)
    return None if a is None or b is None else symmetric(a, b, about)


# Dimensions. Files differ in what a distance is counted between (the center of a circle, its near side, its far side),
# on which side it lies, and which of two angles is meant. The reading that is closest to the drawn sketch is taken.


def _dimension(constraint: Constraint, value: float, variables: Variables, f: Floats) -> list[Equation] | None:
    refs, size = constraint.refs, abs(value) / variables.scale
    match constraint.type:
        case _T.RADIUS | _T.DIAMETER:
            circles = [circle for ref in refs if (circle := variables.circle(ref))]
            size = size / 2 if constraint.type is _T.DIAMETER else size
            equations = [Equation(Form.NONE, linear=((radius, 1.0),), constant=size) for _, radius in circles]
            return equations if len(circles) == len(refs) else None
        case _T.LENGTH | _T.DISTANCE if len(refs) == 1:
            line = variables.ends(refs[0])
            return [Equation(Form.LENGTHS, between(*line), constant=size)] if line else None
        case _T.DISTANCE if len(refs) == 2:
            return _distance(refs[0], refs[1], size, variables, f)
        case _T.HORIZONTAL_DISTANCE | _T.VERTICAL_DISTANCE:
            points = [point for ref in refs if (point := variables.center(ref)) is not None]
            if len(refs) == 1:
                points = [*(variables.ends(refs[0]) or (variables.point_index[None, Part.ORIGIN], *points))]
            if len(points) != 2 or len(refs) > 2:
                return None
            axis = 0 if constraint.type is _T.HORIZONTAL_DISTANCE else 1
            return [closest([level(points[1], points[0], axis, side * size) for side in (1.0, -1.0)], f)]
        case _T.ANGLE:
            return _angle(refs, value, variables, f)
    return None


def _distance(first: Ref, second: Ref, size: float, variables: Variables, f: Floats) -> list[Equation] | None:
    line, other = variables.ends(first), variables.ends(second)
    a, b = variables.center(first), variables.center(second)
    if line and other:
        along, offset = between(*line), between(line[0], other[0])
        sides = [Equation(Form.OFFSET, along, offset, constant=side * size) for side in (1.0, -1.0)]
        return [Equation(Form.SINE, along, between(*other)), closest(sides, f)]
    rims = [one + two for one in _rims(variables.circle(first)) for two in _rims(variables.circle(second))]
    readings = [(rim, side * size) for rim in rims for side in (1.0, -1.0)]
    if a is not None and b is not None:
        return [closest([Equation(Form.LENGTHS, between(a, b), linear=rim, constant=by) for rim, by in readings], f)]
    point = a if a is not None else b
    if point is None or not (line or other):
        return None
    start, end = line or other or (0, 0)
    along, offset = between(start, end), between(start, point)
    return [closest([Equation(Form.OFFSET, along, offset, rim, by) for rim, by in readings], f)]


def _rims(circle: Pair | None) -> list[Sum]:
    """What a distance to a circle may add: nothing, or its radius with either sign."""
    return [()] if circle is None else [(), ((circle[1], 1.0),), ((circle[1], -1.0),)]


def _angle(refs: Sequence[Ref], angle: float, variables: Variables, f: Floats) -> list[Equation] | None:
    """Between two lines or a line and the x axis; of an arc, its sweep."""
    lines = [line for ref in refs if (line := variables.ends(ref))]
    circle = variables.circle(refs[0])
    if len(refs) == 1 and circle and isinstance(variables.primitives[refs[0].primitive or 0], Arc):
        v, w = between(circle[0], circle[0] + 1), between(circle[0], circle[0] + 2)
    elif len(refs) > 2 or len(lines) < len(refs):
        return None
    else:
        x_axis = variables.point_index[None, Part.ORIGIN], variables.point_index[None, Part.X_AXIS]
        v, w = between(*(lines[0] if len(lines) == 2 else x_axis)), between(*lines[-1])
    turns = [(math.cos(angle), side * math.sin(angle)) for side in (1.0, -1.0)]
    return [closest([Equation(Form.SINE, v, w, turn=turn) for turn in turns], f)]


# Rank of equations: which rows of derivatives add to the span of those before them.

# An equation whose derivative is shorter than this has no effect.
ZERO_ROW = 1e-6


def orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """An orthonormal basis of rows, at most as many as their length, as columns q, with rows = (q r)ᵀ.

    Only the upper triangle of r counts.
    """
    r, tau, _, _ = dgeqrf(rows.T)
    q, _, _ = dorgqr(r[:, : len(rows)], tau)
    return q, r


class Span:
    """The span of rows, as an orthonormal basis that grows."""

    def __init__(self, width: int) -> None:
        self._basis = np.zeros((width, width))
        self.rank = 0

    @property
    def basis(self) -> Floats:
        return self._basis[: self.rank]

    def add(self, row: Floats, least: float) -> bool:
        """Add a row if more than a share `least` of it is outside the span; whether it was."""
        length = float(row @ row)
        if length < ZERO_ROW**2 or self.rank == len(self._basis):
            return False
        rest = outside(row, self.basis)
        new = float(rest @ rest)
        if new <= least * least * length:
            return False
        rest = outside(rest / new**0.5, self.basis)  # once more, against rounding
        self._basis[self.rank] = rest / float(rest @ rest) ** 0.5
        self.rank += 1
        return True


def outside(rows: Floats, basis: Floats) -> Floats:
    """The part of rows outside the span of an orthonormal basis."""
    return np.asarray(rows - (rows @ basis.T) @ basis)


def row_lengths(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def adds_rank(rows: Floats, least: float) -> list[bool]:
    """Whether each row adds to the rank of those before it, by more than a share `least` of itself."""
    span = Span(rows.shape[1])
    return [span.add(row, least) for row in rows]


def likely_independent(rows: Floats, least: float) -> Ints:
    """The rows of which more than a share `least` is new to those before: fast, and a guess where some are not."""
    if len(rows) > rows.shape[1]:
        return np.flatnonzero(adds_rank(rows, least))
    new = np.abs(dgeqrf(rows.T)[0].diagonal())
    return np.flatnonzero(new > least * np.maximum(row_lengths(rows), ZERO_ROW))


def row_space(rows: Floats, least: float) -> Floats:
    """An orthonormal basis of rows, as rows, where a share of `least` or less of a row is rounding."""
    if 0 < len(rows) <= rows.shape[1]:
        q, r = orthonormal(rows)
        if (np.abs(r.diagonal()) > least * np.maximum(row_lengths(rows), ZERO_ROW)).all():
            return q.T
    span = Span(rows.shape[1])
    for row in rows:
        span.add(row, least)
    return span.basis
