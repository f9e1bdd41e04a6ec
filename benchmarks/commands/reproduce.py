"""`python -m benchmarks reproduce`: every system of the paper's tables under one budget, beside the paper's numbers."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import progress
from sketchdnn.cli.train import show_report
from sketchdnn.errors import display_path

if TYPE_CHECKING:
    from benchmarks.reproduction import Plan
    from sketchdnn.training.run import Report

EXAMPLES = (
    "Example: python -m benchmarks reproduce --data corpus --minutes 8 --out tables --dry-run",
    "In parts: python -m benchmarks reproduce --data corpus --minutes 8 --out tables --systems sketchdnn,sketchdnn-cat",
    "With other settings: --systems sketchdnn:predict=noise,sketchdnn:boost=everywhere,sketchdnn:preset=paper",
)


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="\n\n".join(EXAMPLES))(reproduce)


def reproduce(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for runs, reports and tables; gone on with if it has some.", show_default=False),
    ],
    minutes: Annotated[
        float | None, typer.Option(help="Train each system this many minutes of the device,", show_default=False)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="… or this many steps.", show_default=False)] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between them; settings after a colon, with + between them.", show_default="all six"
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="For all systems, such as tiny.", show_default="each system's own")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of training and of drawing.")] = 0,
    count: Annotated[
        int | None, typer.Option(help="How many sketches each system draws.", show_default="10,000")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Judge few sketches; the page says so.")] = False,
    inception: Annotated[
        Path | None,
        typer.Option(help="The FID Inception as a TorchScript file.", show_default="the one installed", readable=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of the corpus.", show_default="~/.cache/sketchdnn", readable=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Train every system of the paper's tables alike, judge them alike, and set the tables beside the paper's.

    What is finished is kept: the same command, or one for other systems, goes on where the last one stopped.
    """
    from benchmarks.reproduction import SIX, Budget, Request, StoppedError, prepared
    from benchmarks.reproduction import reproduce as carry_out
    from sketchdnn.evaluation.protocol import make_settings

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    request = Request(
        data=data,
        out=out,
        budget=Budget(minutes, steps),
        systems=SIX if systems is None else systems.split(","),
        preset=preset,
        device=device,
        seed=seed,
        settings=make_settings(fast=fast, count=count, likelihood=True, corruption=False),
        inception=inception,
        cache=cache,
        command=display_path(shlex.join(["sketchdnn", *sys.argv[1:]])),
    )
    if dry_run:
        for line in _plan(prepared(request).plan):
            typer.echo(line)
        return
    with _progress(console) as (on_part, on_stage, on_report):
        reproduction = prepared(request, on_stage=on_stage)
        try:
            written = carry_out(reproduction, on_part=on_part, on_report=on_report)
        except StoppedError as stopped:
            console.print(f"sketchdnn: {stopped}")
            # As a shell expects of a program that a signal ended.
            raise typer.Exit(128 + (stopped.signal or signal.SIGTERM)) from None
    for path in written:
        typer.echo(display_path(path))


def _plan(plan: Plan) -> list[str]:
    """The plan for people: what is to be done, and about how long it takes."""
    request = plan.request
    budget = f"{request.budget.words} of training each, on {plan.device}"
    lines = [f"{len(plan.parts)} systems, {budget}; {display_path(request.out)}"]
    for part in plan.parts:
        done = f"; {' and '.join(part.done)} already" if part.done else ""
        lines.append(
            f"  {part.named.name}: preset {part.named.preset.name}, {part.parameters:,} parameters, "
            f"batches of {part.training.batch_size:,}{done}"
        )
    lines.append(
        f"judged with {request.settings.count:,} sketches each, drawn in {request.steps} steps where there is noise to "
        f"take away: about {plan.evaluation_minutes:.1f} minutes a system"
        + (", and drawing besides, which may be hours on a CPU" if plan.device == "cpu" else "")
    )
    if plan.minutes is None:
        lines.append("how long the steps take is not known beforehand; with --minutes it is")
    else:
        lines.append(f"about {plan.minutes:.0f} minutes in all" + (" without drawing" if plan.device == "cpu" else ""))
    return lines


@contextmanager
def _progress(
    console: Console,
) -> Iterator[tuple[Callable[[str], None], Callable[[str, float], None], Callable[[Report], None]]]:
    """Progress that names the system and the stage."""
    with progress(console, "starting", total=1.0) as bar:
        system = ""

        def on_part(label: str) -> None:
            nonlocal system
            system = label
            console.print(label)

        def on_stage(name: str, share: float) -> None:
            bar.update(share, doing=f"{system}: {name}")

        def on_report(report: Report) -> None:
            show_report(bar, report, f"{system}: ")

        yield on_part, on_stage, on_report
