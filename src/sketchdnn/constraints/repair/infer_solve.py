"""The core of a repair attempt: infer constraints beyond the existing ones and the joins of ends, and solve them.

Constraints that would move a primitive too far are left out. A sketch that is too large to be examined as a whole is
split into components: sets of primitives that constraints connect, directly or through others. Each component is then
repaired separately.

All lengths refer to a sketch that is scaled to size one. A budget bounds the work: it is ample for any sketch, and a
limit for a thousand lines that all cross.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints.equation_set import Freedom, constraint_residuals
from sketchdnn.constraints.infer import MAX_PARAMETERS, MERGING, infer, renumber
from sketchdnn.constraints.solve import HOLDS, Solution, solve
from sketchdnn.constraints.variables import Constraints, Primitives
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Sketch, bounds
from sketchdnn.geometry.bounds import row_bounds
from sketchdnn.geometry.proximity import close_pairs, component_roots
from sketchdnn.geometry.table import sketches_to_table

from .intent import Intent
from .quality import has_shrunk, largest_move

_T = ConstraintType
# The fields of `Solution` that hold constraints.
_CONSTRAINT_FIELDS = ("redundant", "conflicting", "unsupported")
# The largest residual, relative to the size of the sketch, of a constraint that was drawn exactly (as opposed to drawn
# with noise). It is looser than `HOLDS`, the largest residual that needs no further solving.
_DRAWN_EXACTLY = 1e-6
# The largest tolerance of inference relative to the size of a component. It matters for small components.
_MAX_RELATIVE_NOISE = 0.03
# The largest number of attempts to solve; each attempt leaves out more constraints than the one before.
_MAX_ATTEMPTS = 6
# The first types of constraints to leave out if a primitive would move too far: they are the least certain.
_DROP_FIRST = frozenset({_T.EQUAL, _T.SYMMETRIC, _T.MIDPOINT, _T.PARALLEL, _T.PERPENDICULAR, _T.COLLINEAR})
# Types of constraints that stand for two equations; all others stand for one.
_TWO_EQUATIONS = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.COLLINEAR, _T.MIDPOINT, _T.SYMMETRIC})


# The constraints, or the reason why there are none, by the noise, and whether there were joins and an intent.
Inferences = dict[tuple[float, bool, bool], list[Constraint] | str]


class Limits(NamedTuple):
    """The limits of a repair attempt.

    Attributes:
        noise: The distance by which points may deviate from the constraints to infer, as a length; None infers nothing.
        subtle: If False, infer only coincident and concentric points, horizontal and vertical lines, and tangency at
            joined ends.
        tolerance: The largest distance that any point of a primitive may move, as a length.
        fixed: Indices of primitives that must not move.
        budget: The computing work that is left.
        inferred: What earlier attempts on the same sketch inferred.
    """

    noise: float | None
    subtle: bool
    tolerance: float
    fixed: Collection[int]
    budget: Budget
    inferred: Inferences


def infer_and_solve(
    sketch: Sketch, joins: Constraints, limits: Limits, *, is_solved: bool, intent: Intent | None = None
) -> Solution | None:
    """Infer further constraints, and solve all of them.

    Args:
        sketch: The sketch, scaled to size one, with the constraints that it has already.
        joins: Constraints that join ends, from `joins.find_joins`.
        limits: The limits of the attempt.
        is_solved: Whether the constraints of the sketch were solved before.
        intent: A symmetry that it must have in the solution.

    Returns:
        The solution. Its sketch has all constraints of the attempt; they hold, except for conflicting and unsupported
        ones. Its freedom is unknown if constraints are redundant or conflicting. If an earlier solution still holds,
        its sketch is the input itself, and nothing else is known. None if a primitive would move too far or the budget
        is spent. A sketch that is repaired by components has a solution if at least one component has; other components
        are left unchanged.
    """
    if intent is not None:
        moved = sketch.moved(1.0, intent.shift)
        solved = _repair_component(moved, joins, limits, is_solved=False, intent=intent.constraints)
        if solved is None:
            return None
        return replace(solved, sketch=intent.restore(solved.sketch, sketch.primitives, limits.fixed))
    if num_parameters(sketch.primitives) <= MAX_PARAMETERS:
        return _repair_component(sketch, joins, limits, is_solved=is_solved)
    components = _connected_components(len(sketch), (*sketch.constraints, *joins))
    by_primitive, join_ids = _by_first_primitive((*sketch.constraints, *joins)), {id(join) for join in joins}
    primitives = list(sketch.primitives)
    freedom = [Freedom.FREE] * len(primitives)
    merged: dict[str, list[Constraint]] = {name: [] for name in ("constraints", *_CONSTRAINT_FIELDS)}
    dof = num_unchanged = 0
    for component in components:
        local_index = {i: k for k, i in enumerate(component)}
        global_index = dict(enumerate(component))
        both = [(c, renumber(c, local_index)) for i in component for c in by_primitive.get(i, ())]
        local_joins = [local for c, local in both if id(c) in join_ids]
        local_existing = tuple(local for c, local in both if id(c) not in join_ids)
        part = Sketch(tuple(primitives[i] for i in component), local_existing)
        # Nothing is inferred in a component that is itself too large: only its ends are joined.
        noise = limits.noise if num_parameters(part.primitives) <= MAX_PARAMETERS else None
        fixed = {local_index[i] for i in limits.fixed if i in local_index}
        solved = _repair_component(
            part, local_joins, limits._replace(noise=noise, fixed=fixed, inferred={}), is_solved=False
        )
        if solved is None:
            num_unchanged += len(component)
            continue
        dof += solved.dof
        part_freedom = solved.freedom or [Freedom.FREE] * len(component)
        for i, primitive, primitive_freedom in zip(component, solved.sketch, part_freedom, strict=True):
            primitives[i], freedom[i] = primitive, primitive_freedom
        # Constraints that were passed in are returned as the same objects, since the caller compares identities.
        originals = {id(local): c for c, local in both}
        for name, constraints in merged.items():
            own = solved.sketch.constraints if name == "constraints" else getattr(solved, name)
            constraints += [originals.get(id(c)) or renumber(c, global_index) for c in own]
    if num_unchanged == len(sketch):
        return None
    warning = f"the sketch is so large that its {len(components):,} connected components were repaired separately"
    if len(components) == 1:
        warning = "the sketch is so large that only its ends were joined"
    if num_unchanged:
        warning += f", and {num_unchanged:,} primitives were left unchanged"
    lists = {name: tuple(constraints) for name, constraints in merged.items()}
    after = Sketch(tuple(primitives), lists.pop("constraints"))
    return Solution(after, 0.0, 0.0, dof, warning=warning, find_freedom=lambda: tuple(freedom), **lists)


# NumPy's floating-point warnings are turned off: results that are too large or not a number are rejected afterwards.
@np.errstate(all="ignore")
def _repair_component(
    sketch: Sketch, joins: Constraints, limits: Limits, *, is_solved: bool, intent: Constraints = ()
) -> Solution | None:
    """Do what `infer_and_solve` describes, for a sketch or component as a whole."""
    warning = None
    inferred: list[Constraint] = []
    existing = sketch.constraints
    size = bounds(sketch).size
    noisy_fraction, existing_hold = _noisy_fraction(sketch)
    if size > 0 and limits.noise is not None and limits.budget.spend(infer_cost(sketch.primitives)):
        noise = min(max(limits.noise * noisy_fraction, _DRAWN_EXACTLY) / size, _MAX_RELATIVE_NOISE)
        key = (noise, bool(joins), bool(intent))
        if key not in limits.inferred:
            limits.inferred[key] = _infer(sketch, noise, [*existing, *joins, *intent], limits.fixed)
        found = limits.inferred[key]
        warning, inferred = (found, []) if isinstance(found, str) else (None, found)
    if not limits.subtle:
        inferred = _certain_constraints([*existing, *joins], inferred)
    if is_solved and existing_hold and not joins and not inferred:
        return Solution(sketch, 0.0, 0.0, 0, warning=warning)
    joins = list(joins)
    for _ in range(_MAX_ATTEMPTS):
        constraints = (*existing, *joins, *intent, *inferred)
        if not limits.budget.spend(solve_cost(sketch.primitives, constraints)):
            return None
        solution = solve(sketch, constraints, max_move=math.inf, fixed=limits.fixed)
        both = zip(sketch, solution.sketch, strict=True)
        is_far = [largest_move(p, q) > limits.tolerance or has_shrunk(p, q) for p, q in both]
        # Where the solver failed, every primitive may be the cause.
        moved_too_far = {i for i, far in enumerate(is_far) if far or solution.warning}
        if not moved_too_far:
            after = replace(solution.sketch, constraints=constraints)
            find_freedom = None if solution.redundant or solution.conflicting else solution.find_freedom
            return replace(solution, sketch=after, find_freedom=find_freedom, warning=warning)
        if intent:
            return None
        # Leave out inferred constraints first, then joins; existing constraints are never left out.
        if len(fewer := _drop_constraints(inferred, moved_too_far)) < len(inferred):
            inferred = fewer
        elif len(fewer := _drop_constraints(joins, moved_too_far)) < len(joins):
            joins = fewer
        else:
            break
    return None


def _infer(sketch: Sketch, noise: float, given: Constraints, fixed: Collection[int]) -> list[Constraint] | str:
    try:
        return list(infer(sketch, noise, given=given, fixed=fixed))
    except GeometryError as error:
        return str(error)


def _connected_components(num_primitives: int, constraints: Constraints) -> list[list[int]]:
    """Return the indices of the primitives of each component: those that constraints connect."""
    groups = [[ref.primitive for ref in c.refs if ref.primitive is not None] for c in constraints]
    components: defaultdict[int, list[int]] = defaultdict(list)
    for i, root in enumerate(component_roots(num_primitives, [group for group in groups if group]).tolist()):
        components[root].append(i)
    return list(components.values())


def _by_first_primitive(constraints: Constraints) -> dict[int, list[Constraint]]:
    """Group constraints by the first primitive that they refer to.

    Constraints without primitives, such as between the axes and the origin, restrict nothing and are left out.
    """
    groups: defaultdict[int, list[Constraint]] = defaultdict(list)
    for c in constraints:
        first = next((ref.primitive for ref in c.refs if ref.primitive is not None), None)
        if first is not None:
            groups[first].append(c)
    return groups


def _noisy_fraction(sketch: Sketch) -> tuple[float, bool]:
    """Estimate the fraction of parameters that were drawn with noise, and check the constraints of the sketch.

    A constraint that was drawn exactly determines one or two parameters without noise. The inference tolerance is
    scaled by the fraction, so that less is inferred in a sketch that is mostly exact.

    Returns:
        The fraction, from 0 to 1, and whether all supported constraints hold to within `HOLDS`.
    """
    both = zip(sketch.constraints, constraint_residuals(sketch, sketch.constraints), strict=True)
    residuals = [(c, residual) for c, residual in both if residual is not None]
    num_exact = sum(1 + (c.type in _TWO_EQUATIONS) for c, residual in residuals if residual <= _DRAWN_EXACTLY)
    fraction = max(0.0, 1 - num_exact / num_parameters(sketch.primitives))
    return fraction, all(residual <= HOLDS for _, residual in residuals)


def _certain_constraints(given: Constraints, inferred: Constraints) -> list[Constraint]:
    """Return the inferred constraints of types in `MERGING`, and tangency of curves whose ends are joined."""

    def pair(c: Constraint) -> frozenset[int | None]:
        return frozenset(ref.primitive for ref in c.refs)

    joined = {pair(c) for c in (*given, *inferred) if c.type is _T.COINCIDENT}
    return [c for c in inferred if c.type in MERGING or (c.type is _T.TANGENT and pair(c) in joined)]


def _drop_constraints(constraints: list[Constraint], moved_too_far: set[int]) -> list[Constraint]:
    """Drop constraints on primitives that moved too far: those of types in `_DROP_FIRST`, or all if there are none."""

    def is_suspect(c: Constraint) -> bool:
        return any(ref.primitive in moved_too_far for ref in c.refs)

    fewer = [c for c in constraints if c.type not in _DROP_FIRST or not is_suspect(c)]
    return fewer if len(fewer) < len(constraints) else [c for c in constraints if not is_suspect(c)]


# The budget and the costs that are spent from it.

# About this many seconds of a core. Most sketches take a hundredth of one.
_TOTAL = 40.0
# The largest cost of a solution: more equations fall into blocks, or are too many to try.
_MAX_SOLVE = 8.0
# Fewer primitives never take long. Of more, this many pairs may come close.
_FEW, _MAX_PAIRS = 300, 20_000


class Budget:
    """The work that is left. It is counted, not timed: results must not depend on the machine."""

    def __init__(self) -> None:
        self.left = _TOTAL

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def spend(self, cost: float) -> bool:
        """Whether something may still be done; if so, its cost is subtracted."""
        may = not self.is_spent
        self.left -= cost if may else 0.0
        return may


def attempt_cost(primitives: Primitives) -> float:
    """The cost of an attempt without inference and solving; of many primitives few are near each."""
    return min(3e-6 * len(primitives) ** 2, 2e-3 * len(primitives))


def infer_cost(primitives: Primitives) -> float:
    """The cost of inference on a whole sketch."""
    return 2e-9 * num_parameters(primitives) ** 3


def solve_cost(primitives: Primitives, constraints: Constraints) -> float:
    """The cost of a solution: mostly that of finding independent equations."""
    equations = 2 * sum(isinstance(p, Arc) for p in primitives) + sum(c.type not in MERGING for c in constraints)
    return min(4e-9 * num_parameters(primitives) * equations**2, _MAX_SOLVE)


def num_parameters(primitives: Primitives) -> int:
    """The number of parameters that primitives have without constraints."""
    return sum({Line: 4, Arc: 5, Circle: 3}.get(type(p), 2) for p in primitives)


def is_tangle(sketch: Sketch) -> bool:
    """Whether so many primitives cross that each attempt would take many seconds."""
    if len(sketch) <= _FEW:
        return False
    table = sketches_to_table([sketch.primitives])
    low, high = row_bounds(table)
    return next(islice(close_pairs(table, low, high, 0.0), _MAX_PAIRS, None), None) is not None
