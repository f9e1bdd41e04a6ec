"""The positions of marks: beside their primitives, on free paper. Greedy, those beside short curves first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec, tessellate

from .constraint_marks import DIMENSIONS, Mark
from .style import Frame

# The side of a cell of the occupancy grid, in pixels.
_CELL = 2.0
# The cost of covering a stroke, of covering another mark or the edge, and of each later candidate.
_INK, _TAKEN, _DEFERRED_COST = 2.5, 12.0, 0.02
_POSITIONS_AROUND_POINT = 8


@dataclass(frozen=True, slots=True)
class PlacedMark:
    """A mark and the pixel of its middle, y down; half its width and height."""

    mark: Mark
    at: Vec
    half: Vec


def arrange_marks(
    marks: Sequence[Mark], primitives: Iterable[Primitive], view: Frame, radius: float
) -> list[PlacedMark]:
    """The position of every mark: pinned ones on their point, each other one where it covers least."""
    paper = _Occupancy(view)
    for primitive in primitives:
        paper.draw(primitive, view)
    placed = []
    for mark in sorted(marks, key=lambda mark: (not mark.pinned, mark.beside.length)):
        half = _half(mark, radius)
        if mark.pinned and isinstance(mark.beside, Point):
            at = view.to_pixel(mark.beside.at)
        else:
            costs = [
                (paper.cost(at, half) + _DEFERRED_COST * k, at) for k, at in enumerate(_positions(mark, view, radius))
            ]
            at = min(costs)[1]
        paper.take(at, half)
        placed.append(PlacedMark(mark, at, half))
    return placed


def text_width(text: str, radius: float) -> float:
    """The approximate width of a text beside a symbol."""
    return 0.95 * radius * len(text)


def _half(mark: Mark, radius: float) -> Vec:
    if mark.pinned:
        size = 0.7 * radius if mark.corner is None else 2.2 * radius
        return (size, size)
    width = text_width(mark.text, radius) / 2
    return (width if mark.text and mark.kind in DIMENSIONS else radius + width, radius)


class _Occupancy:
    """The cells of the picture that hold strokes, and those that hold marks."""

    def __init__(self, view: Frame) -> None:
        shape = (math.ceil(view.height / _CELL) + 1, math.ceil(view.width / _CELL) + 1)
        self.ink, self.taken = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
        self.width, self.height = view.width, view.height

    def draw(self, primitive: Primitive, view: Frame) -> None:
        stops = tessellate(primitive, 0.5 / view.scale)
        if len(stops) > 1:
            steps = np.hypot(*np.diff(stops, axis=0).T) * view.scale
            at = np.concatenate([[0.0], np.cumsum(steps)])
            stretch = np.linspace(0.0, at[-1], max(2, math.ceil(at[-1] / _CELL)))
            stops = np.stack([np.interp(stretch, at, stops[:, k]) for k in (0, 1)], axis=1)
        x = self.width / 2 + view.scale * (stops[:, 0] - view.center[0])
        y = self.height / 2 - view.scale * (stops[:, 1] - view.center[1])
        rows, columns = (y / _CELL).astype(int), (x / _CELL).astype(int)
        inside = (rows >= 0) & (columns >= 0) & (rows < self.ink.shape[0]) & (columns < self.ink.shape[1])
        self.ink[rows[inside], columns[inside]] = 1.0

    def cost(self, at: Vec, half: Vec) -> float:
        outside = max(
            half[0] - at[0], at[0] + half[0] - self.width, half[1] - at[1], at[1] + half[1] - self.height, 0.0
        )
        cells = self._cells(at, half)
        ink, taken = self.ink[cells], self.taken[cells]
        if not ink.size:
            return math.inf
        # A stroke straight through covers one cell in each row or column.
        covered = float(ink.sum()) / float(max(ink.shape))
        return _INK * covered + _TAKEN * (float(taken.mean()) + outside / max(half))

    def take(self, at: Vec, half: Vec) -> None:
        self.taken[self._cells(at, half)] = 1.0

    def _cells(self, at: Vec, half: Vec) -> tuple[slice, slice]:
        (x, y), (w, h) = at, half
        rows = slice(max(0, int((y - h) / _CELL)), max(0, int((y + h) / _CELL) + 1))
        return rows, slice(max(0, int((x - w) / _CELL)), max(0, int((x + w) / _CELL) + 1))


def _positions(mark: Mark, view: Frame, radius: float) -> Iterator[Vec]:
    """Candidate positions of a mark in pixels, the best first."""
    half = _half(mark, radius)
    match mark.beside:
        case Line(start, end):
            yield from _beside_line(view.to_pixel(start), view.to_pixel(end), half, radius, centered=bool(mark.ties))
        case Circle(center, size) | Arc(center, size) as curve:
            yield from _beside_circle(view.to_pixel(center), size * view.scale, curve, half, radius)
        case Point(at):
            x, y = view.to_pixel(at)
            for distance in (1.6, 2.6, 3.8):
                for k in range(_POSITIONS_AROUND_POINT):
                    angle = TAU * (k + 0.5) / _POSITIONS_AROUND_POINT
                    yield (
                        x + (distance * radius + half[0] - radius) * math.cos(angle),
                        y - distance * radius * math.sin(angle),
                    )


def _beside_line(p: Vec, q: Vec, half: Vec, radius: float, *, centered: bool) -> Iterator[Vec]:
    """Either side of a line, from its middle outwards; on it if nothing is drawn there."""
    length = max(math.dist(p, q), 1e-9)
    nx, ny = (q[1] - p[1]) / length, (p[0] - q[0]) / length
    if ny > 0 or (ny == 0 and nx < 0):  # above or to the right first
        nx, ny = -nx, -ny
    clear = abs(nx) * half[0] + abs(ny) * half[1] + 0.45 * radius
    steps = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
    for off in (
        (0.0, clear, -clear) if centered else (clear, -clear, 1.8 * clear, -1.8 * clear, 2.8 * clear, -2.8 * clear)
    ):
        for f in steps:
            yield (p[0] + f * (q[0] - p[0]) + off * nx, p[1] + f * (q[1] - p[1]) + off * ny)


def _beside_circle(center: Vec, size: float, curve: Circle | Arc, half: Vec, radius: float) -> Iterator[Vec]:
    """Outside and inside a circle or arc; its center and radius are given in pixels."""
    start, sweep, steps = 0.0, TAU, tuple((k + 0.5) / 8 for k in (0, 3, 4, 7, 1, 2, 5, 6))
    if isinstance(curve, Arc):
        start, sweep, steps = curve.start_angle, curve.sweep, (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
    for off in (1.0, -1.0, 1.9, -1.9, 2.9):
        for f in steps:
            cos, sin = math.cos(start + f * sweep), math.sin(start + f * sweep)
            clear = abs(cos) * half[0] + abs(sin) * half[1] + 0.45 * radius
            distance = size + off * clear
            if distance > 0:
                yield (center[0] + distance * cos, center[1] - distance * sin)
    yield (center[0] + size + half[0] + radius, center[1])
