"""What ties a sketch to its origin: a place on the origin, places on an axis.

In FreeCAD and Onshape the origin is where a designer starts, so a place that is drawn there is meant to be there. What
a model draws is centered afterwards; its origin means nothing, and repairs do not use this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref, Sketch

from .demands import demanded
from .irredundant import irredundant
from .solve import Solution, solve
from .variables import Variables, variables_of

_ORIGIN, _X_AXIS, _Y_AXIS = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))
# Distances that differ by less, as a share of the size, are the same.
_DIGITS = 9


def tied_to_origin(sketch: Sketch, own: int, tolerance: float, most: float) -> tuple[Sketch, Solution] | None:
    """A sketch whose constraints hold, with its places on the origin and the axes, solved.

    Args:
        sketch: The sketch.
        own: How many of its constraints, from the first on, stay in any case: those of the user's file.
        tolerance: How far from the origin or an axis a place may be, as a share of the size.
        most: How far anything may move, as a share of the size.

    Returns:
        The sketch with what was added, and its solution; None where nothing is to be added.
    """
    if not len(sketch):
        return None
    given = sketch.constraints
    meant = list(_near_origin(sketch, tolerance))
    while meant:
        solution = solve(sketch, (*given, *meant), most=most)
        contrary = {id(c) for c in solution.conflicting}
        kept = [c for c in meant if id(c) not in contrary]
        if solution.warning is None and not contrary:
            moved = replace(solution.sketch, constraints=(*given, *meant))
            return replace(moved, constraints=irredundant(moved, own, solution.dof)), solution
        meant = kept if len(kept) < len(meant) else meant[:-1]  # the farthest is last
    return None


def _near_origin(sketch: Sketch, tolerance: float) -> Iterator[Constraint]:
    """The place nearest to the origin, then one of those that share a coordinate near an axis, the nearest first."""
    variables = variables_of(sketch.primitives)
    slots = demanded(sketch.constraints, variables).slots
    origin = variables.f[2 * variables.count : 2 * variables.count + 2]
    off = np.abs(variables.f[: 2 * variables.count].reshape(-1, 2) - origin)
    slot = slots.slot[: 2 * variables.count].reshape(-1, 2)
    free = slot < slots.free
    apart = off.max(axis=1).round(_DIGITS)
    nearest = int(apart.argmin())
    done: set[int] = set()
    if apart[nearest] <= tolerance and free[nearest].all():
        done.update(slot[nearest].tolist())
        yield Constraint(ConstraintType.COINCIDENT, (_ref(variables, nearest), _ORIGIN))
    near = np.argwhere((off <= tolerance) & free)
    order = np.argsort(off[near[:, 0], near[:, 1]].round(_DIGITS), kind="stable")
    for place, axis in near[order].tolist():
        if int(slot[place, axis]) not in done:
            done.add(int(slot[place, axis]))
            yield Constraint(ConstraintType.POINT_ON_CURVE, (_ref(variables, place), _X_AXIS if axis else _Y_AXIS))


def _ref(variables: Variables, place: int) -> Ref:
    return Ref(*variables.places[place])
