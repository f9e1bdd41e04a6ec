"""`python -m benchmarks train-trials` and `score-trials`: experiments that are trained here and scored there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import progress, stages
from sketchdnn.cli.train import show_report
from sketchdnn.errors import SketchError, display_path

from . import Device, Inception

if TYPE_CHECKING:
    from benchmarks.trials import Experiment

Name = Annotated[str, typer.Argument(help="paper, authors, ladder or seeds.", show_default=False)]
Corpora = Annotated[Path, typer.Option(help="The folder of the corpora that the experiment names.", readable=False)]
Out = Annotated[Path, typer.Option(help="Folder of the experiment; it is resumed.", show_default=False)]
# The exit code of `timeout` for a command that it stopped.
_UNFINISHED = 124


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    examples: dict[Callable[..., None], str] = {
        train_trials: "train-trials ladder --corpora data --out runs/ladder --stop-after 9 --bundle ladder.tar",
        score_trials: "score-trials ladder --corpora data --out runs/ladder",
    }
    for command, example in examples.items():
        app.command(epilog=f"Example: python -m benchmarks {example}")(command)


def train_trials(
    experiment: Name,
    out: Out,
    corpora: Corpora = Path("data"),
    minutes: Annotated[
        float | None, typer.Option(help="Of each training.", show_default="the experiment's budget")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Trials with commas between them, as cat or cat-1.", show_default="all")
    ] = None,
    stop_after: Annotated[
        float | None, typer.Option(help="Save and stop after so many minutes; exit code 124.", show_default=False)
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="A tar file with records and samples, to score elsewhere.", show_default=False)
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of all trials: SECTION.NAME=VALUE; repeatable.")
    ] = None,
    count: Annotated[int, typer.Option(min=6, help="Samples of each draw.")] = 2_500,
    steps: Annotated[int | None, typer.Option(min=1, help="Of each draw.", show_default="the draw's own")] = None,
    device: Device = "auto",
) -> None:
    """Train the trials of an experiment and draw samples, without FID weights. The same command continues."""
    from benchmarks.trials import TrialRequest
    from benchmarks.trials import train_trials as train

    request = TrialRequest(
        experiment=find_experiment(experiment),
        corpora=corpora,
        out=out,
        minutes=minutes,
        only=tuple(only.split(",")) if only else (),
        overrides=tuple(overrides or ()),
        count=count,
        steps=steps,
        stop_after=stop_after,
        device=device,
        bundle=bundle,
    )
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    with progress(console, "starting", total=1.0) as bar:
        unfinished = train(request, on_stage=console.print, on_report=lambda report: show_report(bar, report))
    if unfinished:
        typer.echo(f"not finished: {', '.join(unfinished)}; the same command continues")
        raise typer.Exit(_UNFINISHED)
    typer.echo(f"{display_path(out)}: finished")


def score_trials(
    experiment: Name,
    out: Out,
    corpora: Corpora = Path("data"),
    count: Annotated[int, typer.Option(min=6, help="Samples of each draw, as drawn.")] = 2_500,
    fast: Annotated[bool, typer.Option("--fast", help="Evaluate few sketches.")] = False,
    inception: Inception = None,
    device: Device = "auto",
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of the corpus.", show_default="~/.cache/sketchdnn", readable=False),
    ] = None,
) -> None:
    """Score the samples of an experiment, and write a page with a table, a chart and a contact sheet."""
    from dataclasses import replace

    from benchmarks.trials import ScoreRequest
    from benchmarks.trials import score_trials as score
    from benchmarks.trials.score import SETTINGS

    settings = replace(SETTINGS, count=count)
    if fast:
        settings = replace(settings, fast=True, against_test=200, validity=200)
    request = ScoreRequest(
        experiment=find_experiment(experiment),
        corpora=corpora,
        out=out,
        settings=settings,
        inception=inception,
        device=device,
        cache=cache,
    )
    with stages() as on_stage:
        written = score(request, on_stage=on_stage)
    for path in written:
        typer.echo(display_path(path))


def find_experiment(name: str) -> Experiment:
    """The experiment of that name."""
    from benchmarks.trials import EXPERIMENTS

    if name not in EXPERIMENTS:
        raise SketchError(f"'{name}' is no experiment; use one of {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
