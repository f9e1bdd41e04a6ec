"""`sketchdnn convert`: from any format to any other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from sketchdnn import formats
from sketchdnn.errors import display_path
from sketchdnn.formats import Conversion
from sketchdnn.geometry import Sketch

from .console import report_reading, stderr_console
from .options import FLATTEN, AssumeUnits, Flatten, millimeters, path_argument, read_options
from .progress import progress

EPILOG = ""
FORMATS = "json, jsonl, corpus, sketchgraphs, onshape, dxf, freecad, svg, step, stl, cadquery or build123d."


def convert(
    source: Annotated[Path, path_argument(metavar="IN", help="A file, folder or tar archive of sketches.")],
    target: Annotated[str, Argument(metavar="OUT", help="A file, whose suffix names the format; or a folder.")],
    format: Annotated[str | None, Option(help=FORMATS)] = None,  # noqa: A002
    units: Annotated[str | None, Option(help="Measure the result in mm, cm, m, in, …")] = None,
    height: Annotated[str | None, Option(help="Height of a solid or script: 5mm, 0.25in, …; default 10mm.")] = None,
    polylines: Annotated[bool, Option("--polylines", help="In a DXF, a polyline for each loop or chain.")] = False,
    dimensions: Annotated[bool, Option("--dimensions", help="In FreeCAD, constrain all that moves.")] = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Convert sketches from any format to any other.

    One sketch goes to one file. Many go to one .jsonl, .npy, .FCStd or .onshape.json file, or to a folder, a file each.

    A closed profile is extruded: to .step or .stl with FreeCAD or build123d, or to a script, .py or .build123d.py.

    Examples:

        sketchdnn convert bracket.dxf bracket.FCStd

        sketchdnn convert sg_t16_train.npy sketches.jsonl

        sketchdnn convert sketches.jsonl drawings/ --format svg

        sketchdnn convert bracket.json bracket.step --height 5mm

        sketchdnn convert bracket.json bracket.dxf --polylines

        sketchdnn convert logo.svg logo.FCStd --flatten 0.05mm --assume-units in
    """
    console = stderr_console()
    options: dict[str, Any] = {"format": format, "units": units, "read_options": read_options(flatten, assume_units)}
    if height is not None:
        options["height"] = millimeters(height, "--height")
    options |= {name: True for name, chosen in (("polylines", polylines), ("dimensions", dimensions)) if chosen}
    with progress(console, "sketches read") as bar:
        count = lambda item: bar.advance() if isinstance(item, Sketch) else None  # noqa: E731
        result = formats.convert(source, target, on_item=count, **options)
    report(result, console)


def report(result: Conversion, console: Console) -> None:
    """Print the number of sketches written, then the counts of what was skipped or changed."""
    noun = "sketch" if result.written == 1 else "sketches"
    console.print(f"{display_path(result.target)}: {result.written:,} {noun}")
    report_reading(console, result.skipped, result.notes)
    for line in result.changed.lines("changed"):
        console.print(line)
