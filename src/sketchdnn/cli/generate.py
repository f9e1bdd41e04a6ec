"""The command `sketchdnn generate`: generates new sketches, or variations of a sketch, as CAD files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from . import gallery_command
from .console import stderr_console
from .options import (
    Device,
    Onnx,
    Precision,
    Quality,
    Round,
    RoundOrigin,
    SamplerName,
    Steps,
    path_option,
    round_options,
)

EPILOG = "Example: sketchdnn generate --count 16 --seed 0 --out sketches"
COMPILE = "Compile the model: a minute of start-up, then faster; worthwhile from 100,000 sketches (GPU only)."
KINDS = "Number of primitives of each kind, not counting construction geometry, such as line=8,circle=2."
TRAJECTORY = "Also write the denoising steps of each sketch, before repair, as SVG, GIF and a strip of images."
# The number of denoising steps that --trajectory writes.
_TRAJECTORY_FRAMES = 40

# Groups of options in the help text.
_condition = partial(Option, rich_help_panel="Conditions (may be combined)")
_variation = partial(path_option, rich_help_panel="Variations")


# `format` and `compile` are named as the options; they hide builtins that are not used here (A002).
def generate(
    out: gallery_command.Out,
    count: Annotated[int, Option(help="Number of sketches.")] = 16,
    seed: Annotated[int, Option(help="Random seed; the same seed gives the same sketches.")] = 0,
    start_index: Annotated[int, Option(help="Index of the first sketch; with --count 1, of the only one.")] = 0,
    format: gallery_command.Formats = gallery_command.FORMATS,  # noqa: A002
    size: Annotated[str | None, Option(help="Larger side of every sketch, such as 100mm, the default, or 4in.")] = None,
    quality: Quality = "best",
    steps: Steps = None,
    sampler: SamplerName = None,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    precision: Precision = "auto",
    onnx: Onnx = None,
    compile: Annotated[bool, Option("--compile", help=COMPILE)] = False,  # noqa: A002
    repair: Annotated[bool, Option(help="Close gaps, remove duplicates and add constraints, in all formats.")] = True,
    round_: Round = None,
    round_origin: RoundOrigin = "auto",
    primitives: Annotated[str | None, _condition(help="Number of primitives, or a range, such as 12 or 8..16.")] = None,
    kinds: Annotated[str | None, _condition(help=KINDS)] = None,
    count_construction: Annotated[bool, _condition("--count-construction", help="Let --kinds count it too.")] = False,
    construction: Annotated[str | None, _condition(help="Range of the share of construction: 0.1..0.3.")] = None,
    aspect: Annotated[str | None, _condition(help="Range of width divided by height, such as 0.5..2.")] = None,
    closed: Annotated[bool, _condition("--closed", help="Only sketches whose profile can be extruded.")] = False,
    unique: Annotated[bool, _condition("--unique", help="All sketches different.")] = False,
    novel: Annotated[bool, _condition("--novel", help="No sketch that occurs in the training data.")] = False,
    best_of: Annotated[int, _condition(help="Keep the best of N candidates for every sketch.", metavar="N")] = 1,
    init_sketch: Annotated[Path | None, _variation(help="Generate variations of the sketch in this file.")] = None,
    strength: Annotated[float | None, _variation(help="How much to change it: above 0, up to 1; default 0.3.")] = None,
    trajectory: Annotated[bool, Option("--trajectory", help=TRAJECTORY)] = False,
    force: gallery_command.Force = False,
) -> None:
    """Generate new sketches and write them as CAD files, with a gallery that shows them.

    Sketch i of a seed does not depend on --count, --start-index or the number of processes.

    To use several processes: torchrun --nproc-per-node 8 -m sketchdnn generate …
    """
    # Imported here: torch takes seconds to load, and --help should not.
    from sketchdnn.generation import GenerateRequest, OutputOptions
    from sketchdnn.generation.manifest import process_share
    from sketchdnn.generation.repair import available_cores

    with process_share() as worker:
        console = stderr_console(quiet=not worker.is_first)
        request = GenerateRequest.parse(
            count=count,
            seed=seed,
            start_index=start_index,
            quality=quality,
            steps=steps,
            sampler=sampler,
            size=size,
            primitives=primitives,
            kinds=kinds,
            count_construction=count_construction,
            construction=construction,
            aspect=aspect,
            closed=closed,
            unique=unique,
            novel=novel,
            best_of=best_of,
            init_sketch=None if init_sketch is None else gallery_command.read_one_sketch(init_sketch, console),
            strength=strength,
            repair=repair,
            rounding=round_options(round_, round_origin),
            workers=available_cores(worker.world),
            trajectory_frames=_TRAJECTORY_FRAMES if trajectory else 0,
            compile=compile,
        )
        options = OutputOptions(out, format.split(","), share=worker, force=force)
        loading: dict[str, Any] = {"device": device, "precision": precision, "onnx": onnx}
        summary = gallery_command.write_gallery(console, request, options, init_sketch, model=model, **loading)
    what = f"{count:,} sketch{'es' * (count != 1)}"
    gallery_command.print_summary(console, options, what, "look at gallery.html", summary)
