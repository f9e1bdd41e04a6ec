"""`sketchdnn complete`: adds to a part what may have been left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import gallery_command
from .console import stderr_console
from .options import FLATTEN, AssumeUnits, Device, Flatten, path_argument, read_options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sketchdnn complete part.dxf --count 8 --out finished")(complete)


def complete(
    file: Annotated[Path, path_argument(metavar="PART", help="A sketch to finish: .dxf, .svg, .fcstd, .json, …")],
    out: gallery_command.Out,
    count: Annotated[int, typer.Option(help="How many completions.")] = 8,
    seed: Annotated[int, typer.Option(help="Which completions: the same seed gives the same.")] = 0,
    scale: Annotated[
        str | None,
        typer.Option(help="Finished size over that of the part: 1.5, or 1.0..4.0.", show_default="1..2, best kept"),
    ] = None,
    primitives: Annotated[
        str | None, typer.Option(help="Primitives in all: 12, or 8..16.", show_default="as the model likes")
    ] = None,
    method: Annotated[
        str, typer.Option(help="conditional: for a network trained for it; repaint: for any network, slower.")
    ] = "conditional",
    num_frames: Annotated[int, typer.Option(help="Frames tried for each completion; the best is kept.")] = 4,
    repair: Annotated[
        bool, typer.Option(help="Close gaps to what was added, and add constraints; in all formats alike.")
    ] = True,
    format: gallery_command.Formats = gallery_command.FORMATS,  # noqa: A002
    steps: gallery_command.Steps = 50,
    sampler: gallery_command.SamplerName = None,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    force: gallery_command.Force = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Finish a sketch: the part stays exactly as it is, and the model adds the rest, in several ways."""
    console = stderr_console()
    part = gallery_command.read_one_sketch(file, console, read_options(flatten, assume_units))

    # Imported here: torch takes seconds to load, and --help should not.
    from sketchdnn.generation import CompleteRequest, OutputOptions
    from sketchdnn.generation.repair import available_cores

    request = CompleteRequest(
        part=part,
        count=count,
        seed=seed,
        method=method,  # type: ignore[arg-type]  # checked there
        scale=scale,
        num_frames=num_frames,
        steps=steps,
        sampler=sampler,
        primitives=primitives,
        repair=repair,
        workers=available_cores(),
    )
    options = OutputOptions(out, format.split(","), force=force)
    summary = gallery_command.write_gallery(console, request, options, file, model=model, device=device)
    what = f"{count:,} completion{'s' * (count != 1)}"
    gallery_command.print_summary(console, options, what, "gallery.html shows them, the part in black", summary)
