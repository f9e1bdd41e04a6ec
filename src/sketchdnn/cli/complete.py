"""`sketchdnn complete`: a part that was begun, finished."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import quantities

from . import drawing
from .reading import FLATTEN, AssumeUnits, Flatten, read_options

# What a gallery shows the two in.
GIVEN, ADDED = "#1a1a1a", "#0072b2"
_STEM = "completion"


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="Example: sketchdnn complete part.dxf --count 8 --out finished")(complete)


def complete(
    file: Annotated[
        Path, typer.Argument(metavar="PART", help="A sketch to finish: .dxf, .svg, .fcstd, .json, …", readable=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder to write to; the sketches of an earlier run there are replaced.", show_default=False),
    ],
    count: Annotated[int, typer.Option(help="How many completions.")] = 8,
    seed: Annotated[int, typer.Option(help="Which completions: the same seed gives the same.")] = 0,
    room: Annotated[
        str | None,
        typer.Option(help="Finished size over that of the part: 1.5, or 1.0..4.0.", show_default="1..2, best kept"),
    ] = None,
    primitives: Annotated[
        str | None, typer.Option(help="Primitives in all: 12, or 8..16.", show_default="as the model likes")
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="conditional: for a network trained for it; repaint: for any network, steps are repeated."),
    ] = "conditional",
    tries: Annotated[int, typer.Option(help="Frames tried for each completion; the best is kept.")] = 4,
    repair: Annotated[
        bool, typer.Option(help="Close gaps to what was added, and add constraints; in all formats alike.")
    ] = True,
    format: Annotated[str, typer.Option(help="Files to write for each sketch.")] = "json,svg,dxf,fcstd",  # noqa: A002
    steps: Annotated[int, typer.Option(help="Denoising steps: fewer are quicker, more close gaps.")] = 50,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="restart, predictor_corrector, ancestral, ddim, dpm++ or authors.", show_default="the model's own"
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    force: Annotated[bool, typer.Option("--force", help=drawing.FORCE)] = False,
    flatten: Flatten = FLATTEN,
    assume_units: AssumeUnits = None,
) -> None:
    """Finish a sketch: what is given stays exactly as it is, and the model adds the rest, in several ways."""
    # Refused first, since the rooms that draw take seconds to load.
    rooms = None if room is None else quantities.span(room, "--room", "1..2")
    wanted = None if primitives is None else quantities.whole_span(primitives, "--primitives", "8..16")
    if count < 1:
        raise SketchError(f"--count must be at least 1, not {count}")
    console = drawing.stderr()
    part = drawing.one_sketch(file, console, read_options(flatten, assume_units))
    begun = time.perf_counter()

    from sketchdnn.diffusion.sampling import SamplingOptions
    from sketchdnn.generation.complete import check_part
    from sketchdnn.generation.complete import complete as completions
    from sketchdnn.generation.engine import device_of, precision
    from sketchdnn.generation.files import check_formats, check_not_replaced, write_sketches
    from sketchdnn.generation.frames import check_room
    from sketchdnn.generation.repairs import cores
    from sketchdnn.render import Style
    from sketchdnn.representation.layout import MAX_PRIMITIVES
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.pretrained import check_model_sampling, model_hash

    formats = check_formats(format.split(","))
    check_not_replaced(file, out, _STEM)
    check_part(part)
    low, high = check_room(rooms)
    check_model_sampling(model, SamplingOptions(sampler, steps))
    system = from_pretrained(model, device)
    asked: dict[str, Any] = {
        "seed": seed,
        "sampler": system.resolve(SamplingOptions(sampler)).sampler_name,
        "steps": steps,
    }
    asked |= {"method": method, "tries": tries, "repair": repair}
    facts = {
        "model": {"name": display_path(model), "sha256": model_hash(model)},
        "part": display_path(file.name),
        "given": len(part),
        "count": count,
        **asked,
        "room": [low, high],
        "primitives": wanted,
        "formats": formats,
        "device": str(device_of(system)),
        "precision": precision(system),
        "seconds": {"loading": time.perf_counter() - begun},
    }
    with drawing.progress_bar(console, "completing", count, out) as on_progress:
        options: dict[str, Any] = {"room": rooms, "primitives": wanted, "workers": cores(), "on_progress": on_progress}
        finished = completions(system, part, count, **asked, **options)
        style = Style(palette=(GIVEN,) * len(part) + (ADDED,) * MAX_PRIMITIVES)
        written = write_sketches(finished, count, out, formats, stem=_STEM, facts=facts, style=style, force=force)
    drawn = f"{count:,} completion{'s' * (count != 1)}"
    drawing.tell_end(console, out, drawn, formats, "gallery.html shows them, what was given in black", written)
