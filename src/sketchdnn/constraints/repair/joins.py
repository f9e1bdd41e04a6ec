"""Joins of a sketch: find ends that nearly meet another end or a curve, and estimate the noise from the gaps.

All ends of the sketch are compared, and the nearest pairs are joined first. All lengths refer to a sketch that is
scaled to size one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sketchdnn.constraints.variables import Floats, Ints
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref

_T = ConstraintType
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
# Types of constraints that place a point on a curve or on another point.
_PLACES_A_POINT = frozenset({_T.POINT_ON_CURVE, _T.COINCIDENT, _T.MIDPOINT})


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
