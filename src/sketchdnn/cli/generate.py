"""`sketchdnn generate`: new sketches, or variations of one, as CAD files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import drawing

_TRAJECTORY_FRAMES = 40
_CONDITIONS, _VARIATIONS = "Conditions, which may be combined", "Variations"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sketchdnn generate --count 16 --seed 0 --out sketches")(generate)


def generate(
    out: drawing.Out,
    count: Annotated[int, typer.Option(help="How many sketches.")] = 16,
    seed: Annotated[int, typer.Option(help="Which sketches: the same seed gives the same.")] = 0,
    start_index: Annotated[
        int, typer.Option(help="Index of the first: --start-index 7 --count 1 generates sketch 7 alone.")
    ] = 0,
    format: drawing.Formats = drawing.FORMATS,  # noqa: A002
    size: Annotated[
        str | None, typer.Option(help="Larger side of every sketch: 100mm, 4in, …", show_default="100mm")
    ] = None,
    steps: drawing.Steps = 50,
    sampler: drawing.SamplerName = None,
    model: drawing.Model = "ours",
    device: drawing.Device = "auto",
    compile: Annotated[  # noqa: A002
        bool, typer.Option("--compile", help="On a GPU: quicker after a minute, for 100,000 sketches or more.")
    ] = False,
    repair: Annotated[
        bool, typer.Option(help="Close gaps, drop what is there twice, add constraints; in all formats alike.")
    ] = True,
    primitives: Annotated[
        str | None,
        typer.Option(help="How many primitives: 12 or 8..16.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            help="How many of each kind, besides construction: line=8,circle=2.",
            rich_help_panel=_CONDITIONS,
            show_default=False,
        ),
    ] = None,
    count_construction: Annotated[
        bool,
        typer.Option("--count-construction", help="--kinds counts construction too.", rich_help_panel=_CONDITIONS),
    ] = False,
    construction: Annotated[
        str | None,
        typer.Option(help="Share of construction geometry: 0.1..0.3.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    aspect: Annotated[
        str | None,
        typer.Option(help="Width over height: 0.5..2, or 1..1.1.", rich_help_panel=_CONDITIONS, show_default=False),
    ] = None,
    closed: Annotated[
        bool, typer.Option("--closed", help="Only sketches that can be extruded.", rich_help_panel=_CONDITIONS)
    ] = False,
    unique: Annotated[bool, typer.Option("--unique", help="No two alike.", rich_help_panel=_CONDITIONS)] = False,
    novel: Annotated[
        bool, typer.Option("--novel", help="None that is in the training corpus.", rich_help_panel=_CONDITIONS)
    ] = False,
    best_of: Annotated[
        int, typer.Option(help="Draw so many for each and keep the cleanest one.", rich_help_panel=_CONDITIONS)
    ] = 1,
    init_sketch: Annotated[
        Path | None,
        typer.Option(
            help="Generate variations of the sketch in this file.",
            rich_help_panel=_VARIATIONS,
            show_default=False,
            readable=False,
        ),
    ] = None,
    strength: Annotated[
        float | None,
        typer.Option(
            help="With --init-sketch: how much to change, above 0 to 1.",
            rich_help_panel=_VARIATIONS,
            show_default="0.3",
        ),
    ] = None,
    trajectory: Annotated[
        bool,
        typer.Option("--trajectory", help="Also write how each emerges from noise, before repair: SVG, GIF, strip."),
    ] = False,
    force: drawing.Force = False,
) -> None:
    """Generate new sketches and write them as CAD files, with a gallery to look at.

    Sketch i of a seed does not depend on the other options of the run.

    Several processes share the work: torchrun --nproc-per-node 8 -m sketchdnn generate …
    """
    # Imported here: torch takes seconds to load, and --help should not.
    from sketchdnn.generation import GenerateRequest, OutputOptions, SketchDNN
    from sketchdnn.generation.manifest import process_share
    from sketchdnn.generation.repair import available_cores

    with process_share() as share:
        console = drawing.stderr(quiet=not share.is_first)
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
            init_sketch=None if init_sketch is None else drawing.read_one_sketch(init_sketch, console),
            strength=strength,
            repair=repair,
            workers=available_cores(share.world),
            trajectory_frames=_TRAJECTORY_FRAMES if trajectory else 0,
            compile=compile,
        )
        options = OutputOptions(out, format.split(","), share=share, force=force)
        loaded = SketchDNN.from_pretrained(model, device=device, local_rank=share.local_rank)
        with drawing.progress_bar(console, "drawing", len(share.select(request.indices)), out) as callback:
            summary = loaded.write_gallery(request, options, init_sketch, callback)
    what = f"{count:,} sketch{'es' * (count != 1)} as {', '.join(options.formats)}"
    drawing.print_summary(console, out, what, "look at gallery.html", summary)
