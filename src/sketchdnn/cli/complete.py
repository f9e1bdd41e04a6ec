"""`sketchdnn complete`: adds to a part what may have been left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from . import gallery_command
from .console import stderr_console
from .options import FLATTEN, AssumeUnits, Device, Flatten, SamplerName, Steps, path_argument, read_options

EPILOG = "Example: sketchdnn complete part.dxf --count 8 --out finished"


def complete(
    file: Annotated[Path, path_argument(metavar="PART", help="A sketch to finish: .dxf, .svg, .fcstd, .json, …")],
    out: gallery_command.Out,
    count: Annotated[int, Option(help="How many completions.")] = 8,
    seed: Annotated[int, Option(help="Which completions: the same seed gives the same.")] = 0,
    scale: Annotated[str | None, Option(help="Finished size over the part's: 1.5, or 1..4; by default 1..2.")] = None,
    primitives: Annotated[str | None, Option(help="Primitives in all: 12, or 8..16; by default any.")] = None,
    method: Annotated[str, Option(help="conditional: a network trained for it; repaint: any.")] = "conditional",
    num_frames: Annotated[int, Option(help="Frames tried for each completion; the best is kept.")] = 4,
    repair: Annotated[bool, Option(help="Close gaps to what was added, and add constraints, in all formats.")] = True,
    format: gallery_command.Formats = gallery_command.FORMATS,  # noqa: A002
    steps: Steps = 50,
    sampler: SamplerName = None,
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
