"""Where marks go: close to what they are about, on free paper. Greedy, those with the least room first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec, tessellate

from .display import Frame
from .marks import DIMENSIONS, Mark

# The paper is looked at in squares of so many pixels.
_CELL = 2.0
# What it costs to cover all of a stroke, another mark, or the edge of the paper; places are tried in order, and each
# later one costs a little more.
_INK, _TAKEN, _LATER = 2.5, 12.0, 0.02
_CORNER_PLACES = 8


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark and the pixel of its middle, y down; half its width and height."""

    mark: Mark
    at: Vec
    half: Vec


def arrange(marks: Sequence[Mark], primitives: Iterable[Primitive], view: Frame, radius: float) -> list[Placed]:
    """Every mark in its place: the pinned ones where they belong, each other one where it covers least."""
    paper = _Paper(view)
    for primitive in primitives:
        paper.draw(primitive, view)
    placed = []
    for mark in sorted(marks, key=lambda mark: (not mark.pinned, mark.beside.length)):
        half = _half(mark, radius)
        if mark.pinned and isinstance(mark.beside, Point):
            at = view.place(mark.beside.at)
        else:
            costs = [(paper.cost(at, half) + _LATER * k, at) for k, at in enumerate(_places(mark, view, radius))]
            at = min(costs)[1]
        paper.take(at, half)
        placed.append(Placed(mark, at, half))
    return placed


def letters(words: str, radius: float) -> float:
    """About how wide words beside a sign are."""
    return 0.95 * radius * len(words)


def _half(mark: Mark, radius: float) -> Vec:
    if mark.pinned:
        size = 0.7 * radius if mark.corner is None else 2.2 * radius
        return (size, size)
    is_words_alone = bool(mark.words) and mark.sign in DIMENSIONS
    wide = letters(mark.words, radius) / 2
    return (wide if is_words_alone else radius + wide, radius)


class _Paper:
    """Which squares hold ink, and which are taken by a mark."""

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
        where = self._squares(at, half)
        ink, taken = self.ink[where], self.taken[where]
        if not ink.size:
            return math.inf
        # A stroke straight through covers one square in each row or column.
        covered = float(ink.sum()) / float(max(ink.shape))
        return _INK * covered + _TAKEN * (float(taken.mean()) + outside / max(half))

    def take(self, at: Vec, half: Vec) -> None:
        self.taken[self._squares(at, half)] = 1.0

    def _squares(self, at: Vec, half: Vec) -> tuple[slice, slice]:
        (x, y), (w, h) = at, half
        rows = slice(max(0, int((y - h) / _CELL)), max(0, int((y + h) / _CELL) + 1))
        return rows, slice(max(0, int((x - w) / _CELL)), max(0, int((x + w) / _CELL) + 1))


def _places(mark: Mark, view: Frame, radius: float) -> Iterator[Vec]:
    """Where a mark might go, the best places first, in pixels."""
    half = _half(mark, radius)
    match mark.beside:
        case Line(start, end):
            yield from _beside_line(view.place(start), view.place(end), half, radius, on=bool(mark.ties))
        case Circle(center, size):
            yield from _beside_round(view.place(center), size * view.scale, 0.0, TAU, half, radius)
        case Arc(center, size, start_angle, sweep):
            yield from _beside_round(view.place(center), size * view.scale, start_angle, sweep, half, radius)
        case Point(at):
            x, y = view.place(at)
            for away in (1.6, 2.6, 3.8):
                for k in range(_CORNER_PLACES):
                    angle = TAU * (k + 0.5) / _CORNER_PLACES
                    yield (
                        x + (away * radius + half[0] - radius) * math.cos(angle),
                        y - away * radius * math.sin(angle),
                    )


def _beside_line(p: Vec, q: Vec, half: Vec, radius: float, *, on: bool) -> Iterator[Vec]:
    """Either side of a line, from its middle outwards; or on it, if there is none but in thought."""
    length = max(math.dist(p, q), 1e-9)
    nx, ny = (q[1] - p[1]) / length, (p[0] - q[0]) / length
    if ny > 0 or (ny == 0 and nx < 0):  # first above, or to the right
        nx, ny = -nx, -ny
    clear = abs(nx) * half[0] + abs(ny) * half[1] + 0.45 * radius
    steps = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
    for off in (0.0, clear, -clear) if on else (clear, -clear, 1.8 * clear, -1.8 * clear, 2.8 * clear, -2.8 * clear):
        for f in steps:
            yield (p[0] + f * (q[0] - p[0]) + off * nx, p[1] + f * (q[1] - p[1]) + off * ny)


def _beside_round(center: Vec, size: float, start: float, sweep: float, half: Vec, radius: float) -> Iterator[Vec]:
    """Outside and inside of a circle or arc."""
    if sweep == TAU:
        start, steps = 0.0, tuple((k + 0.5) / 8 for k in (0, 3, 4, 7, 1, 2, 5, 6))
    else:
        steps = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
    for off in (1.0, -1.0, 1.9, -1.9, 2.9):
        for f in steps:
            cos, sin = math.cos(start + f * sweep), math.sin(start + f * sweep)
            clear = abs(cos) * half[0] + abs(sin) * half[1] + 0.45 * radius
            away = size + off * clear
            if away > 0:
                yield (center[0] + away * cos, center[1] - away * sin)
    yield (center[0] + size + half[0] + radius, center[1])
