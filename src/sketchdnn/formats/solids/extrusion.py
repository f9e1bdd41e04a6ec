"""The extrusion of a sketch's profile, and STEP and STL files of it.

FreeCAD or build123d, whichever is installed, builds the solid in a process of its own. The job is a JSON file of
numbers, never code. A solid is accepted if it is valid and has the volume that our own geometry predicts.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError, UnsuitableSketchError
from sketchdnn.formats.checks import in_units, losses_in_format, single_sketch
from sketchdnn.formats.format import Format, Losses
from sketchdnn.formats.polylines import Vertices, arc_midpoint, outline
from sketchdnn.geometry import Circle, Kind, Profile, Sketch, Vec, profile
from sketchdnn.io import atomic_write, remove_abandoned, temporary_folder

DEFAULT_HEIGHT = 10.0  # millimeters
LIMIT_SECONDS = 120
JOB = "SKETCHDNN_JOB"
# Relative tolerance of the volume: joined ends are moved together.
_SAME_VOLUME = 1e-3
# The time in the header of a STEP file is replaced, so that the same sketch gives the same bytes.
_TIME = re.compile(rb"(?<=')\d{4}-\d\d-\d\dT[\d:.+-]+(?=')")
_NO_TIME = b"1970-01-01T00:00:00"
_NAME = "the CAD program"

Outline = Vertices | Circle
Builder = Callable[["Extrusion", Path], bytes]


@dataclass(frozen=True, slots=True)
class Region:
    """The material inside `outer` and outside `holes`. An island in a hole is a region of its own."""

    outer: Outline
    holes: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class Extrusion:
    """Regions in millimeters, the height of the extrusion, and the area of the regions by our own geometry."""

    regions: tuple[Region, ...]
    height: float
    area: float


def extrude(sketch: Sketch, height: float, path: Path) -> Extrusion:
    """The extrusion of a sketch for a file at `path`.

    Raises:
        UnsuitableSketchError: If the profile bounds no solid; with the reasons.
    """
    if not 0 < height < math.inf:
        raise SketchError(f"a height is a number of millimeters above 0, not {height}")
    sketch = in_units(sketch, "mm", path)
    parts = profile(sketch)
    if not parts.is_extrudable:
        raise UnsuitableSketchError(path, f"cannot be extruded: {' '.join((*parts.reasons, *_advice(parts)))}")
    pairs = [(loop, outline(loop, sketch.primitives)) for loop in parts.loops]
    holes = [tuple(o for hole, o in pairs if hole.is_hole and hole.parent == i) for i in range(len(pairs))]
    regions = [Region(o, inside) for (loop, o), inside in zip(pairs, holes, strict=True) if not loop.is_hole]
    return Extrusion(tuple(regions), float(height), parts.area)


def solid_losses(sketch: Sketch, name: str) -> Losses:
    """The losses of a sketch in a solid or script of the format `name`."""
    losses = losses_in_format(sketch, name, units="mm")
    if construction := sum(p.construction for p in sketch):
        losses.left_out[f"construction geometry, which {name} cannot hold"] = construction
    if points := sum(p.kind is Kind.POINT and not p.construction for p in sketch):
        losses.left_out[f"a point, which {name} cannot hold"] = points
    if name == "stl" and (curves := sum(p.kind in (Kind.CIRCLE, Kind.ARC) and not p.construction for p in sketch)):
        losses.changed["a curve, which stl holds as flat facets"] = curves
    return losses


def _advice(parts: Profile) -> Iterator[str]:
    """Advice for each reason that a profile is not extrudable."""
    if parts.chains:
        yield "Small gaps are closed by 'sketchdnn constrain', larger ones with its --close."
    elif not parts.loops:
        yield "Draw a closed outline that is not construction."
    if parts.overlaps:
        yield "Curves that lie on each other are merged by 'sketchdnn constrain'."
    if parts.branches or parts.contacts:
        yield "Trim curves that cross, touch or branch, or make them construction, in a CAD program."


def solid_format(name: str, suffixes: tuple[str, ...], build: Builder, *, is_text: bool, magic: bytes = b"") -> Format:
    """A format that is only written.

    Args:
        name: The name of the format.
        suffixes: The suffixes of its files.
        build: Returns the content of the file at a path.
        is_text: Whether files are text.
        magic: The text that files start with, if they can be told by one.
    """

    def write(sketches: Iterable[Sketch], path: Path, *, height: float = DEFAULT_HEIGHT) -> Losses:
        sketch = single_sketch(sketches, path)
        extrusion = extrude(sketch, height, path)
        with atomic_write(path) as temporary:
            temporary.write_bytes(build(extrusion, path))
        return solid_losses(sketch, name)

    def recognizes(path: Path, head: bytes) -> bool:
        return bool(magic) and head.lstrip().startswith(magic)

    return Format(name, suffixes, False, recognizes, write=write, write_options=("height",), is_text=is_text)


def _builder(path: Path) -> list[str]:
    """The command that builds solids: FreeCAD, which starts faster, or this Python with build123d."""
    script = str(Path(__file__).with_name("cad_job.py"))
    for name in ("freecadcmd", "FreeCADCmd", "freecad.cmd"):
        if program := shutil.which(name):
            return [program, script]
    if find_spec("build123d") is not None:
        return [sys.executable, "-P", script]  # -P: do not import from the folder of the script
    needs = "needs FreeCAD or build123d; install one of them (`pip install 'sketchdnn[cad]'`), or"
    raise FormatError(path, f"a {path.suffix} file {needs} write a .py script that builds the solid elsewhere")


def _build(extrusion: Extrusion, path: Path, *, file_type: str) -> bytes:
    """The content of the file that the CAD program writes."""
    command = _builder(path)
    remove_abandoned()
    with temporary_folder() as folder:
        return _run(command, extrusion, file_type, folder, path)


def _run(command: list[str], extrusion: Extrusion, file_type: str, folder: Path, path: Path) -> bytes:
    """The file that the program writes into the empty `folder`."""
    job, out, report = (folder / name for name in ("job.json", f"part.{file_type}", "report.json"))
    regions = [{"outer": _outline(r.outer), "holes": list(map(_outline, r.holes))} for r in extrusion.regions]
    fields = {"file_type": file_type, "out": str(out), "report": str(report), "height": extrusion.height}
    job.write_text(json.dumps(fields | {"regions": regions}))
    # FreeCAD writes settings and logs to its home.
    environment = {**os.environ, JOB: str(job), "HOME": str(folder)}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        subprocess.run(command, env=environment, cwd=folder, timeout=LIMIT_SECONDS, check=False, **streams)  # type: ignore[call-overload]  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise FormatError(path, f"was not built within {LIMIT_SECONDS} seconds") from error
    _check(report, extrusion, path)
    data = out.read_bytes() if out.exists() else b""
    if not data:
        raise FormatError(path, f"could not be built: {_NAME} wrote nothing")
    return _TIME.sub(_NO_TIME, data, count=1) if file_type == "step" else data


def _check(path_of_report: Path, extrusion: Extrusion, path: Path) -> None:
    """Check the report; the exit code does not count, because that of FreeCAD is always 0."""
    try:
        report: Any = json.loads(path_of_report.read_text())
    except (OSError, ValueError) as error:
        raise FormatError(path, f"could not be built: {_NAME} gave up") from error
    if report.get("error"):
        raise UnsuitableSketchError(path, f"could not be built: {_NAME} says '{str(report['error'])[:200]}'")
    expected, actual = extrusion.area * extrusion.height, report["volume"]
    if not report["valid"] or not math.isclose(actual, expected, rel_tol=_SAME_VOLUME):
        volumes = f"{actual:g} mm³ of what should be {expected:g} mm³"
        raise UnsuitableSketchError(path, f"could not be built: {_NAME} makes {volumes}")


def _outline(outline: Outline) -> dict[str, Any]:
    """Encode an outline for the job file; see `cad_job.py`."""
    if isinstance(outline, Circle):
        return {"center": outline.center, "radius": outline.radius}
    return {"edges": [[start, middle] for start, middle, _ in outline_edges(outline)]}


def outline_edges(vertices: Vertices) -> Iterator[tuple[Vec, Vec | None, Vec]]:
    """The start, middle and end of each edge of a closed outline; the middle of a segment is None."""
    for vertex, following in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        yield vertex.at, arc_midpoint(vertex, following.at), following.at


_build_step, _build_stl = partial(_build, file_type="step"), partial(_build, file_type="stl")
STEP = solid_format("step", (".step", ".stp"), _build_step, is_text=True, magic=b"ISO-10303-21;")
STL = solid_format("stl", (".stl",), _build_stl, is_text=False)
