"""The nearest sketch that satisfies constraints, and the degrees of freedom that they leave.

Each block of equations is solved from the drawn sketch to the nearest solution. Where equations conflict, the later
constraints are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dposv, dtrtrs
from scipy.sparse.linalg import splu

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, Sketch

from .equation_set import Block, Freedom, blocks, equation_set, primitive_freedom
from .equations import ZERO_ROW, Evaluated, System, adds_rank, likely_independent, orthonormal, outside, row_lengths
from .variables import Constraints, Floats, Ints, VariableMap, Variables, variables_of

# An equation with a smaller residual, as a share of the sketch's size or in radians, holds.
HOLDS = 1e-9
# A constraint that follows from the others to within this share of itself is redundant.
_REDUNDANT = 1e-6
# The residual of constraints that conflict, after they were solved together.
_CONFLICT = 1e-7
_MAX_STEPS = 30
# A longer step, in sizes of the sketch, leads nowhere.
_MAX_STEP = 3.0
# More equations are solved with sparse matrices, and conflicts are looked for a few times only.
_DENSE = 300
_SPARSE_ROUNDS = 6
# An equation that follows from others where the sketch is drawn, to within this share of itself, may follow from them.
_LIKELY_NEW = 0.02
FindFreedom = Callable[[], tuple[Freedom, ...]]


@dataclass(frozen=True)
class Solution:
    """The solved sketch. Displacement and residual are shares of the sketch's size.

    Attributes:
        sketch: The solved sketch; the input, if there is a warning.
        displacement: The largest move of a point or radius.
        residual: The largest residual; with a warning, that of the input.
        dof: The degrees of freedom.
        redundant: Constraints that follow from the others.
        conflicting: Constraints that conflict with others and were left out.
        unsupported: Constraints of a kind, or on parts, for which the solver has no equation.
        warning: Why the sketch was not solved.
        skipped: Constraints in a block that is too large to solve.
        find_freedom: Finds `freedom`, which takes a third of the time of the solution and is rarely needed.
            None where it is unknown.
    """

    sketch: Sketch
    displacement: float
    residual: float
    dof: int
    redundant: tuple[Constraint, ...] = ()
    conflicting: tuple[Constraint, ...] = ()
    unsupported: tuple[Constraint, ...] = ()
    warning: str | None = None
    skipped: tuple[Constraint, ...] = ()
    find_freedom: FindFreedom | None = field(default=None, repr=False, compare=False)

    @cached_property
    def freedom(self) -> tuple[Freedom, ...]:
        """The freedom of each primitive; empty if unknown."""
        return self.find_freedom() if self.find_freedom else ()


def solve(
    sketch: Sketch, constraints: Constraints | None = None, *, max_move: float = 0.1, fixed: Collection[int] = ()
) -> Solution:
    """Move the primitives as little as possible so that the constraints hold.

    Of conflicting constraints, those stay that merge variables (coincident, concentric, horizontal, vertical, equal
    radii), and of the others the earlier ones.

    Args:
        sketch: The sketch.
        constraints: The constraints; by default those of the sketch.
        max_move: The largest move allowed, as a share of the size. Where it is exceeded, or no solution is found, the
            result is the input with a warning.
        fixed: Indices of primitives that do not move.

    Returns:
        The solution.

    >>> from sketchdnn.geometry import ConstraintType, Line, Ref
    >>> solution = solve(Sketch((Line((0, 0), (10, 0.1)),)), [Constraint(ConstraintType.HORIZONTAL, (Ref(0),))])
    >>> [round(y, 9) for _, y in (solution.sketch.primitives[0].start, solution.sketch.primitives[0].end)]
    [0.05, 0.05]
    >>> solution.dof
    3
    """
    given = tuple(sketch.constraints if constraints is None else constraints)
    if not len(sketch):
        return Solution(sketch, 0.0, 0.0, 0, unsupported=given)
    variables = variables_of(sketch.primitives)
    equations = equation_set(given, variables, fixed)
    parts = blocks(equations)
    solved = [solve_block(block) for block in parts]
    z = np.zeros(equations.variable_map.num_free)
    for block, part in zip(parts, solved, strict=True):
        z[block.columns] = part.z
    f = equations.variable_map.parameters(z)
    # Two fixed primitives that meet except for rounding share a variable while the others are solved for.
    rounding = 0.0
    if exact := [k for i in fixed for k in variables.parameters(i)]:
        rounding = float(np.abs(f[exact] - variables.f[exact]).max())
        f[exact] = variables.f[exact]
    redundant = equations.redundant.union(*(part.redundant for part in solved))
    conflicting = equations.conflicting.union(*(part.conflicting for part in solved))
    skipped = {owner for block in parts if block.too_large for owner in block.owners if owner >= 0}
    residual = max([rounding, *(part.residual for part in solved)])
    largest = float(np.abs(variables.moves(f)).max())
    over = {ref.primitive for i in (*redundant, *conflicting) for ref in given[i].refs} - set(fixed)
    primitives, warning = sketch.primitives, None
    if skipped:
        count = max(len(block.columns) for block in parts if block.too_large)
        warning = f"{count} connected variables are too many to solve"
    elif not residual <= HOLDS:
        warning = f"no solution was found: {residual:.1e} of the size is left"
    elif largest > max_move:
        warning = f"the nearest solution moves something by {largest:.1%} of the size"
    else:
        try:
            primitives = variables.rebuild(f)
        except GeometryError as error:
            warning = f"the nearest solution is no sketch: {error}"

    def constraints_of(numbers: Iterable[int]) -> tuple[Constraint, ...]:
        return tuple(given[i] for i in sorted(numbers))

    return Solution(
        sketch if warning else replace(sketch, primitives=primitives),
        displacement=0.0 if warning else largest,
        residual=max([equations.gap, *(part.before for part in solved)]) if warning else residual,
        dof=equations.variable_map.num_free - sum(len(part.rows) for part in solved),
        redundant=constraints_of(redundant),
        conflicting=constraints_of(conflicting),
        unsupported=constraints_of(equations.unsupported),
        warning=warning,
        skipped=constraints_of(skipped),
        find_freedom=partial(_freedom, variables, equations.variable_map, f, parts, solved, over),
    )


def _freedom(
    variables: Variables,
    variable_map: VariableMap,
    f: Floats,
    parts: Sequence[Block],
    solved: Sequence[BlockSolution],
    over: Collection[int | None],
) -> tuple[Freedom, ...]:
    """The freedom of each primitive; one without a constraint is free, even if it is alone."""
    untouched = np.bincount(variable_map.index, minlength=len(variable_map.start)) == 1
    untouched[variable_map.num_free :] = False
    held = []
    for block, part in zip(parts, solved, strict=True):
        if part.rows:
            rows = block.system.take(part.rows).evaluate(part.z)[1]
            held.append((block.columns, orthonormal(rows)[0]))
            constrained = [i for i, row in enumerate(part.rows) if block.owners[row] >= 0]
            untouched[block.columns] &= ~rows[constrained].any(axis=0)
    alone = np.append(untouched[variable_map.index], True)[variables.rows].all(axis=1)
    freedom = primitive_freedom(variables, f, variable_map, held)
    own = [Freedom.FREE if is_alone else each for each, is_alone in zip(freedom, alone.tolist(), strict=True)]
    return tuple(Freedom.OVER if i in over else each for i, each in enumerate(own))


@dataclass(frozen=True, slots=True)
class BlockSolution:
    """Steps z that solve a block; `rows` are its independent equations; the residuals `before` and after."""

    z: Floats
    rows: list[int]
    before: float
    residual: float
    redundant: set[int] = field(default_factory=set)
    conflicting: set[int] = field(default_factory=set)


def solve_block(block: Block) -> BlockSolution:
    """Solve a block without what conflicts.

    First, equations that seem to follow from others where the sketch is drawn are left out: mostly they do follow.
    """
    system, z = block.system, np.zeros(block.system.num_free)
    if not len(system):
        return BlockSolution(np.zeros(len(block.columns)), [], 0.0, 0.0)
    residuals, rows = system.evaluate(z)
    before = _largest(residuals)
    chosen = likely_independent(rows, _LIKELY_NEW)
    some = system if len(chosen) == len(system) else system.take(chosen)
    z = nearest_solution(some, z, steps=25, start=(residuals[chosen], rows[chosen]))
    residuals, rows = system.evaluate(z)
    if _largest(residuals) <= HOLDS and _spans(rows, chosen):
        redundant = {*block.owners} - {block.owners[i] for i in chosen} - {-1}
        return BlockSolution(z, chosen.tolist(), before, _largest(residuals), redundant)
    open_rows = np.flatnonzero(system.steps.any(axis=(0, 2)) | (np.abs(residuals) > _CONFLICT)).tolist()
    if len(open_rows) == len(system):
        return _without_conflicts(block, before)
    # Without the equations that have no free variable and hold except for rounding.
    owners = [block.owners[i] for i in open_rows]
    part = solve_block(block._replace(system=system.take(open_rows), owners=owners))
    redundant = part.redundant | {o for o in block.owners if o >= 0 and o not in owners}
    return replace(part, rows=[open_rows[i] for i in part.rows], redundant=redundant)


def _spans(rows: Floats, chosen: Ints) -> bool:
    """Whether the chosen rows are independent, and the others follow from them."""
    length = row_lengths(rows)
    if not len(chosen):
        return _largest(length) <= ZERO_ROW
    q, r = orthonormal(rows[chosen])
    if (np.abs(r.diagonal()) <= _REDUNDANT * length[chosen]).any():
        return False
    if len(chosen) == len(rows):
        return True
    rest = outside(rows, q.T)
    return bool((np.einsum("ij,ij->i", rest, rest) <= (_REDUNDANT * np.maximum(length, ZERO_ROW)) ** 2).all())


def nearest_solution(system: System, z: Floats, steps: int = 40, start: Evaluated | None = None) -> Floats:
    """From variables near a solution of independent equations to the solution nearest to the drawing.

    `start` are the residuals and derivatives at z, if they are known.

    Each step solves the equations to first order and goes back along them toward the drawing. Where the equations are
    curved, the stride adapts to how far the step before fell short or went beyond.
    """
    if not len(system):
        return np.zeros_like(z)
    stride, ahead = 1.0, np.zeros_like(z)
    for step in range(steps):
        c, j = start or system.evaluate(z)
        start = None
        shortest_step = _pseudo_inverse(j)
        if shortest_step is None:
            return z
        back = shortest_step(j @ z) - z
        before = float(ahead @ ahead)
        if before:
            stride = min(max(stride / max(1 - float(back @ ahead) / before, 0.1), 0.1), 4.0)
        ahead = back
        change = (stride * back if step < steps - 2 else 0.0) - shortest_step(c)  # the last steps only polish
        size = float(np.abs(change).max())
        if not size < _MAX_STEP:
            return z
        z = z + change
        if size < HOLDS / 100:
            break
    return z


def _pseudo_inverse(j: Floats) -> Callable[[Floats], Floats] | None:
    """The shortest step that changes equations with derivatives j by given amounts; None if there may be none."""
    if len(j) > _DENSE:
        rows = sparse.csr_matrix(j)
        normal = (rows @ rows.T).tocsc()
        lu = splu((normal + 1e-13 * normal.diagonal().max() * sparse.identity(len(j), format="csc")).tocsc())
        return lambda by: np.asarray(rows.T @ lu.solve(by))
    q, r = orthonormal(j)
    if not r.diagonal().all():
        return None
    return lambda by: np.asarray(q @ dtrtrs(r[: len(j)], by, trans=1)[0])


@np.errstate(over="ignore", invalid="ignore")  # an overflow counts as a large residual
def least_squares(
    system: System,
    z: Floats,
    steps: int = _MAX_STEPS,
    tolerance: float = HOLDS / 10,
    start: Evaluated | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Damped least squares (Levenberg-Marquardt) for equations of any rank, from z; `start` are those at z, if known.

    Returns:
        The variables, the residuals there, and their derivatives.
    """
    c, j = start or system.evaluate(z)
    cost, damping = float(c @ c), 1e-7
    for _ in range(steps):
        if not len(c) or _largest(c) < tolerance:
            break
        along, failed = _damped(j, c, damping)
        after = z - j.T @ along
        c_after, j_after = system.evaluate(after)
        now = float(c_after @ c_after)
        if failed or not now < cost:
            damping *= 100
            if damping > 1e4:
                break
            continue
        z, c, j, cost, damping = after, c_after, j_after, now, max(damping / 10, 1e-12)
    return z, c, j


def _damped(j: Floats, c: Floats, damping: float) -> tuple[Floats, int]:
    """(j jᵀ + damping)⁻¹ c, and 0 if it exists."""
    if len(j) > _DENSE:
        rows = sparse.csr_matrix(j)
        squares = (rows @ rows.T).tocsc()
        damped = squares + sparse.diags(damping * (1 + squares.diagonal()), format="csc")
        return np.asarray(splu(damped.tocsc()).solve(c)), 0
    normal = j @ j.T
    normal.flat[:: len(normal) + 1] += damping * (1 + normal.diagonal())
    _, along, info = dposv(normal, c)
    return along, info


def _without_conflicts(block: Block, before: float) -> BlockSolution:
    """Solve a block by least squares, leaving out conflicting constraints one after the other.

    Where all equations hold together, rank alone tells what is redundant. Otherwise a constraint that adds no rank and
    does not hold conflicts with those before it.
    """
    conflicting: set[int] = set()
    z = np.zeros(block.system.num_free)
    is_new: list[bool] = []
    for _ in range(len(set(block.owners)) + 1 if len(block.owners) <= _DENSE else _SPARSE_ROUNDS):
        remaining = [i for i, owner in enumerate(block.owners) if owner not in conflicting]
        if not remaining:
            break
        z, c, j = least_squares(block.system.take(remaining), np.zeros_like(z))
        if len(j) <= _DENSE:
            is_new = adds_rank(j, _REDUNDANT)
        else:
            is_new = np.isin(np.arange(len(j)), likely_independent(j, _REDUNDANT)).tolist()
        if _largest(c) <= _CONFLICT:
            break
        owners = [block.owners[i] for i in remaining]
        failing = {o for o, new, by in zip(owners, is_new, c, strict=True) if not new and abs(by) > _CONFLICT} - {-1}
        worst = [(abs(by), o) for by, o in zip(c, owners, strict=True) if o >= 0]
        if not worst:
            break
        conflicting |= failing if failing and len(j) > _DENSE else {max(failing) if failing else max(worst)[1]}
    rows = [i for i, new in zip(remaining, is_new, strict=False) if new]
    redundant = {*block.owners} - {block.owners[i] for i in rows} - conflicting - {-1}
    if not rows:
        return BlockSolution(np.zeros_like(z), rows, before, 0.0, redundant, conflicting)
    system = block.system.take(remaining)
    nearest = nearest_solution(block.system.take(rows), z)
    solution, c, _ = least_squares(system, nearest, tolerance=HOLDS / 100)
    if _largest(c) > HOLDS:  # a solution that is not the nearest is better than none
        solution, c, _ = least_squares(system, z, tolerance=HOLDS / 100)
    return BlockSolution(solution, rows, before, _largest(c), redundant, conflicting)


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
