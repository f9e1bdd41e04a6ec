"""Make a sketch well constrained: drop redundant constraints, find conflicting ones, add missing dimensions.

Redundant constraints: the left null space of the Jacobian contains the linear dependencies between its rows, the
equations. All equations of a constraint follow from the other constraints if the null-space basis, restricted to the
rows of the constraint, has full row rank. After the constraint is dropped, the null space of the remaining rows is the
subspace whose vectors are zero in the dropped rows.

Missing dimensions: candidates are driving dimensions (constraints with a value, such as a radius), in the order in
which they are usually chosen: radii, lengths of lines, slopes of lines, positions. A candidate is added if its equation
is independent of all equations so far. The first pass accepts only clearly independent equations, later passes weaker
ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqp3, dtrtrs

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch, bounds
from sketchdnn.geometry.constraints import PARTS_OF_KIND, ref_point

from .equation_set import EquationSet, blocks, unmerged_equations
from .equations import ZERO_ROW, Equation, Span, arc_equations, build, orthonormal, row_lengths
from .solve import Solution, solve
from .variables import Constraints, Floats, Primitives, VariableMerging, Variables, variables_of

_T = ConstraintType
# A row is dependent if its residual after projection on the others is below this fraction of its length.
_DEPENDENCE_TOLERANCE = 1e-6
# The null space is computed only for blocks of at most this many variables. In larger blocks, only the constraints that
# the solver reports as redundant are dropped.
_MAX_BLOCK_VARIABLES = 1000
# The order in which redundant constraints are dropped: types that are not listed (dimensions and fix) first, so that
# geometric relations are preferred to values; then the listed types from first to last, so that coincident points are
# kept longest. Of the same type, the last constraint is dropped first.
_DROP_ORDER = [_T.EQUAL, _T.SYMMETRIC, _T.MIDPOINT, _T.COLLINEAR, _T.PARALLEL, _T.PERPENDICULAR, _T.POINT_ON_CURVE]
_DROP_ORDER += [_T.TANGENT, _T.VERTICAL, _T.HORIZONTAL, _T.CONCENTRIC, _T.COINCIDENT]
_DROP_RANK = {kind: rank for rank, kind in enumerate(_DROP_ORDER)}
# `find_conflicts` solves once per constraint if (number of constraints) × (number of primitives) is at most this.
_MAX_CONFLICT_TESTS = 20_000
# No dimensions are added to sketches with more variables: the search would take many seconds.
_MAX_DIMENSIONED_VARIABLES = 1500
# One pass for each value: the fraction of a row's length that must lie outside the span of the rows so far.
_MIN_NEW_FRACTIONS = (0.1, 1e-3, 1e-5)
# A distance below this fraction of the sketch size counts as zero.
_ZERO_DISTANCE = 1e-7
_POINTS = (Part.START, Part.END, Part.CENTER, Part.POINT)
_ORIGIN, _X, _Y = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))


class Remaining(NamedTuple):
    """The constraints that are left, and the solution with them; None if all are left."""

    constraints: tuple[Constraint, ...]
    solution: Solution | None = None


def drop_redundant(sketch: Sketch, num_user: int, dof: int) -> Remaining:
    """Drop the constraints of a solved sketch that follow from the others.

    If only one of the two equations of a constraint is redundant, the constraint is replaced by one for the other
    equation, if such a type exists. Example: two collinear lines share an end. The constraint is replaced by "the other
    end of the second line lies on the first line".

    Args:
        sketch: A sketch that satisfies its constraints.
        num_user: The number of constraints of the user's file. They come first and are never dropped.
        dof: The degrees of freedom of the sketch under its constraints.

    Returns:
        The remaining constraints in the same order. They leave the same degrees of freedom.
    """
    constraints = sketch.constraints
    if len(constraints) <= num_user or not len(sketch):
        return Remaining(constraints)
    variables = variables_of(sketch.primitives)
    each = [arc_equations(variables), *unmerged_equations(constraints, variables)]
    equations, owners = [*chain.from_iterable(each)], [i for i, own in enumerate(each, -1) for _ in own]
    variable_map = VariableMerging(variables).variable_map()
    if variable_map.num_free - len(equations) == dof:
        return Remaining(constraints)  # every equation is independent
    every = EquationSet(variable_map, equations, owners)
    remaining = _relax_midpoints(sketch, *_drop_dependent(every, constraints, num_user), dof)
    check = solve(sketch, remaining)
    if check.dof == dof and not _redundant_ids(check.redundant, remaining[num_user:]):
        return Remaining(tuple(remaining), check)
    # The equation of a tangent constraint depends on whether other constraints join the two curves at a point. Dropping
    # one of those changes the equation, so the result can be wrong. Start over, and drop only the constraints that the
    # solver reports as redundant.
    remaining = list(constraints)
    while redundant := _redundant_ids((check := solve(sketch, remaining)).redundant, remaining[num_user:]):
        remaining = [c for k, c in enumerate(remaining) if k < num_user or id(c) not in redundant]
    return Remaining(tuple(remaining), check)


def find_conflicts(sketch: Sketch, max_move: float, fixed: Collection[int] = ()) -> list[Constraint]:
    """Find the constraints of a sketch that cannot be satisfied together with the earlier ones.

    The constraints are added one by one, and the sketch is solved each time. In a large sketch that would take too
    long. There, the sketch is solved once, and the conflicts that the solver reports are returned.

    Args:
        sketch: The sketch.
        max_move: The largest allowed move of a point, as a fraction of the sketch size.
        fixed: The indices of primitives that must not move.
    """

    def try_solve(constraints: Constraints) -> Solution | None:
        try:
            return solve(sketch, constraints, max_move=max_move, fixed=fixed)
        except (SketchError, np.linalg.LinAlgError):
            return None

    if len(sketch.constraints) * len(sketch) > _MAX_CONFLICT_TESTS:
        solution = try_solve(sketch.constraints)
        # If the solver fails, it is unknown which constraints conflict. None is blamed.
        return list(solution.conflicting) if solution else []
    consistent: list[Constraint] = []
    conflicts: list[Constraint] = []
    for constraint in sketch.constraints:
        solution = try_solve([*consistent, constraint])
        is_solved = solution is not None and solution.warning is None and not solution.conflicting
        (consistent if is_solved else conflicts).append(constraint)
    return conflicts


def missing_dimensions(sketch: Sketch, constraints: Constraints | None = None) -> tuple[Constraint, ...]:
    """Choose dimensions that, added to the constraints, leave no degree of freedom.

    Args:
        sketch: The sketch. It satisfies the constraints. The values of the dimensions are measured in it.
        constraints: The constraints; by default those of the sketch.

    Returns:
        The dimensions. A horizontal, vertical or point-on-axis constraint replaces a dimension of value zero. Empty if
        the sketch has more than `_MAX_DIMENSIONED_VARIABLES` variables.

    >>> [str(c.type) for c in missing_dimensions(Sketch((Circle((3, 4), 2),)))]
    ['diameter', 'horizontal_distance', 'vertical_distance']
    """
    if not len(sketch):
        return ()
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    if variable_map.num_free > _MAX_DIMENSIONED_VARIABLES:
        return ()

    def jacobian(equations: Sequence[Equation]) -> Floats:
        """The derivatives at the sketch itself: displacement zero."""
        return build(equations, variable_map).evaluate(np.zeros(variable_map.num_free))[1]

    given = unmerged_equations(sketch.constraints if constraints is None else constraints, variables)
    span = Span(variable_map.num_free)
    for row in jacobian([*arc_equations(variables), *chain.from_iterable(given)]):
        span.add(row, _DEPENDENCE_TOLERANCE)
    candidates = possible_dimensions(sketch.primitives)
    equations = unmerged_equations(candidates, variables)
    owners = [i for i, own in enumerate(equations) for _ in own]
    rows = jacobian([*chain.from_iterable(equations)])
    chosen: set[int] = set()
    for min_new_fraction in _MIN_NEW_FRACTIONS:
        for i, row in zip(owners, rows, strict=True):
            if i not in chosen and span.add(row, min_new_fraction):
                chosen.add(i)
    return tuple(candidates[i] for i in sorted(chosen))


def possible_dimensions(primitives: Primitives) -> list[Constraint]:
    """List all candidates for `missing_dimensions`, in order of preference."""
    return list(_dimensions(primitives, _ZERO_DISTANCE * (bounds(primitives).size or 1.0)))


def _dimensions(primitives: Primitives, zero: float) -> Iterator[Constraint]:
    """Yield the candidates. Lengths up to `zero` count as zero."""
    for i, p in enumerate(primitives):
        if isinstance(p, Circle):
            yield Constraint(_T.DIAMETER, (Ref(i),), 2 * p.radius)
        elif isinstance(p, Arc):
            yield Constraint(_T.RADIUS, (Ref(i),), p.radius)
    lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
    for i, line in lines:
        yield Constraint(_T.LENGTH, (Ref(i),), line.length)
    for i, line in lines:
        run, rise = line.end[0] - line.start[0], line.end[1] - line.start[1]
        # The smaller of the two differences fixes the slope; if it is zero, the line is horizontal or vertical.
        if min(abs(run), abs(rise)) <= zero:
            yield Constraint(_T.HORIZONTAL if abs(run) >= abs(rise) else _T.VERTICAL, (Ref(i),))
        else:
            slope = (_T.VERTICAL_DISTANCE, rise) if abs(run) >= abs(rise) else (_T.HORIZONTAL_DISTANCE, run)
            yield Constraint(slope[0], (Ref(i, Part.START), Ref(i, Part.END)), slope[1])
    for i, p in enumerate(primitives):
        for ref in [Ref(i, part) for part in _POINTS if part in PARTS_OF_KIND[p.kind]]:
            x, y = ref_point(ref, primitives) or (0.0, 0.0)
            for distance_type, coordinate, axis in ((_T.HORIZONTAL_DISTANCE, x, _Y), (_T.VERTICAL_DISTANCE, y, _X)):
                if abs(coordinate) > zero:
                    yield Constraint(distance_type, (_ORIGIN, ref), coordinate)
                else:
                    yield Constraint(_T.POINT_ON_CURVE, (ref, axis))


def _drop_dependent(
    equation_set: EquationSet, constraints: Constraints, num_user: int
) -> tuple[list[Constraint], set[int]]:
    """Drop each constraint whose equations follow from the others, one after the other.

    Returns:
        The remaining constraints, some replaced by one for a single equation; and the `id()` of each remaining
        constraint of which some equation is still redundant.
    """
    remaining: dict[int, Constraint] = dict(enumerate(constraints))
    partly_redundant: set[int] = set()
    for block in blocks(equation_set):
        if block.too_large or len(block.columns) > _MAX_BLOCK_VARIABLES:
            continue
        null_space = _left_null_space(block.system.evaluate(np.zeros(block.system.num_free))[1])
        rows_of_constraint: defaultdict[int, list[int]] = defaultdict(list)
        for row, owner in enumerate(block.owners):
            if owner >= num_user:
                rows_of_constraint[owner].append(row)
        for i in sorted(rows_of_constraint, key=lambda i: (_DROP_RANK.get(constraints[i].type, -1), -i)):
            if not null_space.shape[1]:
                break  # the equations are independent now
            reduced = _null_space_without(null_space, rows_of_constraint[i])
            if reduced is not None:
                null_space = reduced
                del remaining[i]
                continue
            replacements = _single_equation_constraints(constraints[i])
            for row, replacement in zip(rows_of_constraint[i], replacements, strict=False):
                reduced = _null_space_without(null_space, [row])
                if reduced is not None:
                    null_space, remaining[i] = reduced, replacement
                    break
        is_dependent = np.abs(null_space).max(axis=1, initial=0.0) > _DEPENDENCE_TOLERANCE
        partly_redundant |= {i for i, rows in rows_of_constraint.items() if i in remaining and is_dependent[rows].any()}
    return list(remaining.values()), {id(remaining[i]) for i in partly_redundant}


def _left_null_space(rows: Floats) -> Floats:
    """Compute an orthonormal basis, as columns, of the linear combinations of rows that are zero."""
    length = row_lengths(rows)
    unit_rows = np.where(length[:, None] > ZERO_ROW, rows / np.maximum(length, ZERO_ROW)[:, None], 0.0)
    r, order, _, _, _ = dgeqp3(unit_rows.T)
    order -= 1  # from LAPACK's numbers
    rank = int((np.abs(r.diagonal()) > _DEPENDENCE_TOLERANCE).sum())
    null_space = np.zeros((len(rows), len(rows) - rank))
    if rank:
        null_space[order[:rank]] = -dtrtrs(r[:rank, :rank], r[:rank, rank:])[0]
    null_space[order[rank:]] = np.eye(len(rows) - rank)
    return orthonormal(null_space.T)[0]


def _null_space_without(null_space: Floats, rows: Sequence[int]) -> Floats | None:
    """Compute the null space after some rows are removed; None if these rows do not follow from the others."""
    some = null_space[rows]
    if np.einsum("ij,ij->i", some, some).min() <= _DEPENDENCE_TOLERANCE**2:
        return None  # no row is shorter than the smallest singular value
    _, singular_values, vt = np.linalg.svd(some)
    if len(singular_values) < len(rows) or singular_values[-1] <= _DEPENDENCE_TOLERANCE:
        return None
    return np.asarray(null_space @ vt[len(singular_values) :].T)


def _single_equation_constraints(constraint: Constraint) -> list[Constraint]:
    """For each equation k, return the constraint that remains when equation k is removed.

    Empty if no such type exists. Collinear lines: the end, or the start, of the second line lies on the first line. A
    point at the origin: the point lies on the x axis, or on the y axis.
    """
    pairs: list[tuple[Ref, Ref]] = []
    match constraint.type, constraint.refs:
        case _T.COLLINEAR, (first, Ref(int(line))):
            pairs = [(Ref(line, part), first) for part in (Part.END, Part.START)]
        case _T.COINCIDENT, (first, Ref(None, Part.ORIGIN)):
            pairs = [(first, _X), (first, _Y)]
    return [Constraint(_T.POINT_ON_CURVE, pair) for pair in pairs]


def _relax_midpoints(
    sketch: Sketch, constraints: list[Constraint], partly_redundant_ids: set[int], dof: int
) -> list[Constraint]:
    """Replace each partly redundant midpoint by a point on the line, if that leaves the same degrees of freedom."""
    for k, c in enumerate(constraints):
        if id(c) in partly_redundant_ids and c.type is _T.MIDPOINT and len(c.refs) == 2:
            relaxed = [*constraints[:k], Constraint(_T.POINT_ON_CURVE, c.refs), *constraints[k + 1 :]]
            if solve(sketch, relaxed).dof == dof:
                constraints = relaxed
    return constraints


def _redundant_ids(redundant: Constraints, inferred: Constraints) -> set[int]:
    """Return the `id()` of each redundant constraint that is among the inferred ones."""
    return {id(c) for c in redundant} & {id(c) for c in inferred}
