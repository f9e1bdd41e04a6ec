"""`sketchdnn convert`: from any format to any other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sketchdnn.errors import display_path
from sketchdnn.formats import Conversion, ReadItem, convert
from sketchdnn.geometry import MM_PER_UNIT, Sketch
from sketchdnn.geometry.quantities import length

from .progress import progress
from .reading import FLATTEN, AssumeUnits, Flatten, read_options, report_reading


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("convert")(_convert)


def _convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A file, folder or tar archive of sketches.", readable=False)
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, its format told by its suffix; or a folder.")],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            help="json, jsonl, corpus, sketchgraphs, onshape, dxf, freecad, svg, step, stl, cadquery or build123d."
        ),
    ] = None,
    units: Annotated[str | None, typer.Option(help="Measure the result in mm, cm, m, in, …")] = None,
    height: Annotated[
        str | None, typer.Option(help="How high a solid or script extrudes, such as 5mm or 0.25in; else 10mm.")
    ] = None,
    polylines: Annotated[
        bool, typer.Option("--polylines", help="In a DXF, one polyline a loop or chain, not an entity a curve.")
    ] = False,
    dimensions: Annotated[
        bool, typer.Option("--dimensions", help="In a FreeCAD document, add dimensions until nothing is free to move.")
    ] = False,
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
    reading = read_options(flatten, assume_units)
    options = _options(height, polylines=polylines, dimensions=dimensions)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with progress(console, "sketches read") as bar:

        def advance(found: ReadItem) -> None:
            if isinstance(found, Sketch):
                bar.advance()

        result = convert(source, target, format=format, units=units, reading=reading, on_item=advance, **options)
    report(result, console)


def _options(height: str | None, **flags: bool) -> dict[str, Any]:
    """What was asked of the format, as its writer takes it."""
    options: dict[str, Any] = {name: flag for name, flag in flags.items() if flag}
    if height is not None:
        number, units = length(height, "--height")
        options["height"] = number * MM_PER_UNIT[units]
    return options


def report(result: Conversion, console: Console) -> None:
    """What was written, and below it what was read otherwise, kept out or changed, the commonest first."""
    noun = "sketch" if result.written == 1 else "sketches"
    console.print(f"{display_path(result.target)}: {result.written:,} {noun}")
    report_reading(console, result.skipped, result.notes)
    for line in result.changed.lines("changed"):
        console.print(line)
