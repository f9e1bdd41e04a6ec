"""Processor time of `infer`, `solve` and `constrain`, measured in a single-threaded process."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.table import Table

from sketchdnn.constraints import infer, solve
from sketchdnn.constraints.constrain import ConstrainOptions, constrain
from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.formats import scan
from sketchdnn.geometry import Line, Sketch, Vec

from .constraint_recall import FileRecall, measure_file_recall
from .results import OnStage, ignore_stage, markdown_table, rich_table

ROUNDS = 5
# Numbers of lines of the large drawings.
LARGE = (500, 1000, 2000, 4000)
_SPEED_COLUMNS = ("drawing", "lines", "how", "time", "plain", "others")
_RECALL_COLUMNS = ("how", "between primitives", "on the origin or an axis")


@dataclass(frozen=True, slots=True)
class InferSpeed:
    """Processor seconds of `infer` and `solve` per sketch, each the shortest of several rounds."""

    sketches: int
    median: float
    percentile95: float


@dataclass(frozen=True, slots=True)
class DrawingSpeed:
    """Processor seconds of `constrain` on a large drawing, and the number of constraints it infers."""

    drawing: str
    lines: int
    with_repair: bool
    seconds: float
    plain: int  # coincident, horizontal and vertical
    others: int

    def row(self) -> tuple[str, ...]:
        counts = (f"{self.plain:,}", f"{self.others:,}")
        return (self.drawing, f"{self.lines:,}", _mode(self.with_repair), f"{self.seconds:.1f} s", *counts)


@dataclass(frozen=True, slots=True)
class ConstraintSpeedBenchmark:
    """Speed on large drawings, and recall of the constraints of files if there are files."""

    drawings: tuple[DrawingSpeed, ...]
    recalls: tuple[FileRecall, ...]

    def recall_rows(self) -> Iterator[tuple[str, ...]]:
        """One row of cells per recall."""
        for recall in self.recalls:
            yield (
                _mode(recall.with_repair) + (", origin" if recall.origin else ""),
                f"{recall.inferred_internal:,} of {recall.internal:,}",
                f"{recall.inferred_external:,} of {recall.external:,}",
            )

    def table(self) -> Table:
        return rich_table("`constrain` on large drawings", _SPEED_COLUMNS, (speed.row() for speed in self.drawings))

    def sentences(self) -> Iterator[str]:
        """The recall of the constraints of files."""
        for mode, internal, external in self.recall_rows():
            yield f"Constraints of files, {mode}: {internal} between primitives, {external} on the origin or an axis."

    def markdown(self, command: str) -> str:
        table = markdown_table(_SPEED_COLUMNS, (speed.row() for speed in self.drawings))
        page = _SPEED_PAGE.format(command=command, table=table)
        if self.recalls:
            page += _RECALL_PAGE.format(table=markdown_table(_RECALL_COLUMNS, self.recall_rows()))
        return page


def measure_constraint_speed(
    files: Path | None = None, counts: Sequence[int] = LARGE, on_stage: OnStage = ignore_stage
) -> ConstraintSpeedBenchmark:
    """Time `constrain` on large drawings, and measure its recall on the constrained sketches of files."""
    on_stage("timing")
    drawings = time_large_drawings(counts)
    on_stage("reading")
    sketches = [item for item in scan(files) if isinstance(item, Sketch) and len(item)] if files else []
    return ConstraintSpeedBenchmark(tuple(drawings), tuple(measure_file_recall(sketches)) if sketches else ())


def time_infer_and_solve(sketches: Sequence[Sketch], tolerance: float) -> InferSpeed:
    """Time every sketch in a process of its own."""
    with single_threaded(), multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds = pool.apply(_infer_seconds, (sketches, tolerance))
    return InferSpeed(len(seconds), float(np.median(seconds)), float(np.quantile(seconds, 0.95)))


def time_large_drawings(counts: Sequence[int] = LARGE) -> list[DrawingSpeed]:
    """Time `constrain` on grids of rectangles and on chains of lines, in a process of its own."""
    with single_threaded(), multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_time_drawings, (counts,))


def rectangle_grid(lines: int) -> Sketch:
    """Separate rectangles of 20 by 10, in rows."""
    side = int(np.ceil((lines / 4) ** 0.5))
    primitives: list[Line] = []
    for k in range(lines // 4):
        x, y = 30.0 * (k % side), 20.0 * (k // side)
        primitives += _polyline([(x, y), (x + 20, y), (x + 20, y + 10), (x, y + 10), (x, y)])
    return Sketch(tuple(primitives), units="mm")


def line_chain(lines: int) -> Sketch:
    """Alternating horizontal and vertical lines, joined end to end, in rows above each other."""
    row_length = int(lines**0.5)
    x, y, step = 0.0, 0.0, 10.0
    points: list[Vec] = [(x, y)]
    while len(points) <= lines:
        for k in range(row_length):
            x, y = (x + step, y) if k % 2 == 0 else (x, y + (6.0 if k % 4 == 1 else -6.0))
            points.append((x, y))
        if row_length % 2 == 1:  # the row ended with a horizontal line
            y += 20.0
            points.append((x, y))
        else:
            x, y = x + step, y
            points += [(x, y), (x, y + 20.0)]
            y += 20.0
        step = -step
    return Sketch(tuple(_polyline(points[: lines + 1])), units="mm")


def _polyline(points: Sequence[Vec]) -> list[Line]:
    return [Line(a, b) for a, b in pairwise(points)]


def _time_drawings(counts: Sequence[int]) -> list[DrawingSpeed]:
    speeds = []
    for name, make in (("grid", rectangle_grid), ("chain", line_chain)):
        for count in counts:
            sketch = make(count)
            for with_repair in (True, False):
                start = time.process_time()
                result = constrain(sketch, ConstrainOptions(repair=with_repair))
                seconds = time.process_time() - start
                types = Counter(str(constraint.type) for constraint in result.sketch.constraints)
                plain = types["coincident"] + types["horizontal"] + types["vertical"]
                speeds.append(DrawingSpeed(name, count, with_repair, seconds, plain, types.total() - plain))
    return speeds


def _infer_seconds(sketches: Sequence[Sketch], tolerance: float) -> list[float]:
    """The shortest processor time of each sketch."""
    best = []
    for sketch in sketches:
        rounds = []
        for _ in range(ROUNDS):
            start = time.process_time()
            solve(sketch, infer(sketch, tolerance))
            rounds.append(time.process_time() - start)
        best.append(min(rounds))
    return best


def _mode(with_repair: bool) -> str:
    return "repair" if with_repair else "infer only"


_SPEED_PAGE = """# Constraints of large drawings and of real files

    {command}

`constrain` on rectangles in rows (grid) and on lines joined end to end (chain): processor time of one core, the number
of coincident, horizontal and vertical constraints (plain), and of others.

{table}
"""
_RECALL_PAGE = """
Constraints that the authors of FreeCAD files gave, that hold to 1e-6 of the size, and that `constrain` infers in the
sketches without constraints: between primitives, and on the origin or an axis. Dimensions are not inferred. Sketches
in which a repair drops or merges primitives do not count.

{table}
"""
