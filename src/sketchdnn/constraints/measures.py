"""What dimensions demand: distances, lengths, radii, angles, and what is fixed.

Files differ in what a distance is counted between (the middle of a circle, its near side, its far side), on which side
it lies and which of two angles is meant. The reading that is nearest to the sketch as it is drawn is the one meant.
"""

from __future__ import annotations

import math

import numpy as np

from sketchdnn.geometry import Arc, Constraint, ConstraintType, Part, Ref

from .system import Equation, Form, Sum, missed
from .variables import Floats, Variables

DIMENSIONS = frozenset(
    {
        ConstraintType.FIX,
        ConstraintType.DISTANCE,
        ConstraintType.HORIZONTAL_DISTANCE,
        ConstraintType.VERTICAL_DISTANCE,
        ConstraintType.LENGTH,
        ConstraintType.RADIUS,
        ConstraintType.DIAMETER,
        ConstraintType.ANGLE,
    }
)


def measured(constraint: Constraint, variables: Variables, f: Floats) -> list[Equation] | None:
    """The equations of a dimension, or None where it has no value or is about something else."""
    t, refs = ConstraintType, constraint.refs
    if constraint.type is t.FIX:
        return _fixed(refs, variables, f)
    if constraint.value is None:
        return None
    size = abs(constraint.value) / variables.scale
    match constraint.type:
        case t.RADIUS | t.DIAMETER:
            rounds = [variables.round(ref) for ref in refs]
            size = size / 2 if constraint.type is t.DIAMETER else size
            return (
                None
                if None in rounds
                else [Equation(Form.NONE, linear=((r[1], 1.0),), constant=size) for r in rounds if r]
            )
        case t.LENGTH | t.DISTANCE if len(refs) == 1:
            line = variables.ends(refs[0])
            return [Equation(Form.LENGTHS, v=_from(line[0], line[1]), constant=size)] if line else None
        case t.DISTANCE if len(refs) == 2:
            return _distance(refs[0], refs[1], size, variables, f)
        case t.HORIZONTAL_DISTANCE | t.VERTICAL_DISTANCE:
            return _along(refs, size, variables, f, 0 if constraint.type is t.HORIZONTAL_DISTANCE else 1)
        case t.ANGLE:
            return _angle(refs, constraint.value, variables, f)
    return None


def _fixed(refs: tuple[Ref, ...], variables: Variables, f: Floats) -> list[Equation] | None:
    """Everything a reference means stays as it is drawn."""
    demand: list[Equation] = []
    for ref in refs:
        if ref.primitive is None:
            return None
        place, circle = variables.at(ref), variables.round(ref)
        places = [place] if place is not None else [circle[0]] if circle else variables.ends(ref) or ()
        features = [2 * k + axis for k in places for axis in (0, 1)] + ([circle[1]] if circle else [])
        demand += [Equation(Form.NONE, linear=((k, 1.0),), constant=float(f[k])) for k in features]
        if circle and isinstance(variables.primitives[ref.primitive], Arc):
            demand += [_turned(end, circle[0], f) for end in (circle[0] + 1, circle[0] + 2)]
    return demand


def _turned(end: int, center: int, f: Floats) -> Equation:
    """An arc's end does not move along it."""
    x, y = f[2 * end : 2 * end + 2] - f[2 * center : 2 * center + 2]
    r = float(np.hypot(x, y)) or 1.0
    linear = ((2 * end, -float(y) / r), (2 * end + 1, float(x) / r))
    return Equation(Form.NONE, linear=linear, constant=sum(float(f[k]) * weight for k, weight in linear))


def _distance(first: Ref, second: Ref, size: float, variables: Variables, f: Floats) -> list[Equation] | None:
    line, other = variables.ends(first), variables.ends(second)
    a, b = variables.middle(first), variables.middle(second)
    if line and other:
        along = _from(line[0], line[1])
        parallel = Equation(Form.SINE, v=along, w=_from(other[0], other[1]))
        return [
            parallel,
            _nearest(
                [Equation(Form.OFFSET, along, _from(line[0], other[0]), constant=side * size) for side in (1.0, -1.0)],
                f,
            ),
        ]
    rims = [one + two for one in _rims(variables.round(first)) for two in _rims(variables.round(second))]
    sides = [(rim, side * size) for rim in rims for side in (1.0, -1.0)]
    if a is not None and b is not None:
        ways = [Equation(Form.LENGTHS, _from(a, b), linear=rim, constant=by) for rim, by in sides]
    elif (line or other) and (a is not None or b is not None):
        start, end = line or other or (0, 0)
        place = a if a is not None else b if b is not None else 0
        ways = [Equation(Form.OFFSET, _from(start, end), _from(start, place), rim, by) for rim, by in sides]
    else:
        return None
    return [_nearest(ways, f)]


def _rims(circle: tuple[int, int] | None) -> list[Sum]:
    """What a distance to a circle may add: nothing, or its radius either way."""
    return [()] if circle is None else [(), ((circle[1], 1.0),), ((circle[1], -1.0),)]


def _along(refs: tuple[Ref, ...], size: float, variables: Variables, f: Floats, axis: int) -> list[Equation] | None:
    places: list[int | None] = [variables.middle(ref) for ref in refs]
    if len(refs) == 1:
        places = list(variables.ends(refs[0]) or (variables.place[None, Part.ORIGIN], places[0]))
    if len(places) != 2 or places[0] is None or places[1] is None:
        return None
    linear = ((2 * places[1] + axis, 1.0), (2 * places[0] + axis, -1.0))
    return [_nearest([Equation(Form.NONE, linear=linear, constant=side * size) for side in (1.0, -1.0)], f)]


def _angle(refs: tuple[Ref, ...], angle: float, variables: Variables, f: Floats) -> list[Equation] | None:
    """Between two lines or a line and the x axis; of an arc, how far it reaches."""
    lines = [variables.ends(ref) for ref in refs]
    circle = variables.round(refs[0])
    if len(refs) == 1 and circle and isinstance(variables.primitives[refs[0].primitive or 0], Arc):
        v, w = _from(circle[0], circle[0] + 1), _from(circle[0], circle[0] + 2)
    elif len(lines) == 1 and lines[0]:
        v, w = _from(variables.place[None, Part.ORIGIN], variables.place[None, Part.X_AXIS]), _from(*lines[0])
    elif len(lines) == 2 and lines[0] and lines[1]:
        v, w = _from(*lines[0]), _from(*lines[1])
    else:
        return None
    turns = [(math.cos(angle), side * math.sin(angle)) for side in (1.0, -1.0)]
    return [_nearest([Equation(Form.SINE, v, w, turn=turn) for turn in turns], f)]


def _from(a: int, b: int) -> Sum:
    return ((b, 1.0), (a, -1.0))


def _nearest(ways: list[Equation], f: Floats) -> Equation:
    return min(ways, key=lambda way: abs(missed(way, f)))
