"""The core of a repair attempt: join ends that nearly meet, infer further constraints, and solve them.

`find_joins` compares all ends of the sketch and joins the nearest pairs first. `infer_and_solve` leaves out constraints
that would move a primitive too far. If the sketch is too large for that, it is split into components: sets of
primitives that constraints connect, directly or through others. Each component is then repaired separately.

All lengths refer to a sketch that is scaled to size one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sketchdnn.constraints.equation_set import Freedom, constraint_residuals
from sketchdnn.constraints.infer import MAX_PARAMETERS, infer, renumber
from sketchdnn.constraints.solve import HOLDS, solve
from sketchdnn.constraints.variables import Floats, Ints, component_roots
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref, Sketch, bounds

from .budget import Budget, infer_cost, num_parameters, solve_cost
from .quality import has_shrunk, largest_move

_T = ConstraintType
# The fields of `Solved` that hold constraints.
_CONSTRAINT_FIELDS = ("constraints", "redundant", "conflicting", "unsupported")
# Two loose ends that are nearest to each other are joined up to this multiple of the tolerance: each moves half of it.
_MUTUAL_REACH = 2.0
# If there are more loose ends than this, they are not compared with each other.
_MAX_LOOSE_ENDS = 2000
# Factor of the tolerance in comparisons, so that rounding does not exclude a distance equal to the tolerance.
_SLACK = 1 + 1e-9
# The noise estimate needs at least this many gaps between ends.
_MIN_GAPS = 6
# The quantile of the gaps that the noise estimate uses.
_GAP_QUANTILE = 0.9
# The noise estimate divided by that quantile.
_NOISE_PER_GAP = 2.0
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
# Types of constraints that are inferred even if `Limits.subtle` is False.
_CERTAIN = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.HORIZONTAL, _T.VERTICAL})
# Types of constraints that place a point on a curve or on another point.
_PLACES_A_POINT = frozenset({_T.POINT_ON_CURVE, _T.COINCIDENT, _T.MIDPOINT})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a repair attempt.

    Attributes:
        noise: The distance by which points may deviate from the constraints to infer, as a length; None infers nothing.
        subtle: If False, infer only coincident and concentric points, horizontal and vertical lines, and tangency at
            joined ends.
        tolerance: The largest distance that any point of a primitive may move, as a length.
        fixed: Indices of primitives that must not move.
        budget: The computing work that is left.
    """

    noise: float | None
    subtle: bool
    tolerance: float
    fixed: Collection[int]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of a repair attempt: moved primitives and their constraints.

    Attributes:
        primitives: The primitives after solving, in the order of the sketch.
        constraints: All constraints of the attempt. They hold, except for conflicting and unsupported ones.
        redundant: Those that follow from other constraints.
        conflicting: Those that contradict other constraints.
        unsupported: Those that the solver cannot handle.
        dof: The degrees of freedom that remain: the number of parameters that the constraints do not determine.
        freedom: How far each primitive can still move, in the order of `primitives`. Empty if it is unknown: if nothing
            was solved, or if constraints are redundant or conflicting.
        warnings: What could not be done, a clause each.
        was_solved: False if the sketch was returned unchanged because an earlier solution still holds. `dof` and
            `freedom` are then those of the earlier solution, not the values given here.
    """

    primitives: list[Primitive]
    constraints: list[Constraint]
    redundant: list[Constraint]
    conflicting: list[Constraint]
    unsupported: list[Constraint]
    dof: int
    freedom: list[Freedom]
    warnings: list[str]
    was_solved: bool = True


def infer_and_solve(
    sketch: Sketch, existing: Sequence[Constraint], joins: Sequence[Constraint], limits: Limits, *, is_solved: bool
) -> Solved | None:
    """Infer further constraints, and solve all of them.

    Args:
        sketch: The sketch, scaled to size one. Its own constraints are not used.
        existing: Constraints that the sketch has already.
        joins: Constraints that join ends, from `find_joins`.
        limits: The limits of the attempt.
        is_solved: Whether the existing constraints were solved before.

    Returns:
        The solution, or None if a primitive would move too far or the budget is spent. A sketch that is repaired by
        components has a solution if at least one component has; other components are left unchanged.
    """
    if num_parameters(sketch.primitives) <= MAX_PARAMETERS:
        return _repair_component(sketch, existing, joins, limits, is_solved=is_solved)
    components = _connected_components(len(sketch), (*existing, *joins))
    existing_by_primitive, joins_by_primitive = _by_first_primitive(existing), _by_first_primitive(joins)
    primitives = list(sketch.primitives)
    freedom = [Freedom.FREE] * len(primitives)
    parts: list[Solved] = []
    num_unchanged = 0
    for component in components:
        local_index = {i: k for k, i in enumerate(component)}
        global_index = dict(enumerate(component))
        part = Sketch(tuple(primitives[i] for i in component))
        part_existing = [c for i in component for c in existing_by_primitive.get(i, ())]
        part_joins = [c for i in component for c in joins_by_primitive.get(i, ())]
        local_existing = [renumber(c, local_index) for c in part_existing]
        local_joins = [renumber(c, local_index) for c in part_joins]
        # Nothing is inferred in a component that is itself too large: only its ends are joined.
        noise = limits.noise if num_parameters(part.primitives) <= MAX_PARAMETERS else None
        fixed = {local_index[i] for i in limits.fixed if i in local_index}
        part_limits = replace(limits, noise=noise, fixed=fixed)
        solved = _repair_component(part, local_existing, local_joins, part_limits, is_solved=False)
        if solved is None:
            num_unchanged += len(component)
            continue
        part_freedom = solved.freedom or [Freedom.FREE] * len(component)
        for i, primitive, primitive_freedom in zip(component, solved.primitives, part_freedom, strict=True):
            primitives[i], freedom[i] = primitive, primitive_freedom
        # Constraints that were passed in are returned as the same objects, since the caller compares identities.
        originals = {
            id(local): original
            for local, original in zip((*local_existing, *local_joins), (*part_existing, *part_joins), strict=True)
        }
        fields: dict[str, Any] = {
            name: [originals.get(id(c)) or renumber(c, global_index) for c in getattr(solved, name)]
            for name in _CONSTRAINT_FIELDS
        }
        parts.append(replace(solved, **fields))
    if num_unchanged == len(sketch):
        return None
    warning = (
        "the sketch is so large that only its ends were joined"
        if len(components) == 1
        else f"the sketch is so large that its {len(components):,} connected components were repaired separately"
    )
    if num_unchanged:
        warning += f", and {num_unchanged:,} primitives were left unchanged"
    constraints, redundant, conflicting, unsupported = (
        [c for part in parts for c in getattr(part, name)] for name in _CONSTRAINT_FIELDS
    )
    dof = sum(part.dof for part in parts)
    return Solved(primitives, constraints, redundant, conflicting, unsupported, dof, freedom, [warning])


# NumPy's floating-point warnings are turned off: results that are too large or not a number are rejected afterwards.
@np.errstate(all="ignore")
def _repair_component(
    sketch: Sketch, existing: Sequence[Constraint], joins: Sequence[Constraint], limits: Limits, *, is_solved: bool
) -> Solved | None:
    """Do what `infer_and_solve` describes, for a sketch or component as a whole."""
    warnings = []
    inferred: list[Constraint] = []
    size = bounds(sketch).size
    noisy_fraction, existing_hold = _noisy_fraction(sketch, existing)
    if size > 0 and limits.noise is not None and limits.budget.spend(infer_cost(sketch.primitives)):
        noise = max(limits.noise * noisy_fraction, _DRAWN_EXACTLY)
        try:
            relative_noise = min(noise / size, _MAX_RELATIVE_NOISE)
            inferred = list(infer(sketch, relative_noise, given=[*existing, *joins], fixed=limits.fixed))
        except GeometryError as error:
            warnings.append(str(error))
    if not limits.subtle:
        inferred = _certain_constraints([*existing, *joins], inferred)
    if is_solved and existing_hold and not joins and not inferred:
        return Solved(
            list(sketch.primitives),
            list(existing),
            redundant=[],
            conflicting=[],
            unsupported=[],
            dof=0,
            freedom=[],
            warnings=warnings,
            was_solved=False,
        )
    joins = list(joins)
    for _ in range(_MAX_ATTEMPTS):
        constraints = [*existing, *joins, *inferred]
        if not limits.budget.spend(solve_cost(sketch.primitives, constraints)):
            return None
        solution = solve(sketch, constraints, max_move=math.inf, fixed=limits.fixed)
        if solution.warning:  # the solver failed, so every primitive may be the cause
            moved_too_far = set(range(len(sketch)))
        else:
            before_and_after = enumerate(zip(sketch, solution.sketch, strict=True))
            moved_too_far = {
                i for i, (p, q) in before_and_after if largest_move(p, q) > limits.tolerance or has_shrunk(p, q)
            }
            if not moved_too_far:
                return Solved(
                    list(solution.sketch.primitives),
                    constraints,
                    list(solution.redundant),
                    list(solution.conflicting),
                    list(solution.unsupported),
                    solution.dof,
                    [] if solution.redundant or solution.conflicting else list(solution.freedom),
                    warnings,
                )
        # Leave out inferred constraints first, then joins; existing constraints are never left out.
        fewer = _drop_constraints(inferred, moved_too_far)
        if len(fewer) < len(inferred):
            inferred = fewer
            continue
        fewer = _drop_constraints(joins, moved_too_far)
        if len(fewer) == len(joins):
            return None
        joins = fewer
    return None


def _connected_components(num_primitives: int, constraints: Sequence[Constraint]) -> list[list[int]]:
    """Return the indices of the primitives of each component: those that constraints connect."""
    groups = [[ref.primitive for ref in c.refs if ref.primitive is not None] for c in constraints]
    components: defaultdict[int, list[int]] = defaultdict(list)
    for i, root in enumerate(component_roots(num_primitives, [group for group in groups if group]).tolist()):
        components[root].append(i)
    return list(components.values())


def _by_first_primitive(constraints: Sequence[Constraint]) -> dict[int, list[Constraint]]:
    """Group constraints by the first primitive that they refer to.

    Constraints without primitives, such as between the axes and the origin, restrict nothing and are left out.
    """
    groups: defaultdict[int, list[Constraint]] = defaultdict(list)
    for c in constraints:
        first = next((ref.primitive for ref in c.refs if ref.primitive is not None), None)
        if first is not None:
            groups[first].append(c)
    return groups


def _noisy_fraction(sketch: Sketch, existing: Sequence[Constraint]) -> tuple[float, bool]:
    """Estimate the fraction of parameters that were drawn with noise, and check the existing constraints.

    A constraint that was drawn exactly determines one or two parameters without noise. The inference tolerance is
    scaled by the fraction, so that less is inferred in a sketch that is mostly exact.

    Returns:
        The fraction, from 0 to 1, and whether all supported existing constraints hold to within `HOLDS`.
    """
    residuals = [
        (c, residual)
        for c, residual in zip(existing, constraint_residuals(sketch, existing), strict=True)
        if residual is not None
    ]
    if not residuals:
        return 1.0, True
    num_exact = sum(1 + (c.type in _TWO_EQUATIONS) for c, residual in residuals if residual <= _DRAWN_EXACTLY)
    fraction = max(0.0, 1 - num_exact / num_parameters(sketch.primitives))
    return fraction, max(residual for _, residual in residuals) <= HOLDS


def _certain_constraints(given: Sequence[Constraint], inferred: Sequence[Constraint]) -> list[Constraint]:
    """Return the inferred constraints of types in `_CERTAIN`, and tangency of curves whose ends are joined."""

    def pair(c: Constraint) -> frozenset[int | None]:
        return frozenset(ref.primitive for ref in c.refs)

    joined = {pair(c) for c in (*given, *inferred) if c.type is _T.COINCIDENT}
    return [c for c in inferred if c.type in _CERTAIN or (c.type is _T.TANGENT and pair(c) in joined)]


def _drop_constraints(constraints: list[Constraint], moved_too_far: set[int]) -> list[Constraint]:
    """Drop constraints on primitives that moved too far: those of types in `_DROP_FIRST`, or all if there are none."""

    def is_suspect(c: Constraint) -> bool:
        return any(ref.primitive in moved_too_far for ref in c.refs)

    fewer = [c for c in constraints if c.type not in _DROP_FIRST or not is_suspect(c)]
    return fewer if len(fewer) < len(constraints) else [c for c in constraints if not is_suspect(c)]


def find_joins(
    primitives: Sequence[Primitive], given: Sequence[Constraint], tolerance: float, fixed: Collection[int]
) -> list[Constraint]:
    """Find ends that nearly meet another end or a curve, and return the constraints that join them.

    The sketch has size one. First, ends within the tolerance of each other are joined, nearest first. Then a single
    end is placed on the nearest curve within the tolerance. At last, ends that are still loose are joined in pairs.
    Joins that follow from the given constraints are not returned.
    """
    curves = [i for i, p in enumerate(primitives) if isinstance(p, Line | Arc)]
    ends = [Ref(i, part) for i in curves for part in (Part.START, Part.END)]
    if not ends:
        return []
    points = _end_points(primitives)
    clusters = _EndClusters(ends, points, given)
    owners = np.array(clusters.owners)
    is_fixed = np.isin(owners, list(fixed))
    joins: list[Constraint] = []
    for a, b in _near_ends(points, owners, is_fixed, tolerance * _SLACK):
        if clusters.join(a, b, tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    placed = {ref for c in given if c.type in _PLACES_A_POINT for ref in c.refs}
    curve_arrays = _CurveArrays(primitives)
    loose = []
    for k in clusters.singles():
        if ends[k] in placed or is_fixed[k]:
            continue
        curve = curve_arrays.nearest(points[k], clusters.owners[k], tolerance * _SLACK)
        if curve is None:
            loose.append(k)
        else:
            joins.append(Constraint(_T.POINT_ON_CURVE, (ends[k], Ref(curve))))
    for a, b in _mutually_nearest(points, owners, loose, _MUTUAL_REACH * tolerance):
        if clusters.join(a, b, _MUTUAL_REACH * tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    return joins


def noise_estimate(primitives: Sequence[Primitive], tolerance: float) -> float | None:
    """Estimate the noise of the coordinates from the gaps between ends that nearly meet.

    Returns:
        The noise as a length, or None if fewer than `_MIN_GAPS` gaps are within the tolerance.
    """
    points = _end_points(primitives)
    if len(points) < _MIN_GAPS:
        return None
    # The two nearest neighbors of each end; the nearest one (k=1) is the end itself.
    distances, neighbors = map(np.asarray, cKDTree(points).query(points, k=[2, 3]))
    # Ends 2k and 2k + 1 belong to one primitive, and the gap between these is not counted.
    same_primitive = neighbors // 2 == (np.arange(len(points)) // 2)[:, None]
    gaps = np.where(same_primitive[:, 0], distances[:, 1], distances[:, 0])
    small_gaps = gaps[gaps <= tolerance * _SLACK]
    if len(small_gaps) < _MIN_GAPS:
        return None
    return _NOISE_PER_GAP * float(np.quantile(small_gaps, _GAP_QUANTILE))


def _end_points(primitives: Sequence[Primitive]) -> Floats:
    """Return the start and the end of each line and arc in turn, as rows."""
    return np.array([point for p in primitives if isinstance(p, Line | Arc) for point in (p.start, p.end)])


class _EndClusters:
    """Groups of ends that coincide. Ends are numbered in the order of `ends`.

    `join` puts at most one end of a primitive into a cluster, and limits the distance of ends from the mean of their
    cluster. The given constraints are not limited so.

    Attributes:
        points: The position of each end.
        owners: The index of the primitive of each end.
        cluster_of: The cluster of each end.
        members: The ends in each cluster; empty after it was merged into another.
    """

    def __init__(self, ends: Sequence[Ref], points: Floats, given: Sequence[Constraint]) -> None:
        self.points, self.owners = points, [end.primitive or 0 for end in ends]
        self.cluster_of = list(range(len(ends)))
        self.members = [[k] for k in range(len(ends))]
        index_of = {end: k for k, end in enumerate(ends)}
        # An end that coincides with each reference that is not an end, such as a point or a center. Two ends that
        # coincide with the same reference coincide with each other.
        end_at: dict[Ref, int] = {}
        for c in given:
            if c.type is not _T.COINCIDENT or len(c.refs) != 2:
                continue
            indices = [index_of[ref] for ref in c.refs if ref in index_of]
            if len(indices) == 2:
                self._merge(*indices)
            elif len(indices) == 1:
                other = next(ref for ref in c.refs if ref not in index_of)
                if other in end_at:
                    self._merge(indices[0], end_at[other])
                end_at[other] = indices[0]

    def join(self, a: int, b: int, max_distance: float) -> bool:
        """Merge the clusters of two ends if that is allowed; return whether they were merged.

        They are not merged if they are the same cluster already, if both contain an end of one primitive, or if an end
        would be further than `max_distance` from the mean.
        """
        a, b = self.cluster_of[a], self.cluster_of[b]
        if a == b:
            return False
        merged = self.members[a] + self.members[b]
        owners = [self.owners[k] for k in merged]
        if len(set(owners)) < len(owners):
            return False
        offsets = self.points[merged] - self.points[merged].mean(axis=0)
        if np.hypot(*offsets.T).max() > max_distance:
            return False
        self._merge(a, b)
        return True

    def singles(self) -> list[int]:
        """Return the ends that coincide with no other end."""
        return [members[0] for members in self.members if len(members) == 1]

    def _merge(self, a: int, b: int) -> None:
        """Merge the clusters of two ends into the one with the lower number."""
        a, b = sorted((self.cluster_of[a], self.cluster_of[b]))
        if a == b:
            return
        for k in self.members[b]:
            self.cluster_of[k] = a
        self.members[a] += self.members[b]
        self.members[b] = []


def _near_ends(points: Floats, owners: Ints, is_fixed: NDArray[np.bool_], max_distance: float) -> list[tuple[int, int]]:
    """Return pairs of ends within `max_distance`, nearest first.

    The two ends belong to different primitives, and at least one of them may move.
    """
    pairs = cKDTree(points).query_pairs(max_distance, output_type="ndarray")
    pairs = pairs[(owners[pairs[:, 0]] != owners[pairs[:, 1]]) & ~(is_fixed[pairs[:, 0]] & is_fixed[pairs[:, 1]])]
    pairs = np.sort(pairs, axis=1)
    # Distances that differ only by rounding are equal, so that the order of the ends decides.
    distances = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T).round(9)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distances))
    return [(int(a), int(b)) for a, b in pairs[order]]


def _mutually_nearest(points: Floats, owners: Ints, loose: Sequence[int], max_distance: float) -> list[tuple[int, int]]:
    """Return pairs of loose ends within `max_distance`, of which each is the nearest loose end to the other."""
    if not 2 <= len(loose) <= _MAX_LOOSE_ENDS:
        return []
    loose_points, loose_owners = points[list(loose)], owners[list(loose)]
    distances = np.hypot(*np.moveaxis(loose_points[:, None] - loose_points[None], -1, 0))
    distances[loose_owners[:, None] == loose_owners] = np.inf
    nearest = distances.argmin(axis=1).tolist()
    return [
        (loose[a], loose[b])
        for a, b in enumerate(nearest)
        if a < b and nearest[b] == a and distances[a, b] <= max_distance
    ]


class _CurveArrays:
    """All curves as arrays, to compute the distances from a point to all of them at once.

    Lines come first, then circles and arcs; a circle is treated as an arc with a sweep of 2π.
    """

    def __init__(self, primitives: Sequence[Primitive]) -> None:
        lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
        arcs = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Circle | Arc)]
        self.primitive_indices = np.array([*(i for i, _ in lines), *(i for i, _ in arcs)])
        self.line_start = np.array([p.start for _, p in lines]).reshape(-1, 2)
        self.line_vector = np.array([p.end for _, p in lines]).reshape(-1, 2) - self.line_start
        self.center = np.array([p.center for _, p in arcs]).reshape(-1, 2)
        self.radius = np.array([p.radius for _, p in arcs])
        self.start_angle = np.array([p.start_angle if isinstance(p, Arc) else 0.0 for _, p in arcs])
        self.sweep = np.array([p.sweep if isinstance(p, Arc) else TAU for _, p in arcs])

    def nearest(self, point: Floats, owner: int, max_distance: float) -> int | None:
        """Return the index of the nearest curve other than `owner`, or None if none is within `max_distance`.

        Only curves count on which the foot of the perpendicular from the point lies.
        """
        vector = self.line_vector
        offset = point - self.line_start
        # The position of the foot along the line: 0 at its start, 1 at its end.
        fraction = np.sum(offset * vector, axis=1) / np.maximum(np.sum(vector**2, axis=1), 1e-300)
        length = np.hypot(*vector.T)
        line_distance = np.abs(vector[:, 0] * offset[:, 1] - vector[:, 1] * offset[:, 0]) / length
        line_distance[(fraction < 0) | (fraction > 1)] = np.inf
        radial = point - self.center
        arc_distance = np.abs(np.hypot(*radial.T) - self.radius)
        angle = np.arctan2(radial[:, 1], radial[:, 0])
        arc_distance[(angle - self.start_angle) % TAU > self.sweep] = np.inf
        distances = np.concatenate([line_distance, arc_distance])
        distances[self.primitive_indices == owner] = np.inf
        best = int(distances.argmin())
        return int(self.primitive_indices[best]) if distances[best] <= max_distance else None
