"""`sketchdnn train-image`: a model and its corpus in, the model with an image encoder for `trace` out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Option

from .console import stderr_console
from .options import Device, path_option
from .progress import Progress, progress
from .train import show_outcome, show_report

EPILOG = """Example: sketchdnn train-image --model ours --data corpus --out run --minutes 24

Then: sketchdnn trace photo.jpg --model run/model --out part.FCStd"""
SET = "A setting: training.NAME=VALUE, image.NAME=VALUE, encoder.NAME=VALUE or ink.NAME=VALUE; repeatable."


def train_image(
    data: Annotated[Path, path_option(help="A corpus from `sketchdnn prepare`, with small sketches too.")],
    out: Annotated[Path, path_option(help="The run's folder: checkpoints, logs, the model.")],
    model: Annotated[str, Option(help="The model to extend: a folder, or the name of one of the package.")] = "ours",
    steps: Annotated[int | None, Option(help="Train this many steps,")] = None,
    minutes: Annotated[float | None, Option(help="… or minutes.", show_default="24")] = None,
    adapter_rank: Annotated[int, Option(min=0, help="Rank of changes of the model; 0 leaves it as it is.")] = 0,
    noises: Annotated[int, Option(min=1, help="Noise levels for each picture of a step.")] = 4,
    batch_size: Annotated[int | None, Option(min=1, help="Pictures a step.", show_default="1024")] = None,
    learning_rate: Annotated[float | None, Option(help="Peak rate.", show_default="4e-4")] = None,
    overrides: Annotated[list[str] | None, Option("--set", help=SET)] = None,
    seed: Annotated[int | None, Option(min=0, help="Of order, pictures and noise.", show_default="0")] = None,
    device: Device = "auto",
    resume: Annotated[bool, Option("--resume", help="Continue from the last checkpoint in --out.")] = False,
    init_from: Annotated[Path | None, path_option(help="Start with the image encoder of this model.")] = None,
    eight_bit: Annotated[
        bool, Option("--eight-bit", help="Write weights in eight bits, as the shipped model.")
    ] = False,
    checkpoint_minutes: Annotated[float | None, Option(min=0, help="Save this often.", show_default="5")] = None,
    log_every: Annotated[int | None, Option(min=1, help="Steps between reports.", show_default="50")] = None,
    validate_every: Annotated[int | None, Option(min=0, help="Steps between validations, 500; 0: none.")] = None,
    logger: Annotated[list[str] | None, Option(help="tensorboard or wandb, besides CSV; may be repeated.")] = None,
) -> None:
    """Train an image encoder for a model, which then draws the sketch of a picture. The model itself is unchanged."""
    from sketchdnn.training.image import ImageTrainRequest, start_image_training
    from sketchdnn.training.image_settings import parse_image_settings
    from sketchdnn.training.loop import Hooks

    options = {"steps": steps, "minutes": minutes, "batch_size": batch_size, "learning_rate": learning_rate}
    options |= {"seed": seed, "checkpoint_minutes": checkpoint_minutes, "log_every": log_every}
    options |= {"validate_every": validate_every}
    own = {"adapter_rank": adapter_rank, "noises": noises}
    config, image = parse_image_settings(overrides or (), own, options)
    with progress(stderr_console(), "starting", total=1.0) as bar:
        hooks = Hooks(partial(show_report, bar), partial(_show_validation, bar), tuple(logger or ()))
        request = ImageTrainRequest(model, config, image, data, out, device, resume, init_from, eight_bit, hooks)
        outcome = start_image_training(request)
    show_outcome(outcome, out)


def _show_validation(bar: Progress, step: int, numbers: Mapping[str, float]) -> None:
    """Show the losses with and without pictures, and the primitive F1; validation.csv contains all numbers."""
    losses = f"loss {numbers['mean']:.4f}, without a picture {numbers['blank_mean']:.4f}"
    bar.note(f"validation at step {step:,}: {losses}; primitive F1 {numbers['f1']:.1%}")
