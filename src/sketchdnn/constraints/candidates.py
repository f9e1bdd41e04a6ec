"""Candidates for constraints: guesses from arrays over all pairs. `infer` decides which of them hold.

An error ε of every parameter explains a residual of at most ε·|g|, where g is the derivative of the residual by all
parameters. Where |g| is known, what misses by more is no candidate: for two radii |r − s| that is √2 ε, for a point
beside a line √(1 + s² + (1 − s)²) ε, where s is how far along the line it lies. Merged or fixed parameters only lower
what is explained.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Part, Point, Ref, Vec
from sketchdnn.geometry.constraints import shared_ref

from .variables import Bools, Floats, Ints, Variables

# A line rotated by more than this sine has another direction, however short it is. A larger bend between curves that
# meet is a corner. Sizes that differ by more than this share of the smaller one are different; radii, which come in
# fewer sizes, may differ by more.
MAX_TURN = 0.08
MAX_BEND = 0.3
_MAX_STRETCH = 0.08
_MAX_RADIUS_STRETCH = 0.25
# A Point may lie this far beyond the end of a line that leads to it, as a share of the sketch.
_MAX_EXTENSION = 0.25
# Pairs of points around each of more Points would be too many candidates.
_MAX_MIDPOINTS = 64
# So that rounding excludes no candidate.
_SLACK = 1 + 1e-6


class SketchArrays:
    """The points, lines and circles of a sketch as arrays; `error` is how far off a parameter may be.

    One point represents all points of its set.
    """

    def __init__(self, variables: Variables, roots: Ints, error: float) -> None:
        self.variables, self.roots, self.reach = variables, roots, 2 * error
        self.error = error * _SLACK
        root_of: list[int] = roots.tolist()
        representatives = sorted(set(root_of))
        self.representatives = np.array(representatives, dtype=int)
        self.lines, self.rounds = variables.lines, variables.rounds
        first = np.array(variables.first, dtype=int)
        self.starts = first[np.array(self.lines, dtype=int)]
        self.centers = first[np.array(self.rounds, dtype=int)]
        marks = {root_of[variables.first[i]] for i, p in enumerate(variables.primitives) if isinstance(p, Point)}
        self.is_point = np.array([k in marks for k in representatives], dtype=bool)

    def update(self, f: Floats) -> None:
        """Take the parameters from `f`."""
        self.at = f[: 2 * self.variables.num_points].reshape(-1, 2)
        self.start = self.at[self.starts]
        self.along = self.at[self.starts + 1] - self.start
        self.length = np.maximum(np.hypot(self.along[:, 0], self.along[:, 1]), 1e-12)
        self.unit = self.along / self.length[:, None]
        self.is_long = self.length * MAX_TURN > self.reach / 4  # long enough to have a direction
        self.center, self.radius = self.at[self.centers], f[self.variables.radii]

    def ref(self, representative: int) -> Ref:
        """The reference to the point of a representative, by its number among them."""
        return self.variables.ref(self.representatives[representative])

    def owns(self, primitive: int, point: int) -> bool:
        """Whether a point is one of a circle's or arc's own."""
        k, is_circle = self.variables.first[primitive], isinstance(self.variables.primitives[primitive], Circle)
        return point in self.roots[k : k + (1 if is_circle else 3)]

    def covers(self, primitive: int, place: Floats) -> bool:
        """Whether a place near a circle is beside the drawn part of it."""
        p = self.variables.primitives[primitive]
        x, y = place - self.at[self.variables.first[primitive]]
        return not isinstance(p, Arc) or (float(np.arctan2(y, x)) - p.start_angle) % TAU <= p.sweep


def directions(arrays: SketchArrays, level: set[int | None]) -> Iterator[Constraint]:
    """Parallel and perpendicular lines, except those that are horizontal or vertical already."""
    is_long = arrays.is_long.tolist()
    chosen = [k for k, i in enumerate(arrays.lines) if is_long[k] and i not in level]
    unit, inverse = arrays.unit[chosen].tolist(), (1 / arrays.length[chosen]).tolist()
    parallel, perpendicular = [], []
    for a, (ax, ay) in enumerate(unit):
        for b in range(a + 1, len(chosen)):
            bx, by = unit[b]
            most = min(2**0.5 * arrays.error * math.hypot(inverse[a], inverse[b]), MAX_TURN)
            if abs(ax * by - ay * bx) <= most:
                parallel.append((chosen[a], chosen[b]))
            if abs(ax * bx + ay * by) <= most:
                perpendicular.append((chosen[a], chosen[b]))
    for pairs, kind in ((parallel, ConstraintType.PARALLEL), (perpendicular, ConstraintType.PERPENDICULAR)):
        for a, b in pairs:
            yield Constraint(kind, (shared_ref(arrays.lines[a]), shared_ref(arrays.lines[b])))


def tangents_at_contacts(contacts: Mapping[frozenset[int], int], arrays: SketchArrays) -> Iterator[Constraint]:
    """Curves that share a point, one of them round, and have almost one direction there."""
    radius, at = arrays.variables.radius, arrays.at.tolist()

    def vector(primitive: int, contact: int) -> Vec:
        """Along a line, or from the contact to a center."""
        first = arrays.variables.first[primitive]
        x, y = at[contact] if primitive in radius else at[first + 1]
        return x - at[first][0], y - at[first][1]

    for pair, contact in contacts.items():
        a, b = sorted(pair)
        if a not in radius and b not in radius:
            continue
        (ax, ay), (bx, by) = vector(a, contact), vector(b, contact)
        size, other = max(math.hypot(ax, ay), 1e-12), max(math.hypot(bx, by), 1e-12)
        off = abs(ax * by - ay * bx if a in radius and b in radius else ax * bx + ay * by) / (size * other)
        # The contact may be part of both vectors, which makes the derivative up to √3 times as long as those alone.
        if off <= min(3**0.5 * arrays.error * math.hypot(1 / size, 1 / other), MAX_BEND):
            yield Constraint(ConstraintType.TANGENT, (shared_ref(a), shared_ref(b)))


def tangents(arrays: SketchArrays, contacts: Iterable[frozenset[int]]) -> Iterator[Constraint]:
    """Curves that touch without sharing a point, where both are drawn."""
    if not arrays.rounds:
        return
    shared, reach = set(contacts), arrays.reach
    if arrays.lines:
        offset = arrays.center[:, None] - arrays.start[None]
        along = _dot(offset, arrays.unit)
        off = np.abs(np.abs(_cross(arrays.unit[None], offset)) - arrays.radius[:, None])
        inside = (along > 0) & (along < arrays.length[None])
        for r, k in zip(*np.nonzero((off <= 3**0.5 * arrays.error) & inside), strict=True):
            i, j = arrays.rounds[r], arrays.lines[k]
            foot = arrays.start[k] + along[r, k] * arrays.unit[k]
            if frozenset((i, j)) not in shared and arrays.covers(i, foot):
                yield Constraint(ConstraintType.TANGENT, (shared_ref(j), shared_ref(i)))
    apart = _lengths(arrays.center[:, None] - arrays.center[None])
    total, between = arrays.radius[:, None] + arrays.radius, np.abs(arrays.radius[:, None] - arrays.radius)
    near = np.minimum(np.abs(apart - total), np.abs(apart - between)) <= 2 * arrays.error
    for r, s in _pairs(near & (apart > 4 * reach)):
        i, j = arrays.rounds[r], arrays.rounds[s]
        toward = (arrays.center[s] - arrays.center[r]) / apart[r, s]
        sign = 1.0 if abs(apart[r, s] - total[r, s]) <= 2 * reach or arrays.radius[r] > arrays.radius[s] else -1.0
        place = arrays.center[r] + sign * arrays.radius[r] * toward
        if frozenset((i, j)) not in shared and arrays.covers(i, place) and arrays.covers(j, place):
            yield Constraint(ConstraintType.TANGENT, (shared_ref(i), shared_ref(j)))


def points_on_curves(arrays: SketchArrays) -> Iterator[Constraint]:
    """Points on a line between its ends, at its midpoint, or on a circle.

    A Point primitive often marks where curves would meet, so it may also lie on their extensions.
    """
    points, is_point, roots = arrays.representatives, arrays.is_point, arrays.roots
    at, reach, length = arrays.at[points], arrays.reach, arrays.length
    if arrays.lines:
        offset = at[:, None] - arrays.start[None]
        along = _dot(offset, arrays.unit)
        off = np.abs(_cross(arrays.unit[None], offset))
        own = (points[:, None] == roots[arrays.starts]) | (points[:, None] == roots[arrays.starts + 1])
        between = (along > 0) & (along < length[None])
        extended = (along > -_MAX_EXTENSION) & (along < length[None] + _MAX_EXTENSION)
        beyond = is_point[:, None] & arrays.is_long & extended
        beside, share = ~own & (between | beyond), along / length
        near = beside & (off <= np.minimum(arrays.error * np.sqrt(1 + share**2 + (1 - share) ** 2), 2 * reach))
        # Each coordinate may miss by √1.5 ε.
        halfway = np.abs(along - length / 2) <= np.minimum(2 * reach, 0.2 * length)
        middle = beside & halfway & (off <= 3**0.5 * arrays.error)
        for kind, candidates in ((ConstraintType.MIDPOINT, middle), (ConstraintType.POINT_ON_CURVE, near)):
            for p, k in zip(*np.nonzero(candidates), strict=True):
                yield Constraint(kind, (arrays.ref(p), shared_ref(arrays.lines[k])))
    if arrays.rounds:
        off = np.abs(_lengths(at[:, None] - arrays.center[None]) - arrays.radius)
        for p, k in zip(*np.nonzero(off <= 3**0.5 * arrays.error), strict=True):
            i = arrays.rounds[k]
            if not arrays.owns(i, points[p]) and (is_point[p] or arrays.covers(i, at[p])):
                yield Constraint(ConstraintType.POINT_ON_CURVE, (arrays.ref(p), shared_ref(i)))


def collinear(arrays: SketchArrays) -> Iterator[Constraint]:
    """Lines on one line."""
    unit, start = arrays.unit[:, None], arrays.start
    starts = _cross(unit, start[None] - start[:, None])
    ends = _cross(unit, start[None] + arrays.along[None] - start[:, None])
    off = np.maximum(np.abs(starts), np.abs(ends))
    near = (off <= 2 * arrays.reach) & arrays.is_long[:, None] & arrays.is_long
    for a, b in _pairs(near & near.T):
        yield Constraint(ConstraintType.COLLINEAR, (shared_ref(arrays.lines[a]), shared_ref(arrays.lines[b])))


def equal_sizes(arrays: SketchArrays) -> Iterator[Constraint]:
    """Lines of one length, circles and arcs of one radius: each and the next larger one."""
    rounds = (arrays.radius, arrays.rounds, 2**0.5, _MAX_RADIUS_STRETCH)
    lines = (arrays.length, arrays.lines, 2.0, _MAX_STRETCH)
    for sizes, owners, derivative, stretch in (rounds, lines):
        ordered = sorted(zip(sizes.tolist(), owners, strict=True))
        for (smaller, a), (larger, b) in pairwise(ordered):
            if larger - smaller <= min(derivative * arrays.error, stretch * smaller):
                yield Constraint(ConstraintType.EQUAL, (shared_ref(min(a, b)), shared_ref(max(a, b))))


def aligned(arrays: SketchArrays) -> Iterator[Constraint]:
    """Centers and points beside or above each other."""
    parts = [part for _, part in arrays.variables.points]
    loose = [k for k, of in enumerate(arrays.representatives.tolist()) if parts[of] in (Part.CENTER, Part.POINT)]
    at, most = arrays.at[arrays.representatives[loose]].tolist(), 2**0.5 * arrays.error
    for axis, kind in ((1, ConstraintType.HORIZONTAL), (0, ConstraintType.VERTICAL)):
        for (k, a), (m, b) in combinations(zip(loose, at, strict=True), 2):
            apart = abs(a[axis] - b[axis])
            if apart <= most and apart <= MAX_TURN * abs(a[1 - axis] - b[1 - axis]):
                yield Constraint(kind, (arrays.ref(k), arrays.ref(m)))


def midpoints(arrays: SketchArrays) -> Iterator[Constraint]:
    """Points halfway between two others."""
    at, points = arrays.at[arrays.representatives], np.flatnonzero(arrays.is_point)
    for middle in points.tolist() if max(len(points), len(at) / 4) <= _MAX_MIDPOINTS else ():
        off = _largest(2 * at[middle] - at[:, None] - at[None])
        off[middle], off[:, middle] = np.inf, np.inf
        for a, b in _pairs(off <= 6**0.5 * arrays.error):
            yield Constraint(ConstraintType.MIDPOINT, (arrays.ref(middle), arrays.ref(a), arrays.ref(b)))


def rows(arrays: SketchArrays) -> Iterator[Constraint]:
    """Circles halfway between two others of their size."""
    circles = [k for k, i in enumerate(arrays.rounds) if isinstance(arrays.variables.primitives[i], Circle)]
    if not 3 <= len(circles) <= _MAX_MIDPOINTS:
        return
    at, radius = arrays.center[circles], arrays.radius[circles]
    alike = np.abs(radius[:, None] - radius) <= np.minimum(2 * arrays.reach, _MAX_STRETCH * radius)
    for middle, k in enumerate(circles):
        off = _largest(2 * at[middle] - at[:, None] - at[None])
        near = (off <= 6**0.5 * arrays.error) & alike[middle] & alike[middle][:, None]
        near[middle], near[:, middle] = False, False
        near &= _lengths(at[:, None] - at[None]) > 4 * arrays.reach
        for a, b in _pairs(near):
            refs = (shared_ref(arrays.rounds[m], Part.CENTER) for m in (circles[a], circles[b], k))
            yield Constraint(ConstraintType.SYMMETRIC, tuple(refs))


def symmetric(arrays: SketchArrays) -> Iterator[Constraint]:
    """Points mirrored about a construction line, if two pairs agree, or about an axis, if most of the sketch does.

    For that count, pairs may miss by more than constraints may: the sketch is symmetric, but it is drawn with noise.
    """
    variables, reach = arrays.variables, arrays.reach
    at = arrays.at[arrays.representatives]
    dashed = [k for k, i in enumerate(arrays.lines) if arrays.is_long[k] and variables.primitives[i].construction]
    mirrors = [(shared_ref(arrays.lines[k]), arrays.start[k], arrays.unit[k], 4.0) for k in dashed]
    origin, axes = -np.array(variables.shift) / variables.scale, zip((Part.X_AXIS, Part.Y_AXIS), np.eye(2), strict=True)
    mirrors += [(shared_ref(None, axis), origin, unit, 0.6 * len(at)) for axis, unit in axes]
    for ref, start, unit, least in mirrors:
        offset = at - start
        image = start + 2 * np.outer(offset @ unit, unit) - offset
        off = _largest(image[:, None] - at[None])
        beside = np.abs(_cross(unit, offset)) > 2 * reach
        near = (off <= 2 * reach) & beside[:, None] & beside
        if np.count_nonzero(near.any(axis=1)) >= max(least, 4.0):
            for a, b in _pairs(near & (off <= 2**0.5 * arrays.error) if ref.primitive is None else near):
                yield Constraint(ConstraintType.SYMMETRIC, (arrays.ref(a), arrays.ref(b), ref))


def _cross(a: Floats, b: Floats) -> Floats:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1])


def _largest(a: Floats) -> Floats:
    """The larger coordinate of vectors."""
    return np.asarray(np.maximum(np.abs(a[..., 0]), np.abs(a[..., 1])))


def _lengths(a: Floats) -> Floats:
    return np.asarray(np.hypot(a[..., 0], a[..., 1]))


def _pairs(near: Bools) -> Iterator[tuple[int, int]]:
    """Each two that are near, once."""
    return ((a, b) for a, b in zip(*map(np.ndarray.tolist, np.nonzero(near)), strict=True) if a < b)
