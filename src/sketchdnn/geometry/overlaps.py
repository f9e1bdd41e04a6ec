"""Primitives drawn on top of one another: at best redundant, at worst what keeps a profile from being extruded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from .bounds import row_bounds
from .intersect import Curve, ends, middle, off_carrier
from .near import MOST_FOUND, MOST_PAIRS, TOLERANCE, close_pairs, reach
from .primitives import TAU, Arc, Circle, Line, Point, Primitive
from .sketch import Sketch
from .table import to_table


class Extent(StrEnum):
    """How much of the two primitives lies on top of each other."""

    DUPLICATE = "duplicate"  # all of both
    CONTAINED = "contained"  # all of the shorter one
    PARTIAL = "partial"  # some of both


@dataclass(frozen=True, slots=True)
class Overlap:
    """Primitives number `first` < `second` share a stretch of this length (nothing for two points)."""

    first: int
    second: int
    extent: Extent
    length: float


def overlaps(sketch: Sketch | Sequence[Primitive], tolerance: float = TOLERANCE) -> tuple[Overlap, ...]:
    """Duplicates, lines along lines, arcs and circles along the same circle, points on points.

    Compares primitives that are both construction or both not: an axis drawn along an edge is no mistake. Of exact
    copies the first stands for all: each of the others is a duplicate of it and is compared no further. `tolerance` is
    a share of the sketch's size. In a hopeless tangle the search stops after `MOST_FOUND` or `MOST_PAIRS`.

    >>> overlaps([Line((0, 0), (3, 0)), Line((2, 0), (4, 0)), Line((0, 0), (0, 3))])
    (Overlap(first=0, second=1, extent=<Extent.PARTIAL: 'partial'>, length=1.0),)
    """
    items = list(sketch)
    if not items:
        return ()
    copies, kept = exact_copies(enumerate(items))
    table = to_table([[items[i] for i in kept]])
    low, high = row_bounds(table)
    within = reach(tolerance, low, high)
    found = (
        overlap
        for i, j in islice(close_pairs(table, low, high, within), MOST_PAIRS)
        if (overlap := compare(kept[i], items[kept[i]], kept[j], items[kept[j]], within)) is not None
    )
    return tuple(sorted([*copies, *islice(found, MOST_FOUND)], key=lambda o: (o.first, o.second)))


def exact_copies(items: Iterable[tuple[int, Primitive]]) -> tuple[list[Overlap], list[int]]:
    """Numbered primitives that equal an earlier one, and the numbers of those that do not."""
    seen: dict[object, int] = {}
    copies, kept = [], []
    for i, item in items:
        first = seen.setdefault(_identity(item), i)
        if first == i:
            kept.append(i)
        else:
            copies.append(Overlap(first, i, Extent.DUPLICATE, item.length))
    return copies, kept


def compare(i: int, a: Primitive, j: int, b: Primitive, within: float) -> Overlap | None:
    """How primitives number i and j lie on top of each other, `within` being a length; None if they do not."""
    first, second = min(i, j), max(i, j)
    if a.construction != b.construction:
        return None
    if isinstance(a, Point) or isinstance(b, Point):
        same = isinstance(a, Point) and isinstance(b, Point) and math.dist(a.at, b.at) <= within
        return Overlap(first, second, Extent.DUPLICATE, 0.0) if same else None
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    for place in _three_places(shorter):
        if off_carrier(longer, place) > within:
            return None
    shared = _shared_by_line(longer, shorter) if isinstance(longer, Line) else _shared_by_circle(longer, shorter)
    if shared <= 2 * within:  # ends that join may overshoot by as much
        return None
    if shared >= longer.length - 2 * within:
        extent = Extent.DUPLICATE
    elif shared >= shorter.length - 2 * within:
        extent = Extent.CONTAINED
    else:
        extent = Extent.PARTIAL
    return Overlap(first, second, extent, shared)


def _three_places(curve: Curve) -> tuple[tuple[float, float], ...]:
    """Enough of a curve to tell its carrier."""
    if isinstance(curve, Circle):
        (x, y), r = curve.center, curve.radius
        return ((x + r, y), (x - r / 2, y + r * math.sqrt(0.75)), (x - r / 2, y - r * math.sqrt(0.75)))
    start, end = ends(curve)
    return (start, middle(curve), end)


def _shared_by_line(longer: Line, shorter: Curve) -> float:
    """The length of a line that another curve, known to lie along it, covers."""
    (x0, y0), length = longer.start, longer.length
    ux, uy = (longer.end[0] - x0) / length, (longer.end[1] - y0) / length
    along = [(x - x0) * ux + (y - y0) * uy for x, y in _three_places(shorter)]
    return min(length, max(along)) - max(0.0, min(along))


def _shared_by_circle(longer: Arc | Circle, shorter: Curve) -> float:
    """The length of an arc or circle that another curve, known to lie along it, covers."""
    start, sweep = (longer.start_angle, longer.sweep) if isinstance(longer, Arc) else (0.0, TAU)
    if isinstance(shorter, Circle):
        begin, turn = start, TAU
    else:
        cx, cy = longer.center
        a, b, c = (math.atan2(y - cy, x - cx) for x, y in _three_places(shorter))
        turn = math.remainder(b - a, TAU) + math.remainder(c - b, TAU)
        begin, turn = (a, turn) if turn >= 0 else (c, -turn)
    begin = (begin - start) % TAU
    # The covered stretch may begin before the arc's end and come round to its start once more.
    once = min(begin + turn, sweep) - begin
    again = min(begin + turn, TAU + sweep) - TAU
    return longer.radius * (max(0.0, once) + max(0.0, again))


def _identity(item: Primitive) -> object:
    """Equal for primitives that draw the same with the same numbers, whichever way a line runs."""
    match item:
        case Line(start, end):
            return (frozenset((start, end)), item.construction)
        case Arc(center, radius, start_angle, sweep):
            return (center, radius, start_angle % TAU, sweep, item.construction)
        case _:
            return item
