"""From a mask of ink to a graph of strokes: thinning, junctions, and the paths of pixels between them.

Coordinates are pixels, x to the right and y down, as `(x, y)` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .opencv import opencv

Mask = NDArray[np.uint8]
Places = NDArray[np.float64]

# More pixels of skeleton are no drawing.
MAX_SKELETON = 60_000
# The neighbors of a pixel, clockwise from above, and the weight of each in its code.
_NEIGHBORS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
_MAX_PASSES = 200
# A path of so few pixels that returns to its junction is part of it.
_KNOT = 8


@dataclass(frozen=True, slots=True)
class Stroke:
    """A path of the graph.

    Attributes:
        at: The pixels in order, `pixel, 2`.
        start: The number of the node at its start.
        end: The number of the node at its end; that of `start` for a loop.
        is_loop: Whether it is closed.
    """

    at: Places
    start: int
    end: int
    is_loop: bool = False

    @property
    def length(self) -> float:
        return float(np.hypot(*np.diff(self.at, axis=0).T).sum()) if len(self.at) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class StrokeGraph:
    """Strokes, and how many of them meet at each node."""

    strokes: tuple[Stroke, ...]
    degree: dict[int, int]


def thin(mask: Mask) -> Mask:
    """The skeleton of a mask of zeros and ones, one pixel wide (Zhang and Suen)."""
    cv2 = opencv()
    weights = np.zeros((3, 3), np.float32)
    for bit, (x, y) in enumerate(_NEIGHBORS):
        weights[y + 1, x + 1] = 1 << bit
    image = np.pad(mask, 1)
    first, second = _removable()
    for _ in range(_MAX_PASSES):
        before = int(np.count_nonzero(image))
        for table in (first, second):
            codes = cv2.filter2D(image, cv2.CV_8U, weights, borderType=cv2.BORDER_CONSTANT)
            image = image & cv2.LUT(codes, table)
        if int(np.count_nonzero(image)) == before:
            break
    return np.ascontiguousarray(image[1:-1, 1:-1])


@cache
def _removable() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each code of neighbors, 0 where the pixel is removed in the first and in the second half of a pass."""
    tables = np.ones((2, 256), np.uint8)
    for code in range(256):
        p = [code >> bit & 1 for bit in range(8)]
        steps = sum(p[k] == 0 and p[(k + 1) % 8] == 1 for k in range(8))
        if not 2 <= sum(p) <= 6 or steps != 1:
            continue
        up, right, down, left = p[0], p[2], p[4], p[6]
        tables[0, code] = 0 if not (up and right and down) and not (right and down and left) else 1
        tables[1, code] = 0 if not (up and right and left) and not (up and down and left) else 1
    return tables[0], tables[1]


def stroke_graph(skeleton: Mask, width: float) -> StrokeGraph:
    """The strokes of a skeleton. Spurs and links about as short as a stroke is wide are artifacts and vanish."""
    strokes = list(_paths(skeleton))
    strokes = _contract(strokes, 1.6 * width)
    degree = _degrees(strokes)
    spurs = [s for s in strokes if not s.is_loop and s.length < 0.8 * width and _is_spur(s, degree)]
    strokes = [s for s in strokes if not any(s is spur for spur in spurs)]
    strokes = _join_pairs(strokes)
    return StrokeGraph(tuple(strokes), _degrees(strokes))


def _is_spur(stroke: Stroke, degree: dict[int, int]) -> bool:
    free = (degree[stroke.start] == 1) + (degree[stroke.end] == 1)
    return free == 1


def _degrees(strokes: list[Stroke]) -> dict[int, int]:
    degree: dict[int, int] = {}
    for stroke in strokes:
        if not stroke.is_loop:
            for node in (stroke.start, stroke.end):
                degree[node] = degree.get(node, 0) + 1
    return degree


class _Walker:
    """The pixels of a skeleton between junctions, which are taken away as they are visited."""

    def __init__(self, skeleton: Mask) -> None:
        cv2 = opencv()
        kernel = np.ones((3, 3), np.float32)
        kernel[1, 1] = 0
        padded = np.pad(skeleton, 1)
        count = cv2.filter2D(padded, cv2.CV_8U, kernel, borderType=cv2.BORDER_CONSTANT)
        junction = ((padded == 1) & (count >= 3)).astype(np.uint8)
        self.clusters, labels = cv2.connectedComponents(junction, connectivity=8)
        y, x = np.nonzero(junction)
        owner = labels[y, x]
        total = np.maximum(np.bincount(owner, minlength=self.clusters), 1)
        sums = [np.bincount(owner, values, self.clusters) for values in (x, y)]
        self.middle = np.stack(sums, axis=1) / total[:, None] - 1
        self.width = padded.shape[1]
        steps = [dy * self.width + dx for dx, dy in _NEIGHBORS]
        # Straight neighbors first, so that a walk does not cut corners.
        self.steps = steps[::2] + steps[1::2]
        self.rest = set(np.flatnonzero((padded == 1) & (junction == 0)).tolist())
        self.labels = labels.reshape(-1)

    def next_path(self) -> list[int]:
        """A path that was not visited yet."""
        seed = self.rest.pop()
        forward, backward = self._walk(seed), self._walk(seed)
        return backward[:0:-1] + forward

    def place(self, pixel: int) -> tuple[float, float]:
        """The coordinates of a pixel."""
        return (pixel % self.width - 1.0, pixel // self.width - 1.0)

    def cluster_beside(self, pixel: int, other: int | None = None) -> int | None:
        """A junction beside a pixel, rather not the `other` one; None if there is none."""
        found = [int(self.labels[pixel + step]) for step in self.steps if self.labels[pixel + step]]
        found = [each for each in found if each != other] or found
        return found[0] if found else None

    def _walk(self, pixel: int) -> list[int]:
        path = []
        following: int | None = pixel
        while following is not None:
            pixel = following
            self.rest.discard(pixel)
            path.append(pixel)
            following = next((pixel + step for step in self.steps if pixel + step in self.rest), None)
        return path


def _paths(skeleton: Mask) -> Iterator[Stroke]:
    """The paths between junctions, ends and loops."""
    walker = _Walker(skeleton)
    numbers = count(walker.clusters)
    while walker.rest:
        path = walker.next_path()
        first = walker.cluster_beside(path[0])
        last = walker.cluster_beside(path[-1], first if len(path) < _KNOT else None)
        at = [walker.place(pixel) for pixel in path]
        if first is None and last is None and len(path) > _KNOT and max(np.abs(np.subtract(at[0], at[-1]))) <= 1:
            node = next(numbers)
            yield Stroke(np.array([*at, at[0]]), node, node, is_loop=True)
            continue
        if first is not None and first == last and len(path) <= _KNOT:
            continue  # within one junction
        start, end = (next(numbers) if node is None else node for node in (first, last))
        if first is not None:
            at.insert(0, tuple(walker.middle[first].tolist()))
        if last is not None:
            at.append(tuple(walker.middle[last].tolist()))
        yield Stroke(np.array(at if len(at) > 1 else at * 2), start, end)


def _contract(strokes: list[Stroke], length: float) -> list[Stroke]:
    """Merge the nodes of short links between junctions: crossing strokes share one junction."""
    degree = _degrees(strokes)
    root: dict[int, int] = {}

    def find(node: int) -> int:
        while root.get(node, node) != node:
            node = root[node]
        return node

    kept, places = [], {}
    for stroke in strokes:
        is_link = not stroke.is_loop and stroke.start != stroke.end and stroke.length < length
        if is_link and degree[stroke.start] > 1 and degree[stroke.end] > 1:
            a, b = find(stroke.start), find(stroke.end)
            root[b] = a
            places[a] = (stroke.at[0] + stroke.at[-1]) / 2
        else:
            kept.append(stroke)
    moved = []
    for stroke in kept:
        start, end, at = find(stroke.start), find(stroke.end), stroke.at
        if not stroke.is_loop:
            at = at.copy()
            for node, own, row in ((start, stroke.start, 0), (end, stroke.end, -1)):
                if node in places and (node != own or own in places):
                    at[row] = places[node]
        moved.append(Stroke(at, start, end, stroke.is_loop))
    return moved


def _join_pairs(strokes: list[Stroke]) -> list[Stroke]:
    """Join strokes where exactly two meet."""
    at_node: dict[int, list[int]] = {}
    alive: dict[int, Stroke] = dict(enumerate(strokes))
    for number, stroke in alive.items():
        if not stroke.is_loop:
            for node in (stroke.start, stroke.end):
                at_node.setdefault(node, []).append(number)
    for node, numbers in at_node.items():
        if len(numbers) != 2:
            continue
        a, b = numbers
        if a == b:
            stroke = alive[a]
            alive[a] = Stroke(stroke.at, node, node, is_loop=True)
            continue
        first, second = alive[a], alive.pop(b)
        one = first.at if first.end == node else first.at[::-1]
        two = second.at if second.start == node else second.at[::-1]
        start = first.start if first.end == node else first.end
        end = second.end if second.start == node else second.start
        alive[a] = Stroke(np.concatenate((one, two[1:])), start, end)
        if end != node:
            at_node[end] = [a if number == b else number for number in at_node[end]]
    return list(alive.values())


def stroke_width(mask: Mask, skeleton: Mask) -> float:
    """The median width of strokes in pixels."""
    cv2 = opencv()
    distance: Any = cv2.distanceTransform(np.pad(mask, 1), cv2.DIST_L2, 5)[1:-1, 1:-1]
    values = distance[skeleton == 1]
    return max(1.0, 2 * float(np.median(values)) - 1) if len(values) else 1.0
