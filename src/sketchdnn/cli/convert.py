"""`sketchdnn convert`: from any format to any other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sketchdnn.formats import Conversion, Found, Skipped, convert, shown

_MOST_REASONS = 20


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("convert")(_convert)


def _convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A file, folder or tar archive of sketches.", readable=False)
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="A file, its format told by its suffix; or a folder.")],
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="json, jsonl, corpus, sketchgraphs, dxf, freecad or svg.")
    ] = None,
    units: Annotated[str | None, typer.Option(help="Measure the result in mm, cm, m, in, …")] = None,
) -> None:
    """Convert sketches from any format to any other.

    One sketch goes to one file. Many go to one .jsonl, .npy or .FCStd file, or to a folder, a file each.

    Examples:

        sketchdnn convert bracket.dxf bracket.FCStd

        sketchdnn convert sg_t16_train.npy sketches.jsonl

        sketchdnn convert sketches.jsonl drawings/ --format svg
    """
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} sketches read"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def advance(found: Found) -> None:
            if not isinstance(found, Skipped):
                progress.advance(task)

        result = convert(source, target, format=format, units=units, on_found=advance)
    _report(result, console)


def _report(result: Conversion, console: Console) -> None:
    """What was written, and below it one line for each reason that kept something out, the commonest first."""
    noun = "sketch" if result.written == 1 else "sketches"
    console.print(f"{shown(result.target)}: {result.written:,} {noun}")
    for reason, count in result.skipped.most_common(_MOST_REASONS):
        console.print(f"skipped {count:,} × {reason}")
    if more := sum(Counter(result.skipped).values()) - sum(c for _, c in result.skipped.most_common(_MOST_REASONS)):
        console.print(f"skipped {more:,} × other reasons")
