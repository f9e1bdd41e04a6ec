"""Recall and precision of inferred constraints on jittered sketches, beside FreeCAD's own autoconstraint."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from rich.table import Table

from sketchdnn.constraints.infer import TOLERANCE
from sketchdnn.errors import SketchError
from sketchdnn.formats import read, scan, write
from sketchdnn.geometry import (
    Constraint,
    ConstraintType,
    Kind,
    Part,
    Ref,
    Sketch,
    bounds,
)
from sketchdnn.geometry.constraints import LENGTHS

from .constraint_recall import Inference, JitteredSketch, RecallScore, infer_and_solve, jitter_sketches
from .constraint_speed import ROUNDS, InferSpeed, time_infer_and_solve
from .freecad import Answer, find_freecad, run_in_freecad
from .results import OnStage, ignore_stage, markdown_table, rich_table

JITTERS = (0.001, 0.005)
RECALL_GOALS, PRECISION_GOALS = (0.95, 0.90), (0.95, 0.85)
# The types of constraints that the goals are about.
TYPES = (
    "coincident",
    "horizontal",
    "vertical",
    "parallel",
    "perpendicular",
    "tangent",
    "equal",
    "concentric",
    "midpoint",
)
# Sizes and positions are not inferred.
DIMENSIONS = frozenset(map(str, (*LENGTHS, ConstraintType.ANGLE, ConstraintType.FIX)))
# The thresholds of `infer` were tuned on the first sketches of the file.
TUNING_SKETCHES = 300
MIN_PRIMITIVES = 4
# The number of primitives of the sketches that are timed.
TIMED_PRIMITIVES = 16
OURS = "ours"
# FreeCAD's thresholds are lengths, so every sketch is scaled to this size, in millimeters.
_FREECAD_SIZE = 100.0
# The angles, in radians, within which FreeCAD aligns a line with an axis: about that of `infer`, and its default.
ANGLE = 0.08
DEFAULT_ANGLE = math.pi / 8


@dataclass(frozen=True, slots=True)
class JitterScore:
    """One method of inference at one jitter."""

    name: str
    jitter: float
    score: RecallScore

    @property
    def title(self) -> str:
        return f"{self.name}, {self.jitter:.1%}".replace("%", " %")

    def cells(self) -> Iterator[str]:
        """The cells below the recall by type."""
        score = self.score
        yield _percent(score.precision())
        yield f"{max(score.residuals, default=0.0):.0e}"
        yield f"{np.mean(score.displacements):.3%}".replace("%", " %")
        yield f"{np.mean(score.jitters):.3%}".replace("%", " %")
        yield f"{score.failed:,}"


@dataclass(frozen=True, slots=True)
class ConstraintBenchmark:
    """All scores of a run, on the same jittered sketches, and the speed of ours."""

    sketches: int
    scores: tuple[JitterScore, ...]
    speed: InferSpeed

    def table(self) -> Table:
        return rich_table(f"Constraints in {self.sketches:,} sketches", self._header(), self._recall_rows())

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        ours = {score.jitter: score.score for score in self.scores if score.name == OURS}
        for jitter, min_recall, min_precision in zip(JITTERS, RECALL_GOALS, PRECISION_GOALS, strict=True):
            score = ours[jitter]
            low = [name for name in TYPES if score.true[name] and score.recall(name) < min_recall]
            at = f"At {jitter:.1%}".replace("%", " %")
            missed = f" by {', '.join(low)}" if low else ""
            yield f"{at}, recall of every type at least {_percent(min_recall, 0)}: {_met(not low)}{missed}."
            precise = score.precision() >= min_precision
            yield f"{at}, precision at least {_percent(min_precision, 0)}: {_met(precise)}."
            yield f"{at}, residuals under 1e-9 of the size: {_met(max(score.residuals) < 1e-9)}."
            is_small = np.mean(score.displacements) <= np.mean(score.jitters)
            yield f"{at}, mean displacement no larger than the jitter: {_met(bool(is_small))}."
        speed = f"{_met(self.speed.median < 5e-3)} ({1e3 * self.speed.median:.1f} ms)"
        yield f"`infer` and `solve` of {TIMED_PRIMITIVES} primitives in a median under 5 ms on one core: {speed}."

    def markdown(self, command: str) -> str:
        return _PAGE.format(
            command=command,
            sketches=self.sketches,
            tuning=TUNING_SKETCHES,
            min_primitives=MIN_PRIMITIVES,
            angle=ANGLE,
            default=np.degrees(DEFAULT_ANGLE),
            table=markdown_table(self._header(), self._recall_rows()),
            precision=markdown_table(("", *self._header()[2:]), self._precision_rows()),
            goals="\n".join(f"- {sentence}" for sentence in self.sentences()),
            timed=TIMED_PRIMITIVES,
            rounds=ROUNDS,
            timed_sketches=self.speed.sketches,
            median=1e3 * self.speed.median,
            percentile95=1e3 * self.speed.percentile95,
        )

    def _header(self) -> tuple[str, ...]:
        return ("", "true", *(score.title for score in self.scores))

    def _recall_rows(self) -> list[tuple[str, ...]]:
        scores = [score.score for score in self.scores]
        others = sorted({name for score in scores for name in score.true} - {*TYPES, *DIMENSIONS})
        rows = [
            (f"recall, {name}", f"{scores[0].true[name]:,}", *(_percent(score.recall(name)) for score in scores))
            for name in (*TYPES, *others)
            if scores[0].true[name]
        ]
        names = ("precision", "largest residual", "mean displacement", "mean jitter", "not solved")
        cells = zip(names, *(score.cells() for score in self.scores), strict=True)
        return rows + [(name, "", *values) for name, *values in cells]

    def _precision_rows(self) -> list[tuple[str, ...]]:
        scores = [score.score for score in self.scores]

        def cell(score: RecallScore, name: str) -> str:
            inferred = score.inferred[name]
            return f"{_percent(score.precision(name))} of {inferred:,}" if inferred else "none"

        names = sorted({name for score in scores for name in score.inferred})
        return [(name, *(cell(score, name) for score in scores)) for name in names]


def measure_constraints(
    data: Path,
    *,
    count: int = 1000,
    timed: int = 100,
    freecad: bool = True,
    seed: int = 0,
    on_stage: OnStage = ignore_stage,
) -> ConstraintBenchmark:
    """Jitter sketches of a SketchGraphs file, infer their constraints again, and time it.

    Args:
        data: The file.
        count: Sketches to jitter.
        timed: Sketches to time.
        freecad: Whether to run FreeCAD's autoconstraint too.
        seed: Seed of the jitter.
        on_stage: Called with the name of each stage.
    """
    program = find_freecad() if freecad else ""
    on_stage("reading")
    sketches, timed_sketches = _read_sketches(data, count, timed)
    scores = [score for jitter in JITTERS for score in _score_jitter(sketches, jitter, program, seed, on_stage)]
    on_stage("timing")
    jittered = [jittered.sketch for jittered in jitter_sketches(timed_sketches, JITTERS[-1], seed)]
    return ConstraintBenchmark(len(sketches), tuple(scores), time_infer_and_solve(jittered, TOLERANCE))


def _score_jitter(
    sketches: Sequence[Sketch], jitter: float, program: str, seed: int, on_stage: OnStage
) -> Iterator[JitterScore]:
    jittered = jitter_sketches(sketches, jitter, seed)
    tolerances = {OURS: jitter} | ({"ours, default": TOLERANCE} if jitter != TOLERANCE else {})
    for name, tolerance in tolerances.items():
        on_stage(f"{name}, {jitter:.1%}")
        score = RecallScore()
        for sketch in jittered:
            score.add(sketch, infer_and_solve(sketch, tolerance))
        yield JitterScore(name, jitter, score)
    for name, angle in {"FreeCAD": ANGLE, "FreeCAD's default": DEFAULT_ANGLE}.items() if program else ():
        on_stage(f"{name}, {jitter:.1%}")
        score = RecallScore()
        for sketch, inference in zip(jittered, autoconstrain(program, jittered, jitter, angle), strict=True):
            score.add(sketch, inference)
        yield JitterScore(name, jitter, score)


def _read_sketches(data: Path, count: int, timed_count: int) -> tuple[list[Sketch], list[Sketch]]:
    """Constrained sketches to jitter, and sketches of the size that is timed."""
    untuned = islice((item for item in scan(data) if isinstance(item, Sketch)), TUNING_SKETCHES, None)
    constrained: list[Sketch] = []
    timed: list[Sketch] = []
    for sketch in untuned:
        if len(sketch) == TIMED_PRIMITIVES and len(timed) < timed_count:
            timed.append(sketch)
        is_usable = len(sketch) >= MIN_PRIMITIVES and sketch.constraints and bounds(sketch).size > 0
        if len(constrained) < count and is_usable:
            constrained.append(sketch)
        if len(constrained) == count and len(timed) == timed_count:
            break
    if not constrained or not timed:
        raise SketchError(
            f"{data.name} has too few constrained sketches beyond the first {TUNING_SKETCHES} to measure on"
        )
    return constrained, timed


def autoconstrain(
    program: str, jittered: Sequence[JitteredSketch], jitter: float, angle: float = ANGLE
) -> Iterator[Inference]:
    """FreeCAD's autoconstraint on each sketch, with a precision that fits the jitter.

    Two ends, each off by ±jitter in x and in y, are at most √8 × jitter apart, which is the precision.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tasks: list[Answer] = []
        for number, one in enumerate(jittered):
            document = folder / f"{number}.FCStd"
            scaled = replace(one.sketch.moved(_FREECAD_SIZE / bounds(one.sketch).size), units="mm", extra={})
            write(scaled, document)
            out = folder / f"{number}-out.FCStd"
            precision = 8**0.5 * jitter * _FREECAD_SIZE
            tasks.append({"document": str(document), "out": str(out), "precision": precision, "angle": angle})
        for one, task, answer in zip(jittered, tasks, run_in_freecad(program, _AUTOCONSTRAINT, tasks), strict=True):
            yield _read_inference(one, Path(task["out"]), answer)


def _read_inference(jittered: JitteredSketch, out: Path, answer: Answer | None) -> Inference:
    """The constraints in FreeCAD's document; none if FreeCAD failed or a primitive vanished."""
    nothing = Inference((), None)
    if answer is None or "error" in answer or not out.exists():
        return nothing
    try:
        (sketch,) = read(out).sketches
        solved = sketch.moved(bounds(jittered.sketch).size / _FREECAD_SIZE)
    except (SketchError, ValueError):
        return nothing
    if [p.kind for p in sketch] != [p.kind for p in jittered.sketch]:
        return nothing
    constraints = tuple(part for constraint in sketch.constraints for part in _split_constraint(constraint, sketch))
    solved = replace(solved, constraints=(), units=jittered.sketch.units)
    return Inference(constraints, solved if answer["solve"] == 0 else None)


def _split_constraint(constraint: Constraint, sketch: Sketch) -> list[Constraint]:
    """FreeCAD's tangent or perpendicular at two ends, as a coincident and a constraint of the curves."""
    ends = [ref for ref in constraint.refs if ref.part is not Part.WHOLE]
    if constraint.type not in (ConstraintType.TANGENT, ConstraintType.PERPENDICULAR) or len(ends) != 2:
        return [constraint]
    coincident = Constraint(ConstraintType.COINCIDENT, tuple(ends))
    curves = tuple(Ref(ref.primitive) for ref in ends)
    lines = [ref for ref in curves if sketch.primitives[ref.primitive or 0].kind is Kind.LINE]
    if len(lines) == 2 and constraint.type is ConstraintType.TANGENT:
        return [coincident, Constraint(ConstraintType.COLLINEAR, curves)]
    if len(lines) == 2 or constraint.type is ConstraintType.TANGENT:
        return [coincident, Constraint(constraint.type, curves)]
    centers = tuple(Ref(ref.primitive, Part.CENTER) for ref in curves if ref not in lines)
    if lines:  # a line perpendicular to an arc passes through its center
        return [coincident, Constraint(ConstraintType.POINT_ON_CURVE, (*centers, *lines))]
    return [coincident]


def _percent(share: float, digits: int = 1) -> str:
    return f"{share:.{digits}%}".replace("%", " %")


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


_AUTOCONSTRAINT = """
def evaluate(document, task):
    sketch = document.Objects[0]
    refused = ""
    try:
        sketch.autoconstraint(task["precision"], task["angle"], True)
    except Exception as error:
        refused = str(error) or type(error).__name__
    solved = sketch.solve()
    document.saveCopy(task["out"])
    return {"refused": refused, "solve": solved}
"""
_PAGE = """# Inference of constraints

    {command}

{sketches:,} real SketchGraphs sketches of at least {min_primitives} primitives, without the file's first {tuning}, on
which the thresholds of inference were tuned. Coordinates of ends and centers, radii and lengths along arcs are moved by
up to ±0.1 % or ±0.5 % of the size; then constraints are inferred and solved.

{table}

- **recall**: of the designers' constraints that hold in the clean sketch to 1e-6 of its size, the share that the
  inferred constraints imply: it holds to 1e-6 in the solved sketch, and no motion that they leave free breaks it.
  *on or along* is SketchGraphs' coincident of a point and a curve. Dimensions are not inferred.
- **precision**: of the inferred constraints, the share that holds in the clean sketch to 1e-4.
- **largest residual**, **mean displacement**, **mean jitter**: of the solved sketches, as shares of the size.
  Displacement is from the jittered sketch to the solved one, jitter from the clean one to the jittered.
- **not solved**: sketches without a solution; none of their constraints counts as recalled.
- **ours** has a tolerance equal to the jitter; **default**, that of `infer`, 0.5 %. **FreeCAD** is its Sketcher's
  `autoconstraint`, with a tolerance of √8 times the jitter for ends and of {angle:g} rad for lines along an axis, as
  ours; **its default** angle is {default:.1f}°. Its tangent and perpendicular ends count as a coincident and a tangent
  or perpendicular each. Where it failed, the constraints that it left count if its solver accepts them.

Precision by type, and the number of inferred constraints:

{precision}

Speed: sketches of {timed} primitives ({timed_sketches}), `infer` and `solve`, processor time of one core, the best of
{rounds} rounds each: median {median:.2f} ms, 95th percentile {percentile95:.2f} ms.

Large drawings, and the constraints of FreeCAD files: [constraint_speed.md](constraint_speed.md).

{goals}
"""
