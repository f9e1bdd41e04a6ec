"""Which dimensions settle a sketch: the lengths, sizes and places that, added to its constraints, leave nothing free.

Candidates are tried in the order in which people dimension: sizes of what is round, lengths of lines, how lines lean,
and last where things are. One is taken if it demands something that all before it do not, by a clear margin first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sketchdnn.geometry import (
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
    Vec,
    bounds,
)
from sketchdnn.geometry.constraints import PARTS_OF_KIND

from .contacts import contacts
from .equations import bodies, equations_of
from .rank import Span
from .sharing import Sharing
from .system import Equation, build
from .variables import Variables

# More numbers than this would take many seconds.
_MOST_NUMBERS = 1500
# The share of a dimension that must be new: first what settles things well, then what settles them at all.
_MARGINS = (0.1, 1e-3, 1e-5)
# A demand that others make to within this share of itself is theirs.
_REDUNDANT = 1e-6
# A distance below this share of the size is none: the two are level, or one lies on an axis.
_NOTHING = 1e-7
_ORIGIN, _X, _Y = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))
_PLACES = (Part.START, Part.END, Part.CENTER, Part.POINT)


def dimensions(sketch: Sketch, constraints: Sequence[Constraint] | None = None) -> tuple[Constraint, ...]:
    """What to add to constraints that hold, the sketch's own unless given, so that nothing is free to move.

    Values are what the sketch measures. Where a distance is nothing, its place is taken by a relation: horizontal,
    vertical, or a point on an axis. None is found for a sketch too large to solve.

    >>> [str(c.type) for c in dimensions(Sketch((Circle((3, 4), 2),)))]
    ['diameter', 'horizontal_distance', 'vertical_distance']
    """
    if not len(sketch):
        return ()
    variables = Variables(sketch.primitives)
    slots = Sharing(variables).slots()
    if slots.free > _MOST_NUMBERS:
        return ()
    known = tuple(sketch.constraints if constraints is None else constraints)
    said = [*bodies(variables), *(e for demand in _demands(known, variables) for e in demand)]
    span = Span(slots.free)
    nothing = np.zeros(slots.free)
    for row in build(said, slots).evaluate(nothing)[1]:
        span.add(row, _REDUNDANT)
    candidates = measurements(sketch.primitives)
    offers = [(i, e) for i, demand in enumerate(_demands(candidates, variables)) for e in demand]
    rows = build([equation for _, equation in offers], slots).evaluate(nothing)[1]
    taken: set[int] = set()
    for margin in _MARGINS:
        for (i, _), row in zip(offers, rows, strict=True):
            if span.rank == slots.free:
                break
            if i not in taken and span.add(row, margin):
                taken.add(i)
    return tuple(candidates[i] for i in sorted(taken))


def measurements(primitives: Sequence[Primitive]) -> list[Constraint]:
    """All dimensions there are to choose from, the most telling first."""
    return list(_candidates(primitives, _NOTHING * (bounds(primitives).size or 1.0)))


def _demands(constraints: Sequence[Constraint], variables: Variables) -> list[list[Equation]]:
    meeting = contacts(constraints, variables)
    return [equations_of(constraint, variables, variables.f, meeting) or [] for constraint in constraints]


def _candidates(primitives: Sequence[Primitive], nothing: float) -> Iterator[Constraint]:
    t = ConstraintType
    for i, p in enumerate(primitives):
        if isinstance(p, Circle):
            yield Constraint(t.DIAMETER, (Ref(i),), 2 * p.radius)
        elif isinstance(p, Arc):
            yield Constraint(t.RADIUS, (Ref(i),), p.radius)
    lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
    for i, line in lines:
        yield Constraint(t.LENGTH, (Ref(i),), line.length)
    for i, line in lines:
        run, rise = line.end[0] - line.start[0], line.end[1] - line.start[1]
        ends = (Ref(i, Part.START), Ref(i, Part.END))
        if abs(run) >= abs(rise):
            flat = Constraint(t.HORIZONTAL, (Ref(i),))
            yield Constraint(t.VERTICAL_DISTANCE, ends, rise) if abs(rise) > nothing else flat
        else:
            upright = Constraint(t.VERTICAL, (Ref(i),))
            yield Constraint(t.HORIZONTAL_DISTANCE, ends, run) if abs(run) > nothing else upright
    for i, p in enumerate(primitives):
        for part in _PLACES:
            if part in PARTS_OF_KIND[p.kind]:
                yield from _from_origin(Ref(i, part), _place(p, part), nothing)


def _from_origin(ref: Ref, at: Vec, nothing: float) -> Iterator[Constraint]:
    t = ConstraintType
    for type_, offset, axis in ((t.HORIZONTAL_DISTANCE, at[0], _Y), (t.VERTICAL_DISTANCE, at[1], _X)):
        if abs(offset) > nothing:
            yield Constraint(type_, (_ORIGIN, ref), offset)
        else:
            yield Constraint(t.POINT_ON_CURVE, (ref, axis))


def _place(primitive: Primitive, part: Part) -> Vec:
    match primitive:
        case Point(at):
            return at
        case Line() | Arc() if part in (Part.START, Part.END):
            return primitive.start if part is Part.START else primitive.end
        case Circle() | Arc():
            return primitive.center
    raise ValueError(f"a {primitive.kind.label} has no {part}")
