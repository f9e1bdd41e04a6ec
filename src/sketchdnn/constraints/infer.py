"""Constraint inference: the constraints that a drawn sketch was meant to have.

Every point is taken to be off by up to the tolerance, independently. A constraint is accepted if that explains its
residual, measured against its derivative by all variables that are still free. Rounds go from the certain to the
subtle: which points coincide, then directions, then contacts, then sizes and symmetry. After each round the sketch is
solved, which averages errors and leaves fewer free variables. A constraint that follows already has no freedom left and
is not added, so the set is minimal; one that would conflict is not accepted.

A very large sketch is examined in pieces.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref, Sketch
from sketchdnn.geometry.proximity import DisjointSets, component_roots, near_points

from . import candidates
from .candidates import MAX_BEND, MAX_TURN, SketchArrays
from .equation_set import contacts, free_arc_equations
from .equations import (
    Evaluated,
    Form,
    System,
    build,
    constraint_equations,
    likely_independent,
    outside,
    row_lengths,
    row_space,
)
from .solve import least_squares
from .variables import Constraints, Floats, Ints, VariableMap, VariableMerging, Variables, variables_of

# How far off a drawn point may be, as a share of the sketch's size.
TOLERANCE = 0.005
# A sketch of more parameters is not examined as a whole: comparing all pairs would take many seconds.
MAX_PARAMETERS = 600
# The largest number of primitives in a piece of a large sketch.
_MAX_PIECE = 48
# In a large sketch, nothing may be off by more than this share of the primitives concerned.
_LOCAL = 0.1
# Three standard deviations of an error that is uniform within ±1.
_THREE_SIGMA = 3**0.5
# A primitive that moves by more tolerances than this, or shrinks below this share of itself, was not meant to.
_MAX_STRAIN = 6.0
_MIN_SHARE = 0.3
# A line that leans by more than this sine is not level, however short it is.
_MAX_LEAN = 0.2
# Below this share of itself, the new part of an equation is only the sketch's inexactness.
_NEW = 0.05
# An equation whose residual is larger, as a share of the tolerance, after solving cannot be satisfied.
_UNSATISFIED = 0.2
# Between rounds, the residuals need only be much smaller than the tolerance.
_ROUND_TOLERANCE = 1e-2
_LEVEL = (ConstraintType.HORIZONTAL, ConstraintType.VERTICAL)
_MEETING = (ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC)
# The types that merge variables and need no equation. They are the most certain, too.
MERGING = frozenset({*_MEETING, *_LEVEL})


class Inferred(NamedTuple):
    """A constraint, the number of variables that it removes, and the share of the allowed residual that it has."""

    constraint: Constraint
    removed: int
    share: float


def infer(
    sketch: Sketch, tolerance: float = TOLERANCE, *, given: Constraints = (), fixed: Collection[int] = ()
) -> tuple[Constraint, ...]:
    """Infer the constraints of a sketch.

    Args:
        sketch: The sketch.
        tolerance: How far off a point may be drawn, as a share of the size.
        given: Constraints that hold already; they are not repeated in the result.
        fixed: Indices of primitives that cannot move.

    Returns:
        The constraints: first coincident points, then those that remove more variables at once, then those with the
        smaller residual. A few may follow from the others; `solve` names them. `skipped_message` describes
        what is not looked for in a very large sketch.

    Raises:
        GeometryError: If the tolerance is out of range.

    >>> from sketchdnn.geometry import Line
    >>> corner = Sketch((Line((0, 0), (10, 0.01)), Line((10.01, 0), (10, 8))))
    >>> [str(constraint.type) for constraint in infer(corner)]
    ['coincident', 'vertical', 'horizontal']
    """
    if not 0 < tolerance < 0.1:
        raise GeometryError(f"the tolerance is a share of the size between 0 and 0.1, not {tolerance}")
    if not len(sketch):
        return ()
    variables = variables_of(sketch.primitives)
    large = variables.num_parameters > MAX_PARAMETERS
    merge = _InitialMerge(variables, tolerance, given, fixed, local=large)
    return _ranked(_infer_pieces(merge) if large else _infer_rounds(merge))


def infer_level(sketch: Sketch, tolerance: float, given: Constraints) -> tuple[Constraint, ...]:
    """Only coincident, concentric, horizontal and vertical constraints, of a sketch of any size."""
    return _ranked(_InitialMerge(variables_of(sketch.primitives), tolerance, given, (), local=True).accepted)


def is_large(sketch: Sketch) -> bool:
    """Whether a sketch is too large to be examined as a whole."""
    return bool(len(sketch)) and variables_of(sketch.primitives).num_parameters > MAX_PARAMETERS


def skipped_message(sketch: Sketch) -> str | None:
    """A sentence on what `infer` does not look for in a sketch as large as this."""
    if not is_large(sketch):
        return None
    return (
        f"the sketch has {len(sketch)} primitives: only coincident points and level lines were looked for in all of "
        f"it, everything else within neighborhoods of up to {_MAX_PIECE}"
    )


def _ranked(accepted: Iterable[Inferred]) -> tuple[Constraint, ...]:
    ranked = sorted(accepted, key=lambda one: (one.constraint.type not in _MEETING, -one.removed, one.share))
    return tuple(inferred.constraint for inferred in ranked)


def _infer_rounds(merge: _InitialMerge) -> list[Inferred]:
    state = _Inference(merge)
    arrays, given = state.arrays, merge.given
    level = {c.refs[0].primitive for c in (*given, *state.constraints) if c.type in _LEVEL}
    state.accept([*candidates.directions(arrays, level), *candidates.tangents_at_contacts(state.contacts, arrays)])
    state.accept([*candidates.collinear(arrays), *candidates.points_on_curves(arrays)])
    accepted = state.constraints
    if any(c.type is ConstraintType.POINT_ON_CURVE for c in accepted):
        state.contacts = contacts([*given, *accepted], merge.variables)
    smooth = {frozenset(ref.primitive for ref in c.refs) for c in accepted if c.type is ConstraintType.TANGENT}
    corners = {pair: at for pair, at in state.contacts.items() if pair not in smooth}
    tangents = [*candidates.tangents_at_contacts(corners, arrays), *candidates.tangents(arrays, state.contacts)]
    state.accept([*tangents, *candidates.equal_sizes(arrays)])
    state.accept([*candidates.midpoints(arrays), *candidates.symmetric(arrays), *candidates.aligned(arrays)])
    state.accept([*candidates.rows(arrays)])
    return state.accepted


class _InitialMerge:
    """The variables that are certain to be one: by `given` constraints, where points meet, where lines are level.

    With `local`, nothing may be off by more than a tenth of the primitives concerned: the tolerance is a share of the
    sketch's size, and lines of a large sketch may be shorter than it.
    """

    def __init__(
        self, variables: Variables, tolerance: float, given: Constraints, fixed: Collection[int], local: bool
    ) -> None:
        self.variables, self.tolerance, self.given, self.fixed = variables, tolerance, given, fixed
        self.reach = _LOCAL * _sizes(variables) if local else np.full(len(variables.primitives), np.inf)
        self.merging, self.point_sets = self._merge(given)
        self.accepted = self._join_points()
        self.variable_map = self._join_levels()

    def _merge(self, constraints: Constraints) -> tuple[VariableMerging, DisjointSets]:
        """The variables, and the points, that constraints merge."""
        merging, sets = VariableMerging(self.variables, self.fixed), DisjointSets(self.variables.num_points)
        end = 2 * self.variables.num_points
        for constraint in constraints:
            pairs = self.variables.merged_parameters(constraint) or []
            for a, b in pairs if merging.merge(pairs) is not None else ():
                if a % 2 == 0 and max(a, b) < end and (a + 1, b + 1) in pairs:
                    sets.union(a // 2, b // 2)
        return merging, sets

    def _join_points(self) -> list[Inferred]:
        """Points that coincide, nearest pairs first; never two of one primitive, which would leave nothing of it."""
        variables, sets = self.variables, self.point_sets
        # Both coordinates have two errors; √2 makes that three standard deviations again.
        allowed = 2**0.5 * _THREE_SIGMA * self.tolerance
        at: list[list[float]] = variables.f[: 2 * variables.num_points].reshape(-1, 2).tolist()
        reach: list[float] = self.reach.tolist()
        near: list[tuple[float, int, int, float]] = []  # the rank, two points, and the larger distance along an axis
        for m, n, dx, dy in near_points(at, min(allowed, max(reach))):
            off = max(dx, dy)
            if off <= min(reach[variables.points[m][0]], reach[variables.points[n][0]]):
                near.append((round(off, 9), m, n, off))
        owners: list[set[int]] = [set() for _ in variables.points]
        for k, (i, _) in enumerate(variables.points):
            owners[sets.find(k)].add(i)
        accepted: list[Inferred] = []
        for _, m, n, by in sorted(near):
            a, b = sets.find(m), sets.find(n)
            if a == b or owners[a] & owners[b] or not self.merging.merge([(2 * m, 2 * n), (2 * m + 1, 2 * n + 1)]):
                continue
            sets.union(a, b)
            owners[min(a, b)] = owners[a] | owners[b]
            refs = variables.ref(m), variables.ref(n)
            constraint = Constraint(ConstraintType.COINCIDENT, refs)
            if {ref.part for ref in refs} == {Part.CENTER}:
                constraint = Constraint(ConstraintType.CONCENTRIC, tuple(Ref(ref.primitive) for ref in refs))
            accepted.append(Inferred(constraint, 2, by / allowed))
        return accepted

    def _join_levels(self) -> VariableMap:
        """Accept level lines, without those that this would strain; the variables that are left.

        Where coincident points strain the sketch already, fewer of those are accepted.
        """
        meeting, without, patience = self.accepted, set[int](), 1
        while True:
            variable_map = self.merging.variable_map()
            levels = self._level_lines(variable_map, without)
            if levels or self.fixed:  # constants that are equal merge, too
                variable_map = self.merging.variable_map()
            self.accepted = [*meeting, *levels]
            strain = _strained(self.variables, variable_map.initial, self.tolerance)
            if not strain or not self.accepted:
                return variable_map
            if levels:
                without |= strain if not without else set(self.variables.lines)
            else:
                meeting = [m for m in meeting if patience and strain.isdisjoint(r.primitive for r in m.constraint.refs)]
                without, patience = set(), patience - 1
            self.merging, self.point_sets = self._merge([*self.given, *(m.constraint for m in meeting)])

    def _level_lines(self, variable_map: VariableMap, without: set[int]) -> list[Inferred]:
        """Lines along an axis, the most level first; the ends' coordinates merge at the mean of all that share them."""
        variables = self.variables
        index, mean = variable_map.index.tolist(), variable_map.start.tolist()
        weight = np.bincount(variable_map.index).astype(float).tolist()
        weight[variable_map.num_free :] = [math.inf] * (len(weight) - variable_map.num_free)
        within, reach = _THREE_SIGMA * self.tolerance, self.reach.tolist()
        level: list[tuple[float, int, int, float]] = []  # the rank, the axis, the line, and how far it is off
        for i in variables.lines:
            k = 2 * variables.first[i]
            ends = [(index[k + axis], index[k + 2 + axis]) for axis in (0, 1)]
            along = [abs(mean[b] - mean[a]) for a, b in ends]
            least = min(_MAX_LEAN * math.hypot(*along), reach[i])
            for axis, (a, b) in enumerate(ends):
                if along[axis] <= least and a != b and i not in without:
                    off = along[axis] / max(within * math.sqrt(1 / weight[a] + 1 / weight[b]), 1e-300)
                    if off <= 1:
                        level.append((round(off, 9), axis, i, off))
        sets = DisjointSets(len(mean))
        accepted: list[Inferred] = []
        for _, axis, i, off in sorted(level):
            column = 2 * variables.first[i] + axis
            p, q = sets.find(index[column]), sets.find(index[column + 2])
            most = within * (1 / weight[p] + 1 / weight[q]) ** 0.5
            if p == q or abs(mean[p] - mean[q]) > most or not self.merging.merge([(column, column + 2)]):
                continue
            sets.union(p, q)
            total, shared = weight[p] + weight[q], mean[p] if weight[p] == math.inf else mean[q]
            if total < math.inf:
                shared = (mean[p] * weight[p] + mean[q] * weight[q]) / total
            mean[min(p, q)], weight[min(p, q)] = shared, total
            kind = ConstraintType.VERTICAL if axis == 0 else ConstraintType.HORIZONTAL
            accepted.append(Inferred(Constraint(kind, (Ref(i),)), 1, off))
        return accepted


class _Inference:
    """The accepted constraints during inference, their equations, and the variables that satisfy them."""

    def __init__(self, merge: _InitialMerge) -> None:
        variables, tolerance = merge.variables, merge.tolerance
        self.variables, self.tolerance, self.variable_map = variables, tolerance, merge.variable_map
        self.accepted = list(merge.accepted)
        self.contacts = contacts([*merge.given, *self.constraints], variables)
        f = self.variable_map.initial
        equations = free_arc_equations(variables, merge.fixed)
        for constraint in merge.given:
            if variables.merged_parameters(constraint) is None:
                equations += constraint_equations(constraint, variables, f, self.contacts) or ()
        self.z = np.zeros(self.variable_map.num_free)
        system = build(equations, self.variable_map)
        drawn: Evaluated | None = None
        if equations:
            drawn = system.evaluate(self.z)
            chosen = likely_independent(drawn[1], _NEW)
            if len(chosen) < len(system):
                system, drawn = system.take(chosen), (drawn[0][chosen], drawn[1][chosen])
        self.owners = [0] * len(system)  # of each equation: the id of an accepted constraint
        self._span: Floats | None = None  # that of the rows, once it is needed
        self.arrays = SketchArrays(variables, merge.point_sets.roots(), _THREE_SIGMA * tolerance)
        self._update(system, *self._solve(system, drawn)[::2])

    @property
    def constraints(self) -> list[Constraint]:
        return [inferred.constraint for inferred in self.accepted]

    def accept(self, guesses: Constraints) -> None:
        """Accept the candidates that the tolerance explains, closest first, and solve."""
        if not guesses:
            return
        f = self.variable_map.parameters(self.z)
        equations = [constraint_equations(guess, self.variables, f, self.contacts) or [] for guess in guesses]
        system = build([e for own in equations for e in own], self.variable_map)
        residuals, rows = system.evaluate(self.z)
        residuals, length = np.abs(residuals), row_lengths(rows)
        if self._span is None:
            self._span = row_space(self.rows, 1e-4)
        rest = outside(rows, self._span)
        new = row_lengths(rest)
        # Curves that meet almost smoothly are meant to, however short they are.
        largest = [MAX_BEND if guess.type is ConstraintType.TANGENT else MAX_TURN for guess in guesses]
        both = zip(largest, equations, strict=True)
        most = [angle if e.form is Form.SINE else np.inf for angle, own in both for e in own]
        allowed = np.minimum(_THREE_SIGMA * self.tolerance * new, most)
        is_new = new > _NEW * length
        holds = residuals <= _NEW * self.tolerance * length  # nothing to add, and no conflict
        fine = np.where(is_new, residuals <= allowed, holds).tolist()
        share = np.where(is_new, residuals / np.maximum(allowed, 1e-300), 0.0).round(9).tolist()
        adds, least = is_new.tolist(), (_NEW * length) ** 2
        hopeful: list[tuple[int, float, int, int, int]] = []
        end = 0
        for i, own in enumerate(equations):
            start, end = end, end + len(own)
            if all(fine[start:end]) and any(adds[start:end]):
                hopeful.append((-sum(adds[start:end]), max(share[start:end]), i, start, end))
        taken: list[int] = []
        before = len(self.accepted)
        for _, by, i, start, end in sorted(hopeful):
            known = len(taken)
            for row in range(start, end):
                size = float(rest[row] @ rest[row])
                if size > least[row]:
                    unit = rest[row] / size**0.5
                    rest -= (rest @ unit)[:, None] * unit
                    taken.append(row)
            if removed := len(taken) - known:
                self.owners += [id(guesses[i])] * removed
                self.accepted.append(Inferred(guesses[i], removed, by))
        if taken:
            self._solve_without_strain(system.take(taken), before)

    def _solve_without_strain(self, added: System, before: int) -> None:
        """Solve with more equations; reject those of the constraints since `before` that cannot be satisfied, or that
        strain the sketch.
        """
        system = self.system.concatenate(added)
        for patience in (2, 1, 0):
            z, residuals, rows = self._solve(system)
            strain = _strained(self.variables, self.variable_map.parameters(z), self.tolerance)
            unsatisfied = np.abs(residuals) > _UNSATISFIED * self.tolerance * row_lengths(rows)
            failing = {self.owners[k] for k in np.flatnonzero(unsatisfied).tolist()}
            if not strain and not failing:
                break
            recent = [inferred.constraint for inferred in self.accepted[before:]]
            rejected = {id(c) for c in recent if id(c) in failing}
            if not patience or not rejected:
                culprits = strain if strain and patience else set(range(len(self.variables.primitives)))
                rejected = {id(c) for c in recent if not culprits.isdisjoint(ref.primitive for ref in c.refs)}
            keep = [row for row, owner in enumerate(self.owners) if owner not in rejected]
            system, self.owners = system.take(keep), [self.owners[row] for row in keep]
            self.accepted = [inferred for inferred in self.accepted if id(inferred.constraint) not in rejected]
        else:
            z, _, rows = self._solve(system)
        self._update(system, z, rows)

    def _solve(self, system: System, start: Evaluated | None = None) -> tuple[Floats, Floats, Floats]:
        return least_squares(system, self.z, steps=6, tolerance=_ROUND_TOLERANCE * self.tolerance, start=start)

    def _update(self, system: System, z: Floats, rows: Floats) -> None:
        self.system, self.z, self.rows = system, z, rows
        self._span = None
        self.arrays.update(self.variable_map.parameters(z))


def _infer_pieces(merge: _InitialMerge) -> list[Inferred]:
    """The constraints of the initial merge, and those of each piece of the sketch, given these."""
    variables, accepted = merge.variables, list(merge.accepted)
    level = [inferred.constraint for inferred in accepted if inferred.constraint.type in _LEVEL]
    at = np.array([variables.f[variables.parameters(i)[:2]] for i in range(len(variables.primitives))])
    roots = merge.point_sets.roots().tolist()
    by_root: defaultdict[int, list[int]] = defaultdict(list)
    for point, (primitive, _) in enumerate(variables.points):
        by_root[roots[point]].append(primitive)
    connected = component_roots(len(at), list(by_root.values()))
    sizes = _sizes(variables) * variables.scale
    for members in _halves(np.arange(len(at)), at, connected):
        number = {i: k for k, i in enumerate(members)}
        known = [*merge.given, *_coincidences(merge, set(members)), *level]
        own = Variables([variables.primitives[i] for i in members])
        tolerance = min(merge.tolerance * variables.scale, _LOCAL * float(np.median(sizes[members]))) / own.scale
        inside = [c for c in known if all(r.primitive is None or r.primitive in number for r in c.refs)]
        fixed = [number[i] for i in merge.fixed if i in number]
        piece = _InitialMerge(own, tolerance, [renumber(c, number) for c in inside], fixed, local=True)
        back = dict(enumerate(members))
        accepted += [Inferred(renumber(c, back), removed, share) for c, removed, share in _infer_rounds(piece)]
    return accepted


def renumber(constraint: Constraint, numbers: Mapping[int, int]) -> Constraint:
    """A constraint on primitives with other numbers."""
    refs = tuple(ref if ref.primitive is None else Ref(numbers[ref.primitive], ref.part) for ref in constraint.refs)
    return replace(constraint, refs=refs)


def _halves(members: Ints, at: Floats, roots: Ints) -> Iterator[list[int]]:
    """Halves of halves, across the longer side, until each is small.

    Connected primitives, those with one root, stay together as long as they are few themselves.
    """
    if len(members) <= _MAX_PIECE:
        yield members.tolist()
        return
    whole = int(np.bincount(roots[members]).max()) <= _MAX_PIECE
    where = at[roots[members] if whole else members]
    axis = int(np.argmax(np.ptp(where, axis=0)))
    order = np.lexsort((roots[members], where[:, axis]))
    members, root = members[order], roots[members][order]
    half = len(members) // 2
    if whole:
        half = int(np.flatnonzero(root == root[half])[0]) or int(np.flatnonzero(root == root[0])[-1]) + 1
    yield from _halves(members[:half], at, roots)
    yield from _halves(members[half:], at, roots)


def _coincidences(merge: _InitialMerge, members: set[int]) -> Iterator[Constraint]:
    """The points of some primitives that coincide, by whatever chain."""
    groups: defaultdict[int, list[Ref]] = defaultdict(list)
    for point, (primitive, part) in enumerate(merge.variables.points):
        if primitive in members:
            groups[merge.point_sets.find(point)].append(Ref(primitive, part))
    return (Constraint(ConstraintType.COINCIDENT, tuple(refs)) for refs in groups.values() if len(refs) > 1)


def _strained(variables: Variables, f: Floats, tolerance: float) -> set[int]:
    """Primitives that moved further than the tolerance explains, or lost most of their size."""
    movers = [*(i for i, _ in variables.points), *variables.rounds]
    sized = [*variables.lines, *variables.arcs, *variables.rounds]
    far = compress(movers, np.abs(variables.moves(f)) > _MAX_STRAIN * tolerance)
    return {*far, *compress(sized, variables.shares(f) < _MIN_SHARE)}


def _sizes(variables: Variables) -> Floats:
    """The size of each primitive: a line's length, a radius, infinity for a point."""
    sizes, k, f = np.full(len(variables.primitives), np.inf), variables.starts[: len(variables.lines)], variables.f
    sizes[variables.lines] = np.hypot(f[k + 2] - f[k], f[k + 3] - f[k + 1])
    sizes[variables.rounds] = f[variables.radii]
    return sizes
