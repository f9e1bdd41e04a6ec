"""Rounding of real sketches with noise: how many dimensions become round, what moves, and what FreeCAD shows."""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from sketchdnn.constraints import RoundOptions, RoundResult, repair, round_dimensions
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.round_values import Steps
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.evaluation.estimates import share_estimate
from sketchdnn.formats import write
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, Vec, bounds, profile

from .completion_cases import held_out_sketches
from .constraint_recall import jitter_sketch
from .freecad import Answer, find_freecad, run_in_freecad
from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

# The sizes of sketches, drawn log-uniformly, and the share of them in inches.
_SIZES = {"mm": (10.0, 400.0), "in": (1.0, 16.0)}
_INCHES = 0.25
_NUMBERS = (1, 16)
# A length is round if it is a multiple of this part of the step of its sketch.
_PART_OF_STEP = {"mm": 1 / 10, "in": 1 / 8}
# Numbers that differ by a smaller share of the size are equal.
_EQUAL = 1e-9
# Constraints with a smaller residual, as a share of the size, hold.
_HOLDS = 1e-8
# How far off points are by default, as a share of the size: what repair moves in generated sketches (repair.md).
NOISE = 0.002
_COLUMNS = ("", "before", "rounded")

_VALUES_SCRIPT = """
def evaluate(document, task):
    sketch = document.Objects[0]
    solved = sketch.solve()
    return {
        "solve": solved,
        "values": {c.Name: c.Value for c in sketch.Constraints if c.Name},
        "inactive": sum(1 for c in sketch.Constraints if not c.IsActive),
        "full": bool(sketch.FullyConstrained),
    }
"""


class RoundedSketch(NamedTuple):
    """A real sketch after noise and repair, and the result of rounding it."""

    before: Sketch
    result: RoundResult
    seconds: float

    @property
    def steps(self) -> Steps:
        return Steps.automatic(bounds(self.before).size, self.before.units)


@dataclass(frozen=True, slots=True)
class RoundingBenchmark:
    """The measured shares; each pair is before and after rounding."""

    count: int
    noise: float
    full: int
    dimensions: tuple[int, int, int]  # with the preferred value, rounded, all
    visible: tuple[int, int, int]  # round before, round after, all
    recovered: dict[float, tuple[int, int]]  # for each noise: lengths that return to the round value, all
    holds: int
    same_profile: int
    largest_residual: float
    moves: tuple[float, ...]
    milliseconds: float
    reasons: Counter[str]
    freecad: dict[str, int]

    def rows(self) -> Iterator[tuple[str, str, str]]:
        round_before, round_after, all_visible = self.visible
        yield "sketches with all dimensions round", "", percent(share_estimate(self.full, self.count))
        preferred, rounded, total = self.dimensions
        yield "free dimensions that became round", "", f"{percent(share_estimate(rounded, total))} of {total:,}"
        yield "free dimensions with the preferred value", "", percent(share_estimate(preferred, total))
        yield (
            "radii, lengths and coordinates that are round",
            percent(share_estimate(round_before, all_visible)),
            f"{percent(share_estimate(round_after, all_visible))} of {all_visible:,}",
        )
        yield "sketches whose constraints all hold", "", percent(share_estimate(self.holds, self.count))
        yield "sketches with the same loops and contacts", "", percent(share_estimate(self.same_profile, self.count))
        cells = [f"{100 * q:.2f} %" for q in np.quantile(self.moves, (0.5, 0.95, 1.0))]
        yield "largest move in a sketch: median, 95th percentile, maximum", "", ", ".join(cells)
        yield "largest residual, as a share of the size", "", f"{self.largest_residual:.1e}"
        yield "time for one sketch, median", "", f"{self.milliseconds:.0f} ms"
        for noise, (same, total) in self.recovered.items():
            label = f"round lengths that come back after noise of {100 * noise:g} %"
            yield label, "", f"{percent(share_estimate(same, total))} of {total:,}"
        for label, number in self.freecad.items():
            yield f"in FreeCAD: {label}", "", f"{number:,}"

    def table(self) -> Table:
        return rich_table(f"Rounding of {self.count:,} sketches", _COLUMNS, self.rows())

    def sentences(self) -> Iterator[str]:
        for reason, number in self.reasons.most_common():
            yield f"Not rounded: {number:,} × {reason}."

    def markdown(self, command: str) -> str:
        return _PAGE.format(
            command=command,
            count=self.count,
            noise=f"{100 * self.noise:g} %",
            table=markdown_table(_COLUMNS, self.rows()),
            reasons="\n".join(f"- {sentence}" for sentence in self.sentences()) or "- Nothing was left.",
        )


def measure_rounding(
    data: Path,
    *,
    count: int = 300,
    noise: float = NOISE,
    freecad: int = 50,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> RoundingBenchmark:
    """Round test sketches of a corpus at random sizes with noise.

    Args:
        data: A prepared corpus.
        count: The number of sketches.
        noise: How far off points are, as a share of the size.
        freecad: How many of them FreeCAD opens.
        seed: Of the sizes and the noise.
        on_stage: Called with what is measured.
    """
    program = find_freecad() if freecad else ""
    rng = np.random.default_rng(seed)
    sketches: list[RoundedSketch] = []
    for sketch in islice(held_out_sketches(data, _NUMBERS, seed), count):
        on_stage(f"rounding: {len(sketches):,} of {count:,}")
        done = _round(_resize(sketch, rng), noise, rng)
        sketches += [done] if done else []
    if not sketches:
        raise SketchError("the corpus has no test sketch to round")
    rounded = [item for s in sketches for item in s.result.rounded]
    num_left = sum(len(s.result.left) for s in sketches)
    residuals = [_residual(s.result.sketch) for s in sketches]
    visible = np.array([_count_visible(s) for s in sketches]).sum(axis=0).tolist()
    recovered = {}
    for level in (noise / 4, noise / 2, noise):
        on_stage(f"noise of {level:.2%} on round sketches")
        recovered[level] = _count_recovered(sketches, level, rng)
    on_stage("FreeCAD")
    reasons = Counter(item.reason for s in sketches for item in s.result.left)
    reasons.update(s.result.warning for s in sketches if s.result.warning)
    return RoundingBenchmark(
        len(sketches),
        noise,
        sum(s.result.is_fully_rounded for s in sketches),
        (sum(item.is_preferred for item in rounded), len(rounded), len(rounded) + num_left),
        (visible[0], visible[1], visible[2]),
        recovered,
        sum(residual <= _HOLDS for residual in residuals),
        sum(_outline(s.before) == _outline(s.result.sketch) for s in sketches),
        max(residuals),
        tuple(s.result.displacement for s in sketches),
        1e3 * float(np.median([s.seconds for s in sketches])),
        reasons,
        _ask_freecad(program, sketches[:freecad]) if freecad else {},
    )


def _resize(sketch: Sketch, rng: np.random.Generator) -> Sketch:
    units = "in" if rng.random() < _INCHES else "mm"
    low, high = _SIZES[units]
    size = float(np.exp(rng.uniform(math.log(low), math.log(high))))
    return replace(sketch.moved(size / bounds(sketch).size), units=units)


def _round(sketch: Sketch, noise: float, rng: np.random.Generator) -> RoundedSketch | None:
    """Add noise, repair and round; None where noise leaves nothing of a primitive."""
    try:
        jittered, _ = jitter_sketch(sketch, noise, rng)
    except GeometryError:
        return None
    before = repair(jittered, close=False).sketch
    start = time.process_time()
    result = round_dimensions(before, RoundOptions())
    return RoundedSketch(before, result, time.process_time() - start)


def _residual(sketch: Sketch) -> float:
    return max((abs(r) for r in constraint_residuals(sketch, sketch.constraints) if r is not None), default=0.0)


def _outline(sketch: Sketch) -> tuple[object, ...]:
    """Which curves form loops, and which meet."""
    shape = profile(sketch)
    loops = sorted(tuple(sorted(edge.primitive_index for edge in loop.edges)) for loop in shape.loops)
    return (*loops, len(shape.chains), *sorted(shape.meetings))


def visible_lengths(sketch: Sketch) -> list[float]:
    """The radii, the lengths of level lines, and the coordinates of all points."""
    lengths: list[float] = []
    zero = 1e-7 * bounds(sketch).size
    for p in sketch:
        points: tuple[Vec, ...]
        match p:
            case Line(start, end):
                points = (start, end)
                if min(abs(start[0] - end[0]), abs(start[1] - end[1])) <= zero:
                    lengths.append(p.length)
            case Point(at):
                points = (at,)
            case Circle() | Arc():
                points = (p.center,)
                lengths.append(p.radius)
        lengths += [coordinate for point in points for coordinate in point]
    return lengths


def _count_visible(sketch: RoundedSketch) -> tuple[int, int, int]:
    """How many visible lengths are round before and after, and their number."""
    step = sketch.steps.step * _PART_OF_STEP[sketch.before.units or "mm"]
    size = bounds(sketch.before).size

    def count(of: Sketch) -> int:
        return sum(abs(v - step * round(v / step)) <= _EQUAL * size for v in visible_lengths(of))

    after = sketch.result.sketch
    return count(sketch.before), count(after), len(visible_lengths(after))


def _count_recovered(sketches: Sequence[RoundedSketch], noise: float, rng: np.random.Generator) -> tuple[int, int]:
    """Add noise to rounded sketches and round them again: radii and lengths of level lines that are as they were."""
    same = total = 0
    for item in sketches:
        truth = replace(item.result.sketch, constraints=())
        rounded = _round(truth, noise, rng)
        if rounded is None or len(rounded.before) != len(truth):
            continue
        again = rounded.result.sketch
        size = bounds(truth).size
        for before, after in zip(truth, again, strict=True):
            if before.kind is after.kind and not isinstance(before, Point):
                is_round = isinstance(before, Circle | Arc)
                pair = (before.radius, after.radius) if is_round else (before.length, after.length)  # type: ignore[union-attr]
                if is_round or _is_level(before):
                    total += 1
                    same += abs(pair[0] - pair[1]) <= _EQUAL * size
    return same, total


def _is_level(line: object) -> bool:
    return isinstance(line, Line) and min(abs(a - b) for a, b in zip(line.start, line.end, strict=True)) < 1e-9


def _ask_freecad(program: str, sketches: Sequence[RoundedSketch]) -> dict[str, int]:
    """Counts of documents that FreeCAD solves, and of named dimensions that it shows exactly."""
    with tempfile.TemporaryDirectory() as folder:
        tasks: list[Answer] = []
        for number, sketch in enumerate(sketches):
            document = Path(folder) / f"{number}.FCStd"
            write(sketch.result.sketch, document)
            tasks.append({"document": str(document)})
        answers = run_in_freecad(program, _VALUES_SCRIPT, tasks)
    opened = [(answer, s) for answer, s in zip(answers, sketches, strict=True) if answer is not None]
    shown = [_is_exact(answer, s.result) for answer, s in opened if s.before.units == "mm"]
    return {
        "documents": len(sketches),
        "`solve()` returns 0": sum(answer["solve"] == 0 for answer, _ in opened),
        "fully constrained": sum(answer["full"] for answer, _ in opened),
        "constraints switched off": sum(answer["inactive"] for answer, _ in opened),
        "named dimensions in millimeters": sum(total for _, total in shown),
        "of these, shown exactly": sum(exact for exact, _ in shown),
    }


def _is_exact(answer: Answer, result: RoundResult) -> tuple[int, int]:
    """How many named dimensions have exactly the value that they were rounded to, and their number."""
    wanted = {
        item.constraint.extra["label"]: item.constraint.value
        for item in result.rounded
        if item.constraint.value is not None and "label" in item.constraint.extra
    }
    return sum(abs(answer["values"].get(name, math.nan)) == abs(value) for name, value in wanted.items()), len(wanted)


_PAGE = """# Rounded dimensions

    {command}

{count:,} test sketches at random sizes (10 to 400 mm, a quarter of them 1 to 16 in), every coordinate
off by up to {noise} of the size, repaired, and rounded with `round_dimensions`. In brackets, 95 %
intervals.

{table}

- **free dimensions**: those that the constraints leave, as chosen by `round_dimensions`. **preferred
  value**: the first choice; the others have a multiple of a finer step, down to a tenth.
- **radii, lengths and coordinates that are round**: multiples of a tenth of the step of the sketch,
  in inches of an eighth, measured in the geometry. Lengths are those of horizontal and vertical
  lines. Where an angle is given or lines are tangent, not all coordinates can be round.
- **round lengths that come back**: noise is added to the rounded sketches, without their
  constraints, and they are repaired and rounded again.
- **largest move**: of a point or radius, as a share of the size, apart from that of the origin.

Dimensions that were left:

{reasons}
"""
