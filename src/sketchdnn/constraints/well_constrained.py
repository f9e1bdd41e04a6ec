"""Exactly as many constraints as a sketch needs: without redundant and conflicting ones, with the dimensions it lacks.

Rows of the Jacobian that depend on each other form its left null space. A constraint follows from the others where the
null space, restricted to its rows, has full rank. Dropping it leaves the part of the null space that is zero there.

Dimensions are tried in the order in which people dimension: radii, lengths of lines, slopes, and positions last. One is
taken if its equation is independent of all before it, first by a clear margin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np
from scipy.linalg import qr, solve_triangular

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref, Sketch, bounds
from sketchdnn.geometry.constraints import PARTS_OF_KIND, ref_point

from .equation_set import ZERO_ROW, EquationSet, Span, blocks, row_lengths, unmerged_equations
from .equations import arc_equations, build
from .solve import Solution, solve
from .variables import Floats, VariableMerging, Variables, variables_of

_T = ConstraintType
# A row that others span to within this share of itself is dependent.
_DEPENDENT = 1e-6
# Blocks of more variables are not decomposed: only what the solver names is dropped there.
_MAX_DECOMPOSED = 1000
# Where there is a choice, the first of these types is dropped, and of one type the last constraint.
_DROP_ORDER = {
    kind: k
    for k, kind in enumerate(
        (
            *(_T.EQUAL, _T.SYMMETRIC, _T.MIDPOINT, _T.COLLINEAR, _T.PARALLEL, _T.PERPENDICULAR, _T.POINT_ON_CURVE),
            *(_T.TANGENT, _T.VERTICAL, _T.HORIZONTAL, _T.CONCENTRIC, _T.COINCIDENT),
        )
    )
}
# Each constraint is tested with a solution of the sketch, up to this product of constraints and primitives.
_MAX_TESTED = 20_000
# Dimensions of more variables would take many seconds.
_MAX_DIMENSIONED = 1500
# The share of a dimension's equation that must be new: first what determines things well, then at all.
_MARGINS = (0.1, 1e-3, 1e-5)
# A smaller distance, as a share of the size, is zero: the points are level, or one lies on an axis.
_ZERO_DISTANCE = 1e-7
_POINTS = (Part.START, Part.END, Part.CENTER, Part.POINT)
_ORIGIN, _X, _Y = (Ref(None, part) for part in (Part.ORIGIN, Part.X_AXIS, Part.Y_AXIS))


def drop_redundant(sketch: Sketch, num_own: int, dof: int) -> tuple[Constraint, ...]:
    """The constraints of a solved sketch without those that follow from the others.

    Args:
        sketch: A sketch in which its constraints hold.
        num_own: How many constraints, from the first on, always stay: those of the user's file.
        dof: The degrees of freedom that the constraints leave.

    Returns:
        The constraints that are left, in their order, with the same degrees of freedom. Where half of a constraint
        follows, the other half replaces it if it has a type: of collinear lines that share an end, the other end lies
        on the first line.
    """
    constraints = sketch.constraints
    if len(constraints) <= num_own or not len(sketch):
        return constraints
    variables = variables_of(sketch.primitives)
    equations = arc_equations(variables)
    owners = [-1] * len(equations)
    for i, own in enumerate(unmerged_equations(constraints, variables)):
        equations += own
        owners += [i] * len(own)
    variable_map = VariableMerging(variables).variable_map()
    if variable_map.num_free - len(equations) == dof:
        return constraints  # every equation is independent
    unmerged = EquationSet(variable_map, equations, owners, set(), set(), [], 0.0)
    left, partial = _independent(unmerged, constraints, num_own)
    left = _relax_midpoints(sketch, left, partial, dof)
    again = solve(sketch, left)
    if again.dof == dof and not _identities(again.redundant, left[num_own:]):
        return tuple(left)
    # Dropping a contact changes the equation of a tangent; then only what the solver names is dropped.
    left = list(constraints)
    while redundant := _identities(solve(sketch, left).redundant, left[num_own:]):
        left = [c for k, c in enumerate(left) if k < num_own or id(c) not in redundant]
    return tuple(left)


def find_conflicts(sketch: Sketch, max_move: float, fixed: Collection[int] = ()) -> list[Constraint]:
    """The constraints of a sketch that no sketch near it satisfies together with the ones before.

    Of very many, only those that the solver itself leaves out.
    """

    def solution(constraints: Sequence[Constraint]) -> Solution | None:
        try:
            return solve(sketch, constraints, max_move=max_move, fixed=fixed)
        except (SketchError, np.linalg.LinAlgError):
            return None

    if len(sketch.constraints) * len(sketch) > _MAX_TESTED:
        solved = solution(sketch.constraints)
        return list(solved.conflicting) if solved else []
    consistent: list[Constraint] = []
    conflicts: list[Constraint] = []
    for constraint in sketch.constraints:
        solved = solution([*consistent, constraint])
        holds = solved is not None and solved.warning is None and not solved.conflicting
        (consistent if holds else conflicts).append(constraint)
    return conflicts


def missing_dimensions(sketch: Sketch, constraints: Sequence[Constraint] | None = None) -> tuple[Constraint, ...]:
    """The dimensions to add to constraints that hold so that nothing is free to move.

    Args:
        sketch: The sketch. The dimensions have the values that it measures.
        constraints: The constraints; by default those of the sketch.

    Returns:
        The dimensions. Where a distance is zero, a horizontal, vertical or point-on-axis constraint takes its place.
        Empty for a sketch too large to solve.

    >>> [str(c.type) for c in missing_dimensions(Sketch((Circle((3, 4), 2),)))]
    ['diameter', 'horizontal_distance', 'vertical_distance']
    """
    if not len(sketch):
        return ()
    variables = Variables(sketch.primitives)
    variable_map = VariableMerging(variables).variable_map()
    if variable_map.num_free > _MAX_DIMENSIONED:
        return ()
    given = tuple(sketch.constraints if constraints is None else constraints)
    known = [*arc_equations(variables), *(e for own in unmerged_equations(given, variables) for e in own)]
    span, no_step = Span(variable_map.num_free), np.zeros(variable_map.num_free)
    for row in build(known, variable_map).evaluate(no_step)[1]:
        span.add(row, _DEPENDENT)
    candidates = possible_dimensions(sketch.primitives)
    offers = [(i, e) for i, own in enumerate(unmerged_equations(candidates, variables)) for e in own]
    rows = build([equation for _, equation in offers], variable_map).evaluate(no_step)[1]
    taken: set[int] = set()
    for margin in _MARGINS:
        for (i, _), row in zip(offers, rows, strict=True):
            if span.rank == variable_map.num_free:
                break
            if i not in taken and span.add(row, margin):
                taken.add(i)
    return tuple(candidates[i] for i in sorted(taken))


def possible_dimensions(primitives: Sequence[Primitive]) -> list[Constraint]:
    """All dimensions to choose from, the preferred ones first."""
    return list(_dimensions(primitives, _ZERO_DISTANCE * (bounds(primitives).size or 1.0)))


def _dimensions(primitives: Sequence[Primitive], zero: float) -> Iterator[Constraint]:
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
        flat = abs(run) >= abs(rise)
        distance, level = (_T.VERTICAL_DISTANCE, _T.HORIZONTAL) if flat else (_T.HORIZONTAL_DISTANCE, _T.VERTICAL)
        off = rise if flat else run
        if abs(off) > zero:
            yield Constraint(distance, (Ref(i, Part.START), Ref(i, Part.END)), off)
        else:
            yield Constraint(level, (Ref(i),))
    for i, p in enumerate(primitives):
        for ref in [Ref(i, part) for part in _POINTS if part in PARTS_OF_KIND[p.kind]]:
            x, y = ref_point(ref, primitives) or (0.0, 0.0)
            for distance, offset, axis in ((_T.HORIZONTAL_DISTANCE, x, _Y), (_T.VERTICAL_DISTANCE, y, _X)):
                far = Constraint(distance, (_ORIGIN, ref), offset)
                yield far if abs(offset) > zero else Constraint(_T.POINT_ON_CURVE, (ref, axis))


def _independent(of: EquationSet, constraints: Sequence[Constraint], num_own: int) -> tuple[list[Constraint], set[int]]:
    """Drop each constraint that follows from the others, one after the other.

    Returns:
        The constraints that are left, some replaced by a half; and the ids of other constraints of which half follows.
    """
    left: dict[int, Constraint] = dict(enumerate(constraints))
    partial: set[int] = set()
    for block in blocks(of):
        if block.too_large or len(block.columns) > _MAX_DECOMPOSED:
            continue
        null = _null_space(block.system.evaluate(np.zeros(block.system.num_free))[1])
        rows: defaultdict[int, list[int]] = defaultdict(list)
        for row, owner in enumerate(block.owners):
            if owner >= num_own:
                rows[owner].append(row)
        for owner in sorted(rows, key=lambda i: (_DROP_ORDER.get(constraints[i].type, -1), -i)):
            if not null.shape[1]:
                break
            rest = _null_space_without(null, rows[owner])
            if rest is not None:
                null = rest
                del left[owner]
                continue
            for row, half in zip(rows[owner], _halves(constraints[owner]), strict=False):
                rest = _null_space_without(null, [row])
                if rest is not None:
                    null, left[owner] = rest, half
                    break
        partial |= {i for i in rows if i in left and np.abs(null[rows[i]]).max(initial=0.0) > _DEPENDENT}
    return list(left.values()), {id(left[i]) for i in partial}


def _null_space(rows: Floats) -> Floats:
    """An orthonormal basis, as columns, of the combinations of rows that vanish."""
    length = row_lengths(rows)
    unit = np.where(length[:, None] > ZERO_ROW, rows / np.maximum(length, ZERO_ROW)[:, None], 0.0)
    r, order = qr(unit.T, mode="r", pivoting=True)
    rank = int((np.abs(r.diagonal()) > _DEPENDENT).sum())
    null = np.zeros((len(rows), len(rows) - rank))
    if rank:
        null[order[:rank]] = -solve_triangular(r[:rank, :rank], r[:rank, rank:])
    null[order[rank:]] = np.eye(len(rows) - rank)
    basis: Floats = qr(null, mode="economic")[0]
    return basis


def _null_space_without(null: Floats, rows: Sequence[int]) -> Floats | None:
    """The null space without some rows; None if these do not follow from the others."""
    _, size, turn = np.linalg.svd(null[rows])
    if len(size) < len(rows) or size[-1] <= _DEPENDENT:
        return None
    rest: Floats = null @ turn[len(size) :].T
    return rest


def _halves(constraint: Constraint) -> list[Constraint]:
    """A constraint without either of its two equations, where that has a type.

    Of collinear lines: the other end of the second lies on the first. Of a point on the origin: it lies on an axis.
    """
    if len(constraint.refs) != 2:
        return []
    first, second = constraint.refs
    if constraint.type is _T.COLLINEAR and second.primitive is not None:
        pairs = [(Ref(second.primitive, part), first) for part in (Part.END, Part.START)]
    elif constraint.type is _T.COINCIDENT and second.part is Part.ORIGIN:
        pairs = [(first, _X), (first, _Y)]
    else:
        return []
    return [Constraint(_T.POINT_ON_CURVE, pair) for pair in pairs]


def _relax_midpoints(sketch: Sketch, constraints: list[Constraint], partial: set[int], dof: int) -> list[Constraint]:
    """Replace a midpoint by a point on the line, where that leaves the same degrees of freedom."""
    for k, c in enumerate(constraints):
        if id(c) in partial and c.type is _T.MIDPOINT and len(c.refs) == 2:
            half = [*constraints[:k], Constraint(_T.POINT_ON_CURVE, c.refs), *constraints[k + 1 :]]
            if solve(sketch, half).dof == dof:
                constraints = half
    return constraints


def _identities(redundant: Sequence[Constraint], inferred: Sequence[Constraint]) -> set[int]:
    """The ids of the redundant constraints among the inferred ones."""
    return {id(c) for c in redundant} & {id(c) for c in inferred}
