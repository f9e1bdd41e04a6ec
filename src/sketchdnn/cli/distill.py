"""`sketchdnn distill`: a model and its corpus in, the model with a student for few steps out."""

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

EPILOG = """Example: sketchdnn distill --model ours --data corpus --out run --minutes 24

Then: sketchdnn generate --model run/model --steps 4"""


def distill(
    data: Annotated[Path, path_option(help="A corpus from `sketchdnn prepare`, as for the training of the model.")],
    out: Annotated[Path, path_option(help="The run's folder: checkpoints, logs, the model.")],
    model: Annotated[str, Option(help="The model to distill: a folder, or the name of one of the package.")] = "ours",
    method: Annotated[str, Option(help="moment_matching or flow_map.")] = "moment_matching",
    steps: Annotated[int | None, Option(help="Train this many steps,")] = None,
    minutes: Annotated[float | None, Option(help="… or minutes.", show_default="24")] = None,
    student_steps: Annotated[str, Option(help="The numbers of sampling steps to train for.")] = "4,8",
    adapter_rank: Annotated[int, Option(min=0, help="Train a low-rank adapter; 0: all weights.")] = 0,
    batch_size: Annotated[int | None, Option(min=1, help="Sketches a step.", show_default="2048")] = None,
    learning_rate: Annotated[float | None, Option(help="Peak rate.", show_default="1e-4")] = None,
    overrides: Annotated[
        list[str] | None, Option("--set", help="A setting: training.NAME=VALUE or distill.NAME=VALUE; repeatable.")
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Of order and noise.", show_default="0")] = None,
    device: Device = "auto",
    resume: Annotated[bool, Option("--resume", help="Continue from the last checkpoint in --out.")] = False,
    init_from: Annotated[Path | None, path_option(help="Start with the student of this model.")] = None,
    eight_bit: Annotated[
        bool, Option("--eight-bit", help="Write weights in eight bits, as the shipped model.")
    ] = False,
    checkpoint_minutes: Annotated[float | None, Option(min=0, help="Save this often.", show_default="5")] = None,
    log_every: Annotated[int | None, Option(min=1, help="Steps between reports.", show_default="50")] = None,
    validate_every: Annotated[int | None, Option(min=0, help="Steps between validations, 500; 0: none.")] = None,
    logger: Annotated[list[str] | None, Option(help="tensorboard or wandb, besides CSV; may be repeated.")] = None,
) -> None:
    """Train a student that samples in 1 to 8 steps. The model with its student selects it for --steps 8 and fewer."""
    from sketchdnn.training.distill import DistillRequest, start_distillation
    from sketchdnn.training.distill_settings import parse_distill_settings
    from sketchdnn.training.loop import Hooks

    options = {"steps": steps, "minutes": minutes, "batch_size": batch_size, "learning_rate": learning_rate}
    options |= {"seed": seed, "checkpoint_minutes": checkpoint_minutes, "log_every": log_every}
    options |= {"validate_every": validate_every}
    own = {"method": method, "adapter_rank": adapter_rank, "student_steps": student_steps}
    config, settings = parse_distill_settings(overrides or (), own, options)
    with progress(stderr_console(), "starting", total=1.0) as bar:
        hooks = Hooks(partial(show_report, bar), partial(_show_validation, bar), tuple(logger or ()))
        request = DistillRequest(model, config, settings, data, out, device, resume, init_from, eight_bit, hooks)
        outcome = start_distillation(request)
    show_outcome(outcome, out)


def _show_validation(bar: Progress, step: int, numbers: Mapping[str, float]) -> None:
    """Show the fraction of sketches without a loose end; validation.csv contains all numbers."""
    joined = ", ".join(
        f"{value:.0%} in {name.removeprefix('joined_')}" for name, value in numbers.items() if "joined" in name
    )
    bar.note(f"validation at step {step:,}: sketches without a loose end, by steps: {joined}")
