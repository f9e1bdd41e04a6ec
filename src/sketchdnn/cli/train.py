"""`sketchdnn train`: a prepared corpus in, a model out."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from sketchdnn.errors import display_path

from .console import stderr_console
from .options import Device, path_option
from .progress import Progress, progress

if TYPE_CHECKING:
    from sketchdnn.training.loop import Outcome
    from sketchdnn.training.run import Report

EPILOG = """Example: sketchdnn train --preset tiny --data corpus --out run --minutes 10

Own settings: … --set training.learning_rate=3e-4 --set system.network.width=256

On several GPUs: torchrun --nproc-per-node 8 -m sketchdnn train …"""
SYSTEM = "sketchdnn, sketchdnn-pos, sketchdnn-cat, latent, vitruvion or sketchgen; by default the preset's."


def train(
    data: Annotated[Path, path_option(help="A corpus from `sketchdnn prepare`.")],
    out: Annotated[Path, path_option(help="The run's folder: checkpoints, logs, the model.")],
    preset: Annotated[str | None, Option(help="A preset, as `sketchdnn presets` lists them, or a .toml file.")] = None,
    system: Annotated[str | None, Option(help=SYSTEM)] = None,
    steps: Annotated[int | None, Option(help="Train this many steps,")] = None,
    epochs: Annotated[float | None, Option(help="… or passes over the corpus,")] = None,
    minutes: Annotated[float | None, Option(help="… or minutes.")] = None,
    batch_size: Annotated[int | None, Option(min=1, help="Sketches a step, over all devices.")] = None,
    learning_rate: Annotated[float | None, Option(help="Peak rate.", show_default="the preset's")] = None,
    overrides: Annotated[list[str] | None, Option("--set", help="A setting: SECTION.NAME=VALUE; repeatable.")] = None,
    seed: Annotated[int | None, Option(min=0, help="Of weights, order and noise.", show_default="0")] = None,
    device: Device = "auto",
    resume: Annotated[bool, Option("--resume", help="Continue from the last checkpoint in --out.")] = False,
    init_from: Annotated[Path | None, path_option(help="Start with the weights of this model.")] = None,
    fsdp: Annotated[bool, Option("--fsdp", help="Shard the weights, for a model too large for one device.")] = False,
    checkpoint_minutes: Annotated[float | None, Option(min=0, help="Save this often.", show_default="5")] = None,
    keep: Annotated[int | None, Option(min=1, help="How many checkpoints to keep.", show_default="2")] = None,
    log_every: Annotated[int | None, Option(min=1, help="Steps between reports.", show_default="50")] = None,
    validate_every: Annotated[int | None, Option(min=0, help="Steps between validations, 1000; 0: none.")] = None,
    preview_every: Annotated[int | None, Option(min=0, help="Steps between pictures, 5000; 0: none.")] = None,
    logger: Annotated[list[str] | None, Option(help="tensorboard or wandb, besides CSV; may be repeated.")] = None,
) -> None:
    """Train a model. Ctrl-C or SIGTERM saves and stops; --resume continues, equal to a run without interruption."""
    from sketchdnn.systems import load_preset
    from sketchdnn.training.config import parse_train_config
    from sketchdnn.training.distributed import exit_worker
    from sketchdnn.training.loop import Hooks
    from sketchdnn.training.start import TrainRequest, start_training

    settings = load_preset(preset, system, overrides or ())
    table = {"validate_every": 1000, "preview_every": 5000} | dict(settings.training)
    options = {"steps": steps, "epochs": epochs, "minutes": minutes, "batch_size": batch_size, "seed": seed}
    options |= {"learning_rate": learning_rate, "checkpoint_minutes": checkpoint_minutes, "keep": keep}
    options |= {"log_every": log_every, "validate_every": validate_every, "preview_every": preview_every}
    config = parse_train_config(table, f"{settings.name}: training", **options)
    with progress(stderr_console(), "starting", total=1.0) as bar:
        hooks = Hooks(partial(show_report, bar), partial(_show_validation, bar), tuple(logger or ()))
        outcome = start_training(TrainRequest(settings, config, data, out, device, resume, init_from, fsdp, hooks))
    show_outcome(outcome, out)
    exit_worker()


def show_report(bar: Progress, report: Report, prefix: str = "") -> None:
    """Show step, loss and speed."""
    words = f"{prefix}step {report.step:,}  loss {report.loss:.4f}  {report.sketches_per_second:,.0f} sketches/s"
    bar.update(min(1.0, report.progress), doing=words)


def _show_validation(bar: Progress, step: int, losses: Mapping[str, float]) -> None:
    """Show the mean over the noise levels; validation.csv contains each."""
    bar.note(f"validation at step {step:,}: loss {sum(losses.values()) / len(losses):.4f}")


def show_outcome(outcome: Outcome, out: Path) -> None:
    """Print where the model of a finished run is, or how to continue."""
    name = display_path(out)
    if not outcome.writes:
        return
    if outcome.finished:
        typer.echo(f"{name}: trained {outcome.step:,} steps; the model is in {name}/model")
        return
    typer.echo(f"{name}: stopped and saved at step {outcome.step:,}; continue with --resume")
    # The exit code of a program that a signal ended.
    raise typer.Exit(128 + (outcome.signal or signal.SIGTERM))
