"""`python -m benchmarks api`: what a sketch costs through the Python API."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from .page import check_file, of_model, write_page


def add(bench: typer.Typer) -> None:
    """Add the command to `python -m benchmarks`."""
    bench.command(epilog="Example: python -m benchmarks api --out docs/results/api.md")(api)


def api(
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, of which the best counts.")] = 5,
    alike: Annotated[
        int, typer.Option(min=0, help="Also compare so many sketches, drawn one by one and in full batches.")
    ] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Draw 1 and 16 sketches on two cores, alone and beside a busy process; exit code 1 if it takes too long."""
    from benchmarks.api import count_alike, time_api
    from sketchdnn.systems import from_pretrained

    check_file(out)
    with Console(stderr=True).status("…") as status:
        timed = time_api(model, rounds=rounds, on_stage=status.update)
        if alike:
            timed = replace(timed, alike=(count_alike(from_pretrained(model), alike, status.update), alike))
    console = Console()
    console.print(timed.table())
    for sentence in timed.sentences():
        console.print(sentence)
    if out is not None:
        compared = f" --alike {alike}" if alike else ""
        write_page(out, timed.markdown(f"python -m benchmarks api --rounds {rounds}{compared}{of_model(model)}"))
    raise typer.Exit(0 if timed.allowed else 1)
