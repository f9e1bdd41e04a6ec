"""What each constraint demands, as equations that are zero when it holds.

How a sketch looks decides between several ways to hold: touching from outside or inside, a distance to either side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref

from .measures import DIMENSIONS, measured
from .system import Equation, Form
from .variables import Floats, Variables

_SQUARE = (0.0, 1.0)
_ALONG = (1.0, 0.0)
# What is said of several things is said of the first and each of the others.
_OF_EACH = frozenset(
    {
        ConstraintType.COINCIDENT,
        ConstraintType.CONCENTRIC,
        ConstraintType.COLLINEAR,
        ConstraintType.PARALLEL,
        ConstraintType.EQUAL,
    }
)


def bodies(variables: Variables) -> list[Equation]:
    """The ends of arcs lie on their circles."""
    return [
        Equation(Form.LENGTHS, v=((end, 1.0), (center, -1.0)), linear=((variables.radius[i], -1.0),))
        for i in variables.arcs
        for center in (variables.first[i],)
        for end in (center + 1, center + 2)
    ]


def equations_of(
    constraint: Constraint, variables: Variables, f: Floats, contacts: Mapping[frozenset[int], int]
) -> list[Equation] | None:
    """What a constraint demands of a sketch that looks like `f`, or None where that is not ours to say.

    `contacts` names the place that two curves share: tangent there is another demand than tangent somewhere.
    """
    refs = constraint.refs
    t = ConstraintType
    for ref in refs:
        if ref.part is Part.EXTERNAL:
            return None
    if len(refs) > 2 and constraint.type in _OF_EACH:
        each = [equations_of(Constraint(constraint.type, (refs[0], ref)), variables, f, contacts) for ref in refs[1:]]
        return None if None in each else [equation for several in each for equation in several or ()]
    match constraint.type:
        case t.COINCIDENT | t.POINT_ON_CURVE | t.COLLINEAR if len(refs) == 2:
            return _together(refs[0], refs[1], variables)
        case t.CONCENTRIC if len(refs) == 2:
            return _one_place(variables.middle(refs[0]), variables.middle(refs[1]))
        case t.HORIZONTAL | t.VERTICAL:
            return _level(refs, variables, 1 if constraint.type is t.HORIZONTAL else 0)
        case t.PARALLEL | t.PERPENDICULAR if len(refs) == 2:
            return _directions(refs[0], refs[1], variables, square=constraint.type is t.PERPENDICULAR)
        case t.TANGENT if len(refs) == 2:
            return _tangent(refs[0], refs[1], variables, f, contacts)
        case t.EQUAL if len(refs) == 2:
            return _equal(refs[0], refs[1], variables)
        case t.MIDPOINT:
            return _midpoint(refs, variables)
        case t.SYMMETRIC if len(refs) == 3:
            return _symmetric(refs, variables)
    return measured(constraint, variables, f) if constraint.type in DIMENSIONS else None


def on_line(place: int, line: tuple[int, int]) -> Equation:
    a, b = line
    return Equation(Form.OFFSET, v=((b, 1.0), (a, -1.0)), w=((place, 1.0), (a, -1.0)))


def on_circle(place: int, circle: tuple[int, int]) -> Equation:
    return Equation(Form.LENGTHS, v=((place, 1.0), (circle[0], -1.0)), linear=((circle[1], -1.0),))


def _one_place(a: int | None, b: int | None) -> list[Equation] | None:
    if a is None or b is None:
        return None
    return [Equation(Form.NONE, linear=((2 * a + axis, 1.0), (2 * b + axis, -1.0))) for axis in (0, 1)]


def _together(first: Ref, second: Ref, variables: Variables) -> list[Equation] | None:
    a, b = variables.at(first), variables.at(second)
    if a is not None and b is not None:
        return _one_place(a, b)
    if a is not None or b is not None:
        place, curve = (a, second) if a is not None else (b, first)
        line, circle = variables.ends(curve), variables.round(curve)
        if place is None or not (line or circle):
            return None
        return [on_line(place, line) if line else on_circle(place, circle or (0, 0))]
    line, other = variables.ends(first), variables.ends(second)
    if line and other:
        return [on_line(place, line) for place in other]
    one, two = variables.round(first), variables.round(second)
    if one and two:
        same = Equation(Form.NONE, linear=((one[1], 1.0), (two[1], -1.0)))
        return [*(_one_place(one[0], two[0]) or ()), same]
    return None


def _level(refs: Sequence[Ref], variables: Variables, axis: int) -> list[Equation] | None:
    places = [variables.at(ref) for ref in refs]
    lines = [variables.ends(ref) for ref in refs]
    if len(refs) > 1 and None not in places:
        pairs = [(places[0], place) for place in places[1:]]
    elif None not in lines:
        pairs = [line for line in lines if line]
    else:
        return None
    return [
        Equation(Form.NONE, linear=((2 * a + axis, 1.0), (2 * b + axis, -1.0)))
        for a, b in pairs
        if a is not None and b is not None
    ]


def _directions(first: Ref, second: Ref, variables: Variables, *, square: bool) -> list[Equation] | None:
    a, b = variables.ends(first), variables.ends(second)
    if a is None or b is None:
        return None
    turn = _SQUARE if square else _ALONG
    return [Equation(Form.SINE, v=((a[1], 1.0), (a[0], -1.0)), w=((b[1], 1.0), (b[0], -1.0)), turn=turn)]


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
            return [Equation(Form.SINE, v=along, w=((contact, 1.0), (center, -1.0)), turn=_SQUARE)]
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
    return [Equation(Form.LENGTHS, v=((line[1], 1.0), (line[0], -1.0)), w=((other[1], 1.0), (other[0], -1.0)))]


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
    """Two places about a line or axis, or about a place."""
    a, b, about = variables.at(refs[0]), variables.at(refs[1]), variables.ends(refs[2])
    if about is None:
        return _midpoint((refs[2], refs[0], refs[1]), variables)
    if a is None or b is None:
        return None
    along = ((about[1], 1.0), (about[0], -1.0))
    return [
        Equation(Form.OFFSET, v=along, w=((a, 0.5), (b, 0.5), (about[0], -1.0))),
        Equation(Form.OFFSET, v=along, w=((b, 1.0), (a, -1.0)), turn=_SQUARE),
    ]
