"""`sketchdnn generate`: from nothing to CAD files."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sketchdnn.formats import shown
from sketchdnn.geometry import MM_PER_UNIT, SketchError


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="Example: sketchdnn generate --count 16 --seed 0 --out sketches")(generate)


def generate(
    out: Annotated[Path, typer.Option(help="Folder to write to; it is made if need be.", show_default=False)],
    count: Annotated[int, typer.Option(help="How many sketches.")] = 16,
    seed: Annotated[int, typer.Option(help="Which sketches: the same seed gives the same.")] = 0,
    format: Annotated[str, typer.Option(help="Files to write for each sketch.")] = "json,svg,dxf,fcstd",  # noqa: A002
    size: Annotated[str, typer.Option(help="Larger side of every sketch: 100mm, 4in, …")] = "100mm",
    steps: Annotated[int, typer.Option(help="Denoising steps: fewer are quicker, more close gaps.")] = 50,
    sampler: Annotated[str, typer.Option(help="ancestral, ddim, dpm++ or authors.")] = "ancestral",
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
) -> None:
    """Draw new sketches and write them as CAD files, with a gallery to look at."""
    length, units = _length(size)
    # Refused first, since the rooms that draw take seconds to load.
    if count < 1:
        raise SketchError(f"--count must be at least 1, not {count}")
    from sketchdnn.generation import draw, write_sketches
    from sketchdnn.generation.files import check_formats, make_folder
    from sketchdnn.generation.generate import check_request
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.sampling import check_sampler, check_step_count

    formats = check_formats(format.split(","))
    check_request(count, seed, length)
    check_sampler(sampler)
    system = from_pretrained(model)
    check_step_count(steps, system.config.num_steps)
    make_folder(out)
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    columns = TextColumn("drawing"), BarColumn(), TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=count)
        drawings = draw(
            system,
            count,
            seed=seed,
            steps=steps,
            sampler=sampler,
            size=length,
            units=units,
            on_progress=lambda done: bar.update(task, completed=done),
        )
        write_sketches(drawings, count, out, formats)
    console.print(f"{shown(out)}: {count:,} sketch{'es' * (count != 1)} as {', '.join(formats)}, and gallery.png")


def _length(words: str) -> tuple[float, str]:
    """A number and its unit, millimetres unless said."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-z]*)\s*", words)
    try:
        number, units = float(match[1]), match[2] or "mm"  # type: ignore[index]
    except (TypeError, ValueError):
        number, units = math.nan, ""
    if not (0 < number < math.inf) or units not in MM_PER_UNIT:
        raise SketchError(f"--size is a length such as 120mm or 4in, not '{words}'; units are {', '.join(MM_PER_UNIT)}")
    return number, units
