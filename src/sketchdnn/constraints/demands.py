"""What constraints demand of a sketch, sorted: which numbers become one, and which equations remain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from sketchdnn.geometry import Constraint

from .contacts import contacts
from .equations import bodies, equations_of
from .sharing import Sharing, Slots, shared
from .system import Equation
from .variables import Variables

# Constants that are further apart, in parts of the sketch's size, are not one.
_ONE = 1e-9


@dataclass(frozen=True, slots=True)
class Demands:
    """Numbers that are left free, and equations for them; what each constraint, by its number, came to.

    `owners` are the constraints that the equations belong to, -1 for what an arc is. `apart` is how far what became one
    had been apart.
    """

    slots: Slots
    equations: list[Equation]
    owners: list[int]
    redundant: set[int]
    conflicting: set[int]
    unread: list[int]
    apart: float


def demanded(constraints: Sequence[Constraint], variables: Variables, fixed: Collection[int] = ()) -> Demands:
    """Sort out constraints: those that make numbers one come first, whatever their order."""
    pairs = [shared(constraint, variables) for constraint in constraints]
    sharing, redundant, conflicting = _joined(pairs, variables, fixed)
    slots = sharing.slots()
    f = slots.start[slots.slot]
    meeting = contacts(constraints, variables)
    equations = [e for e, i in zip(bodies(variables), np.repeat(variables.arcs, 2), strict=True) if i not in fixed]
    owners, unread = [-1] * len(equations), []
    for i, constraint in enumerate(constraints):
        if pairs[i] is not None:
            continue
        demand = equations_of(constraint, variables, f, meeting)
        if demand is None:
            unread.append(i)
        else:
            equations += demand
            owners += [i] * len(demand)
    ones = [pair for i, several in enumerate(pairs) if i not in conflicting for pair in several or ()]
    apart = float(np.abs(np.subtract(*variables.f[np.array(ones).T])).max()) if ones else 0.0
    return Demands(slots, equations, owners, redundant, conflicting, unread, apart)


def _joined(
    pairs: Sequence[Sequence[tuple[int, int]] | None], variables: Variables, fixed: Collection[int]
) -> tuple[Sharing, set[int], set[int]]:
    """Make numbers one; what adds nothing is redundant, what cannot be or would leave nothing of a line conflicts."""
    sharing, redundant, conflicting = Sharing(variables, fixed), set[int](), set[int]()
    for i, several in enumerate(pairs):
        if several is not None:
            new = sharing.join(several, _ONE)
            if new is None:
                conflicting.add(i)
            elif not new:
                redundant.add(i)
    if not _vanished(sharing, variables):
        return sharing, redundant, conflicting
    sharing, redundant = Sharing(variables, fixed), set[int]()
    done: list[Sequence[tuple[int, int]]] = []
    for i, several in enumerate(pairs):
        if several is None or i in conflicting:
            continue
        new = sharing.join(several, _ONE)
        if _vanished(sharing, variables):
            conflicting.add(i)
            sharing = Sharing(variables, fixed)
            for before in done:
                sharing.join(before, _ONE)
            continue
        done.append(several)
        if not new:
            redundant.add(i)
    return sharing, redundant, conflicting


def _vanished(sharing: Sharing, variables: Variables) -> bool:
    """Whether both ends of a line or arc have become one."""
    leaders, k = sharing.classes.leaders(), variables.tips
    return bool(((leaders[k] == leaders[k + 2]) & (leaders[k + 1] == leaders[k + 3])).any())
