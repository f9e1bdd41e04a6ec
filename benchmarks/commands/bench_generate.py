"""`python -m benchmarks generate`: how fast sketches are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import stages

from .page import check_file, write_page


def add(bench: typer.Typer) -> None:
    """Add the command to `python -m benchmarks`."""
    example = "python -m benchmarks generate --device cuda --paper --out docs/results/generate.md"
    bench.command(epilog=f"Example: {example}")(generate)


def generate(
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    count: Annotated[
        int | None, typer.Option(min=1, help="Sketches to draw.", show_default="10,000; 16 on a CPU")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Denoising steps of the bundled model.")] = 50,
    paper: Annotated[bool, typer.Option("--paper", help="Also the paper's network with its 2000 steps.")] = False,
    paper_steps: Annotated[
        int | None, typer.Option(min=1, help="… timed on so many of them.", show_default="100; 2 on a CPU")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Sketches that the loops are timed on.", show_default="a batch")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Draw sketches without writing them, beside a plain eager float32 loop of the same network."""
    from benchmarks.generate import time_generate
    from sketchdnn.systems.devices import find_device

    check_file(out)
    device = find_device(device)
    small = device == "cpu"
    count = count or (16 if small else 10_000)
    few = paper_steps or (2 if small else 100)
    with stages() as on_stage:
        timed = time_generate(device, count, steps=steps, paper=paper, paper_steps=few, batch=batch, on_stage=on_stage)
    Console().print(timed.table())
    if out is not None:
        chosen = f" --paper --paper-steps {few}" if paper else ""
        chosen += f" --batch {batch}" if batch else ""
        command = f"python -m benchmarks generate --device {device} --count {count} --steps {steps}{chosen}"
        write_page(out, timed.markdown(command))
