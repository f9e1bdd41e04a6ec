"""`sketchdnn figures`: the paper's figures and ours, drawn from computation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from sketchdnn.formats import shown

Out = Annotated[Path, typer.Option(help="Folder to write to; it is made if need be.")]
Steps = Annotated[int, typer.Option(min=2, help="T, the number of diffusion steps.")]
Smoothing = Annotated[float, typer.Option(help="k, the share of a label that smoothing leaves: between 0 and 1.")]
Seed = Annotated[int, typer.Option(min=0, help="Which random numbers.")]

app = typer.Typer(help="Draw the paper's figures and ours.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the verb to the command line."""
    root.add_typer(app, name="figures", epilog="Example: sketchdnn figures schedule --out figures")


@app.command(epilog="Example: sketchdnn figures schedule --out figures")
def schedule(
    out: Out,
    steps: Steps = 2000,
    categories: Annotated[int, typer.Option(min=2, max=1000, help="D, how many labels there are.")] = 5,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=1, help="Monte Carlo samples.")] = 100_000,
    seed: Seed = 0,
) -> None:
    """How long a label survives, raw and augmented schedule: the paper's figure 2 (PNG, SVG, CSV)."""
    _check(smoothing)
    from sketchdnn.figures import label_survival, write_schedule

    survival = label_survival(
        num_steps=steps, num_categories=categories, label_smoothing=smoothing, samples=samples, seed=seed
    )
    _say(write_schedule(out, survival))


@app.command(epilog="Example: sketchdnn figures gs --out figures")
def gs(
    out: Out,
    steps: Steps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=1, help="Points in each triangle.")] = 700,
    seed: Seed = 0,
) -> None:
    """A label dissolving on the triangle: samples of the Gaussian-Softmax distribution over t (PNG, SVG)."""
    _check(smoothing)
    from sketchdnn.figures import label_clouds, write_simplex

    clouds = label_clouds(num_steps=steps, label_smoothing=smoothing, samples=samples, seed=seed)
    _say(write_simplex(out, clouds))


@app.command(epilog="Example: sketchdnn figures bias --out figures --samples 200")
def bias(
    out: Out,
    steps: Steps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=2, help="Sketches of 16 labels to draw with each form.")] = 1000,
    seed: Seed = 0,
) -> None:
    """What the logits in the reverse mean do to labels, given a perfect denoiser (PNG, SVG, CSV). Takes minutes."""
    _check(smoothing)
    from sketchdnn.figures import measure_bias, write_bias

    with Progress(console=_console(), transient=True) as progress:
        task = progress.add_task("drawing labels", total=3 * steps)
        measured = measure_bias(
            num_steps=steps,
            label_smoothing=smoothing,
            samples=samples,
            seed=seed,
            on_step=lambda: progress.advance(task),
        )
    _say(write_bias(out, measured))


def _check(smoothing: float) -> None:
    if not 0 < smoothing < 1:
        raise typer.BadParameter(f"--smoothing must lie between 0 and 1, not {smoothing}")


def _say(paths: list[Path]) -> None:
    for path in paths:
        _console().print(shown(path))


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
