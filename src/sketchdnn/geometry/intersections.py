"""Where two curves meet other than by joining their ends, and where primitives lie on top of one another.

Each line, arc or circle lies on a *carrier*, the endless line or whole circle it is part of. Two curves meet at a point
when each of their parts, followed away from it, leaves the other's carrier by more than the tolerance. So a fillet that
runs into its line, or two lines on top of each other, do not meet: they join, or overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from .bounds import primitive_bounds, row_bounds
from .primitives import TAU, Arc, Circle, Line, Point, Primitive, Vec, on_circle
from .proximity import MAX_PAIRS, MAX_RESULTS, TOLERANCE, absolute_tolerance, close_pairs, few_close_pairs
from .sketch import Sketch
from .table import sketches_to_table

Curve = Line | Arc | Circle
# Pairs of more primitives are found with arrays.
_FEW = 48


@dataclass(frozen=True, slots=True)
class Contact:
    """A point where two curves cross or touch, other than at a joint of their ends.

    Attributes:
        first: The index of one primitive.
        second: The index of the other primitive, greater than `first`.
        at: The point.
        crosses: True if each curve passes from one side of the other to its other side; False if they only touch.
    """

    first: int
    second: int
    at: Vec
    crosses: bool


def contact_points(a: Curve, b: Curve, tolerance: float) -> list[tuple[Vec, bool]]:
    """Points where two curves cross (True) or touch (False): at a tangent point, or with an end inside the other.

    >>> contact_points(Line((-2, 0), (2, 0)), Circle((0, 0), 1), 1e-6)
    [((-1.0, 0.0), True), ((1.0, 0.0), True)]
    """
    points, crosses = _carrier_contacts(a, b, tolerance)
    inside_both = [
        (point, crosses)
        for point in points
        if _beside(a, point)
        and _beside(b, point)
        and all(_leaves(part, b, tolerance) for part in _parts(a, point))
        and all(_leaves(part, a, tolerance) for part in _parts(b, point))
    ]
    return inside_both + _ends_inside(a, b, tolerance) + _ends_inside(b, a, tolerance)


def carrier_distance(curve: Curve, point: Vec) -> float:
    """The distance of a point from the endless line or whole circle of a curve."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = curve.start, curve.end
        dx, dy = x1 - x0, y1 - y0
        return abs(dx * (point[1] - y0) - dy * (point[0] - x0)) / math.hypot(dx, dy)
    return abs(math.dist(point, curve.center) - curve.radius)


def distance_to_curve(curve: Curve, point: Vec) -> float:
    """The distance of a point from a curve."""
    if _beside(curve, point):
        return carrier_distance(curve, point)
    return min(math.dist(end, point) for end in endpoints(curve))


def endpoints(curve: Curve) -> tuple[Vec, ...]:
    """Both ends, or none for a circle."""
    return () if isinstance(curve, Circle) else (curve.start, curve.end)


def midpoint(curve: Curve) -> Vec:
    """A point half-way along a curve."""
    if isinstance(curve, Line):
        return ((curve.start[0] + curve.end[0]) / 2, (curve.start[1] + curve.end[1]) / 2)
    return curve.at(0.5)


def _carrier_contacts(a: Curve, b: Curve, tolerance: float) -> tuple[list[Vec], bool]:
    """Where the carriers meet, and whether they cross there rather than touch to within the tolerance."""
    if isinstance(a, Line):
        return _line_line(a, b) if isinstance(b, Line) else _line_circle(a, b, tolerance)
    return _line_circle(b, a, tolerance) if isinstance(b, Line) else _circle_circle(a, b, tolerance)


def _line_line(a: Line, b: Line) -> tuple[list[Vec], bool]:
    ax, ay = a.end[0] - a.start[0], a.end[1] - a.start[1]
    bx, by = b.end[0] - b.start[0], b.end[1] - b.start[1]
    cross = ax * by - ay * bx
    if cross == 0:
        return [], False
    along = ((b.start[0] - a.start[0]) * by - (b.start[1] - a.start[1]) * bx) / cross
    return [(a.start[0] + along * ax, a.start[1] + along * ay)] if 0 < along < 1 else [], True


def _line_circle(line: Line, circle: Arc | Circle, tolerance: float) -> tuple[list[Vec], bool]:
    (x0, y0), (x1, y1), (cx, cy) = line.start, line.end, circle.center
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    along = (cx - x0) * ux + (cy - y0) * uy
    off = abs((cx - x0) * uy - (cy - y0) * ux)
    foot, depth = (x0 + along * ux, y0 + along * uy), circle.radius - off
    if depth <= tolerance:
        return [foot] if depth >= -tolerance else [], False
    return _either_side(foot, (ux, uy), off, circle.radius), True


def _circle_circle(a: Arc | Circle, b: Arc | Circle, tolerance: float) -> tuple[list[Vec], bool]:
    apart = math.dist(a.center, b.center)
    if apart <= tolerance:
        return [], False
    ux, uy = (b.center[0] - a.center[0]) / apart, (b.center[1] - a.center[1]) / apart
    outside, inside = a.radius + b.radius - apart, apart - abs(a.radius - b.radius)
    depth = min(outside, inside)  # of the lens where they intersect, or of the part outside the larger one
    if depth <= tolerance:
        towards = -a.radius if inside < outside and a.radius < b.radius else a.radius
        return [(a.center[0] + towards * ux, a.center[1] + towards * uy)] if depth >= -tolerance else [], False
    along = (apart + (a.radius - b.radius) * (a.radius + b.radius) / apart) / 2
    foot = (a.center[0] + along * ux, a.center[1] + along * uy)
    return _either_side(foot, (-uy, ux), abs(along), a.radius), True


def _either_side(foot: Vec, direction: Vec, off: float, radius: float) -> list[Vec]:
    """The ends of the chord of a circle that runs in a direction through its foot, `off` from the center."""
    half = math.sqrt(max(0.0, (radius - off) * (radius + off)))
    dx, dy = half * direction[0], half * direction[1]
    return [(foot[0] - dx, foot[1] - dy), (foot[0] + dx, foot[1] + dy)]


def _ends_inside(a: Curve, b: Curve, tolerance: float) -> list[tuple[Vec, bool]]:
    """The ends of a that lie on b, away from the ends of b."""
    return [
        (end, False)
        for end in endpoints(a)
        if carrier_distance(b, end) <= tolerance
        and _beside(b, end)
        and all(math.dist(end, other) > tolerance for other in endpoints(b))
        and all(_leaves(part, a, tolerance) for part in _parts(b, end))
        and any(_leaves(part, b, tolerance) for part in _parts(a, end))
    ]


def _beside(curve: Curve, point: Vec) -> bool:
    """Whether the point of the carrier nearest to `point` belongs to the curve."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = curve.start, curve.end
        dx, dy = x1 - x0, y1 - y0
        return 0 <= dx * (point[0] - x0) + dy * (point[1] - y0) <= dx * dx + dy * dy
    return isinstance(curve, Circle) or (_angle(curve, point) - curve.start_angle) % TAU <= curve.sweep


def _parts(curve: Curve, point: Vec) -> tuple[tuple[Vec, Vec], tuple[Vec, Vec]]:
    """The two parts of a curve on either side of a point on it, each as its middle and its end."""
    if isinstance(curve, Line):
        (x, y), start, end = point, curve.start, curve.end
        return ((((x + start[0]) / 2, (y + start[1]) / 2), start), (((x + end[0]) / 2, (y + end[1]) / 2), end))
    angle = _angle(curve, point)
    if isinstance(curve, Circle):
        back, ahead = math.pi, math.pi
    else:
        back = (angle - curve.start_angle) % TAU
        if back > curve.sweep:  # rounded past an end: take the nearer one
            back = 0.0 if TAU - back < back - curve.sweep else curve.sweep
        ahead = curve.sweep - back
    angles = angle - back / 2, angle - back, angle + ahead / 2, angle + ahead
    back_middle, back_end, middle, end = (on_circle(curve.center, curve.radius, each) for each in angles)
    return (back_middle, back_end), (middle, end)


def _leaves(part: tuple[Vec, Vec], other: Curve, tolerance: float) -> bool:
    """Whether a part of a curve runs away from the carrier of another."""
    return carrier_distance(other, part[1]) > tolerance or carrier_distance(other, part[0]) > tolerance


def _angle(curve: Arc | Circle, point: Vec) -> float:
    return math.atan2(point[1] - curve.center[1], point[0] - curve.center[0])


class Extent(StrEnum):
    """How much two primitives overlap."""

    DUPLICATE = "duplicate"  # all of both
    CONTAINED = "contained"  # all of the shorter one
    PARTIAL = "partial"  # some of both


@dataclass(frozen=True, slots=True)
class Overlap:
    """Primitives `first` < `second` share a stretch of this length; 0 for two points."""

    first: int
    second: int
    extent: Extent
    length: float


def overlaps(sketch: Sketch | Sequence[Primitive], tolerance: float = TOLERANCE) -> tuple[Overlap, ...]:
    """Find duplicates, lines along lines, arcs and circles along the same circle, and points on points.

    Construction geometry is compared with construction geometry only: an axis drawn along an edge is no mistake.
    Exact copies are reported as duplicates of the first one and are compared no further.

    Args:
        sketch: The primitives.
        tolerance: A share of the sketch's size.

    Returns:
        The overlaps, sorted by index; after `MAX_RESULTS` overlaps or `MAX_PAIRS` close pairs the search stops.

    >>> overlaps([Line((0, 0), (3, 0)), Line((2, 0), (4, 0)), Line((0, 0), (0, 3))])
    (Overlap(first=0, second=1, extent=<Extent.PARTIAL: 'partial'>, length=1.0),)
    """
    items = dict(enumerate(sketch))
    copies, distance, pairs = distinct_pairs(items, tolerance)
    results = (find_overlap(i, items[i], j, items[j], distance) for i, j in islice(pairs, MAX_PAIRS))
    found = [*copies, *islice(filter(None, results), MAX_RESULTS)]
    return tuple(sorted(found, key=lambda overlap: (overlap.first, overlap.second)))


def distinct_pairs(
    items: Mapping[int, Primitive], tolerance: float
) -> tuple[list[Overlap], float, Iterator[tuple[int, int]]]:
    """The copies among numbered primitives, the tolerance as a length, and pairs i < j of others that come close."""
    if not items:
        return [], tolerance, iter(())
    copies, unique = find_duplicates(items.items())
    primitives = [items[i] for i in unique]
    boxes = [primitive_bounds(p) for p in primitives]
    low_x, low_y, high_x, high_y = zip(*boxes, strict=True)
    distance = absolute_tolerance(tolerance, (min(low_x), min(low_y)), (max(high_x), max(high_y)))
    if len(primitives) <= _FEW:
        pairs = few_close_pairs(primitives, boxes, distance)
    else:
        table = sketches_to_table([primitives])
        pairs = close_pairs(table, *row_bounds(table), distance)
    return copies, distance, ((unique[i], unique[j]) for i, j in pairs)


def find_duplicates(items: Iterable[tuple[int, Primitive]]) -> tuple[list[Overlap], list[int]]:
    """Split numbered primitives into copies of an earlier one and the numbers of the others."""
    seen: dict[object, int] = {}
    copies = []
    for i, item in items:
        first = seen.setdefault(_identity(item), i)
        if first != i:
            copies.append(Overlap(first, i, Extent.DUPLICATE, item.length))
    return copies, list(seen.values())


def find_overlap(i: int, a: Primitive, j: int, b: Primitive, tolerance: float) -> Overlap | None:
    """The overlap of primitives i < j, if any. `tolerance` is a length."""
    if a.construction != b.construction:
        return None
    if isinstance(a, Point) or isinstance(b, Point):
        same = isinstance(a, Point) and isinstance(b, Point) and math.dist(a.at, b.at) <= tolerance
        return Overlap(i, j, Extent.DUPLICATE, 0.0) if same else None
    longer, shorter = (a, b) if a.length >= b.length else (b, a)
    # Mostly an end is off already.
    if not isinstance(shorter, Circle) and carrier_distance(longer, shorter.end) > tolerance:
        return None
    if any(carrier_distance(longer, point) > tolerance for point in _three_points(shorter)):
        return None
    shared = _shared_on_line(longer, shorter) if isinstance(longer, Line) else _shared_on_circle(longer, shorter)
    if shared <= 2 * tolerance:  # ends that join may overshoot by as much
        return None
    covered = [shared >= curve.length - 2 * tolerance for curve in (longer, shorter)]
    extent = Extent.DUPLICATE if covered[0] else Extent.CONTAINED if covered[1] else Extent.PARTIAL
    return Overlap(i, j, extent, shared)


def _three_points(curve: Curve) -> tuple[Vec, ...]:
    """Three points of a curve, which determine its carrier."""
    if isinstance(curve, Circle):
        (x, y), r = curve.center, curve.radius
        return ((x + r, y), (x - r / 2, y + r * math.sqrt(0.75)), (x - r / 2, y - r * math.sqrt(0.75)))
    start, end = endpoints(curve)
    return (start, midpoint(curve), end)


def _shared_on_line(longer: Line, shorter: Curve) -> float:
    """The length of a line that is covered by a curve that lies along it."""
    (x0, y0), length = longer.start, longer.length
    ux, uy = (longer.end[0] - x0) / length, (longer.end[1] - y0) / length
    along = [(x - x0) * ux + (y - y0) * uy for x, y in _three_points(shorter)]
    return min(length, max(along)) - max(0.0, min(along))


def _shared_on_circle(longer: Arc | Circle, shorter: Curve) -> float:
    """The length of an arc or circle that is covered by a curve that lies along it."""
    start, sweep = (longer.start_angle, longer.sweep) if isinstance(longer, Arc) else (0.0, TAU)
    if isinstance(shorter, Circle):
        begin, turn = start, TAU
    else:
        cx, cy = longer.center
        a, b, c = (math.atan2(y - cy, x - cx) for x, y in _three_points(shorter))
        turn = math.remainder(b - a, TAU) + math.remainder(c - b, TAU)
        begin, turn = (a, turn) if turn >= 0 else (c, -turn)
    begin = (begin - start) % TAU
    # The covered stretch may begin before the arc's end and come round to its start once more.
    once = min(begin + turn, sweep) - begin
    again = min(begin + turn, TAU + sweep) - TAU
    return longer.radius * (max(0.0, once) + max(0.0, again))


def _identity(item: Primitive) -> object:
    """A key that is equal for primitives with the same numbers, whichever way a line runs."""
    match item:
        case Line(start, end):
            return (frozenset((start, end)), item.construction)
        case Arc(center, radius, start_angle, sweep):
            return (center, radius, start_angle % TAU, sweep, item.construction)
        case _:
            return item
