"""Whether constraints hold in a sketch as it is, and whether some follow from others there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sketchdnn.geometry import Constraint, Sketch

from .contacts import contacts
from .equations import bodies, equations_of
from .rank import spanned
from .sharing import Sharing
from .system import Equation, build, missed
from .variables import OUTSIDE, Floats, Variables, variables_of

# A demand of which a larger share than this is new to others does not follow from them.
_NEW = 1e-5


def missed_by(sketch: Sketch, constraints: Sequence[Constraint]) -> list[float | None]:
    """By how much each constraint is missed, in parts of the size or in radians; None where that cannot be said."""
    if not len(sketch):
        return [None] * len(constraints)
    variables = variables_of(sketch.primitives)
    return [
        max(abs(missed(equation, variables.f)) for equation in demand) if demand else None
        for demand in _demands(constraints, variables)
    ]


def follows(
    sketch: Sketch, given: Sequence[Constraint], wanted: Sequence[Constraint], holds: float = 1e-6
) -> list[bool]:
    """Whether each wanted constraint holds in a sketch, and would after any move that leaves the given ones alone."""
    variables = Variables(sketch.primitives)
    slots = Sharing(variables).slots()
    nothing = np.zeros(slots.free)
    known = bodies(variables) + [e for demand in _demands(given, variables) for e in demand]
    span = spanned(build(known, slots).evaluate(nothing)[1], 1e-9)
    found = []
    for demand in _demands(wanted, variables):
        misses, rows = build(demand, slots).evaluate(nothing)
        new = np.linalg.norm(rows - (rows @ span.T) @ span, axis=1) <= _NEW * np.linalg.norm(rows, axis=1)
        found.append(bool(demand) and bool((np.abs(misses) <= holds).all() and new.all()))
    return found


def settled(sketch: Sketch, constraints: Sequence[Constraint], within: float) -> float:
    """Which share of a sketch's numbers constraints settle that hold already: none is 0, all is 1."""
    if not len(sketch):
        return 0.0
    variables = Variables(sketch.primitives)
    equations = [e for demand in _demands(constraints, variables) for e in demand]
    held = sum(abs(missed(equation, variables.f)) <= within for equation in equations)
    return min(1.0, held / (2 * variables.count + len(variables.rounds) - 2 * len(variables.arcs)))


def moves(before: Sketch, after: Sketch) -> Floats:
    """How far each place of a sketch went, and by how much each radius changed, in parts of the size before."""
    was, now = Variables(before.primitives), Variables(after.primitives)
    places, radii = slice(0, 2 * was.count), slice(2 * (was.count + len(OUTSIDE)), None)
    f = was.f.copy()
    shift = np.array(now.shift) - was.shift
    f[places] = ((now.f[places].reshape(-1, 2) * now.scale + shift) / was.scale).ravel()
    f[radii] = now.f[radii] * now.scale / was.scale
    return np.abs(was.moves(f))


def _demands(constraints: Sequence[Constraint], variables: Variables) -> list[list[Equation]]:
    meeting = contacts(constraints, variables)
    return [equations_of(constraint, variables, variables.f, meeting) or [] for constraint in constraints]
