"""`sketchdnn train`: a prepared corpus in, a model out."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchdnn.errors import display_path

from .drawing import stderr
from .progress import Progress, progress

if TYPE_CHECKING:
    from sketchdnn.training.loop import Outcome
    from sketchdnn.training.run import Report

EXAMPLE = "Example: sketchdnn train --preset tiny --data corpus --out run --minutes 10"
ON_DEVICES = "On many GPUs: torchrun --nproc-per-node 8 -m sketchdnn train …"


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog=f"{EXAMPLE}\n\n{ON_DEVICES}")(train)


def train(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    out: Annotated[
        Path, typer.Option(help="The run's folder: checkpoints, logs, the model.", show_default=False, readable=False)
    ],
    preset: Annotated[
        str | None,
        typer.Option(help="ours, bundled, tiny, paper, … or a .toml file.", show_default="the system's own, or ours"),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="sketchdnn, sketchdnn-pos, sketchdnn-cat, latent, vitruvion or sketchgen.", show_default="the preset's"
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Train this many steps,", show_default=False)] = None,
    epochs: Annotated[float | None, typer.Option(help="… or passes over the corpus,", show_default=False)] = None,
    minutes: Annotated[float | None, typer.Option(help="… or minutes.", show_default=False)] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sketches a step, over all devices.", show_default="the preset's")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak rate.", show_default="the preset's")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Weights, order and noise follow from it.")] = 0,
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")] = False,
    init_from: Annotated[
        Path | None, typer.Option(help="Start with the weights of this model.", show_default=False, readable=False)
    ] = None,
    fsdp: Annotated[
        bool, typer.Option("--fsdp", help="Split the weights over the devices: for a model too large for one.")
    ] = False,
    checkpoint_minutes: Annotated[float, typer.Option(min=0, help="Save this often.")] = 5.0,
    keep: Annotated[int, typer.Option(min=1, help="How many checkpoints to keep.")] = 2,
    log_every: Annotated[int, typer.Option(min=1, help="Steps between reports.")] = 50,
    validate_every: Annotated[int, typer.Option(min=0, help="Steps between validations; 0: none.")] = 1000,
    preview_every: Annotated[int, typer.Option(min=0, help="Steps between pictures of samples; 0: none.")] = 5000,
) -> None:
    """Train a model. Stopped by Ctrl-C or SIGTERM it saves first; --resume continues as if nothing had happened."""
    from sketchdnn.systems import load_preset
    from sketchdnn.training.config import config_from
    from sketchdnn.training.distributed import leave
    from sketchdnn.training.start import Request, start

    chosen = load_preset(preset, system)
    config = config_from(
        chosen.training,
        f"{chosen.name}: training",
        steps=steps,
        epochs=epochs,
        minutes=minutes,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        checkpoint_minutes=checkpoint_minutes,
        keep=keep,
        log_every=log_every,
        validate_every=validate_every,
        preview_every=preview_every,
    )
    with progress(stderr(), "starting", total=1.0) as bar:
        told = partial(show_report, bar), partial(_show_validation, bar)
        outcome = start(Request(chosen, config, data, out, device, resume, init_from, fsdp, *told))
    _tell(outcome, out)
    leave()


def show_report(bar: Progress, report: Report, prefix: str = "") -> None:
    """Step, loss and speed."""
    words = f"{prefix}step {report.step:,}  loss {report.loss:.4f}  {report.sketches_per_second:,.0f} sketches/s"
    bar.update(min(1.0, report.progress), doing=words)


def _show_validation(bar: Progress, step: int, losses: Mapping[int, float]) -> None:
    """The mean over the noise levels; validation.csv has each."""
    bar.note(f"validation at step {step:,}: loss {sum(losses.values()) / len(losses):.4f}")


def _tell(outcome: Outcome, out: Path) -> None:
    name = display_path(out)
    if not outcome.writes:
        return
    if outcome.finished:
        typer.echo(f"{name}: trained {outcome.step:,} steps; the model is in {name}/model")
        return
    typer.echo(f"{name}: stopped and saved at step {outcome.step:,}; go on with --resume")
    # As a shell expects of a program that a signal ended.
    raise typer.Exit(128 + (outcome.signal or signal.SIGTERM))
