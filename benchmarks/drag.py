"""Drags of real sketches: time, whether the constraints hold, whether the part reaches a place that it can reach.
Edits of their dimensions.

Also how many real sketches have an alternative that constrains them fully, and that FreeCAD solves.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from rich.table import Table

from sketchdnn.constraints import ConstrainOptions, Drag, alternatives, constrain, drag, solve, solve_edited
from sketchdnn.constraints.alternatives import NAMES
from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.constraints.well_constrained import missing_dimensions
from sketchdnn.errors import SketchError
from sketchdnn.formats import scan, write
from sketchdnn.geometry import Arc, Circle, Line, Part, Point, Primitive, Ref, Sketch, Vec, bounds
from sketchdnn.geometry.constraints import ref_point

from .constraints import MIN_PRIMITIVES, TUNING_SKETCHES
from .freecad import Answer, find_freecad, run_in_freecad
from .results import OnStage, ignore_stage, markdown_table, rich_table

PRIMITIVES = 16
# Updates of one drag, and drags of each sketch to places of each kind.
UPDATES, DRAGS = 30, 2
# How far a pointer goes, and how far off points are before another solution is sought, as shares of the size.
REACH, SHAKE = 0.3, 0.1
HOLDS, REACHES = 1e-9, 1e-6
GOAL = 30
# Factors of edited dimensions, and edits of each sketch by each.
FACTORS, EDITS = (0.7, 1.3, 2.0), 2
# Dimensions that are left out, so that a dimensioned sketch can still move.
LEFT_OUT = 3
# The larger side of a sketch in FreeCAD, in millimeters, and the most primitives.
_SIZE, _MOST = 100.0, 64
_COLUMNS = ("constraints", "sketches", "drags", "updates", "p50", "p95", "p99", "max", "updates/s", "hold", "reach")
_EDITS = ("value times", "edits", "solved", "hold", "p50", "p95")
_ALTERNATIVES = ("alternative", "offered", "fully constrained", "FreeCAD solves", "FreeCAD: fully constrained")
_PARTS: dict[type[Primitive], tuple[str, ...]] = {
    Line: ("start", "end", "whole"),
    Circle: ("center", "radius"),
    Arc: ("start", "end", "center", "radius"),
    Point: ("point",),
}


@dataclass
class DragScore:
    """The drags of sketches under one kind of constraints; times in seconds."""

    constraints: str
    sketches: int = 0
    drags: int = 0
    seconds: list[float] = field(default_factory=list)
    held: int = 0
    reachable: int = 0
    reached: int = 0
    slowest: list[float] = field(default_factory=list)  # the mean time of an update in each drag

    @property
    def rate(self) -> float:
        """Updates per second."""
        return len(self.seconds) / max(sum(self.seconds), 1e-12)

    def row(self) -> tuple[str, ...]:
        times = (*np.percentile(self.seconds, [50, 95, 99]), max(self.seconds))
        return (
            self.constraints,
            f"{self.sketches:,}",
            f"{self.drags:,}",
            f"{len(self.seconds):,}",
            *(f"{1e3 * value:.1f} ms" for value in times),
            f"{self.rate:,.0f}",
            _share(self.held, len(self.seconds)),
            _share(self.reached, self.reachable),
        )


@dataclass
class EditScore:
    """Edits of single dimensions of fully dimensioned sketches by one factor."""

    factor: float
    edits: int = 0
    solved: int = 0
    held: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        times = np.percentile(self.seconds, [50, 95])
        shares = (_share(self.solved, self.edits), _share(self.held, self.solved))
        return (f"{self.factor:g}", f"{self.edits:,}", *shares, *(f"{1e3 * value:.0f} ms" for value in times))


@dataclass
class AlternativeScore:
    """What became of the alternatives of real sketches, by name."""

    sketches: int = 0
    in_freecad: bool = False
    offered: Counter[str] = field(default_factory=Counter)
    full: Counter[str] = field(default_factory=Counter)
    solved: Counter[str] = field(default_factory=Counter)
    full_in_freecad: Counter[str] = field(default_factory=Counter)
    with_full: int = 0
    with_full_solved: int = 0
    seconds: list[float] = field(default_factory=list)

    def rows(self) -> Iterator[tuple[str, ...]]:
        for name in NAMES:
            offered, full = self.offered[name], self.full[name]
            if not offered:
                continue
            in_freecad = ("", "")
            if self.in_freecad:
                in_freecad = (_share(self.solved[name], offered), _share(self.full_in_freecad[name], full))
            yield (name, f"{offered:,}", f"{full:,}", *in_freecad)


@dataclass(frozen=True, slots=True)
class DragBenchmark:
    """All scores of a run."""

    scores: tuple[DragScore, ...]
    edits: tuple[EditScore, ...]
    alternatives: AlternativeScore | None

    def table(self) -> Table:
        return rich_table(f"Drags of sketches of {PRIMITIVES} primitives", _COLUMNS, (s.row() for s in self.scores))

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        slowest = min(1 / max(score.slowest) for score in self.scores)
        yield f"Every drag at least {GOAL} updates a second: {_met(slowest >= GOAL)} (slowest {slowest:.0f})."
        held = all(score.held == len(score.seconds) for score in self.scores)
        yield f"All constraints hold to {HOLDS:g} of the size after every update: {_met(held)}."
        if score := self.alternatives:
            yield f"A fully constrained alternative: {_share(score.with_full, score.sketches)} of real sketches."
            if score.in_freecad:
                solved = _share(score.with_full_solved, score.sketches)
                yield f"One that FreeCAD solves with 0 and calls fully constrained: {solved}."

    def markdown(self, command: str) -> str:
        page = _PAGE.format(
            command=command,
            primitives=PRIMITIVES,
            tuning=TUNING_SKETCHES,
            updates=UPDATES,
            left_out=LEFT_OUT,
            table=markdown_table(_COLUMNS, (score.row() for score in self.scores)),
            reach=f"{REACH:.0%}".replace("%", " %"),
            shake=f"{SHAKE:.0%}".replace("%", " %"),
            edits=markdown_table(_EDITS, (score.row() for score in self.edits)),
        )
        if score := self.alternatives:
            median, percentile95 = 1e3 * np.percentile(score.seconds, [50, 95])
            page += _ALTERNATIVES_PAGE.format(
                sketches=score.sketches,
                least=MIN_PRIMITIVES,
                most=_MOST,
                table=markdown_table(_ALTERNATIVES, score.rows()),
                median=median,
                percentile95=percentile95,
            )
        return page + "\n" + "\n".join(f"- {sentence}" for sentence in self.sentences()) + "\n"


def measure_drags(
    data: Path,
    *,
    count: int = 60,
    alternative_count: int = 200,
    freecad: bool = True,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> DragBenchmark:
    """Drag parts of real sketches, and constrain others in several ways.

    Args:
        data: A SketchGraphs file.
        count: Sketches to drag.
        alternative_count: Sketches to constrain in several ways; none with 0.
        freecad: Whether FreeCAD solves the alternatives.
        seed: Seed of the drags.
        on_stage: Called with the name of each stage.
    """
    program = find_freecad() if freecad and alternative_count else ""
    on_stage("reading")
    sketches, others = _read_sketches(data, count, alternative_count)
    on_stage("dragging")
    with single_threaded(), multiprocessing.get_context("spawn").Pool(1) as pool:
        scores = pool.apply(_score_drags, (sketches, seed))
        on_stage("editing")
        edits = pool.apply(_score_edits, (sketches, seed))
        on_stage("alternatives")
        every = pool.map(_alternatives, others, chunksize=8)
    on_stage("FreeCAD")
    return DragBenchmark(tuple(scores), tuple(edits), _score_alternatives(every, program) if others else None)


def _read_sketches(data: Path, count: int, alternative_count: int) -> tuple[list[Sketch], list[Sketch]]:
    """Sketches to drag, and sketches to constrain in several ways."""
    sketches: list[Sketch] = []
    others: list[Sketch] = []
    for sketch in islice((item for item in scan(data) if isinstance(item, Sketch)), TUNING_SKETCHES, None):
        has_size = len(sketch) > 0 and bounds(sketch).size > 0
        if has_size and len(sketch) == PRIMITIVES and len(sketches) < count:
            sketches.append(sketch)
        if has_size and MIN_PRIMITIVES <= len(sketch) <= _MOST and len(others) < alternative_count:
            others.append(sketch)
        if len(sketches) == count and len(others) == alternative_count:
            break
    if not sketches:
        raise SketchError(f"{data.name} has no sketches of {PRIMITIVES} primitives to drag")
    return sketches, others


def _score_drags(sketches: Sequence[Sketch], seed: int) -> list[DragScore]:
    rng = np.random.default_rng(seed)
    scores = [DragScore("of the designers"), DragScore("inferred"), DragScore("inferred, with dimensions")]
    for sketch in sketches:
        plain = replace(sketch, constraints=())
        inferred = constrain(plain, ConstrainOptions(repair=False)).sketch
        missing = missing_dimensions(inferred)
        kept = (*inferred.constraints, *missing[: max(len(missing) - LEFT_OUT, 0)])
        own = solve(sketch)
        is_solved = not own.warning and not own.conflicting
        variants = [own.sketch if is_solved else None, inferred, replace(inferred, constraints=kept)]
        for score, variant in zip(scores, variants, strict=True):
            if variant is not None and variant.constraints:
                score.sketches += 1
                _drag_sketch(variant, score, rng)
    return scores


def _drag_sketch(sketch: Sketch, score: DragScore, rng: np.random.Generator) -> None:
    """Drag parts of a sketch to where they are in other solutions, and to anywhere."""
    far = REACH * bounds(sketch).size
    for number in range(2 * DRAGS):
        i = int(rng.integers(len(sketch)))
        part = str(rng.choice(_PARTS[type(sketch.primitives[i])]))
        start, angle = _place(sketch, i, part), rng.uniform(0, 2 * np.pi)
        if number >= DRAGS or part in ("radius", "whole"):
            to = (start[0] + far * float(np.cos(angle)), start[1] + far * float(np.sin(angle)))
            _drag_along(sketch, i, part, (start, to), score)
        elif other := _other_solution(sketch, rng):
            to = _place(other, i, part)
            end = _drag_along(sketch, i, part, (start, to), score)
            score.reachable += 1
            missed = float(np.hypot(*np.subtract(_place(end, i, part), to)))
            score.reached += missed <= REACHES * bounds(sketch).size


def _drag_along(sketch: Sketch, i: int, part: str, path: tuple[Vec, Vec], score: DragScore) -> Sketch:
    """Drag on a straight path; each update continues from the last result."""
    seconds, (start, end) = [], path
    for at in np.linspace(start, end, UPDATES + 1)[1:].tolist():
        before = tuple(np.subtract(at, np.subtract(end, start) / UPDATES).tolist()) if part == "whole" else None
        pulled = Drag(i, part, tuple(at), before)
        begun = time.process_time()
        result = drag(sketch, pulled)
        seconds.append(time.process_time() - begun)
        sketch = result.sketch
        residuals = constraint_residuals(sketch, sketch.constraints)
        score.held += max((value for value in residuals if value is not None), default=0.0) <= HOLDS
    score.drags += 1
    score.seconds += seconds
    score.slowest.append(float(np.mean(seconds)))
    return sketch


def _score_edits(sketches: Sequence[Sketch], seed: int) -> list[EditScore]:
    rng = np.random.default_rng(seed)
    scores = [EditScore(factor) for factor in FACTORS]
    for drawn in sketches:
        sketch = constrain(replace(drawn, constraints=()), ConstrainOptions(repair=False, dimensions=True)).sketch
        dimensions = [i for i, c in enumerate(sketch.constraints) if c.value]
        for score in scores:
            for i in rng.choice(dimensions, min(EDITS, len(dimensions)), replace=False).tolist():
                constraints = list(sketch.constraints)
                constraints[i] = replace(constraints[i], value=(constraints[i].value or 0.0) * score.factor)
                begun = time.process_time()
                result = solve_edited(replace(sketch, constraints=tuple(constraints)), i)
                score.seconds.append(time.process_time() - begun)
                score.edits += 1
                if result.message is None:
                    residuals = constraint_residuals(result.sketch, result.sketch.constraints)
                    score.solved += 1
                    score.held += max((value for value in residuals if value is not None), default=0.0) <= HOLDS
    return scores


def _place(sketch: Sketch, i: int, part: str) -> Vec:
    """Where a part is taken hold of."""
    primitive = sketch.primitives[i]
    if part == "radius" and isinstance(primitive, Circle | Arc):
        return (primitive.center[0] + primitive.radius, primitive.center[1])
    return ref_point(Ref(i, Part.START if part == "whole" else Part(part)), sketch.primitives) or (0.0, 0.0)


def _other_solution(sketch: Sketch, rng: np.random.Generator) -> Sketch | None:
    """The sketch with every point and radius off, solved again; None if that gives no solution with a sound shape."""
    by = SHAKE * bounds(sketch).size

    def shake(p: Primitive) -> Primitive:
        x, y, u, v = rng.uniform(-by, by, 4).tolist()
        match p:
            case Line(start, end):
                return replace(p, start=(start[0] + x, start[1] + y), end=(end[0] + u, end[1] + v))
            case Circle(center, radius) | Arc(center, radius):
                return replace(p, center=(center[0] + x, center[1] + y), radius=radius * (1 + u / by / 5))
            case Point(at):
                return replace(p, at=(at[0] + x, at[1] + y))

    try:
        solution = solve(replace(sketch, primitives=tuple(map(shake, sketch))), max_move=2.0)
    except (SketchError, np.linalg.LinAlgError):
        return None
    pairs = zip(sketch, solution.sketch, strict=True)
    is_sound = all(p.length == 0 or 0.2 < q.length / p.length < 5 for p, q in pairs)
    residuals = constraint_residuals(solution.sketch, sketch.constraints)
    holds = max((value for value in residuals if value is not None), default=0.0) <= HOLDS
    return solution.sketch if is_sound and holds and not solution.warning else None


Alternatives = tuple[float, list[tuple[str, bool, Sketch]]]


def _alternatives(sketch: Sketch) -> Alternatives:
    """Seconds, and the name of each alternative, whether it is fully constrained, and its sketch."""
    scaled = replace(sketch.moved(_SIZE / bounds(sketch).size), constraints=(), units="mm", extra={})
    begun = time.process_time()
    offered = alternatives(scaled)
    return time.process_time() - begun, [(a.name, a.result.fully_constrained, a.result.sketch) for a in offered]


def _score_alternatives(every: Sequence[Alternatives], program: str) -> AlternativeScore:
    score = AlternativeScore(len(every), bool(program), seconds=[seconds for seconds, _ in every])
    answers = iter(_solve_in_freecad([s for _, offered in every for _, _, s in offered], program) if program else ())
    for _, offered in every:
        any_solved = False
        for name, is_full, _ in offered:
            answer = next(answers, None) or {}
            solved = answer.get("solve") == 0
            score.offered[name] += 1
            score.full[name] += is_full
            score.solved[name] += solved
            score.full_in_freecad[name] += is_full and solved and bool(answer.get("full"))
            any_solved |= is_full and solved and bool(answer.get("full"))
        score.with_full += any(is_full for _, is_full, _ in offered)
        score.with_full_solved += any_solved
    return score


def _solve_in_freecad(sketches: Sequence[Sketch], program: str) -> list[Answer | None]:
    with tempfile.TemporaryDirectory() as folder:
        tasks: list[Answer] = []
        for number, sketch in enumerate(sketches):
            document = Path(folder) / f"{number}.FCStd"
            write(sketch, document)
            tasks.append({"document": str(document)})
        return run_in_freecad(program, _SOLVE, tasks)


def _share(count: int, total: int) -> str:
    return f"{count / total:.1%} of {total:,}".replace("%", " %") if total else "none"


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


_SOLVE = """
def evaluate(document, task):
    sketch = document.Objects[0]
    solved = sketch.solve()
    document.recompute()
    return {"solve": solved, "full": bool(sketch.FullyConstrained)}
"""
_PAGE = """# Drags, and alternatives of constraints

    {command}

Real SketchGraphs sketches of {primitives} primitives, without the file's first {tuning}. A part of each is dragged on a
straight path in {updates} updates, each from the last result. Processor time of one core.

{table}

- **of the designers**: the file's constraints, where all of them have a solution. **inferred**: those of `constrain`
  without repair. **with dimensions**: also all but {left_out} of the missing dimensions.
- **hold**: updates after which every constraint holds to 1e-9 of the sketch's size.
- **reach**: drags to a place where the part is in another solution of the same constraints, that end there to 1e-6 of
  the size. The other solution is found by `solve` after every point is moved by up to {shake} of the size. It need not
  be connected with the first by a path. The other drags go {reach} of the size in any direction.

## Edits

The same sketches with inferred constraints and all missing dimensions. The value of a dimension is multiplied, and
`solve_edited` looks for a solution in which the shape keeps its topology. The other edits are refused with a sentence
that names the conflict.

{edits}
"""
_ALTERNATIVES_PAGE = """
## Alternatives

`alternatives` of {sketches:,} sketches of {least} to {most} primitives, {median:.0f} ms in the median, 95th percentile
{percentile95:.0f} ms of one core. Each alternative is written as a FreeCAD document, and FreeCAD solves it.

{table}
"""
