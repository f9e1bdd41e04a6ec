"""The nearest sketch that satisfies constraints, and how much freedom they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.geometry import Constraint, GeometryError, Sketch

from .contacts import contacts
from .equations import Equation, System, equations_of
from .rank import adds
from .variables import Floats, Variables

# An equation that is missed by less, in parts of the sketch's size or in radians, holds.
HOLDS = 1e-9
# A constraint that the others already demand to within this share of itself says nothing of its own.
_REDUNDANT = 1e-6
# What constraints are missed by after they were solved together, if they contradict each other.
_CONFLICT = 1e-7
_STEPS = 30
# More numbers than this would take seconds and gigabytes.
MOST_NUMBERS = 1500


@dataclass(frozen=True, slots=True)
class Solution:
    """What solving came to. Displacements and residual are shares of the sketch's size.

    `redundant` constraints follow from the others, `conflicting` ones contradict those before them and were left out,
    `unread` ones are of a kind, or about things, that the solver does not know. With a `warning`, `sketch` is the one
    that went in, and `residual` is what it misses.
    """

    sketch: Sketch
    displacement: float
    mean_displacement: float
    residual: float
    dof: int
    redundant: tuple[Constraint, ...] = ()
    conflicting: tuple[Constraint, ...] = ()
    unread: tuple[Constraint, ...] = ()
    warning: str | None = None


def solve(sketch: Sketch, constraints: Sequence[Constraint] | None = None, *, most: float = 0.1) -> Solution:
    """Move the primitives as little as possible, so that the constraints hold: the sketch's own, unless given.

    Of constraints that exclude each other the earlier ones stay. Nothing moves by more than `most` of the size: where
    that is not possible, or no solution is found, the sketch comes back as it was, with a warning.

    >>> from sketchdnn.geometry import ConstraintType, Line, Ref
    >>> solution = solve(Sketch((Line((0, 0), (10, 0.1)),)), [Constraint(ConstraintType.HORIZONTAL, (Ref(0),))])
    >>> [round(y, 9) for _, y in (solution.sketch.primitives[0].start, solution.sketch.primitives[0].end)]
    [0.05, 0.05]
    >>> solution.dof
    3
    """
    wanted = tuple(sketch.constraints if constraints is None else constraints)
    if not len(sketch):
        return Solution(sketch, 0.0, 0.0, 0.0, 0, unread=wanted)
    variables = Variables(sketch.primitives)
    free = len(variables.x)
    if free > MOST_NUMBERS:
        return Solution(
            sketch, 0.0, 0.0, 0.0, free, unread=wanted, warning=f"{free} free numbers are too many to solve"
        )
    said = demands(wanted, variables)
    unread = tuple(c for c, demand in zip(wanted, said, strict=True) if demand is None)
    read = [c for c, demand in zip(wanted, said, strict=True) if demand is not None]
    if not read:
        return Solution(sketch, 0.0, 0.0, 0.0, free, unread=unread)
    equations = [e for demand in said if demand is not None for e in demand]
    owners = [i for i, demand in enumerate(d for d in said if d is not None) for _ in demand]
    x, rows, kept, redundant, conflicting = _consistent(variables, equations, owners, len(read))
    x = nearest(variables, System([equations[i] for i in rows], variables.num_features), x)
    whole = System([equations[i] for i in kept], variables.num_features)
    residual = float(np.abs(whole.evaluate(variables.features(x))[0]).max(initial=0.0))
    moves = np.abs(variables.moves(x))
    outcome = Solution(
        sketch,
        displacement=0.0,
        mean_displacement=0.0,
        residual=float(np.abs(whole.evaluate(variables.features(variables.x))[0]).max(initial=0.0)),
        dof=free - len(rows),
        redundant=tuple(read[i] for i in redundant),
        conflicting=tuple(read[i] for i in conflicting),
        unread=unread,
    )
    if not residual <= HOLDS:
        return replace(outcome, warning=f"no solution was found: {residual:.1e} of the size is left")
    if moves.max() > most:
        return replace(outcome, warning=f"the nearest solution moves something by {moves.max():.1%} of the size")
    try:
        solved = replace(sketch, primitives=variables.rebuilt(x))
    except GeometryError as error:
        return replace(outcome, warning=f"the nearest solution is no sketch: {error}")
    return replace(
        outcome,
        sketch=solved,
        displacement=float(moves.max()),
        mean_displacement=float(moves.mean()),
        residual=residual,
    )


def demands(constraints: Sequence[Constraint], variables: Variables) -> list[list[Equation] | None]:
    """The equations of each constraint, None where it has none."""
    shared = contacts(constraints, variables)
    f = variables.features(variables.x)
    return [equations_of(constraint, variables, f, shared) for constraint in constraints]


def settle(variables: Variables, system: System, x: Floats, steps: int = _STEPS, enough: float = HOLDS / 10) -> Floats:
    """Numbers near x that satisfy the equations as well as can be, whatever their rank: damped least squares."""
    best, missed = x, np.inf
    damping = 1e-6
    for _ in range(steps):
        c, g = system.evaluate(variables.features(x))
        now = float(c @ c)
        if now < missed:
            best, missed = x, now
            damping = max(damping / 10, 1e-12)
        else:
            x, damping = best, damping * 100
            c, g = system.evaluate(variables.features(x))
        if np.abs(c).max() < enough or damping > 1e4:
            return best
        j = g @ variables.derivatives(x)
        normal = j @ j.T
        normal[np.diag_indices_from(normal)] += damping * (1 + normal.diagonal())
        x = x - j.T @ np.linalg.solve(normal, c)
    c, _ = system.evaluate(variables.features(x))
    return x if float(c @ c) < missed else best


def nearest(variables: Variables, system: System, x: Floats, steps: int = 8) -> Floats:
    """From a solution of independent equations to the nearest one: each step solves them to first order."""
    if not len(system.form):
        return variables.x
    for step in range(steps):
        c, g = system.evaluate(variables.features(x))
        j = g @ variables.derivatives(x)
        back = variables.x - x if step < steps - 2 else np.zeros_like(x)  # the last steps only polish
        q, r = np.linalg.qr(j.T)
        try:
            along = np.linalg.solve(r.T, c + j @ back)
        except np.linalg.LinAlgError:
            return x
        after = x + back - q @ along
        if not np.all(np.isfinite(after)):
            return x
        done = float(np.abs(after - x).max()) < HOLDS / 100
        x = after
        if done:
            break
    return x


def _consistent(
    variables: Variables, equations: list[Equation], owners: list[int], count: int
) -> tuple[Floats, list[int], list[int], list[int], list[int]]:
    """Numbers that solve what can be solved together, the equations that matter and those that hold, and whose do not.

    Where everything holds together, rank alone tells what is redundant. Otherwise a constraint that adds no rank and
    is missed contradicts those before it; it is set aside, and the rest is solved anew.
    """
    conflicting: list[int] = []
    for _ in range(count + 1):
        kept = [i for i, owner in enumerate(owners) if owner not in conflicting]
        if not kept:
            return variables.x, [], [], [], sorted(conflicting)
        system = System([equations[i] for i in kept], variables.num_features)
        x = settle(variables, system, variables.x)
        c, g = system.evaluate(variables.features(x))
        of_row, of_owner = adds(g @ variables.derivatives(x), [owners[i] for i in kept], count, _REDUNDANT)
        if np.abs(c).max() <= _CONFLICT:
            break
        missed = {owners[i] for i, new, by in zip(kept, of_row, c, strict=True) if not new and abs(by) > _CONFLICT}
        if not missed:
            missed = {max(zip(np.abs(c), (owners[i] for i in kept), strict=True))[1]}
        conflicting.append(max(missed))
    redundant = [i for i, new in enumerate(of_owner) if not new and i not in conflicting]
    rows = [i for i, new in zip(kept, of_row, strict=True) if new]
    return x, rows, kept, redundant, sorted(conflicting)
