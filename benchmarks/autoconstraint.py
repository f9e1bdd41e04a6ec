"""FreeCAD's own autoconstraint, on the same shaken sketches: what it finds, and where its solver puts them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sketchdnn.errors import SketchError
from sketchdnn.formats import read, write
from sketchdnn.geometry import Constraint, ConstraintType, Kind, Part, Ref, Sketch, bounds

from .freecad import Answer, ask_freecad
from .truth import Judged, Shaken

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
