"""FreeCAD as a judge: sketches go in as documents, what it makes of them comes back as plain data.

It exits with 0 whatever happens and runs a script twice, so only what a script has written counts, a line a document.
A document that it dies of is one without an answer, and the next process goes on behind it.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from sketchdnn.constraints import repair
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate, share_estimate
from sketchdnn.formats import write
from sketchdnn.geometry import Sketch, bounds, profile

from .completion import percent

Answer = dict[str, Any]
OnDone = Callable[[int], None]

# Seconds for one process.
_PATIENCE = 1800

_FRAME = """
import json, os
import FreeCAD, Part, Sketcher

job = json.load(open(os.environ["SKETCHDNN_JOB"]))

{body}

def main():
    with open(job["answers"], "a") as file:
        for task in job["tasks"]:
            document = FreeCAD.openDocument(task["document"])
            try:
                answer = look(document, task)
            except Exception as error:
                answer = {{"error": str(error)}}
            FreeCAD.closeDocument(document.Name)
            file.write(json.dumps(answer) + "\\n")
            file.flush()

if not os.path.exists(job["answers"]):
    main()
"""


def find_freecad() -> str:
    """Its command-line program."""
    program = shutil.which("freecadcmd") or shutil.which("FreeCADCmd")
    if program is None:
        raise SketchError("FreeCAD is to judge, and there is no freecadcmd on the PATH; install FreeCAD")
    return program


def ask_freecad(
    program: str, look: str, tasks: Sequence[Answer], on_done: OnDone = lambda done: None
) -> list[Answer | None]:
    """What `look(document, task)`, given as a script, says of each task's `document`; none where FreeCAD died of it."""
    answers: list[Answer | None] = []
    while len(answers) < len(tasks):
        fresh = _ask_once(program, look, tasks[len(answers) :])
        answers.extend(fresh)
        if len(answers) < len(tasks):
            answers.append(None)
        on_done(len(answers))
    return answers


def _ask_once(program: str, look: str, tasks: Sequence[Answer]) -> list[Answer | None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = folder / "answers.jsonl"
        (folder / "job.json").write_text(json.dumps({"tasks": list(tasks), "answers": str(answers)}))
        (folder / "script.py").write_text(_FRAME.format(body=look))
        subprocess.run(  # noqa: S603 - our own script, and a program that the user has installed
            [program, str(folder / "script.py")],
            env={**os.environ, "SKETCHDNN_JOB": str(folder / "job.json"), "HOME": name},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
        lines = answers.read_text().splitlines() if answers.exists() else []
    return [json.loads(line) for line in lines]


GENERATED, REAL = "generated", "real"
RAW, JOINED, REPAIRED = "raw", "repaired, nothing added", "repaired"
GOAL = 0.9
# The larger side of every sketch, in millimeters, and how high it is padded.
_SIZE, _HEIGHT = 100.0, 10.0
COLUMNS = (
    "sketches",
    "",
    "open",
    "solve",
    "no conflict",
    "pad to a solid",
    "as meant",
    "face and extrusion",
    "constraints",
)
OnStage = Callable[[str], None]

_LOOK = """
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

def look(document, task):
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
class Solids:
    """One set of sketches in FreeCAD: how many of them open, solve, are without conflict, and become solids."""

    sketches: str
    how: str
    count: int
    opened: int
    solved: int
    clean: int
    pads: int
    extrudes: int
    as_meant: int
    constraints: int
    switched_off: int
    faults: Counter[str] = field(default_factory=Counter)  # of those that do not pad

    @property
    def share(self) -> Estimate:
        return share_estimate(self.pads, self.count)

    def row(self) -> tuple[str, ...]:
        return (
            self.sketches,
            self.how,
            *(f"{each:,} of {self.count:,}" for each in (self.opened, self.solved, self.clean)),
            percent(self.share),
            f"{self.as_meant:,} of {self.pads:,}",
            percent(share_estimate(self.extrudes, self.count)),
            f"{self.constraints:,}, {self.switched_off:,} switched off",
        )


@dataclass(frozen=True, slots=True)
class SolidBench:
    """All sets of a run, and what was done to repair them."""

    sets: tuple[Solids, ...]
    actions: dict[str, Counter[str]]

    def table(self) -> Table:
        table = Table(*COLUMNS, title="Sketches in FreeCAD")
        for each in self.sets:
            table.add_row(*(cell.partition(" (")[0] for cell in each.row()))  # intervals are for the page
        return table

    def ratio(self, how: str = REPAIRED) -> float:
        """The share of generated sketches that pad, as a share of that of real ones."""
        share = {each.sketches: each.share.value for each in self.sets if each.how == how}
        return share[GENERATED] / max(share[REAL], 1e-9)

    def sentences(self) -> Iterator[str]:
        """Each goal, and whether it is met."""
        whole = all(each.count == each.opened == each.solved == each.clean for each in self.sets)
        yield f"Every document opens, `solve()` returns 0 and nothing conflicts: {'met' if whole else 'missed'}."
        is_met = "met" if self.ratio() >= GOAL else "missed"
        yield f"Repaired, generated sketches pad at least {_whole(GOAL)} as often as real ones: {is_met}."
        for how in (REPAIRED, JOINED):
            yield f"Generated as a share of real, {how}: {_whole(self.ratio(how))}."

    def markdown(self, command: str) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (COLUMNS, ("---",) * len(COLUMNS), *(s.row() for s in self.sets))]
        actions = "\n".join(
            f"- {name}: {', '.join(f'{count:,} × {kind}' for kind, count in counter.most_common()) or 'none'}."
            for name, counter in self.actions.items()
        )
        faults = "\n".join(
            f"- {each.sketches}: {', '.join(f'{count:,} × {fault}' for fault, count in each.faults.most_common())}."
            for each in self.sets
            if each.how == REPAIRED and each.faults
        )
        goals = "\n".join(f"- {sentence}" for sentence in self.sentences())
        return _PAGE.format(
            command=command, rows="\n".join(lines), actions=actions, faults=faults, goals=goals, size=_SIZE
        )


def measure_solids(
    generated: Sequence[Sketch], real: Sequence[Sketch], on_stage: OnStage = lambda stage: None
) -> SolidBench:
    """Have FreeCAD judge generated and real sketches, raw and repaired."""
    program = find_freecad()
    sets = []
    actions: dict[str, Counter[str]] = {}
    for name, sketches in ((GENERATED, generated), (REAL, real)):
        for how in (RAW, JOINED, REPAIRED):
            on_stage(f"{name}, {how}")
            done = [_repaired(sketch, how) for sketch in sketches]
            if how == REPAIRED:
                actions[name] = Counter(kind for _, kinds in done for kind in kinds)
            sets.append(judge_solids(program, name, how, [sketch for sketch, _ in done]))
    return SolidBench(tuple(sets), actions)


def _repaired(sketch: Sketch, how: str) -> tuple[Sketch, list[str]]:
    sized = replace(sketch.moved(_SIZE / bounds(sketch).size), units="mm", extra={})
    if how == RAW:
        return replace(sized, constraints=()), []
    done = repair(replace(sized, constraints=()), close=how == REPAIRED)
    return done.sketch, [str(action.kind) for action in done.actions]


def judge_solids(program: str, name: str, how: str, sketches: Sequence[Sketch]) -> Solids:
    """What FreeCAD says of a set of sketches, in millimeters."""
    with tempfile.TemporaryDirectory() as folder:
        tasks: list[Answer] = []
        for number, sketch in enumerate(sketches):
            document = Path(folder) / f"{number}.FCStd"
            write(sketch, document)
            tasks.append({"document": str(document), "height": _HEIGHT})
        answers = ask_freecad(program, _LOOK, tasks)
    fine = [
        (answer, sketch)
        for answer, sketch in zip(answers, sketches, strict=True)
        if answer is not None and answer.get("geometry") == len(sketch)
    ]
    told = [answer for answer, _ in fine]
    return Solids(
        name,
        how,
        len(sketches),
        opened=len(told),
        solved=sum(answer["solve"] == 0 for answer in told),
        clean=sum(answer["solve"] == 0 and answer["valid"] for answer in told),
        pads=sum(answer["pads"] > 0 for answer in told),
        extrudes=sum(answer["extrudes"] > 0 for answer in told),
        as_meant=sum(answer["pads"] > 0 and _is_meant(sketch, answer["pads"]) for answer, sketch in fine),
        constraints=sum(answer["constraints"] for answer in told),
        switched_off=sum(answer["constraints"] - answer["active"] for answer in told),
        faults=Counter(fault for answer, sketch in fine if not answer["pads"] for fault in _faults(sketch)),
    )


def _faults(sketch: Sketch) -> list[str]:
    """What of a sketch's profile keeps it from being padded."""
    found = profile(sketch)
    faults = {
        "nothing that closes": not found.loops,
        "an open chain": bool(found.chains),
        "a branch": bool(found.branches),
        "a crossing": any(meeting.crosses for meeting in found.meetings),
        "a touch": any(not meeting.crosses for meeting in found.meetings),
        "an overlap": bool(found.overlaps),
    }
    return [fault for fault, is_there in faults.items() if is_there] or [
        "several outlines" if len(found.outer) > 1 else "nothing that we see"
    ]


def _whole(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _is_meant(sketch: Sketch, volume: float) -> bool:
    """Whether a solid has the volume of the profile as we see it."""
    return math.isclose(volume, profile(sketch).area * _HEIGHT, rel_tol=1e-6)


_PAGE = """# Sketches that become solids

    {command}

Each sketch is written as a FreeCAD document, {size:g} mm large, and opened by FreeCAD without a window. In brackets,
95 % intervals.

{rows}

- **open**: the document opens, with every primitive in it. **solve**: the Sketcher's `solve()` returns 0, which it does
  not where constraints conflict or are redundant. **no conflict**: nor is there an error after recomputing.
- **pad to a solid**: a PartDesign Pad of the sketch is a valid solid with a volume. **as meant**: of those, the ones
  with the volume of the profile as `geometry.profile` sees it, to 1e-6. **face and extrusion**: what Part extrudes of a
  face made of its wires is valid; unlike a pad, it may be several solids.
- **raw** has no constraints. **repaired** is what `constraints.repair` makes of it and all the constraints it finds;
  **nothing added** is without its last step, which adds a line where an outline is open and makes strays construction.
- **switched off**: constraints that are in the document but that FreeCAD would call redundant.

What repair did:

{actions}

What the profiles have that do not pad, repaired; some have several of these:

{faults}

{goals}
"""
