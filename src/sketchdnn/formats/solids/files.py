"""STEP and STL files of an extrusion, made by FreeCAD or build123d in a process of its own, whichever is installed.

What to build goes there as a JSON file of numbers, never as code. A solid is believed if it is valid and has the volume
that our own geometry says.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, UnsuitableSketchError
from sketchdnn.formats.format import Format, Losses, single_sketch
from sketchdnn.formats.polylines import arc_midpoint
from sketchdnn.geometry import Circle, Sketch
from sketchdnn.io import atomic_write, remove_abandoned, temporary_folder

from .regions import HEIGHT, Extrusion, Outline, extrusion, losses

LIMIT_SECONDS = 120
JOB = "SKETCHDNN_JOB"
# How far the volume of a solid may be from ours, in parts of it: ends that join are moved together.
_SAME_VOLUME = 1e-3
# When a STEP file was written is in its head; without it the same sketch gives the same bytes.
_TIME = re.compile(rb"(?<=')\d{4}-\d\d-\d\dT[\d:.+-]+(?=')")
_NO_TIME = b"1970-01-01T00:00:00"
_NAME = "the CAD program"


def _writer(kind: str) -> Callable[..., Losses]:
    def write(sketches: Iterable[Sketch], path: Path, *, height: float = HEIGHT) -> Losses:
        sketch = single_sketch(sketches, path)
        what = extrusion(sketch, height, path)
        program = _builder(path)
        remove_abandoned()
        with atomic_write(path) as temporary, temporary_folder() as folder:
            temporary.write_bytes(_build(program, what, kind, folder, path))
        return losses(sketch, kind)

    return write


def _builder(path: Path) -> list[str]:
    """The command that builds solids: FreeCAD, which starts sooner, or this Python with build123d."""
    here = Path(__file__).parent
    for name in ("freecadcmd", "FreeCADCmd", "freecad.cmd"):
        if program := shutil.which(name):
            return [program, str(here / "freecad_job.py")]
    if find_spec("build123d") is not None:
        return [
            sys.executable,
            "-P",
            str(here / "build123d_job.py"),
        ]  # what lies beside the script is not to be imported
    advice = (
        "install one of them (`pip install 'sketchdnn[cad]'`), or write a .py script that builds the solid elsewhere"
    )
    raise FormatError(path, f"a {path.suffix} file needs FreeCAD or build123d; {advice}")


def _build(program: list[str], what: Extrusion, kind: str, folder: Path, path: Path) -> bytes:
    """What the program writes, which sees an empty folder and no other place."""
    job, out, report = (folder / name for name in ("job.json", f"part.{kind}", "report.json"))
    said = {"kind": kind, "out": str(out), "report": str(report), "height": what.height, "regions": _data(what)}
    job.write_text(json.dumps(said))
    # A home of its own: FreeCAD keeps settings and logs there, and nobody asked it to.
    environment = {**os.environ, JOB: str(job), "HOME": str(folder)}
    quiet = subprocess.DEVNULL
    try:
        subprocess.run(  # noqa: S603  our own script, run by the program just looked up
            program,
            env=environment,
            cwd=folder,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            timeout=LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FormatError(path, f"was not built within {LIMIT_SECONDS} seconds") from error
    _check(report, what, path)
    data = out.read_bytes() if out.exists() else b""
    if not data:
        raise FormatError(path, f"could not be built: {_NAME} wrote nothing")
    return _TIME.sub(_NO_TIME, data, count=1) if kind == "step" else data


def _check(report: Path, what: Extrusion, path: Path) -> None:
    """Only what was reported is done: FreeCAD ends with success whatever happened."""
    try:
        found: Any = json.loads(report.read_text())
    except (OSError, ValueError) as error:
        raise FormatError(path, f"could not be built: {_NAME} gave up") from error
    if found.get("error"):
        raise UnsuitableSketchError(path, f"could not be built: {_NAME} says '{str(found['error'])[:200]}'")
    volume = what.area * what.height
    if not found["valid"] or not math.isclose(found["volume"], volume, rel_tol=_SAME_VOLUME):
        raise UnsuitableSketchError(
            path, f"could not be built: {_NAME} makes {found['volume']:g} mm³ of what should be {volume:g} mm³"
        )


def _data(what: Extrusion) -> list[dict[str, Any]]:
    return [{"outer": _outline(r.outer), "holes": [_outline(hole) for hole in r.holes]} for r in what.regions]


def _outline(outline: Outline) -> dict[str, Any]:
    """A circle, or ways: where each begins, and a place on it if it is an arc."""
    if isinstance(outline, Circle):
        return {"center": outline.center, "radius": outline.radius}
    following = outline[1:] + outline[:1]
    ways = [[corner.at, arc_midpoint(corner, end.at)] for corner, end in zip(outline, following, strict=True)]
    return {"ways": ways}


def _step(path: Path, head: bytes) -> bool:
    return head.lstrip().startswith(b"ISO-10303-21;")


def _stl(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".stl"


def _format(name: str, suffixes: tuple[str, ...], recognizes: Callable[[Path, bytes], bool]) -> Format:
    return Format(name, suffixes, False, recognizes, write=_writer(name), options=("height",))


STEP = _format("step", (".step", ".stp"), _step)
STL = _format("stl", (".stl",), _stl)
