"""Search for close points and primitives without comparing all pairs, and the tolerance that defines "close"."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError

from .primitives import Kind, Line, Point, Primitive, Vec
from .table import Floats, PrimitiveTable

# Points nearer than this share of the sketch's size are one: many files keep only five digits.
TOLERANCE = 1e-4

# Limits of a search for overlaps and crossings; so many close pairs take half a minute.
MAX_RESULTS = 10_000
MAX_PAIRS = 2_000_000

# Pairs compared at once, which bounds the memory.
CHUNK = 1 << 17
# Of more points, near ones are found with a tree.
_MAX_SWEPT = 200
# Half of the cells that may hold a point within the distance; the other half is found from the other cell.
NEIGHBORS = ((0, 1), (0, 2), (1, -2), (1, -1), (1, 0), (1, 1), (1, 2), (2, -1), (2, 0), (2, 1))


def absolute_tolerance(tolerance: float, low: Vec, high: Vec) -> float:
    """A share of the size of a box as a length, at least what the coordinates can resolve."""
    if not 0 < tolerance < 1:
        raise GeometryError(f"a tolerance is a share of the size, between 0 and 1, not {tolerance}")
    size, largest = max(high[0] - low[0], high[1] - low[1]), max(map(abs, (*low, *high)))
    return max(tolerance * size, 16 * sys.float_info.epsilon * largest, sys.float_info.min)


# Low x, low y, high x and high y.
Bounds = tuple[float, float, float, float]


class DisjointSets:
    """Items merged pair by pair (union-find); each set is represented by its lowest member, its root.

    In plain Python: for the few points of a sketch it takes a fifth of the time of scipy's connected_components.
    """

    def __init__(self, count: int) -> None:
        self.parent = list(range(count))

    def find(self, item: int) -> int:
        parent = self.parent
        while parent[item] != item:
            parent[item] = item = parent[parent[item]]
        return item

    def union(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        self.parent[max(a, b)] = min(a, b)

    def roots(self) -> NDArray[np.intp]:
        """The root of each item's set."""
        return np.array([self.find(item) for item in range(len(self.parent))], dtype=np.intp)


def component_roots(count: int, groups: Iterable[Sequence[int]]) -> NDArray[np.intp]:
    """The lowest member of each item's connected component, where the items of a group are connected."""
    sets = DisjointSets(count)
    for group in groups:
        for item in group[1:]:
            sets.union(group[0], item)
    return sets.roots()


def cluster_points(points: Sequence[Vec], distance: float) -> list[int]:
    """Single-linkage clusters: points within `distance` of each other get the same number.

    >>> cluster_points([(0, 0), (5, 0), (0, 0.1), (0, 0.2)], 0.15)
    [0, 1, 0, 0]
    """
    sets = DisjointSets(len(points))
    if len(points) <= _MAX_SWEPT:
        for i, j, dx, dy in near_points(points, distance):
            if math.hypot(dx, dy) <= distance:
                sets.union(i, j)
    else:
        _merge_cells(sets, points, distance)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(sets.find(i), len(numbers)) for i in range(len(points))]


def _merge_cells(sets: DisjointSets, points: Sequence[Vec], distance: float) -> None:
    """Merge the sets of points within a distance of each other; it may be many in one place."""
    # All points of a cell are within the distance; only neighboring cells are compared.
    side = distance / math.sqrt(2)
    cells: dict[tuple[int, int], list[int]] = {}
    for i, (x, y) in enumerate(points):
        members = cells.setdefault((math.floor(x / side), math.floor(y / side)), [])
        members.append(i)
        sets.parent[i] = members[0]
    for (column, row), members in cells.items():
        for right, up in NEIGHBORS:
            others = cells.get((column + right, row + up))
            if not others or sets.find(members[0]) == sets.find(others[0]):
                continue
            if _any_within(points, members, others, distance):
                sets.union(members[0], others[0])


def near_points(points: Sequence[Sequence[float]], distance: float) -> Iterator[tuple[int, int, float, float]]:
    """Pairs i < j of points within a distance along both axes, and how far apart they are along each.

    For the few points of most sketches, a sweep in plain Python takes less time than a tree.

    >>> list(near_points([(0, 0), (5, 0), (1, 2)], 2))
    [(0, 2, 1, 2)]
    """
    if len(points) > _MAX_SWEPT:
        from scipy.spatial import cKDTree

        at = np.array(points)
        pairs = cKDTree(at).query_pairs(distance, p=np.inf, output_type="ndarray")
        apart = np.abs(at[pairs[:, 0]] - at[pairs[:, 1]])
        yield from ((i, j, dx, dy) for (i, j), (dx, dy) in zip(pairs.tolist(), apart.tolist(), strict=True))
        return
    order = sorted(range(len(points)), key=lambda i: points[i][0])
    for k, i in enumerate(order):
        x, y = points[i]
        for j in islice(order, k + 1, None):
            dx = points[j][0] - x
            if dx > distance:
                break
            dy = abs(points[j][1] - y)
            if dy <= distance:
                yield (i, j, dx, dy) if i < j else (j, i, dx, dy)


def close_pairs(table: PrimitiveTable, low: Floats, high: Floats, distance: float) -> Iterator[tuple[int, int]]:
    """Pairs i < j of rows whose primitives may come within a distance of each other.

    Boxes exclude most pairs. The others are excluded if one is on one side of a line, or beside or inside a circle.
    """
    point = np.stack([table.x, table.y], axis=1)
    other = np.where((table.kind == Kind.LINE)[:, None], np.stack([table.x2, table.y2], axis=1), point)
    for first, second in box_pairs(low, high, distance):
        a = _Extent(point[first], other[first], table.radius[first])
        b = _Extent(point[second], other[second], table.radius[second])
        apart = _on_one_side(a, b, distance) | _on_one_side(b, a, distance) | _beside_or_inside(a, b, distance)
        close = np.flatnonzero(~apart)
        yield from zip(first[close].tolist(), second[close].tolist(), strict=True)


def few_close_pairs(
    primitives: Sequence[Primitive], boxes: Sequence[Bounds], distance: float
) -> Iterator[tuple[int, int]]:
    """As `close_pairs`, for so few primitives that arrays would take longer: pairs that boxes and lines do not exclude.

    Args:
        primitives: The primitives.
        boxes: Low x, low y, high x and high y of each.
        distance: The distance.
    """
    for j, (low_x, low_y, high_x, high_y) in enumerate(boxes):
        left, below, right, above = low_x - distance, low_y - distance, high_x + distance, high_y + distance
        b = primitives[j]
        for i, a, (x0, y0, x1, y1) in zip(range(j), primitives, boxes, strict=False):
            # Most pairs end here, so this is not left to `may_meet`.
            if x0 > right or left > x1 or y0 > above or below > y1:
                continue
            if not (_is_on_one_side(a, b, distance) or _is_on_one_side(b, a, distance)):
                yield i, j


def may_meet(a: Primitive, box: Bounds, b: Primitive, grown: Bounds, distance: float) -> bool:
    """Whether boxes and lines do not exclude that two primitives come within a distance; `grown` is larger by it."""
    if box[0] > grown[2] or grown[0] > box[2] or box[1] > grown[3] or grown[1] > box[3]:
        return False
    return not (_is_on_one_side(a, b, distance) or _is_on_one_side(b, a, distance))


def _is_on_one_side(line: Primitive, other: Primitive, distance: float) -> bool:
    """Whether a line or circle is on one side of a line; false for other kinds."""
    if not isinstance(line, Line) or isinstance(other, Point):
        return False
    (x, y), (x1, y1) = line.start, line.end
    dx, dy = x1 - x, y1 - y
    if isinstance(other, Line):
        (ax, ay), (bx, by) = other.start, other.end
        near, far, margin = dx * (ay - y) - dy * (ax - x), dx * (by - y) - dy * (bx - x), distance
    else:
        cx, cy = other.center
        near = far = dx * (cy - y) - dy * (cx - x)
        margin = other.radius + distance
    margin *= math.hypot(dx, dy)
    return min(near, far) > margin or max(near, far) < -margin


def box_pairs(low: Floats, high: Floats, distance: float = 0.0) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Batches of pairs i < j of boxes that overlap, or come within a distance along both axes.

    Sweep and prune along the axis that separates the boxes better.
    """
    grown = high + distance
    sweeps = [_sweep(low[:, axis], grown[:, axis]) for axis in (0, 1)]
    axis = 0 if sweeps[0][1].sum() <= sweeps[1][1].sum() else 1
    order, counts = sweeps[axis]
    low, grown = low[order, 1 - axis], grown[order, 1 - axis]
    begin, total = 0, np.cumsum(counts)
    while begin < len(order):
        done = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, done + CHUNK, side="right")))
        many = counts[begin:end]
        first = np.repeat(np.arange(begin, end), many)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(many) - many, many)
        meeting_points = np.flatnonzero((low[first] <= grown[second]) & (low[second] <= grown[first]))
        a, b = order[first[meeting_points]], order[second[meeting_points]]
        yield np.minimum(a, b), np.maximum(a, b)
        begin = end


class _Extent(NamedTuple):
    """A line as its two ends; a circle or arc as its center, twice, and its radius."""

    point: Floats
    other: Floats
    radius: Floats


def _on_one_side(line: _Extent, other: _Extent, distance: float) -> NDArray[np.bool_]:
    """Whether a primitive is on one side of a line; false for other kinds."""
    along = line.other - line.point
    normal = np.stack([-along[:, 1], along[:, 0]], axis=1)
    near, far = (((point - line.point) * normal).sum(axis=1) for point in (other.point, other.other))
    margin = (other.radius + distance) * np.hypot(along[:, 0], along[:, 1])
    return np.asarray((np.minimum(near, far) > margin) | (np.maximum(near, far) < -margin), bool)


def _beside_or_inside(a: _Extent, b: _Extent, distance: float) -> NDArray[np.bool_]:
    """Whether two circles do not come near each other; false for other kinds."""
    apart = np.hypot(*(a.point - b.point).T)
    beside, inside = apart > a.radius + b.radius + distance, apart < np.abs(a.radius - b.radius) - distance
    return np.asarray((beside | inside) & (a.radius > 0) & (b.radius > 0), bool)


def _sweep(low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Intervals ordered by their lower ends, and how many of the next ones start before each one ends."""
    order = np.argsort(low, kind="stable")
    return order, np.searchsorted(low[order], high[order], side="right") - np.arange(1, len(low) + 1)


def _any_within(points: Sequence[Vec], some: list[int], others: list[int], distance: float) -> bool:
    if len(some) * len(others) <= 4096:
        return any(math.dist(points[i], points[j]) <= distance for i in some for j in others)
    from scipy.spatial import cKDTree

    nearest, _ = cKDTree(np.array([points[i] for i in some])).query(np.array([points[j] for j in others]))
    return bool(np.min(nearest) <= distance)
