"""How long infer, solve and constrain take, in a process that has one thread: small matrices gain nothing by more."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.constrain import ConstrainOptions, constrain
from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.geometry import Line, Sketch, Vec

from .constraint_recall import Authored

ROUNDS = 5
# How many lines the large drawings have that `constrain` is timed on.
LARGE = (500, 1000, 2000, 4000)


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one core for infer and solve, over sketches, the best of some rounds each."""

    sketches: int
    median: float
    slow: float  # 95 of 100 are quicker


def time_constraints(sketches: Sequence[Sketch], tolerance: float) -> Speed:
    """Time every sketch in a process of its own."""
    with single_threaded(), multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds = pool.apply(_seconds, (sketches, tolerance))
    return Speed(len(seconds), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


@dataclass(frozen=True, slots=True)
class LargeSpeed:
    """Processor time of `constrain` on one large drawing, and how many constraints it found."""

    drawing: str
    lines: int
    repairing: bool
    seconds: float
    plain: int  # coincident, horizontal and vertical
    others: int


def time_large(counts: Sequence[int] = LARGE) -> list[LargeSpeed]:
    """Time `constrain` on grids of rectangles and on chains of lines, in a process of its own."""
    with single_threaded(), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_large, (counts,))


def grid(lines: int) -> Sketch:
    """Rectangles of 20 by 10 in rows, none of which touches another."""
    side = int(np.ceil((lines / 4) ** 0.5))
    drawn: list[Line] = []
    for k in range(lines // 4):
        x, y = 30.0 * (k % side), 20.0 * (k // side)
        drawn += _polyline([(x, y), (x + 20, y), (x + 20, y + 10), (x, y + 10), (x, y)])
    return Sketch(tuple(drawn), units="mm")


def chain(lines: int) -> Sketch:
    """Level and upright lines by turns, joined end to end, in rows that go up as far as they are long."""
    along = int(lines**0.5)
    x, y, way = 0.0, 0.0, 10.0
    at: list[Vec] = [(x, y)]
    while len(at) <= lines:
        for k in range(along):
            x, y = (x + way, y) if k % 2 == 0 else (x, y + (6.0 if k % 4 == 1 else -6.0))
            at.append((x, y))
        if along % 2 == 1:  # the row ended with a level line
            y += 20.0
            at.append((x, y))
        else:
            x, y = x + way, y
            at += [(x, y), (x, y + 20.0)]
            y += 20.0
        way = -way
    return Sketch(tuple(_polyline(at[: lines + 1])), units="mm")


def _polyline(at: Sequence[Vec]) -> list[Line]:
    return [Line(a, b) for a, b in pairwise(at)]


def _large(counts: Sequence[int]) -> list[LargeSpeed]:
    rows = []
    for name, make in (("grid", grid), ("chain", chain)):
        for count in counts:
            sketch = make(count)
            for repairing in (True, False):
                start = time.process_time()
                done = constrain(sketch, ConstrainOptions(repair=repairing))
                seconds = time.process_time() - start
                kinds = Counter(str(c.type) for c in done.sketch.constraints)
                plain = kinds["coincident"] + kinds["horizontal"] + kinds["vertical"]
                rows.append(LargeSpeed(name, count, repairing, seconds, plain, kinds.total() - plain))
    return rows


def _seconds(sketches: Sequence[Sketch], tolerance: float) -> list[float]:
    """Of processor time, which is that of the clock where nothing else runs."""
    best = []
    for sketch in sketches:
        rounds = []
        for _ in range(ROUNDS):
            start = time.process_time()
            solve(sketch, infer(sketch, tolerance))
            rounds.append(time.process_time() - start)
        best.append(min(rounds))
    return best


def page(large: Sequence[LargeSpeed], authored: Sequence[Authored]) -> str:
    """Both tables as Markdown."""
    rows = [
        f"| {r.drawing} | {r.lines:,} | {_mode(r.repairing)} | {r.seconds:.1f} s | {r.plain:,} | {r.others:,} |"
        for r in large
    ]
    words = _SPEED.format(rows="\n".join(rows))
    if authored:
        found = [
            f"| {_mode(a.repairing)}{', origin' if a.origin else ''} | {a.found_inside:,} of {a.inside:,} | "
            f"{a.found_outside:,} of {a.outside:,} |"
            for a in authored
        ]
        words += _AUTHORED.format(rows="\n".join(found))
    return words


def _mode(repairing: bool) -> str:
    return "repair" if repairing else "infer only"


_SPEED = """# Constraints of large drawings, and of real files

    python -m benchmarks constraint-speed --files FOLDER

`constrain` on rectangles in rows (grid) and on lines joined end to end (chain): processor time of one core, how many
coincident, horizontal and vertical constraints it finds, and how many others.

| drawing | lines | how | time | plain | others |
| --- | --- | --- | --- | --- | --- |
{rows}
"""
_AUTHORED = """
Constraints that the authors of FreeCAD files gave and that hold to 1e-6 of the size, found again by `constrain` in the
sketches without their constraints: between primitives, and on the origin or an axis. Dimensions are not inferred, and
a sketch in which a repair drops or merges something does not count.

| how | between primitives | on the origin or an axis |
| --- | --- | --- |
{rows}
"""
