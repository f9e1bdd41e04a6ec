"""The command `sketchdnn generate`: generates new sketches, or variations of a sketch, as CAD files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from . import gallery_command
from .console import stderr_console
from .options import Device, path_option

# The number of denoising steps that --trajectory writes.
_TRAJECTORY_FRAMES = 40

# Groups of options in the help text.
_condition = partial(typer.Option, rich_help_panel="Conditions (may be combined)")
_variation = partial(path_option, rich_help_panel="Variations")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: sketchdnn generate --count 16 --seed 0 --out sketches")(generate)


# `format` and `compile` are named as the options; they hide builtins that are not used here (A002).
def generate(
    out: gallery_command.Out,
    count: Annotated[int, typer.Option(help="Number of sketches.")] = 16,
    seed: Annotated[int, typer.Option(help="Random seed; the same seed gives the same sketches.")] = 0,
    start_index: Annotated[
        int, typer.Option(help="Index of the first sketch; --start-index 7 --count 1 generates only sketch 7.")
    ] = 0,
    format: gallery_command.Formats = gallery_command.FORMATS,  # noqa: A002
    size: Annotated[
        str | None,
        typer.Option(help="Length of the larger side of every sketch, such as 100mm or 4in.", show_default="100mm"),
    ] = None,
    steps: gallery_command.Steps = 50,
    sampler: gallery_command.SamplerName = None,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    compile: Annotated[  # noqa: A002
        bool,
        typer.Option(
            "--compile",
            help="Compile the model: about one minute of start-up, then faster; worthwhile from 100,000 sketches "
            "(GPU only).",
        ),
    ] = False,
    repair: Annotated[
        bool, typer.Option(help="Close gaps, remove duplicates and add constraints, in all formats.")
    ] = True,
    primitives: Annotated[str | None, _condition(help="Number of primitives, or a range, such as 12 or 8..16.")] = None,
    kinds: Annotated[
        str | None,
        _condition(
            help="Number of primitives of each kind, not counting construction geometry, such as line=8,circle=2."
        ),
    ] = None,
    count_construction: Annotated[
        bool, _condition("--count-construction", help="Let --kinds count construction geometry too.")
    ] = False,
    construction: Annotated[
        str | None, _condition(help="Range of the fraction of construction geometry, such as 0.1..0.3.")
    ] = None,
    aspect: Annotated[str | None, _condition(help="Range of width divided by height, such as 0.5..2.")] = None,
    closed: Annotated[bool, _condition("--closed", help="Only sketches whose profile can be extruded.")] = False,
    unique: Annotated[bool, _condition("--unique", help="All sketches different.")] = False,
    novel: Annotated[bool, _condition("--novel", help="No sketch that occurs in the training data.")] = False,
    best_of: Annotated[
        int, _condition(help="Generate N candidates per sketch and keep the one with the highest score.", metavar="N")
    ] = 1,
    init_sketch: Annotated[Path | None, _variation(help="Generate variations of the sketch in this file.")] = None,
    strength: Annotated[
        float | None,
        _variation(help="With --init-sketch: how much to change it, greater than 0, at most 1.", show_default="0.3"),
    ] = None,
    trajectory: Annotated[
        bool,
        typer.Option(
            "--trajectory",
            help="Also write the denoising steps of each sketch, before repair, as SVG, GIF and a strip of images.",
        ),
    ] = False,
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
            workers=available_cores(worker.world),
            trajectory_frames=_TRAJECTORY_FRAMES if trajectory else 0,
            compile=compile,
        )
        options = OutputOptions(out, format.split(","), share=worker, force=force)
        summary = gallery_command.write_gallery(console, request, options, init_sketch, model=model, device=device)
    what = f"{count:,} sketch{'es' * (count != 1)}"
    gallery_command.print_summary(console, options, what, "look at gallery.html", summary)
