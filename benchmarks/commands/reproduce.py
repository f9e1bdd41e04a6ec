"""`python -m benchmarks reproduce`: the systems of the paper's tables under one budget, beside the paper's numbers."""

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
    "With other settings: --systems sketchdnn:predict=noise,sketchdnn:mse_weighting=all,sketchdnn:preset=paper",
)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="\n\n".join(EXAMPLES))(reproduce)


def reproduce(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for runs, reports and tables; resumed if it has some.", show_default=False),
    ],
    minutes: Annotated[
        float | None, typer.Option(help="Minutes of training for each system,", show_default=False)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="… or steps.", show_default=False)] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between them; settings after a colon, with + between them.", show_default="all six"
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="For all systems, such as tiny.", show_default="each system's own")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of training and sampling.")] = 0,
    count: Annotated[int | None, typer.Option(help="Samples of each system.", show_default="10,000")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Evaluate few sketches.")] = False,
    inception: Annotated[
        Path | None,
        typer.Option(help="The FID Inception as a TorchScript file.", show_default="the one installed", readable=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of the corpus.", show_default="~/.cache/sketchdnn", readable=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")] = False,
) -> None:
    """Train and evaluate the systems of the paper's tables alike, and write the tables beside the paper's.

    Finished systems are kept. The same command, or one for other systems, continues where the last one stopped.
    """
    from benchmarks import reproduction
    from benchmarks.reproduction import PAPER_SYSTEMS, Budget, ReproductionRequest, StoppedError, plan_reproduction
    from sketchdnn.evaluation.protocol import make_settings

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    request = ReproductionRequest(
        data=data,
        out=out,
        budget=Budget(minutes, steps),
        systems=PAPER_SYSTEMS if systems is None else systems.split(","),
        preset=preset,
        device=device,
        seed=seed,
        settings=make_settings(fast=fast, count=count, likelihood=True, corruption=False),
        inception=inception,
        cache=cache,
        command=display_path(shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])),
    )
    if dry_run:
        for line in _plan_lines(plan_reproduction(request).plan):
            typer.echo(line)
        return
    with _progress(console) as (on_system, on_stage, on_report):
        planned = plan_reproduction(request, on_stage=on_stage)
        try:
            written = reproduction.reproduce(planned, on_system=on_system, on_report=on_report)
        except StoppedError as stopped:
            console.print(f"benchmarks: {stopped}")
            # The exit code of a program that a signal ended.
            raise typer.Exit(128 + (stopped.signal or signal.SIGTERM)) from None
    for path in written:
        typer.echo(display_path(path))


def _plan_lines(plan: Plan) -> list[str]:
    """The plan and the estimated time, as lines of text."""
    request = plan.request
    budget = f"{request.budget.text} of training each, on {plan.device}"
    lines = [f"{len(plan.systems)} systems, {budget}; {display_path(request.out)}"]
    for planned in plan.systems:
        done = f"; {' and '.join(planned.done)} already" if planned.done else ""
        lines.append(
            f"  {planned.variant.name}: preset {planned.variant.preset.name}, {planned.parameters:,} parameters, "
            f"batches of {planned.training.batch_size:,}{done}"
        )
    on_cpu = plan.device == "cpu"
    lines.append(
        f"evaluated with {request.settings.count:,} samples each, diffusion in {request.steps} steps: "
        f"about {plan.evaluation_minutes:.1f} minutes per system"
        + (", without sampling, which may take hours on a CPU" if on_cpu else "")
    )
    if plan.minutes is None:
        lines.append("the time of training is not known for a budget of steps; with --minutes it is")
    else:
        lines.append(f"about {plan.minutes:.0f} minutes in all" + (" without sampling" if on_cpu else ""))
    return lines


@contextmanager
def _progress(
    console: Console,
) -> Iterator[tuple[Callable[[str], None], Callable[[str, float], None], Callable[[Report], None]]]:
    """Shows the system and the stage; yields the callbacks for them."""
    with progress(console, "starting", total=1.0) as bar:
        system = ""

        def on_system(label: str) -> None:
            nonlocal system
            system = label
            console.print(label)

        def on_stage(name: str, share: float) -> None:
            bar.update(share, doing=f"{system}: {name}")

        def on_report(report: Report) -> None:
            show_report(bar, report, f"{system}: ")

        yield on_system, on_stage, on_report
