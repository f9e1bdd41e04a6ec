"""A set of constraints in which none follows from the others.

Rows of the Jacobian that depend on each other are its left null space. A constraint follows from the others where each
of its rows does: where the null space, restricted to its rows, has full rank. Dropping it leaves the part of the null
space that is zero there. Degrees of freedom stay the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr, solve_triangular

from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref, Sketch

from .blocks import blocks
from .contacts import contacts
from .demands import Demands
from .equations import bodies, equations_of
from .rank import VOID
from .sharing import Sharing
from .solve import solve
from .variables import Floats, variables_of

# A row that others span to within this share of itself is dependent, as in `nearest`.
_DEPENDENT = 1e-6
# Blocks of more numbers are not decomposed: only what the solver names is dropped there.
_MOST_NUMBERS = 1000
# Which constraint to drop where there is a choice: the first of these, and of one type the last.
_DROPPED_FIRST = (
    ConstraintType.EQUAL,
    ConstraintType.SYMMETRIC,
    ConstraintType.MIDPOINT,
    ConstraintType.COLLINEAR,
    ConstraintType.PARALLEL,
    ConstraintType.PERPENDICULAR,
    ConstraintType.POINT_ON_CURVE,
    ConstraintType.TANGENT,
    ConstraintType.VERTICAL,
    ConstraintType.HORIZONTAL,
    ConstraintType.CONCENTRIC,
    ConstraintType.COINCIDENT,
)
_ORDER = {kind: k for k, kind in enumerate(_DROPPED_FIRST)}


def irredundant(sketch: Sketch, own: int, dof: int) -> tuple[Constraint, ...]:
    """The constraints of a solved sketch without those that follow from the others.

    Args:
        sketch: A sketch in which its constraints hold.
        own: How many constraints, from the first on, stay whatever they say: those of the user's file.
        dof: The degrees of freedom that they leave.

    Returns:
        The constraints that are left, in their order. Where half of a constraint follows, the other half takes its
        place if it has a name: of collinear lines that share an end, the other end lies on the first.
    """
    constraints = sketch.constraints
    if len(constraints) <= own or not len(sketch):
        return constraints
    demands = _equations(sketch, constraints)
    if demands.slots.free - len(demands.equations) == dof:
        return constraints  # every equation counts
    left, partial = _left(demands, constraints, own)
    left = _halved(sketch, left, partial, dof)
    again = solve(sketch, left)
    if again.dof == dof and not _named(again.redundant, left[own:]):
        return tuple(left)
    # Dropping a contact changes what a tangent demands; then only what the solver names goes.
    return _without_named(sketch, own)


def _equations(sketch: Sketch, constraints: Sequence[Constraint]) -> Demands:
    """All equations of constraints, where no two numbers are shared."""
    variables = variables_of(sketch.primitives)
    meeting = contacts(constraints, variables)
    equations = bodies(variables)
    owners = [-1] * len(equations)
    for i, constraint in enumerate(constraints):
        demand = equations_of(constraint, variables, variables.f, meeting) or []
        equations += demand
        owners += [i] * len(demand)
    return Demands(Sharing(variables).slots(), equations, owners, set(), set(), [], 0.0)


def _left(demands: Demands, constraints: Sequence[Constraint], own: int) -> tuple[list[Constraint], set[int]]:
    """What is left once each constraint that follows from the others is dropped, one after the other.

    Where half of one follows and the other half has a name, that takes its place. Also the identities of other
    constraints of which half follows.
    """
    left: dict[int, Constraint] = dict(enumerate(constraints))
    partial: set[int] = set()
    for block in blocks(demands):
        if block.too_large or len(block.columns) > _MOST_NUMBERS:
            continue
        null = _null_space(block.system.evaluate(np.zeros(block.system.free))[1])
        rows: defaultdict[int, list[int]] = defaultdict(list)
        for row, owner in enumerate(block.owners):
            if owner >= own:
                rows[owner].append(row)
        for owner in sorted(rows, key=lambda i: (_ORDER.get(constraints[i].type, -1), -i)):
            if not null.shape[1]:
                break
            whole = _without(null, rows[owner])
            if whole is not None:
                null = whole
                del left[owner]
                continue
            for row, half in zip(rows[owner], _halves(constraints[owner]), strict=False):
                rest = _without(null, [row])
                if rest is not None:
                    null, left[owner] = rest, half
                    break
        partial |= {i for i in rows if i in left and np.abs(null[rows[i]]).max(initial=0.0) > _DEPENDENT}
    return list(left.values()), {id(left[i]) for i in partial}


def _without(null: Floats, rows: Sequence[int]) -> Floats | None:
    """The null space without some rows; None if these do not follow from the others."""
    _, size, turn = np.linalg.svd(null[rows])
    if len(size) < len(rows) or size[-1] <= _DEPENDENT:
        return None
    rest: Floats = null @ turn[len(size) :].T
    return rest


def _halves(constraint: Constraint) -> list[Constraint]:
    """What is left of a constraint without either of its two equations, where that has a name.

    Of collinear lines: the other end of the second lies on the first. Of a place on the origin: it lies on an axis.
    """
    if len(constraint.refs) != 2:
        return []
    first, second = constraint.refs
    if constraint.type is ConstraintType.COLLINEAR and second.primitive is not None:
        pairs = [(Ref(second.primitive, part), first) for part in (Part.END, Part.START)]
    elif constraint.type is ConstraintType.COINCIDENT and second.part is Part.ORIGIN:
        pairs = [(first, Ref(None, part)) for part in (Part.X_AXIS, Part.Y_AXIS)]
    else:
        return []
    return [Constraint(ConstraintType.POINT_ON_CURVE, pair) for pair in pairs]


def _null_space(rows: Floats) -> Floats:
    """An orthonormal basis, as columns, of the combinations of rows that vanish."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit = np.where(length[:, None] > VOID, rows / np.maximum(length, VOID)[:, None], 0.0)
    r, order = qr(unit.T, mode="r", pivoting=True)
    rank = int((np.abs(r.diagonal()) > _DEPENDENT).sum())
    null = np.zeros((len(rows), len(rows) - rank))
    if rank:
        null[order[:rank]] = -solve_triangular(r[:rank, :rank], r[:rank, rank:])
    null[order[rank:]] = np.eye(len(rows) - rank)
    basis: Floats = qr(null, mode="economic")[0]
    return basis


def _halved(sketch: Sketch, constraints: list[Constraint], partial: set[int], dof: int) -> list[Constraint]:
    """The same with a place on a line for its midpoint, where that leaves the same degrees of freedom."""
    for k, c in enumerate(constraints):
        if id(c) in partial and c.type is ConstraintType.MIDPOINT and len(c.refs) == 2:
            half = [*constraints[:k], Constraint(ConstraintType.POINT_ON_CURVE, c.refs), *constraints[k + 1 :]]
            if solve(sketch, half).dof == dof:
                constraints = half
    return constraints


def _without_named(sketch: Sketch, own: int) -> tuple[Constraint, ...]:
    """Without what the solver calls redundant, as often as it names something."""
    left = list(sketch.constraints)
    while named := _named(solve(sketch, left).redundant, left[own:]):
        left = [c for k, c in enumerate(left) if k < own or id(c) not in named]
    return tuple(left)


def _named(redundant: Sequence[Constraint], inferred: Sequence[Constraint]) -> set[int]:
    ours = {id(c) for c in inferred}
    return {id(c) for c in redundant if id(c) in ours}
