"""Scripts run in FreeCAD, and how many sketches it opens, solves and pads to a solid.

FreeCAD always exits with 0 and runs a script twice, so only the lines that a script writes count, one per document.
A document that crashes FreeCAD has no answer; the next process continues with the document after it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from sketchdnn.constraints import repair
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.formats import write
from sketchdnn.geometry import Sketch, bounds, profile

from .results import OnStage, ignore_stage, markdown_table, percent, rich_table

Answer = dict[str, Any]

# Seconds for one process.
_TIMEOUT = 1800

_SCRIPT = """
import json, os
import FreeCAD, Part, Sketcher

job = json.load(open(os.environ["SKETCHDNN_JOB"]))

{body}

def main():
    with open(job["answers"], "a") as file:
        for task in job["tasks"]:
            document = FreeCAD.openDocument(task["document"])
            try:
                answer = evaluate(document, task)
            except Exception as error:
                answer = {{"error": str(error)}}
            FreeCAD.closeDocument(document.Name)
            file.write(json.dumps(answer) + "\\n")
            file.flush()

if not os.path.exists(job["answers"]):
    main()
"""


def find_freecad() -> str:
    """The path of FreeCAD's command-line program."""
    program = shutil.which("freecadcmd") or shutil.which("FreeCADCmd")
    if program is None:
        raise SketchError("this benchmark runs FreeCAD, and there is no freecadcmd on the PATH; install FreeCAD")
    return program


def run_in_freecad(program: str, script: str, tasks: Sequence[Answer]) -> list[Answer | None]:
    """The answers of a script for each task; None where FreeCAD crashed.

    Args:
        program: FreeCAD's command-line program.
        script: Python code that defines `evaluate(document, task)`, which returns a dictionary.
        tasks: Each has the path of a document under `document`, and other values for the script.
    """
    answers: list[Answer | None] = []
    while len(answers) < len(tasks):
        answers.extend(_run_once(program, script, tasks[len(answers) :]))
        if len(answers) < len(tasks):
            answers.append(None)
    return answers


def _run_once(program: str, script: str, tasks: Sequence[Answer]) -> list[Answer | None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = folder / "answers.jsonl"
        (folder / "job.json").write_text(json.dumps({"tasks": list(tasks), "answers": str(answers)}))
        (folder / "script.py").write_text(_SCRIPT.format(body=script))
        subprocess.run(  # noqa: S603 - our own script, and a program that the user has installed
            [program, str(folder / "script.py")],
            env={**os.environ, "SKETCHDNN_JOB": str(folder / "job.json"), "HOME": name},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
        lines = answers.read_text().splitlines() if answers.exists() else []
    return [json.loads(line) for line in lines]


GENERATED, REAL = "generated", "real"
RAW, JOINED, REPAIRED = "raw", "repaired, nothing added", "repaired"
GOAL = 0.9
# The larger side of every sketch and the height of its pad, in millimeters.
_SIZE, _HEIGHT = 100.0, 10.0
COLUMNS = (
    "sketches",
    "",
    "open",
    "solve",
    "no conflict",
    "pad to a solid",
    "right volume",
    "face and extrusion",
    "constraints",
)

_PAD_SCRIPT = """
def pad(document, sketch, height):
    body = document.addObject("PartDesign::Body", "Body")
    body.addObject(sketch)
    pad = body.newObject("PartDesign::Pad", "Pad")
    pad.Profile = sketch
    pad.Length = height
    document.recompute()
    return pad.Shape if pad.isValid() else None

def extrude(sketch, height):
    face = Part.makeFace(sketch.Shape.Wires, "Part::FaceMakerBullseye")
    return face.extrude(FreeCAD.Vector(0, 0, height))

def volume(make, *args):
    try:
        shape = make(*args)
        solids = bool(shape) and not shape.isNull() and len(shape.Solids) > 0
        fine = solids and shape.isValid() and all(solid.Volume > 0 for solid in shape.Solids)
        return shape.Volume if fine else 0.0
    except Exception:
        return 0.0

def evaluate(document, task):
    sketch = document.Objects[0]
    solved = sketch.solve()
    document.recompute()
    constraints = list(sketch.Constraints)
    active = sum(1 for each in constraints if each.IsActive)
    extruded = volume(extrude, sketch, task["height"])
    return {
        "geometry": sketch.GeometryCount,
        "solve": solved,
        "valid": sketch.isValid(),
        "constraints": len(constraints),
        "active": active,
        "extrudes": extruded,
        "pads": volume(pad, document, sketch, task["height"]),
    }
"""


@dataclass(frozen=True, slots=True)
class SolidCounts:
    """One set of sketches in FreeCAD: how many open, solve, have no conflict, and become solids."""

    sketches: str
    treatment: str
    count: int
    opened: int
    solved: int
    without_conflict: int
    pads: int
    extrudes: int
    right_volume: int
    constraints: int
    inactive: int
    faults: Counter[str] = field(default_factory=Counter)  # of sketches that do not pad

    @property
    def share(self) -> Estimate:
        return share_estimate(self.pads, self.count)

    def row(self) -> tuple[str, ...]:
        return (
            self.sketches,
            self.treatment,
            *(f"{number:,} of {self.count:,}" for number in (self.opened, self.solved, self.without_conflict)),
            percent(self.share),
            f"{self.right_volume:,} of {self.pads:,}",
            percent(share_estimate(self.extrudes, self.count)),
            f"{self.constraints:,}, {self.inactive:,} inactive",
        )


@dataclass(frozen=True, slots=True)
class SolidBenchmark:
    """All sets of a run, and the repair actions by set."""

    sets: tuple[SolidCounts, ...]
    actions: dict[str, Counter[str]]

    def table(self) -> Table:
        return rich_table("Sketches in FreeCAD", COLUMNS, (counts.row() for counts in self.sets))

    def ratio(self, treatment: str = REPAIRED) -> float:
        """The share of generated sketches that pad, relative to that of real sketches."""
        share = {counts.sketches: counts.share.value for counts in self.sets if counts.treatment == treatment}
        return share[GENERATED] / max(share[REAL], 1e-9)

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        all_open = all(s.count == s.opened == s.solved == s.without_conflict for s in self.sets)
        yield f"Every document opens, `solve()` returns 0 and nothing conflicts: {'met' if all_open else 'missed'}."
        is_met = "met" if self.ratio() >= GOAL else "missed"
        yield f"Repaired, generated sketches pad at least {_percent(GOAL)} as often as real ones: {is_met}."
        for treatment in (REPAIRED, JOINED):
            yield f"Generated as a share of real, {treatment}: {_percent(self.ratio(treatment))}."

    def markdown(self, command: str) -> str:
        actions = "\n".join(
            f"- {name}: {', '.join(f'{count:,} × {kind}' for kind, count in counter.most_common()) or 'none'}."
            for name, counter in self.actions.items()
        )
        faults = "\n".join(
            f"- {counts.sketches}: {', '.join(f'{count:,} × {fault}' for fault, count in counts.faults.most_common())}."
            for counts in self.sets
            if counts.treatment == REPAIRED and counts.faults
        )
        goals = "\n".join(f"- {sentence}" for sentence in self.sentences())
        return _PAGE.format(
            command=command,
            table=markdown_table(COLUMNS, (counts.row() for counts in self.sets)),
            actions=actions,
            faults=faults,
            goals=goals,
            size=_SIZE,
        )


def measure_solids(
    generated: Sequence[Sketch], real: Sequence[Sketch], on_stage: OnStage = ignore_stage
) -> SolidBenchmark:
    """Count the solids that FreeCAD makes of generated and real sketches, raw and repaired."""
    program = find_freecad()
    sets = []
    actions: dict[str, Counter[str]] = {}
    for name, sketches in ((GENERATED, generated), (REAL, real)):
        for treatment in (RAW, JOINED, REPAIRED):
            on_stage(f"{name}, {treatment}")
            treated = [_treat(sketch, treatment) for sketch in sketches]
            if treatment == REPAIRED:
                actions[name] = Counter(kind for _, kinds in treated for kind in kinds)
            sets.append(count_solids(program, name, treatment, [sketch for sketch, _ in treated]))
    return SolidBenchmark(tuple(sets), actions)


def _treat(sketch: Sketch, treatment: str) -> tuple[Sketch, list[str]]:
    """The sketch in millimeters after its treatment, and the kinds of repair actions."""
    scaled = replace(sketch.moved(_SIZE / bounds(sketch).size), units="mm", extra={})
    if treatment == RAW:
        return replace(scaled, constraints=()), []
    result = repair(replace(scaled, constraints=()), close=treatment == REPAIRED)
    return result.sketch, [str(action.kind) for action in result.actions]


def count_solids(program: str, name: str, treatment: str, sketches: Sequence[Sketch]) -> SolidCounts:
    """Open, solve and pad a set of sketches, in millimeters, with FreeCAD."""
    with tempfile.TemporaryDirectory() as folder:
        tasks: list[Answer] = []
        for number, sketch in enumerate(sketches):
            document = Path(folder) / f"{number}.FCStd"
            write(sketch, document)
            tasks.append({"document": str(document), "height": _HEIGHT})
        answers = run_in_freecad(program, _PAD_SCRIPT, tasks)
    complete = [
        (answer, sketch)
        for answer, sketch in zip(answers, sketches, strict=True)
        if answer is not None and answer.get("geometry") == len(sketch)
    ]
    opened = [answer for answer, _ in complete]
    return SolidCounts(
        name,
        treatment,
        len(sketches),
        opened=len(opened),
        solved=sum(answer["solve"] == 0 for answer in opened),
        without_conflict=sum(answer["solve"] == 0 and answer["valid"] for answer in opened),
        pads=sum(answer["pads"] > 0 for answer in opened),
        extrudes=sum(answer["extrudes"] > 0 for answer in opened),
        right_volume=sum(
            answer["pads"] > 0 and _has_profile_volume(sketch, answer["pads"]) for answer, sketch in complete
        ),
        constraints=sum(answer["constraints"] for answer in opened),
        inactive=sum(answer["constraints"] - answer["active"] for answer in opened),
        faults=Counter(fault for answer, sketch in complete if not answer["pads"] for fault in _faults(sketch)),
    )


def _faults(sketch: Sketch) -> list[str]:
    """The faults of a sketch's profile that prevent a pad."""
    curves = profile(sketch)
    faults = {
        "no closed loop": not curves.loops,
        "an open chain": bool(curves.chains),
        "a branch": bool(curves.branches),
        "a crossing": any(contact.crosses for contact in curves.contacts),
        "a touch": any(not contact.crosses for contact in curves.contacts),
        "an overlap": bool(curves.overlaps),
    }
    return [fault for fault, is_there in faults.items() if is_there] or [
        "several outlines" if len(curves.outer) > 1 else "no visible fault"
    ]


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _has_profile_volume(sketch: Sketch, volume: float) -> bool:
    """Whether a solid has the volume of our profile of the sketch."""
    return math.isclose(volume, profile(sketch).area * _HEIGHT, rel_tol=1e-6)


_PAGE = """# Sketches that become solids

    {command}

Each sketch is written as a FreeCAD document, {size:g} mm large, and opened by FreeCAD without a window. In brackets,
95 % intervals.

{table}

- **open**: the document opens, with every primitive. **solve**: the Sketcher's `solve()` returns 0: constraints neither
  conflict nor are redundant. **no conflict**: there is no error after recomputing either.
- **pad to a solid**: a PartDesign Pad of the sketch is a valid solid with a volume. **right volume**: of those, the
  ones with the volume of `geometry.profile`, to 1e-6. **face and extrusion**: Part's extrusion of a face of the wires
  is valid; unlike a pad, it may be several solids.
- **raw** has no constraints. **repaired** is the result of `constraints.repair` with all inferred constraints;
  **nothing added** is without its last step, which adds a line to an open outline and makes stray curves construction.
- **inactive**: constraints that are in the document, and that FreeCAD would call redundant.

Repair actions:

{actions}

Faults of the repaired profiles that do not pad; some have several:

{faults}

{goals}
"""
