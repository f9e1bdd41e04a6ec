"""`python -m benchmarks trace`: how well pictures of real sketches are traced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sketchdnn.cli.progress import stages

from . import Corpus, Page, Seed, command_line, show

STYLE = "precise, hand, inertia, photo or xkcd; may be repeated."


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: python -m benchmarks trace --data prepared --out docs/results/tracing.md")(trace)


def trace(
    context: typer.Context,
    data: Corpus,
    count: Annotated[int, typer.Option(min=2, help="Test sketches to draw and trace.")] = 300,
    style: Annotated[list[str] | None, typer.Option(help=STYLE, show_default="all")] = None,
    seed: Seed = 0,
    sheet: Annotated[
        Path | None, typer.Option(help="Write a PNG of the first pictures and results.", show_default=False)
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A model with an image encoder.", show_default="geometry alone")
    ] = None,
    out: Page = None,
) -> None:
    """Draw test sketches as pictures, trace them, and compare the results with the originals."""
    from PIL import Image

    from benchmarks.results import check_output_file
    from benchmarks.tracing import STYLES, measure
    from benchmarks.tracing import sheet as draw_sheet
    from sketchdnn.errors import SketchError
    from sketchdnn.io import atomic_write
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.sketchdnn import SketchDNNSystem

    check_output_file(out)
    check_output_file(sheet)
    system = None if model is None else from_pretrained(model)
    if isinstance(system, SketchDNNSystem) and not system.has_image:
        raise SketchError(f"{model}: this model has no image encoder; leave out --model")
    with stages() as on_stage:
        result = measure(data, tuple(style or STYLES), count, seed, on_stage, system)
    if sheet is not None:
        each = -(-24 // len(result.cases))
        shown = [case for cases in result.cases.values() for case in cases[:each]][:24]
        with atomic_write(sheet) as temporary:
            picture = Image.fromarray(draw_sheet(shown))
            picture.reduce(2).save(temporary, format="png", optimize=True)
    show(result, out, command_line(context))
