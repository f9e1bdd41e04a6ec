"""What each constraint demands, as equations that are zero when it holds, and all their derivatives at once.

Every relation we know is one shape: two vectors v and w, each a sum of places, joined by a form (how far w reaches off
the direction of v, the sine between them, the difference of their lengths), plus a sum of features. So a whole sketch's
constraints are five constant matrices, and no relation needs a derivative of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref

from .variables import Floats, Variables

Sum = tuple[tuple[int, float], ...]
_TINY = 1e-12


class Form(IntEnum):
    """How v and w are joined: v̂ × w, v̂ × ŵ, |v| − |w|, or not at all."""

    NONE = 0
    OFFSET = 1
    SINE = 2
    LENGTHS = 3


@dataclass(frozen=True, slots=True)
class Equation:
    """form(v, w) + linear − constant = 0; v and w sum places, `linear` sums features; `square` turns w by 90°."""

    form: Form
    v: Sum = ()
    w: Sum = ()
    linear: Sum = ()
    constant: float = 0.0
    square: bool = False


class System:
    """Equations as matrices over the features."""

    def __init__(self, equations: Sequence[Equation], num_features: int) -> None:
        shape = (len(equations), num_features)
        self.vx, self.vy, self.wx, self.wy, self.linear = (np.zeros(shape) for _ in range(5))
        for i, e in enumerate(equations):
            for k, weight in e.v:
                self.vx[i, 2 * k] += weight
                self.vy[i, 2 * k + 1] += weight
            for k, weight in e.w:
                if e.square:
                    self.wx[i, 2 * k + 1] -= weight
                    self.wy[i, 2 * k] += weight
                else:
                    self.wx[i, 2 * k] += weight
                    self.wy[i, 2 * k + 1] += weight
            for k, weight in e.linear:
                self.linear[i, k] += weight
        self.vectors = np.concatenate([self.vx, self.vy, self.wx, self.wy, self.linear])
        self.constant = np.array([e.constant for e in equations])
        self.form = np.array([e.form for e in equations], dtype=int)
        self.offset, self.sine, self.lengths = ((self.form == form) * 1.0 for form in list(Form)[1:])

    def evaluate(self, f: Floats) -> tuple[Floats, Floats]:
        """By how much each equation is missed, and its derivatives by the features."""
        vx, vy, wx, wy, missed = (self.vectors @ f).reshape(5, -1)
        long, wide = np.hypot(vx, vy), np.hypot(wx, wy)
        v, w = np.maximum(long, _TINY), np.maximum(wide, _TINY)
        ux, uy, tx, ty = vx / v, vy / v, wx / w, wy / w
        offset, sine, lengths = self.offset, self.sine, self.lengths
        cosine = ux * tx + uy * ty
        missed = (
            missed - self.constant + offset * (ux * wy - uy * wx) + sine * (ux * ty - uy * tx) + lengths * (long - wide)
        )
        turn = -(offset * (ux * wx + uy * wy) + sine * cosine) / v  # by turning v
        reach = sine * cosine / w  # by turning w
        by_vx, by_vy = -uy * turn + lengths * ux, ux * turn + lengths * uy
        by_wx = -uy * offset - ty * reach - lengths * tx
        by_wy = ux * offset + tx * reach - lengths * ty
        rows = by_vx[:, None] * self.vx + by_vy[:, None] * self.vy + by_wx[:, None] * self.wx + by_wy[:, None] * self.wy
        return missed, rows + self.linear


def equations_of(
    constraint: Constraint, variables: Variables, f: Floats, contacts: Mapping[frozenset[int], int] | None = None
) -> list[Equation] | None:
    """What a constraint demands of a sketch that looks like `f`, or None where that is not ours to say.

    How it looks decides between several ways to hold (touching from outside or inside). `contacts` names the place that
    two curves share: tangent there is another demand than tangent somewhere.
    """
    refs = constraint.refs
    t = ConstraintType
    if any(ref.part is Part.EXTERNAL for ref in refs):
        return None
    match constraint.type:
        case t.COINCIDENT | t.POINT_ON_CURVE | t.COLLINEAR | t.CONCENTRIC if len(refs) == 2:
            return _together(refs[0], refs[1], variables, concentric=constraint.type is t.CONCENTRIC)
        case t.HORIZONTAL | t.VERTICAL:
            return _level(refs, variables, 1 if constraint.type is t.HORIZONTAL else 0)
        case t.PARALLEL | t.PERPENDICULAR if len(refs) == 2:
            return _directions(refs[0], refs[1], variables, square=constraint.type is t.PERPENDICULAR)
        case t.TANGENT if len(refs) == 2:
            return _tangent(refs[0], refs[1], variables, f, contacts or {})
        case t.EQUAL if len(refs) == 2:
            return _equal(refs[0], refs[1], variables)
        case t.MIDPOINT:
            return _midpoint(refs, variables)
        case t.SYMMETRIC if len(refs) == 3:
            return _symmetric(refs, variables)
    return None


def same(a: int, b: int) -> list[Equation]:
    """Two places are one."""
    return [Equation(Form.NONE, linear=((2 * a + axis, 1.0), (2 * b + axis, -1.0))) for axis in (0, 1)]


def _together(first: Ref, second: Ref, variables: Variables, *, concentric: bool) -> list[Equation] | None:
    a, b = variables.at(first), variables.at(second)
    round_a, round_b = variables.round(first), variables.round(second)
    if concentric:
        a, b = round_a[0] if round_a else a, round_b[0] if round_b else b
    if a is not None and b is not None:
        return same(a, b)
    if a is not None:
        return _on(a, second, variables)
    if b is not None:
        return _on(b, first, variables)
    line, other = variables.ends(first), variables.ends(second)
    if line and other:
        return [_on_line(place, line) for place in other]
    if round_a and round_b:
        return [*same(round_a[0], round_b[0]), Equation(Form.NONE, linear=((round_a[1], 1.0), (round_b[1], -1.0)))]
    return None


def _on(place: int, curve: Ref, variables: Variables) -> list[Equation] | None:
    line, circle = variables.ends(curve), variables.round(curve)
    if line:
        return [_on_line(place, line)]
    return [_on_circle(place, circle)] if circle else None


def _on_line(place: int, line: tuple[int, int]) -> Equation:
    a, b = line
    return Equation(Form.OFFSET, v=((b, 1.0), (a, -1.0)), w=((place, 1.0), (a, -1.0)))


def _on_circle(place: int, circle: tuple[int, int]) -> Equation:
    return Equation(Form.LENGTHS, v=((place, 1.0), (circle[0], -1.0)), linear=((circle[1], -1.0),))


def _level(refs: Sequence[Ref], variables: Variables, axis: int) -> list[Equation] | None:
    ends = variables.ends(refs[0]) if len(refs) == 1 else tuple(variables.at(ref) for ref in refs)
    if ends is None or len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return [Equation(Form.NONE, linear=((2 * ends[0] + axis, 1.0), (2 * ends[1] + axis, -1.0)))]


def _directions(first: Ref, second: Ref, variables: Variables, *, square: bool) -> list[Equation] | None:
    a, b = variables.ends(first), variables.ends(second)
    if a is None or b is None:
        return None
    return [Equation(Form.SINE, v=((a[1], 1.0), (a[0], -1.0)), w=((b[1], 1.0), (b[0], -1.0)), square=square)]


def _tangent(
    first: Ref, second: Ref, variables: Variables, f: Floats, contacts: Mapping[frozenset[int], int]
) -> list[Equation] | None:
    line = variables.ends(first) or variables.ends(second)
    rounds = [r for r in (variables.round(first), variables.round(second)) if r]
    both = frozenset(ref.primitive for ref in (first, second) if ref.primitive is not None)
    contact = contacts.get(both)
    if line and len(rounds) == 1:
        center, radius = rounds[0]
        along = ((line[1], 1.0), (line[0], -1.0))
        if contact is not None:
            return [Equation(Form.SINE, v=along, w=((contact, 1.0), (center, -1.0)), square=True)]
        a, b, c = (f[2 * k : 2 * k + 2] for k in (*line, center))
        side = 1.0 if (b - a)[0] * (c - a)[1] >= (b - a)[1] * (c - a)[0] else -1.0
        return [Equation(Form.OFFSET, v=along, w=((center, 1.0), (line[0], -1.0)), linear=((radius, -side),))]
    if len(rounds) != 2:
        return None
    (one, size), (two, other) = rounds
    if contact is not None:
        return [Equation(Form.SINE, v=((contact, 1.0), (one, -1.0)), w=((contact, 1.0), (two, -1.0)))]
    apart = float(np.hypot(*(f[2 * one : 2 * one + 2] - f[2 * two : 2 * two + 2])))
    r, s = float(f[size]), float(f[other])
    outside = abs(apart - r - s) < abs(apart - abs(r - s))
    signs = (-1.0, -1.0) if outside else (-1.0, 1.0) if r > s else (1.0, -1.0)
    linear = ((size, signs[0]), (other, signs[1]))
    return [Equation(Form.LENGTHS, v=((one, 1.0), (two, -1.0)), linear=linear)]


def _equal(first: Ref, second: Ref, variables: Variables) -> list[Equation] | None:
    a, b = variables.round(first), variables.round(second)
    if a and b:
        return [Equation(Form.NONE, linear=((a[1], 1.0), (b[1], -1.0)))]
    line, other = variables.ends(first), variables.ends(second)
    if line is None or other is None:
        return None
    return [
        Equation(Form.LENGTHS, v=((line[1], 1.0), (line[0], -1.0)), w=((other[1], 1.0), (other[0], -1.0))),
    ]


def _midpoint(refs: Sequence[Ref], variables: Variables) -> list[Equation] | None:
    """The first of three places lies halfway between the others; or of a place and a line, halfway along it."""
    places = [variables.at(ref) for ref in refs]
    if len(refs) == 2:
        line = variables.ends(refs[1]) or variables.ends(refs[0])
        place = places[0] if places[0] is not None else places[1]
        ends: tuple[int | None, ...] = line or ()
    else:
        place, ends = places[0], tuple(places[1:])
    if place is None or len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return [
        Equation(Form.NONE, linear=((2 * place + axis, 1.0), (2 * ends[0] + axis, -0.5), (2 * ends[1] + axis, -0.5)))
        for axis in (0, 1)
    ]


def _symmetric(refs: Sequence[Ref], variables: Variables) -> list[Equation] | None:
    """Two places about a line or axis."""
    a, b, about = variables.at(refs[0]), variables.at(refs[1]), variables.ends(refs[2])
    if a is None or b is None or about is None:
        return None
    along = ((about[1], 1.0), (about[0], -1.0))
    return [
        Equation(Form.OFFSET, v=along, w=((a, 0.5), (b, 0.5), (about[0], -1.0))),
        Equation(Form.OFFSET, v=along, w=((b, 1.0), (a, -1.0)), square=True),
    ]
