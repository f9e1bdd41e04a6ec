"""The equations of a set of constraints: how they fall into independent blocks, their rank, and what stays free.

A sketch that nothing ties to the origin, an axis or a fixed primitive can always translate and rotate as a whole. That
does not count as freedom, unless the sketch is very large: the primitives that are rigid against most others are taken
as fixed, and the others are free as far as they move against those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Part, Sketch
from sketchdnn.geometry.proximity import DisjointSets, component_roots

from .equations import Equation, System, arc_equations, build, constraint_equations, residual
from .variables import Bools, Constraints, Floats, Ints, Pair, VariableMap, VariableMerging, Variables, variables_of

# Up to this many free variables, one block is solved faster than several.
_SMALL = 150
# A larger block would take minutes.
MAX_BLOCK = 2500
# The square of a motion that is only rounding, relative to motions of length one.
_STILL = 1e-11
# In a sketch of more primitives, translation and rotation of the whole count as freedom.
_MAX_RIGID = 150
_JOINING = frozenset({ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.POINT_ON_CURVE})


@dataclass(frozen=True, slots=True)
class EquationSet:
    """The free variables of a sketch under some constraints, and the equations for them.

    Attributes:
        variable_map: The variables after merging.
        equations: The equations that remain.
        owners: The constraint, by number, that each equation belongs to; -1 for the equations of arcs.
        redundant: Constraints that merge nothing new.
        conflicting: Constraints that would merge different constants, or both ends of a line.
        unsupported: Constraints without an equation.
        gap: The largest distance between parameters that were merged.
    """

    variable_map: VariableMap
    equations: list[Equation]
    owners: list[int]
    redundant: set[int] = field(default_factory=set)
    conflicting: set[int] = field(default_factory=set)
    unsupported: list[int] = field(default_factory=list)
    gap: float = 0.0


def equation_set(constraints: Constraints, variables: Variables, fixed: Collection[int] = ()) -> EquationSet:
    """The equations of constraints; those that merge variables come first, whatever their order."""
    pairs = [variables.merged_parameters(constraint) for constraint in constraints]
    merging, redundant, conflicting = _merge(pairs, variables, fixed)
    variable_map = merging.variable_map()
    f, touching = variable_map.initial, tangent_contacts(constraints, variables)
    equations = free_arc_equations(variables, fixed)
    owners = [-1] * len(equations)
    unmerged = [i for i, several in enumerate(pairs) if several is None]
    each = {i: constraint_equations(constraints[i], variables, f, touching) for i in unmerged}
    for i, own in each.items():
        equations += own or ()
        owners += [i] * len(own or ())
    unsupported = [i for i, own in each.items() if own is None]
    drawn: list[float] = variables.f.tolist()
    merged = [pair for i, several in enumerate(pairs) if i not in conflicting for pair in several or ()]
    gap = max((abs(drawn[a] - drawn[b]) for a, b in merged), default=0.0)
    return EquationSet(variable_map, equations, owners, redundant, conflicting, unsupported, gap)


def free_arc_equations(variables: Variables, fixed: Collection[int]) -> list[Equation]:
    """The equations of all arcs that are not fixed."""
    return arc_equations(variables, [i for i in variables.arcs if i not in fixed])


def unmerged_equations(constraints: Constraints, variables: Variables) -> list[list[Equation]]:
    """The equations of each constraint where no variables are merged; none for what the solver does not support."""
    touching = tangent_contacts(constraints, variables)
    return [constraint_equations(constraint, variables, variables.f, touching) or [] for constraint in constraints]


def constraint_residuals(sketch: Sketch, constraints: Constraints) -> list[float | None]:
    """The residual of each constraint, as a share of the size or in radians; None for what is not supported."""
    if not len(sketch):
        return [None] * len(constraints)
    variables = variables_of(sketch.primitives)
    f: list[float] = variables.f.tolist()
    touching = tangent_contacts(constraints, variables)

    def find_residual(constraint: Constraint) -> float | None:
        if pairs := variables.merged_parameters(constraint):
            return max(abs(f[a] - f[b]) for a, b in pairs)
        equations = constraint_equations(constraint, variables, variables.f, touching) or ()
        return max((abs(residual(e, f)) for e in equations), default=None)

    return [find_residual(constraint) for constraint in constraints]


def tangent_contacts(constraints: Constraints, variables: Variables) -> dict[frozenset[int], int]:
    """The `contacts` that equations of constraints depend on: those of tangency; none without tangents."""
    is_tangent = any(constraint.type is ConstraintType.TANGENT for constraint in constraints)
    return contacts(constraints, variables) if is_tangent else {}


def contacts(constraints: Iterable[Constraint], variables: Variables) -> dict[frozenset[int], int]:
    """For each two curves that constraints join at a point: such a point, an end of one of them if there is one."""
    sets = DisjointSets(len(variables.point_index))
    on: list[Pair] = []
    for constraint in constraints:
        if constraint.type not in _JOINING:
            continue
        first, a = constraint.refs[0], variables.point(constraint.refs[0])
        for second in constraint.refs[1:]:
            b = variables.point(second)
            if a is not None and b is not None:
                sets.union(a, b)
            elif a is not None and second.primitive is not None:
                on.append((a, second.primitive))
            elif b is not None and first.primitive is not None:
                on.append((b, first.primitive))
    ends = [(k, i) for k, (i, part) in enumerate(variables.points) if part is Part.START or part is Part.END]
    curves: defaultdict[int, dict[int, int]] = defaultdict(dict)  # set -> curve -> a point of the set on it
    for point, primitive in (*ends, *on):
        curves[sets.find(point)].setdefault(primitive, point)
    return {frozenset((a, b)): points[a] for points in curves.values() for a in points for b in points if a < b}


def _merge(
    pairs: Sequence[Sequence[Pair] | None], variables: Variables, fixed: Collection[int]
) -> tuple[VariableMerging, set[int], set[int]]:
    """Merge variables; also the redundant and the conflicting constraints.

    All are merged at once first. Where that leaves nothing of a line, they are merged one by one.
    """
    conflicting: set[int] = set()
    for one_by_one in (False, True):
        merging, redundant = VariableMerging(variables, fixed), set[int]()
        for i, several in enumerate(pairs):
            if several is None or i in conflicting:
                continue
            before = merging.sets.parent.copy() if one_by_one else []
            new = merging.merge(several)
            if new is None:
                conflicting.add(i)
            elif one_by_one and _collapses_line(merging, variables):
                conflicting.add(i)
                merging.sets.parent = before
            elif not new:
                redundant.add(i)
        if one_by_one or not _collapses_line(merging, variables):
            break
    return merging, redundant, conflicting


def _collapses_line(merging: VariableMerging, variables: Variables) -> bool:
    """Whether both ends of a line or arc have become one point."""
    roots, k = merging.sets.roots(), variables.starts
    return bool(((roots[k] == roots[k + 2]) & (roots[k + 1] == roots[k + 3])).any())


class Block(NamedTuple):
    """Equations with their owners over some free variables, `columns`, that no other block contains."""

    system: System
    owners: list[int]
    columns: Ints
    too_large: bool = False


def blocks(of: EquationSet) -> list[Block]:
    """The blocks of an equation set. One that is too large has no equations."""
    variable_map = of.variable_map
    if not of.equations:
        return []
    if variable_map.num_free <= _SMALL:
        return [Block(build(of.equations, variable_map), of.owners, np.arange(variable_map.num_free))]
    parts = []
    for members, columns in components(of):
        too_large = len(columns) > MAX_BLOCK
        equations = [] if too_large else [of.equations[i] for i in members]
        local = variable_map if too_large else variable_map.restrict(columns)
        parts.append(Block(build(equations, local), [of.owners[i] for i in members], columns, too_large))
    return parts


def components(of: EquationSet) -> list[tuple[list[int], Ints]]:
    """Equations in groups that share no free variable, each with the variables that occur in it."""
    index, num_free = of.variable_map.index.tolist(), of.variable_map.num_free
    used = [[k for k in {index[i] for i in _parameters(e)} if k < num_free] for e in of.equations]
    roots = component_roots(num_free, [variables for variables in used if variables])
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for i, variables in enumerate(used):
        groups[int(roots[variables[0]]) if variables else -1].append(i)
    return [(members, np.flatnonzero(roots == root)) for root, members in groups.items()]


def _parameters(equation: Equation) -> list[int]:
    points = [k for terms in (equation.v, equation.w) for k, _ in terms]
    return [*(2 * k for k in points), *(2 * k + 1 for k in points), *(k for k, _ in equation.linear)]


class Freedom(StrEnum):
    """How much of a primitive can still move; `OVER` has a constraint that conflicts with others or repeats them."""

    FIXED = "fixed"
    PART = "partly"
    FREE = "free"
    OVER = "over"


def primitive_freedom(
    variables: Variables, f: Floats, variable_map: VariableMap, held: Sequence[tuple[Ints, Floats]]
) -> list[Freedom]:
    """The freedom of each primitive where the parameters are `f`.

    Args:
        variables: The sketch's variables.
        f: The parameters.
        variable_map: The variables after merging.
        held: The steps that equations forbid, for each block: its variables, and an orthonormal basis as columns.
    """
    last, num_free = len(variable_map.start), variable_map.num_free
    rows = variables.rows
    index = np.append(variable_map.index, last)[rows]
    root = np.append(variable_map.root, np.full(last + 1 - num_free, np.inf))  # constants do not move
    free = (index[:, :, None] == index[:, None, :]) / (root[index][:, :, None] * root[index][:, None, :])
    for columns, q in held:
        local = np.full(last + 1, len(columns))
        local[columns] = np.arange(len(columns))
        here = np.flatnonzero((local[index] < len(columns)).any(axis=1))
        part = np.append(q / variable_map.root[columns, None], np.zeros((1, q.shape[1])), axis=0)[local[index[here]]]
        free[here] -= part @ part.transpose(0, 2, 1)
    still = np.trace(free, axis1=1, axis2=2) <= _STILL
    if len(variables.primitives) <= _MAX_RIGID and not still.any():
        still = _rigid(variables, f, variable_map, held)
    motions = (np.linalg.eigvalsh(free) > _STILL).sum(axis=1)
    most = np.array([0, 0, 2, 3, 4, 0, 0, 5])[(rows < len(f)).sum(axis=1)]
    return [Freedom(word) for word in np.where(still, "fixed", np.where(motions == most, "free", "partly")).tolist()]


def describe_freedom(freedom: Sequence[Freedom], names: Sequence[str]) -> str:
    """A sentence on the primitives that are not fully constrained.

    >>> describe_freedom([Freedom.FIXED, Freedom.PART, Freedom.FREE], ["line", "arc", "circle"])
    'arc 1 can partly move; circle 2 is free'
    """
    verbs = {Freedom.OVER: "{be} constrained too much", Freedom.PART: "can partly move", Freedom.FREE: "{be} free"}
    sentences = []
    for kind, verb in verbs.items():
        some = [f"{name} {i}" for i, name in enumerate(names) if freedom[i] is kind]
        if some:
            listed = " and ".join(filter(None, [", ".join(some[:-1]), some[-1]]))
            sentences.append(f"{listed} {verb.format(be='is' if len(some) == 1 else 'are')}")
    return "; ".join(sentences) or "fully constrained"


def _rigid(variables: Variables, f: Floats, variable_map: VariableMap, held: Sequence[tuple[Ints, Floats]]) -> Bools:
    """The primitives that move only with the whole sketch, if that can move."""
    size, num_free = len(variable_map.start), variable_map.num_free
    steps = np.zeros((size, size))
    steps.flat[: num_free * (size + 1) : size + 1] = 1.0
    for columns, q in held:
        steps[np.ix_(columns, columns)] -= q @ q.T
    steps[:num_free, :num_free] /= variable_map.root[:, None] * variable_map.root
    free = np.zeros((len(f) + 1, len(f) + 1))
    free[:-1, :-1] = steps[variable_map.index[:, None], variable_map.index]
    basis = np.zeros((len(f), 3))  # translation, and rotation about the mean of all points
    x, y = slice(0, 2 * variables.num_points, 2), slice(1, 2 * variables.num_points, 2)
    basis[x, 0] = basis[y, 1] = variables.num_points**-0.5
    basis[x, 2], basis[y, 2] = f[y].mean() - f[y], f[x] - f[x].mean()
    basis[:, 2] /= max(float(np.linalg.norm(basis[:, 2])), _STILL)
    share, turn = np.linalg.eigh(basis.T @ free[:-1, :-1] @ basis)
    whole = basis @ turn[:, share > 1 - _STILL]  # as far as the sketch can
    if not whole.shape[1]:
        return np.zeros(len(variables.rows), dtype=bool)
    return _rigid_with_most(free, np.append(whole, np.zeros((1, whole.shape[1])), axis=0), variables.rows)


def _rigid_with_most(free: Floats, whole: Floats, rows: Ints) -> Bools:
    """The primitives that stand still when one is held, the one that holds most others: with any of them, if several.

    To hold a primitive is to leave out its part of the rigid motions.
    """
    parts = whole[rows]
    held = free[:, rows].transpose(1, 0, 2) @ parts  # for each one held: the motion of everything with it
    size, turn = np.linalg.eigh(parts.transpose(0, 2, 1) @ held[np.arange(len(rows))[:, None], rows])
    weight = np.where(size > _STILL, 1 / np.sqrt(np.maximum(size, _STILL)), 0.0)
    left = np.diagonal(free) - ((held @ (turn * weight[:, None, :])) ** 2).sum(axis=2)
    still = left[:, rows].sum(axis=2) <= _STILL
    count = still.sum(axis=1)
    return np.asarray(still[count == count.max()].any(axis=0))
