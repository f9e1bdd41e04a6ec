"""What lies close to what, found without comparing everything with everything, and what "close" means."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError

from .primitives import Kind, Vec
from .table import Floats, Table

# What counts as the same place, as a share of the sketch's size: files often keep five digits and no more.
TOLERANCE = 1e-4

# A drawing with more overlaps or crossings has gone wrong as a whole, and so many pairs close to each other take half a
# minute to look at: the search stops there.
MOST_FOUND = 10_000
MOST_PAIRS = 2_000_000

# Pairs looked at in one go: bounds the memory, whatever the drawing.
CHUNK = 1 << 17
# Half of the cells around a cell that may hold a place within reach; the other half finds it from its own side.
NEIGHBORS = ((0, 1), (0, 2), (1, -2), (1, -1), (1, 0), (1, 1), (1, 2), (2, -1), (2, 0), (2, 1))


def reach(tolerance: float, low: Floats, high: Floats) -> float:
    """A tolerance given as a share of the size of all boxes, as a length, but no less than coordinates can resolve."""
    if not 0 < tolerance < 1:
        raise GeometryError(f"a tolerance is a share of the size, between 0 and 1, not {tolerance}")
    lowest, highest = low.min(axis=0), high.max(axis=0)
    size, largest = float(np.max(highest - lowest)), float(max(np.max(np.abs(lowest)), np.max(np.abs(highest))))
    return max(tolerance * size, 16 * sys.float_info.epsilon * largest, sys.float_info.min)


def join(places: Sequence[Vec], distance: float) -> list[int]:
    """A number for each place, the same for places within `distance` of each other, directly or from one to the next.

    >>> join([(0, 0), (5, 0), (0, 0.1), (0, 0.2)], 0.15)
    [0, 1, 0, 0]
    """
    # Cells so small that all places in one belong together: only neighboring cells need a measurement.
    side = distance / math.sqrt(2)
    cells: dict[tuple[int, int], list[int]] = {}
    for i, (x, y) in enumerate(places):
        cells.setdefault((math.floor(x / side), math.floor(y / side)), []).append(i)
    group = list(range(len(places)))  # of the first place of each cell; the others follow it at the end

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = i = group[group[i]]
        return i

    for (column, row), members in cells.items():
        for right, up in NEIGHBORS:
            others = cells.get((column + right, row + up))
            if others is not None:
                a, b = root(members[0]), root(others[0])
                if a != b and _any_within(places, members, others, distance):
                    group[max(a, b)] = min(a, b)
    for members in cells.values():
        first = root(members[0])
        for i in members:
            group[i] = first
    numbers: dict[int, int] = {}
    return [numbers.setdefault(g, len(numbers)) for g in group]


def close_pairs(table: Table, low: Floats, high: Floats, distance: float) -> Iterator[tuple[int, int]]:
    """Pairs i < j of rows, with their boxes, whose primitives may come within a distance of each other.

    Boxes tell most pairs apart; the rest must also not lie on one side of a line, nor beside or inside a circle.
    """
    place = np.stack([table.x, table.y], axis=1)
    other = np.where((table.kind == Kind.LINE)[:, None], np.stack([table.x2, table.y2], axis=1), place)
    for first, second in near_pairs(low, high, distance):
        a = _Extent(place[first], other[first], table.radius[first])
        b = _Extent(place[second], other[second], table.radius[second])
        apart = _on_one_side(a, b, distance) | _on_one_side(b, a, distance) | _beside_or_inside(a, b, distance)
        close = np.flatnonzero(~apart)
        yield from zip(first[close].tolist(), second[close].tolist(), strict=True)


def near_pairs(low: Floats, high: Floats, distance: float = 0.0) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Pairs i < j of boxes that overlap or come within a distance of it along both axes, some thousand at a time.

    Sweeps along the axis that separates the boxes better.
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
        meet = np.flatnonzero((low[first] <= grown[second]) & (low[second] <= grown[first]))
        a, b = order[first[meet]], order[second[meet]]
        yield np.minimum(a, b), np.maximum(a, b)
        begin = end


class _Extent(NamedTuple):
    """A line as its two ends, a circle or arc as its center, twice, and what lies around it."""

    place: Floats
    other: Floats
    radius: Floats


def _on_one_side(of: _Extent, what: _Extent, distance: float) -> NDArray[np.bool_]:
    """Whether all of a primitive is to the same side of a line; never of anything else."""
    along = of.other - of.place
    normal = np.stack([-along[:, 1], along[:, 0]], axis=1)
    near, far = (((place - of.place) * normal).sum(axis=1) for place in (what.place, what.other))
    margin = (what.radius + distance) * np.hypot(along[:, 0], along[:, 1])
    one_side: NDArray[np.bool_] = (np.minimum(near, far) > margin) | (np.maximum(near, far) < -margin)
    return one_side


def _beside_or_inside(a: _Extent, b: _Extent, distance: float) -> NDArray[np.bool_]:
    """Whether two circles do not come near each other; never for anything else."""
    apart = np.hypot(*(a.place - b.place).T)
    beside, inside = apart > a.radius + b.radius + distance, apart < np.abs(a.radius - b.radius) - distance
    clear: NDArray[np.bool_] = (beside | inside) & (a.radius > 0) & (b.radius > 0)
    return clear


def _sweep(low: Floats, high: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Intervals in the order of their lower ends, and for each how many of the following begin before it ends."""
    order = np.argsort(low, kind="stable")
    return order, np.searchsorted(low[order], high[order], side="right") - np.arange(1, len(low) + 1)


def _any_within(places: Sequence[Vec], some: list[int], others: list[int], distance: float) -> bool:
    if len(some) * len(others) <= 4096:
        return any(math.dist(places[i], places[j]) <= distance for i in some for j in others)
    from scipy.spatial import cKDTree

    nearest, _ = cKDTree(np.array([places[i] for i in some])).query(np.array([places[j] for j in others]))
    return bool(np.min(nearest) <= distance)
