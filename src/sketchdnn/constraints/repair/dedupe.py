"""Duplicates, slivers and pieces: drop what is too small or drawn twice, and merge lines and arcs that overlap or that
are pieces of one.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from sketchdnn.constraints.variables import Constraints, Primitives
from sketchdnn.geometry import (
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Vec,
    bounds,
    overlaps,
)
from sketchdnn.geometry.intersections import carrier_distance, distance_to_curve, find_duplicates, midpoint
from sketchdnn.geometry.primitives import arc_from_sweep
from sketchdnn.geometry.proximity import near_points

from .quality import Action, ActionKind

_T = ConstraintType
# A merged primitive may overlap another one that was merged before.
_MAX_ROUNDS = 6
# However small a circle, an arc that lacks a larger angle is not all of it.
_ALMOST_ROUND = 0.2
# Pieces of one line differ in direction by less than this angle (radians).
_MAX_PIECE_BEND = math.radians(2.0)
# Constraints between different primitives.
_BETWEEN_TWO = {_T.PARALLEL, _T.PERPENDICULAR, _T.COLLINEAR, _T.TANGENT, _T.EQUAL}
_BETWEEN_TWO |= {_T.CONCENTRIC, _T.COINCIDENT, _T.POINT_ON_CURVE}


class Deduplicated(NamedTuple):
    """The primitives that are left; primitive k came from `sources[k]`. The first `num_own` constraints are those that
    came from the file's.
    """

    primitives: list[Primitive]
    sources: list[tuple[int, ...]]
    actions: list[Action]
    constraints: list[Constraint]
    num_own: int = 0


def deduplicate(
    primitives: Primitives,
    constraints: Constraints,
    tolerance: float,
    keep: Collection[int],
    num_own: int = 0,
    noise: float = 0.0,
) -> Deduplicated:
    """Drop slivers and duplicates of a sketch of size one, and merge overlaps and pieces.

    Args:
        primitives: The primitives.
        constraints: The constraints, of which the first `num_own` are the file's. Those on dropped primitives are lost.
        tolerance: The size below which something is nothing.
        keep: Indices of primitives that stay as they are.
        num_own: The number of the file's constraints.
        noise: How far pieces of one line or arc may be off it; at 0 pieces stay.
    """
    merger = _Merger(dict(enumerate(primitives)), tolerance, keep)
    for i in _slivers(primitives, tolerance, keep):
        size = extent(merger.primitives.pop(i))
        merger.actions.append(Action(ActionKind.DROP, (i,), detail=f"it is only {100 * size:.2g} % of the size"))
    merger.drop_copies()
    for _ in range(_MAX_ROUNDS):
        if not merger.merge_overlaps():
            break
    while noise > 0 and merger.merge_pieces(tolerance, noise):
        pass
    order = sorted(merger.primitives)
    number = {source: k for k, i in enumerate(order) for source in merger.sources[i]}
    after = [merger.primitives[i] for i in order]
    carried = [_carry_over(c, primitives, after, number, tolerance) for c in constraints]
    distinct = list(dict.fromkeys(c for c in carried if c is not None))
    left_of_own = {c for c in carried[:num_own] if c is not None}
    return Deduplicated(after, [merger.sources[i] for i in order], merger.actions, distinct, len(left_of_own))


def _slivers(primitives: Primitives, tolerance: float, keep: Collection[int]) -> list[int]:
    """Curves too small to be meant, unless the drawing would be smaller without them."""
    small = [i for i, p in enumerate(primitives) if i not in keep and extent(p) < tolerance]
    rest = [p for i, p in enumerate(primitives) if i not in set(small)]
    return small if small and rest and bounds(rest).size > 1 - 4 * tolerance else []


class _Merger:
    """Primitives by their number while some are dropped and merged, and the numbers that each came from."""

    def __init__(self, primitives: dict[int, Primitive], tolerance: float, keep: Collection[int]) -> None:
        self.primitives, self.tolerance, self.keep = primitives, tolerance, keep
        self.sources: dict[int, tuple[int, ...]] = {i: (i,) for i in primitives}
        self.actions: list[Action] = []

    def _absorb(self, stays: int, goes: int) -> None:
        self.sources[stays] += self.sources.pop(goes)
        del self.primitives[goes]

    def drop_copies(self) -> None:
        """Drop all but one of exactly equal primitives, but none of those to keep."""
        keep = self.keep
        kept_first = sorted(self.primitives.items(), key=lambda item: (item[0] not in keep, item[0]))
        for copy in find_duplicates(kept_first)[0]:
            stays, goes = sorted((copy.first, copy.second), key=lambda i: (i not in keep, i))
            if goes not in keep:
                self._absorb(stays, goes)
                self.actions.append(Action(ActionKind.DROP, (goes,)))

    def merge_overlaps(self) -> bool:
        """Merge overlapping pairs, each primitive once; whether there were any."""
        order, tolerance = sorted(self.primitives), self.tolerance
        touched: set[int] = set()
        for overlap in overlaps([self.primitives[i] for i in order], tolerance):
            i, j = order[overlap.first], order[overlap.second]
            if i in touched or j in touched or (i in self.keep and j in self.keep):
                continue
            stays, goes = (j, i) if j in self.keep else (i, j)
            a, b = self.primitives[stays], self.primitives[goes]
            union = _union(a, b, tolerance) if stays == i else _union(b, a, tolerance)
            is_covered = union is not None and _covers(a, b, tolerance)
            if union is None or (stays in self.keep and not is_covered):
                continue
            touched |= {i, j}
            if is_covered and _covers(b, a, tolerance):
                self.actions.append(Action(ActionKind.DROP, self.sources[goes]))
            else:
                both = tuple(sorted({*self.sources[i], *self.sources[j]}))
                self.actions.append(Action(ActionKind.MERGE, both))
            self.primitives[stays] = a if stays in self.keep else union
            self._absorb(stays, goes)  # the source that it runs like comes first
        return bool(touched)

    def merge_pieces(self, tolerance: float, noise: float) -> bool:
        """Merge two joined pieces of one line or arc, if nothing else is at the joint; whether there were any."""
        curves = [
            (i, p) for i, p in sorted(self.primitives.items()) if isinstance(p, Line | Arc) and i not in self.keep
        ]
        ends = [end for _, p in curves for end in (p.start, p.end)]
        best: tuple[float, int, int, Line | Arc] | None = None
        meeting = {(k // 2, other // 2) for k, other, _, _ in near_points(ends, tolerance)}
        for m, n in sorted((m, n) for m, n in meeting if m != n):
            (i, a), (j, b) = curves[m], curves[n]
            if a.construction != b.construction or not _may_be_one(a, b):
                continue
            joint = _joint(a, b, tolerance)
            if joint is None or any(_is_at(p, joint, tolerance) for k, p in self.primitives.items() if k not in (i, j)):
                continue
            off, union = _as_one(a, b, noise)
            if union is not None and (best is None or round(off, 9) < round(best[0], 9)):
                best = (off, i, j, union)
        if best is None:
            return False
        _, i, j, union = best
        self.actions.append(Action(ActionKind.MERGE, tuple(sorted({*self.sources[i], *self.sources[j]}))))
        self.primitives[i] = union
        self._absorb(i, j)
        return True


def _joint(a: Line | Arc, b: Line | Arc, tolerance: float) -> Vec | None:
    """Where two curves have a common end; None if they have none, or two."""
    near = [(p, q) for p in (a.start, a.end) for q in (b.start, b.end) if math.dist(p, q) <= tolerance]
    return ((near[0][0][0] + near[0][1][0]) / 2, (near[0][0][1] + near[0][1][1]) / 2) if len(near) == 1 else None


def _is_at(p: Primitive, place: Vec, tolerance: float) -> bool:
    """Whether a primitive passes through a place, or has its center there."""
    if isinstance(p, Point):
        return math.dist(p.at, place) <= tolerance
    is_center = isinstance(p, Circle | Arc) and math.dist(p.center, place) <= tolerance
    return is_center or distance_to_curve(p, place) <= tolerance


def _may_be_one(a: Line | Arc, b: Line | Arc) -> bool:
    """Whether two lines have almost one direction, or two arcs are no full circle."""
    if isinstance(a, Line) and isinstance(b, Line):
        (ax, ay), (bx, by) = ((p.end[0] - p.start[0], p.end[1] - p.start[1]) for p in (a, b))
        return abs(ax * by - ay * bx) <= math.sin(_MAX_PIECE_BEND) * a.length * b.length
    return isinstance(a, Arc) and isinstance(b, Arc) and a.sweep + b.sweep < math.tau - _ALMOST_ROUND


def _as_one(a: Line | Arc, b: Line | Arc, noise: float) -> tuple[float, Line | Arc | None]:
    """How far two pieces that may be one are off their union, and the union; None if they are too far off."""
    union: Line | Arc
    if isinstance(a, Line) and isinstance(b, Line):
        union = _line_union(a, b)
    elif isinstance(a, Arc) and isinstance(b, Arc):
        first, second = (a, b) if math.dist(a.end, b.start) <= math.dist(b.end, a.start) else (b, a)
        union = arc_from_sweep(first.start, second.end, a.sweep + b.sweep, construction=a.construction)
    else:
        return math.inf, None
    places = (a.start, a.end, b.start, b.end, midpoint(a), midpoint(b))
    off = max(carrier_distance(union, place) for place in places)
    fits = off <= noise and abs(a.length + b.length - union.length) <= 4 * noise
    return (off, union) if fits else (math.inf, None)


def extent(p: Primitive) -> float:
    """The size of a curve; infinite for a point, which is small by nature."""
    return math.inf if isinstance(p, Point) else 2 * p.radius if isinstance(p, Circle) else p.length


def _union(a: Primitive, b: Primitive, tolerance: float) -> Primitive | None:
    """The union of two overlapping primitives; None where that is no single primitive."""
    match a, b:
        case Point(p), Point(q):
            return replace(a, at=((p[0] + q[0]) / 2, (p[1] + q[1]) / 2))
        case Line(), Line():
            return _line_union(a, b)
        case Circle(p), Circle(q):
            return replace(a, center=((p[0] + q[0]) / 2, (p[1] + q[1]) / 2), radius=(a.radius + b.radius) / 2)
        case (Circle() as circle, Arc()) | (Arc(), Circle() as circle):
            return circle
        case Arc(), Arc():
            return _arc_union(a, b, tolerance)
    return None


def _line_union(a: Line, b: Line) -> Line:
    """The line between the outermost ends, in the direction of the first line."""
    longer = a if a.length >= b.length else b
    (x0, y0), (x1, y1) = longer.start, longer.end
    ends = sorted((a.start, a.end, b.start, b.end), key=lambda p: (p[0] - x0) * (x1 - x0) + (p[1] - y0) * (y1 - y0))
    first, last = ends[0], ends[-1]
    forward = (a.end[0] - a.start[0]) * (x1 - x0) + (a.end[1] - a.start[1]) * (y1 - y0) >= 0
    return replace(a, start=first, end=last) if forward else replace(a, start=last, end=first)


def _arc_union(a: Arc, b: Arc, tolerance: float) -> Arc | Circle | None:
    """The arc on the longer one's circle that covers both; None if they bend apart."""
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    (cx, cy), radius = longer.center, longer.radius
    start, middle, end = (math.atan2(y - cy, x - cx) for x, y in (shorter.start, shorter.mid, shorter.end))
    turn = (middle - start) % math.tau + (end - middle) % math.tau
    if abs(turn * radius - shorter.length) > 4 * tolerance:
        return None  # it bends the other way
    begin = (start - longer.start_angle) % math.tau
    if begin <= longer.sweep:
        low, high = 0.0, max(longer.sweep, begin + turn)
    else:  # it begins before the longer one does
        low, high = begin - math.tau, max(longer.sweep, begin + turn - math.tau)
    if high - low >= math.tau - min(tolerance / radius, _ALMOST_ROUND):
        return Circle(longer.center, radius, a.construction)
    return replace(a, center=longer.center, radius=radius, start_angle=longer.start_angle + low, sweep=high - low)


def _covers(a: Primitive, b: Primitive, tolerance: float) -> bool:
    """Whether b, which overlaps a, does not extend beyond it."""
    both = _union(a, b, tolerance)
    return both is not None and both.kind == a.kind and both.length <= a.length + 2 * tolerance


def _carry_over(
    constraint: Constraint, before: Primitives, after: Primitives, number: dict[int, int], tolerance: float
) -> Constraint | None:
    """A constraint on the new primitives; None where one of its primitives or ends is gone."""
    refs = []
    for ref in constraint.refs:
        if ref.primitive is None:
            refs.append(ref)
            continue
        if ref.primitive not in number:
            return None
        k, part = number[ref.primitive], ref.part
        old, new = before[ref.primitive], after[k]
        if old is not new and old != new and isinstance(old, Line | Arc) and part in (Part.START, Part.END):
            if not isinstance(new, Line | Arc):
                return None
            place = old.start if part is Part.START else old.end
            start, end = math.dist(new.start, place), math.dist(new.end, place)
            if min(start, end) > 3 * tolerance:
                return None
            part = Part.START if start <= end else Part.END
        refs.append(ref if ref.primitive == k and ref.part is part else Ref(k, part))
    if len({ref.primitive for ref in refs} if constraint.type in _BETWEEN_TWO else set(refs)) < len(refs):
        return None
    new_refs = tuple(refs)
    return constraint if new_refs == constraint.refs else replace(constraint, refs=new_refs)
