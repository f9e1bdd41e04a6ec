"""Joins of a sketch: find ends that nearly meet another end or a curve, and add lines that close open outlines.

All ends of the sketch are compared, and the nearest pairs are joined first. The noise is estimated from the gaps. All
lengths refer to a sketch that is scaled to size one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from sketchdnn.constraints.variables import Constraints, Floats, Ints, Primitives
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref, Vec
from sketchdnn.geometry.bounds import primitive_bounds
from sketchdnn.geometry.constraints import shared_ref
from sketchdnn.geometry.intersections import Curve, contact_points, distance_to_curve, find_overlap
from sketchdnn.geometry.profiles import Chain, Profile, profile, profile_curves
from sketchdnn.geometry.proximity import Bounds, DisjointSets, may_meet, near_points

from .quality import EXACT, Action, ActionKind

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
    primitives: Primitives, given: Constraints, tolerance: float, fixed: Collection[int]
) -> list[Constraint]:
    """Find ends that nearly meet another end or a curve, and return the constraints that join them.

    The sketch has size one. First, ends within the tolerance of each other are joined, nearest first. Then a single
    end is placed on the nearest curve within the tolerance. At last, ends that are still loose are joined in pairs.
    Joins that follow from the given constraints are not returned.
    """
    curves = [i for i, p in enumerate(primitives) if isinstance(p, Line | Arc)]
    ends = [shared_ref(i, part) for i in curves for part in (Part.START, Part.END)]
    if not ends:
        return []
    points = _end_points(primitives)
    clusters = _EndClusters(ends, points, given)
    owners = clusters.owners
    is_fixed = [owner in fixed for owner in owners]
    joins: list[Constraint] = []
    for a, b in _near_ends(points, owners, is_fixed, tolerance * _SLACK):
        if clusters.join(a, b, tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    placed = {ref for c in given if c.type in _PLACES_A_POINT for ref in c.refs}
    singles = [k for k in clusters.singles() if ends[k] not in placed and not is_fixed[k]]
    curves_near = _nearest_curves(primitives, [(points[k], owners[k]) for k in singles], tolerance * _SLACK)
    loose = []
    for k, curve in zip(singles, curves_near, strict=True):
        if curve is None:
            loose.append(k)
        else:
            joins.append(Constraint(_T.POINT_ON_CURVE, (ends[k], shared_ref(curve))))
    for a, b in _mutually_nearest(points, np.array(owners), loose, _MUTUAL_REACH * tolerance):
        if clusters.join(a, b, _MUTUAL_REACH * tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    return joins


@lru_cache(maxsize=2)
def noise_estimate(primitives: tuple[Primitive, ...], tolerance: float) -> float | None:
    """Estimate the noise of the coordinates from the gaps between ends that nearly meet; the last few are cached.

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
    # np.quantile takes longer than all the rest.
    sizes: list[float] = sorted(small_gaps.tolist())
    part, low = math.modf(_GAP_QUANTILE * (len(small_gaps) - 1))
    gap, larger = sizes[int(low)], sizes[int(low) + 1]
    quantile = gap + (larger - gap) * part if part < 0.5 else larger - (larger - gap) * (1 - part)
    return _NOISE_PER_GAP * quantile


def _end_points(primitives: Primitives) -> Floats:
    """Return the start and the end of each line and arc in turn, as rows."""
    return np.array([point for p in primitives if isinstance(p, Line | Arc) for point in (p.start, p.end)])


class _EndClusters:
    """Groups of ends that coincide. Ends are numbered in the order of `ends`.

    `join` puts at most one end of a primitive into a cluster, and limits the distance of ends from the mean of their
    cluster. The given constraints are not limited so.

    Attributes:
        points: The position of each end.
        owners: The index of the primitive of each end.
        clusters: The cluster of each end, represented by its lowest end.
        members: The ends in each cluster.
    """

    def __init__(self, ends: Sequence[Ref], points: Floats, given: Constraints) -> None:
        self.points, self.owners = points.tolist(), [end.primitive or 0 for end in ends]
        self.clusters = DisjointSets(len(ends))
        self.members = {k: [k] for k in range(len(ends))}
        index_of = {end: k for k, end in enumerate(ends)}
        # An end that coincides with each reference that is not an end, such as a point or a center. Two ends that
        # coincide with the same reference coincide with each other.
        end_at: dict[Ref, int] = {}
        for c in given:
            if c.type is not _T.COINCIDENT or len(c.refs) != 2:
                continue
            a, b = c.refs if c.refs[0] in index_of else c.refs[::-1]
            if b in index_of:
                self._merge(index_of[a], index_of[b])
            elif a in index_of:
                self._merge(index_of[a], end_at.get(b, index_of[a]))
                end_at[b] = index_of[a]

    def join(self, a: int, b: int, max_distance: float) -> bool:
        """Merge the clusters of two ends if that is allowed; return whether they were merged.

        They are not merged if they are the same cluster already, if both contain an end of one primitive, or if an end
        would be further than `max_distance` from the mean.
        """
        a, b = self.clusters.find(a), self.clusters.find(b)
        if a == b:
            return False
        merged = self.members[a] + self.members[b]
        owners = [self.owners[k] for k in merged]
        if len(set(owners)) < len(owners):
            return False
        places = [self.points[k] for k in merged]
        middle = sum(x for x, _ in places) / len(places), sum(y for _, y in places) / len(places)
        if max(math.dist(place, middle) for place in places) > max_distance:
            return False
        self._merge(a, b)
        return True

    def singles(self) -> list[int]:
        """Return the ends that coincide with no other end."""
        return [members[0] for members in self.members.values() if len(members) == 1]

    def _merge(self, a: int, b: int) -> None:
        """Merge the clusters of two ends into the one with the lower number."""
        a, b = sorted((self.clusters.find(a), self.clusters.find(b)))
        if a != b:
            self.clusters.union(a, b)
            self.members[a] += self.members.pop(b)


def _near_ends(
    points: Floats, owners: Sequence[int], is_fixed: Sequence[bool], max_distance: float
) -> list[tuple[int, int]]:
    """Return pairs of ends within `max_distance`, nearest first.

    The two ends belong to different primitives, and at least one of them may move.
    """
    pairs = [
        (round(distance, 9), a, b)  # distances that differ only by rounding are equal: the order of the ends decides
        for a, b, dx, dy in near_points(points.tolist(), max_distance)
        if owners[a] != owners[b]
        and not (is_fixed[a] and is_fixed[b])
        and (distance := math.hypot(dx, dy)) <= max_distance
    ]
    return [(a, b) for _, a, b in sorted(pairs)]


def _mutually_nearest(points: Floats, owners: Ints, loose: Sequence[int], max_distance: float) -> list[tuple[int, int]]:
    """Return pairs of loose ends within `max_distance`, of which each is the nearest loose end to the other."""
    if not 2 <= len(loose) <= _MAX_LOOSE_ENDS:
        return []
    loose_points, loose_owners = points[list(loose)], owners[list(loose)]
    distances = np.hypot(*np.moveaxis(loose_points[:, None] - loose_points[None], -1, 0))
    distances[loose_owners[:, None] == loose_owners] = np.inf
    nearest = distances.argmin(axis=1).tolist()
    mutual = [(a, b) for a, b in enumerate(nearest) if a < b and nearest[b] == a]
    return [(loose[a], loose[b]) for a, b in mutual if distances[a, b] <= max_distance]


def _nearest_curves(
    primitives: Primitives, ends: Sequence[tuple[Floats, int]], max_distance: float
) -> list[int | None]:
    """For each of some ends with their owners, the nearest other curve within a distance."""
    if not ends:
        return []
    curves = _CurveArrays(primitives)
    return [curves.nearest(point, owner, max_distance) for point, owner in ends]


class _CurveArrays:
    """All curves as arrays, to compute the distances from a point to all of them at once.

    Lines come first, then circles and arcs; a circle is treated as an arc with a sweep of 2π.
    """

    def __init__(self, primitives: Primitives) -> None:
        lines = {i: (*p.start, *p.end) for i, p in enumerate(primitives) if isinstance(p, Line)}
        arcs = {
            i: (*p.center, p.radius, *((p.start_angle, p.sweep) if isinstance(p, Arc) else (0.0, TAU)))
            for i, p in enumerate(primitives)
            if isinstance(p, Circle | Arc)
        }
        self.primitive_indices = np.array([*lines, *arcs])
        line_rows, arc_rows = np.array([*lines.values()]).reshape(-1, 4), np.array([*arcs.values()]).reshape(-1, 5)
        self.line_start, self.line_vector = line_rows[:, :2], line_rows[:, 2:] - line_rows[:, :2]
        self.center, (self.radius, self.start_angle, self.sweep) = arc_rows[:, :2], arc_rows[:, 2:].T

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


# Closing of profiles: add the lines that open outlines lack, and make other open curves construction.

# A line is added only if it is shorter than this share of the chain it closes.
_MAX_LINK = 0.5
# Open curves become construction only if they are less than this share of the profile.
_MAX_OPEN = 0.5
# A drawing with more open ends is not one outline that lacks a line.
_MAX_ENDS = 40


def may_close(primitives: Primitives) -> bool:
    """Whether there are enough curves to form a closed outline."""
    curves = profile_curves(primitives).values()
    return len(curves) > 2 or any(isinstance(p, Circle) for p in curves)


class ClosedProfile(NamedTuple):
    """Primitives, the new ones last, their constraints, the actions, and the profile."""

    primitives: list[Primitive]
    constraints: list[Constraint]
    actions: list[Action]
    profile: Profile


def close_profile(
    primitives: Primitives, constraints: Constraints, shape: Profile, tolerance: float, keep: Collection[int]
) -> ClosedProfile:
    """Add the lines that outlines lack, and make curves construction that close to nothing. Nothing moves.

    Where that does not make a profile that can be extruded, the sketch stays unchanged.
    """
    unchanged = ClosedProfile(list(primitives), list(constraints), [], shape)
    if len(shape.chains) > _MAX_ENDS or not shape.is_complete:
        return unchanged
    after, related = list(primitives), list(constraints)
    actions: list[Action] = []
    if links := _links(after, shape, tolerance):
        with_links = profile([*after, *(line for line, _, _ in links)], EXACT)
        looped = {edge.primitive_index for loop in with_links.loops for edge in loop.edges}
        closing = [link for k, link in enumerate(links, len(after)) if k in looped]
        if closing:
            is_same = len(closing) == len(links)
            shape = with_links if is_same else profile([*after, *(line for line, _, _ in closing)], EXACT)
        links = closing
    for line, a, b in links:
        ends = ((Part.START, a), (Part.END, b))
        related += [Constraint(ConstraintType.COINCIDENT, (Ref(len(after), part), end)) for part, end in ends]
        actions.append(Action(ActionKind.CLOSE, tuple(r.primitive for r in (a, b) if r.primitive is not None)))
        after.append(line)
    open_curves = sorted(_open_curves(after, shape, keep))
    for i in open_curves:
        after[i] = replace(after[i], construction=True)
        actions.append(Action(ActionKind.CONSTRUCTION, (i,)))
    closed = profile(after, EXACT) if open_curves else shape
    return ClosedProfile(after, related, actions, closed) if closed.is_extrudable else unchanged


def _links(primitives: Primitives, shape: Profile, tolerance: float) -> list[tuple[Line, Ref, Ref]]:
    """Lines between open ends, shortest first, that neither overlap nor cross any curve."""
    curves = profile_curves(primitives)
    open_ends = [end for chain in shape.chains for end in _open_ends(chain, curves)]
    if len(open_ends) > _MAX_ENDS:
        return []
    others: list[tuple[Curve, Bounds]] = [(curve, primitive_bounds(curve)) for curve in curves.values()]
    links: list[tuple[Line, Ref, Ref]] = []
    used: set[Ref] = set()
    pairs = [(round(math.dist(a[0], b[0]), 9), a, b) for a, b in combinations(open_ends, 2)]
    for apart, (start, a, length), (end, b, other_length) in sorted(pairs, key=lambda pair: pair[0]):
        if a in used or b in used or not tolerance < apart <= _MAX_LINK * min(length, other_length):
            continue
        line = Line(start, end)
        low_x, low_y, high_x, high_y = box = primitive_bounds(line)
        grown = (low_x - EXACT, low_y - EXACT, high_x + EXACT, high_y + EXACT)
        near = (curve for curve, own in others if may_meet(curve, own, line, grown, EXACT))
        if any(find_overlap(0, line, 1, curve, EXACT) or contact_points(line, curve, EXACT) for curve in near):
            continue
        used |= {a, b}
        links.append((line, a, b))
        others.append((line, box))
    return links


def _open_ends(chain: Chain, curves: Mapping[int, Curve]) -> Iterator[tuple[Vec, Ref, float]]:
    """The ends of a chain that no other curve touches: point, reference, and the length of the chain."""
    for at, edge, is_start in ((chain.start, chain.edges[0], True), (chain.end, chain.edges[-1], False)):
        own = edge.primitive_index
        if not any(i != own and distance_to_curve(p, at) <= 10 * EXACT for i, p in curves.items()):
            yield at, Ref(own, Part.START if edge.forward is is_start else Part.END), chain.length


def _open_curves(primitives: Primitives, shape: Profile, keep: Collection[int]) -> set[int]:
    """Curves of open chains beside loops, if they are few."""
    curves = {edge.primitive_index for chain in shape.chains for edge in chain.edges}
    if not curves or not shape.loops or not curves.isdisjoint(keep):
        return set()
    length = {i: p.length for i, p in profile_curves(primitives).items()}
    return set() if sum(length[i] for i in curves) > _MAX_OPEN * sum(length.values()) else curves
