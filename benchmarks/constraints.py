"""How well constraints are inferred: against those that designers gave, beside FreeCAD's own autoconstraint."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
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

from .constraint_recall import Judged, Score, Shaken, count, judge, shake_all
from .constraint_speed import ROUNDS, Speed, time_constraints
from .freecad import Answer, ask_freecad, find_freecad

JITTERS = (0.001, 0.005)
RECALL_GOALS, PRECISION_GOALS = (0.95, 0.90), (0.95, 0.85)
# The kinds that the goals are about.
KINDS = (
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
# What is not inferred: how large and where things are.
DIMENSIONS = frozenset(map(str, (*LENGTHS, ConstraintType.ANGLE, ConstraintType.FIX)))
# The thresholds of `infer` were chosen by the file's first sketches.
SEEN = 300
# Of fewer primitives there is little to say.
LEAST = 4
TIMED = 16
OURS = "ours"
OnStage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to find constraints, at one jitter."""

    name: str
    jitter: float
    score: Score

    @property
    def title(self) -> str:
        return f"{self.name}, {self.jitter:.1%}".replace("%", " %")

    def cells(self) -> Iterator[str]:
        """What is not counted by kind."""
        score = self.score
        yield _percent(score.precision())
        yield f"{max(score.residuals, default=0.0):.0e}"
        yield f"{np.mean(score.displacements):.3%}".replace("%", " %")
        yield f"{np.mean(score.jitters):.3%}".replace("%", " %")
        yield f"{score.failed:,}"


@dataclass(frozen=True, slots=True)
class ConstraintBench:
    """All rows of a run, on the same shaken sketches, and how quick ours is."""

    sketches: int
    rows: tuple[Row, ...]
    speed: Speed

    def table(self) -> Table:
        table = Table("", "true", *(row.title for row in self.rows), title=f"Constraints in {self.sketches:,} sketches")
        for line in self._lines():
            table.add_row(*line)
        return table

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        ours = {row.jitter: row.score for row in self.rows if row.name == OURS}
        for jitter, least, precise in zip(JITTERS, RECALL_GOALS, PRECISION_GOALS, strict=True):
            score = ours[jitter]
            known = [kind for kind in KINDS if score.true[kind]]
            low = [kind for kind in known if score.recall(kind) < least]
            at = f"At {jitter:.1%}".replace("%", " %")
            yield f"{at}, recall of every kind at least {_whole(least)}: {_met(not low)}{_names(low)}."
            yield f"{at}, precision at least {_whole(precise)}: {_met(score.precision() >= precise)}."
            yield f"{at}, residuals under 1e-9 of the size: {_met(max(score.residuals) < 1e-9)}."
            still = np.mean(score.displacements) <= np.mean(score.jitters)
            yield f"{at}, mean displacement no larger than the jitter: {_met(bool(still))}."
        quick = f"{_met(self.speed.median < 5e-3)} ({1e3 * self.speed.median:.1f} ms)"
        yield f"infer and solve of {TIMED} primitives in a median under 5 ms on one core: {quick}."

    def markdown(self, command: str) -> str:
        header = ("", "true", *(row.title for row in self.rows))
        return _PAGE.format(
            command=command,
            sketches=self.sketches,
            seen=SEEN,
            least=LEAST,
            angle=ANGLE,
            default=np.degrees(DEFAULT_ANGLE),
            table=_markdown(header, self._lines()),
            kinds=_markdown(("", *header[2:]), self._precise()),
            goals="\n".join(f"- {sentence}" for sentence in self.sentences()),
            timed=TIMED,
            rounds=ROUNDS,
            timed_sketches=self.speed.sketches,
            median=1e3 * self.speed.median,
            slow=1e3 * self.speed.slow,
        )

    def _lines(self) -> list[tuple[str, ...]]:
        scores = [row.score for row in self.rows]
        others = sorted({kind for score in scores for kind in score.true} - {*KINDS, *DIMENSIONS})
        lines = [
            (f"recall, {kind}", f"{scores[0].true[kind]:,}", *(_percent(score.recall(kind)) for score in scores))
            for kind in (*KINDS, *others)
            if scores[0].true[kind]
        ]
        names = ("precision", "largest residual", "mean displacement", "mean jitter", "not solved")
        return lines + [
            (name, "", *cells) for name, *cells in zip(names, *(row.cells() for row in self.rows), strict=True)
        ]

    def _precise(self) -> list[tuple[str, ...]]:
        scores = [row.score for row in self.rows]
        kinds = sorted({kind for score in scores for kind in score.inferred})

        def cell(score: Score, kind: str) -> str:
            found = score.inferred[kind]
            return f"{_percent(score.precision(kind))} of {found:,}" if found else "none"

        return [(kind, *(cell(score, kind) for score in scores)) for kind in kinds]


def measure_constraints(
    data: Path,
    *,
    count: int = 1000,
    timed: int = 100,
    freecad: bool = True,
    seed: int = 0,
    on_stage: OnStage = lambda stage: None,
) -> ConstraintBench:
    """Shake sketches of a SketchGraphs file, find their constraints again, and time it."""
    program = find_freecad() if freecad else ""
    on_stage("reading")
    sketches, others = _read(data, count, timed)
    rows = []
    for jitter in JITTERS:
        rows += list(_rows(sketches, jitter, program, seed, on_stage))
    on_stage("timing")
    speed = time_constraints([one.sketch for one in shake_all(others, JITTERS[-1], seed)], TOLERANCE)
    return ConstraintBench(len(sketches), tuple(rows), speed)


def _rows(sketches: Sequence[Sketch], jitter: float, program: str, seed: int, on_stage: OnStage) -> Iterator[Row]:
    shaken = shake_all(sketches, jitter, seed)
    tolerances = {OURS: jitter} | ({"ours, untold": TOLERANCE} if jitter != TOLERANCE else {})
    for name, tolerance in tolerances.items():
        on_stage(f"{name}, {jitter:.1%}")
        score = Score()
        for one in shaken:
            count(score, one, judge(one, tolerance))
        yield Row(name, jitter, score)
    for name, angle in {"FreeCAD": ANGLE, "FreeCAD's default": DEFAULT_ANGLE}.items() if program else ():
        on_stage(f"{name}, {jitter:.1%}")
        score = Score()
        for one, judged in zip(shaken, autoconstrained(program, shaken, jitter, angle), strict=True):
            count(score, one, judged)
        yield Row(name, jitter, score)


def _read(data: Path, most: int, most_timed: int) -> tuple[list[Sketch], list[Sketch]]:
    """Constrained sketches to measure on, and some of the size that is timed."""
    unseen = islice((item for item in scan(data) if isinstance(item, Sketch)), SEEN, None)
    chosen: list[Sketch] = []
    timed: list[Sketch] = []
    for sketch in unseen:
        if len(sketch) == TIMED and len(timed) < most_timed:
            timed.append(sketch)
        if len(chosen) < most and len(sketch) >= LEAST and sketch.constraints and bounds(sketch).size > 0:
            chosen.append(sketch)
        if len(chosen) == most and len(timed) == most_timed:
            break
    if not chosen or not timed:
        raise SketchError(f"{data.name} has too few constrained sketches beyond the first {SEEN} to measure on")
    return chosen, timed


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _whole(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def _names(kinds: Sequence[str]) -> str:
    return f" by {', '.join(kinds)}" if kinds else ""


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *lines))


_PAGE = """# Constraints that are found again

    {command}

{sketches:,} real SketchGraphs sketches of at least {least} primitives, of those beyond the file's first {seen}, by
which the thresholds of inference were chosen. Every number of a sketch (coordinates of ends and centers, radii, lengths
along arcs) is moved by up to ±0.1 % or ±0.5 % of its size; then constraints are inferred and solved.

{table}

- **recall**: of the constraints that designers gave and that hold in the clean sketch to 1e-6 of its size, those that
  follow from what was found: they hold to 1e-6 in the sketch that it was solved to, and no move that it leaves free
  breaks them. *on or along* is SketchGraphs' coincident where a curve is one of the two. Dimensions are not inferred.
- **precision**: of what was found, the share that holds in the clean sketch to 1e-4.
- **largest residual**, **mean displacement**, **mean jitter**: of the sketches that were solved, as shares of the size.
  Displacement is from the shaken sketch to the solved one, jitter from the clean one to the shaken.
- **not solved**: sketches for which no solution was found; none of their constraints counts as recalled.
- **ours** is told how far off things may be; **untold**, it takes its default tolerance of 0.5 %. **FreeCAD** is its
  Sketcher's `autoconstraint`, told as well: ends may be √8 times the jitter apart, lines {angle:g} rad off an axis,
  as they may for ours; **its default** angle is {default:.1f}°. Its tangent and square ends count as a coincident and a
  tangent or perpendicular each. Where it gave up, what it left counts if its solver accepts it.

Precision by kind, and how many were found:

{kinds}

Speed: sketches of {timed} primitives ({timed_sketches}), `infer` and `solve`, time of one core, the best of {rounds}
rounds each: median {median:.2f} ms, 95 of 100 under {slow:.2f} ms.

Large drawings, and the constraints that authors of FreeCAD files gave: [constraint_speed.md](constraint_speed.md).

{goals}
"""


# Its own thresholds are lengths: every sketch is given to it in this size, in millimeters.
_SIZE = 100.0
# The angle, in radians, within which a line counts as along an axis and ends as smooth or square: about what `infer`
# allows, and FreeCAD's own default, which takes much that slopes for level.
ANGLE = 0.08
DEFAULT_ANGLE = math.pi / 8

_LOOK = """
def look(document, task):
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


def autoconstrained(program: str, shaken: Sequence[Shaken], jitter: float, angle: float = ANGLE) -> Iterator[Judged]:
    """What FreeCAD makes of each sketch, told as we are how far off things may be.

    Two ends, each off by ±jitter in x and in y, are at most √8 of it apart: that is the precision it is given.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tasks: list[Answer] = []
        for number, one in enumerate(shaken):
            document = folder / f"{number}.FCStd"
            large = replace(one.sketch.moved(_SIZE / bounds(one.sketch).size), units="mm", extra={})
            write(large, document)
            out = folder / f"{number}-out.FCStd"
            precision = 8**0.5 * jitter * _SIZE
            tasks.append({"document": str(document), "out": str(out), "precision": precision, "angle": angle})
        for one, task, answer in zip(shaken, tasks, ask_freecad(program, _LOOK, tasks), strict=True):
            yield _judged(one, Path(task["out"]), answer)


def _judged(shaken: Shaken, out: Path, answer: Answer | None) -> Judged:
    """Nothing, where FreeCAD gave up or left a sketch of which something has vanished."""
    nothing = Judged((), None)
    if answer is None or "error" in answer or not out.exists():
        return nothing
    try:
        (sketch,) = read(out).sketches
        solved = sketch.moved(bounds(shaken.sketch).size / _SIZE)
    except (SketchError, ValueError):
        return nothing
    if [p.kind for p in sketch] != [p.kind for p in shaken.sketch]:
        return nothing
    found = tuple(each for constraint in sketch.constraints for each in _apart(constraint, sketch))
    solved = replace(solved, constraints=(), units=shaken.sketch.units)
    return Judged(found, solved if answer["solve"] == 0 else None)


def _apart(constraint: Constraint, sketch: Sketch) -> list[Constraint]:
    """FreeCAD's tangent or perpendicular at two ends, as we say it: ends that meet, and curves that are."""
    named = [ref for ref in constraint.refs if ref.part is not Part.WHOLE]
    if constraint.type not in (ConstraintType.TANGENT, ConstraintType.PERPENDICULAR) or len(named) != 2:
        return [constraint]
    met = Constraint(ConstraintType.COINCIDENT, tuple(named))
    curves = tuple(Ref(ref.primitive) for ref in named)
    lines = [ref for ref in curves if sketch.primitives[ref.primitive or 0].kind is Kind.LINE]
    if len(lines) == 2 and constraint.type is ConstraintType.TANGENT:
        return [met, Constraint(ConstraintType.COLLINEAR, curves)]
    if len(lines) == 2 or constraint.type is ConstraintType.TANGENT:
        return [met, Constraint(constraint.type, curves)]
    centers = tuple(Ref(ref.primitive, Part.CENTER) for ref in curves if ref not in lines)
    if lines:  # a line that meets an arc squarely leads to its center
        return [met, Constraint(ConstraintType.POINT_ON_CURVE, (*centers, *lines))]
    return [met]
