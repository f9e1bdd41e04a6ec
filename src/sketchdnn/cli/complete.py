"""`sketchdnn complete`: adds to a part what may have been left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from . import gallery_command
from .console import stderr_console
from .options import (
    FLATTEN,
    AssumeUnits,
    Device,
    Flatten,
    Onnx,
    Precision,
    Quality,
    Round,
    SamplerName,
    Steps,
    path_argument,
    path_option,
    read_options,
    round_options,
)

EPILOG = "Example: sketchdnn complete part.dxf --count 8 --out finished"
GOAL = (
    "close: finish an open part; inside: add features to a closed one; extend: beside or around it. By default as fits."
)
UNLIKE = "A file or folder of suggestions not to repeat; may be repeated."


def complete(
    file: Annotated[Path, path_argument(metavar="PART", help="A sketch to finish: .dxf, .svg, .fcstd, .json, …")],
    out: gallery_command.Out,
    count: Annotated[int, Option(help="How many suggestions; fewer if the model has fewer ideas.")] = 8,
    seed: Annotated[int, Option(help="Which suggestions: the same seed gives the same, another seed others.")] = 0,
    goal: Annotated[str | None, Option(help=GOAL)] = None,
    closed: Annotated[bool, Option("--closed", help="Prefer suggestions that can be extruded.")] = False,
    kinds: Annotated[str | None, Option(help="What to add, such as circle=2 or line=2,arc=2.")] = None,
    inside: Annotated[str | None, Option(help="Add only inside this box, two corners in the part's units.")] = None,
    primitives: Annotated[str | None, Option(help="Primitives in all: 12, or 8..16; by default any.")] = None,
    like: Annotated[Path | None, path_option(help="A suggestion to vary: the file of an earlier result.")] = None,
    unlike: Annotated[list[Path] | None, path_option(help=UNLIKE)] = None,
    scale: Annotated[
        str | None, Option(help="Finished size over the part's: 1.5, or 1..4; by default the goal's.")
    ] = None,
    candidates: Annotated[int, Option(help="Candidates for each suggestion; more take longer.")] = 3,
    geometry: Annotated[bool, Option(help="Also suggest what the part's own geometry implies.")] = True,
    method: Annotated[str, Option(help="conditional: a network trained for it; repaint: any.")] = "conditional",
    repair: Annotated[bool, Option(help="Close gaps to what was added, and add constraints, in all formats.")] = True,
    round_: Round = None,
    format: gallery_command.Formats = gallery_command.FORMATS,  # noqa: A002
    quality: Quality = "best",
    steps: Steps = None,
    sampler: SamplerName = None,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    precision: Precision = "auto",
    onnx: Onnx = None,
    force: gallery_command.Force = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Finish a sketch: the part stays exactly as it is, and the model adds the rest in several ways, the best first."""
    console = stderr_console()
    part = gallery_command.read_one_sketch(file, console, read_options(flatten, assume_units))

    # Imported here: torch takes seconds to load, and --help should not.
    from sketchdnn.generation import CompleteRequest, OutputOptions
    from sketchdnn.generation.repair import available_cores

    request = CompleteRequest(
        part=part,
        count=count,
        seed=seed,
        goal=goal,
        closed=closed,
        kinds=kinds,
        inside=inside,
        primitives=primitives,
        like=None if like is None else gallery_command.read_one_sketch(like, console),
        unlike=[sketch for path in unlike or () for sketch in gallery_command.read_sketches(path, console)],
        candidates=candidates,
        geometry=geometry,
        method=method,  # type: ignore[arg-type]  # checked there
        scale=scale,
        quality=quality,
        steps=steps,
        sampler=sampler,
        repair=repair,
        rounding=round_options(round_),
        workers=available_cores(),
    )
    options = OutputOptions(out, format.split(","), force=force)
    loading: dict[str, Any] = {"device": device, "precision": precision, "onnx": onnx}
    summary = gallery_command.write_gallery(console, request, options, file, model=model, **loading)
    what = f"{summary.sketches:,} suggestion{'s' * (summary.sketches != 1)}"
    gallery_command.print_summary(console, options, what, "gallery.html shows them, the part in black", summary)
    if summary.sketches < count:
        console.print(f"the other {count - summary.sketches:,} would repeat these; another --seed may have more ideas")
