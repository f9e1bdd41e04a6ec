"""`python -m benchmarks trace` and `trace-sheet`: how well pictures of real sketches are traced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import progress
from sketchdnn.errors import SketchError

from . import Corpus, Page, Seed, command_line, show

STYLE = "precise, hand, inertia, photo, xkcd, cairo or cairo-hand; may be repeated."
Styles = Annotated[list[str] | None, typer.Option("--style", help=STYLE, show_default="all that can be drawn here")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Example: python -m benchmarks trace --data prepared --out docs/results/tracing.md")(trace)
    example = "trace-sheet --data prepared --style hand --out docs/results/tracing_hand.png"
    app.command(epilog=f"Example: python -m benchmarks {example}")(trace_sheet)


def trace(
    context: typer.Context,
    data: Corpus,
    count: Annotated[str, typer.Option(help="Test sketches to draw and trace in each style, or all.")] = "300",
    style: Styles = None,
    constraints: Annotated[
        Path | None,
        typer.Option(
            help="A SketchGraphs file: as many of its sketches, whose constraints are compared.", readable=False
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A model with an image encoder.", show_default="geometry alone")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes.", show_default="one a core")] = None,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Draw test sketches as pictures, trace them, and compare the results with the originals."""
    from benchmarks.results import check_output_file
    from benchmarks.tracing import measure
    from sketchdnn.systems.devices import usable_cores

    check_output_file(out)
    with progress(Console(stderr=True), "tracing") as bar:
        result = measure(
            data,
            style,
            _number(count),
            seed,
            constrained=constraints,
            model=model,
            workers=workers or usable_cores(),
            on_progress=bar.update,
        )
    show(result, out, command_line(context))


def _number(count: str) -> int | None:
    """The number of sketches; None for all."""
    if count == "all":
        return None
    if not (count.isdecimal() and int(count) >= 2):
        raise SketchError(f"--count is a number from 2, or all, not {count!r:.40}")
    return int(count)


def trace_sheet(
    data: Corpus,
    out: Annotated[Path, typer.Option(help="The picture, a PNG.")],
    count: Annotated[int, typer.Option(min=1, max=200, help="Pictures, of all styles together.")] = 24,
    style: Styles = None,
    seed: Seed = 0,
) -> None:
    """Pictures of test sketches by lot, each beside its result: the first thing to look at."""
    from PIL import Image

    from benchmarks.results import check_output_file
    from benchmarks.tracing import cases_by_lot, sheet
    from sketchdnn.io import atomic_write

    check_output_file(out)
    with progress(Console(stderr=True), "tracing") as bar:
        cases = cases_by_lot(data, style, count, seed, bar.update)
    with atomic_write(out) as temporary:
        picture = Image.fromarray(sheet(cases)).reduce(2)
        picture.save(temporary, format="png", optimize=True)
    found = [case.agreement.f1 if case.agreement else 0.0 for case in cases]
    console = Console()
    console.print(str(out), soft_wrap=True)
    console.print(f"primitive F1 {sum(found) / len(found):.1%}; refused {sum(case.result is None for case in cases)}")
