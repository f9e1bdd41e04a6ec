"""`python -m benchmarks completion`, `failures` and `levels`: how good what is drawn is, where it was found wanting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import stages
from sketchdnn.errors import SketchError

from .page import check_file, of_model, write_page

_KEPT = "Keep what is drawn in this file, or judge what it holds already."


def add(bench: typer.Typer) -> None:
    """Add the commands to `python -m benchmarks`."""
    example = "python -m benchmarks completion --data prepared --device cuda --out docs/results/completion.md"
    bench.command(epilog=f"Example: {example}")(completion)
    bench.command(epilog="Example: python -m benchmarks failures --device cuda --out docs/results/failures.md")(
        failures
    )
    bench.command(
        epilog="Example: python -m benchmarks noise-levels --data prepared --out docs/results/noise_levels.md"
    )(noise_levels)


def completion(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    sketches: Annotated[int, typer.Option(min=1, help="Test sketches to hide half of.")] = 500,
    best_of: Annotated[int, typer.Option(min=1, help="Completions of each, of which the best counts.")] = 8,
    steps: Annotated[int, typer.Option(min=1, help="Denoising steps.")] = 50,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    draws: Annotated[Path | None, typer.Option(help=_KEPT, show_default=False, readable=False)] = None,
    only_draw: Annotated[bool, typer.Option("--only-draw", help="Stop when it is drawn, and judge elsewhere.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the result as Markdown, and a figure beside it.", show_default=False, readable=False
        ),
    ] = None,
) -> None:
    """Hide half of the primitives of test sketches and have them completed, both ways, the frame known and unknown."""
    from benchmarks.completion import draw_completions, judge_completions, plan_completion, write_figure
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    device = find_device(device)
    _check(out, draws, only_draw)
    task = plan_completion(data, sketches=sketches, best_of=best_of, steps=steps)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        drawn, seconds = draw_completions(system, task, draws, on_stage)
        if only_draw:
            return
        bench = judge_completions(task, drawn, seconds, system, on_stage)
    Console().print(bench.table())
    if out is not None:
        figure = out.with_suffix(".png")
        write_figure(bench, figure)
        command = (
            f"python -m benchmarks completion --data {data.name} --sketches {sketches} --best-of {best_of} "
            f"--steps {steps} --device {device}{of_model(model)}"
        )
        write_page(out, bench.markdown(command, figure.name))


def failures(
    count: Annotated[int, typer.Option(min=1, help="Sketches to draw with each sampler.")] = 10_000,
    steps: Annotated[int, typer.Option(min=1, help="Denoising steps.")] = 50,
    weight: Annotated[
        list[float] | None,
        typer.Option(help="Weights of the prediction; may be repeated.", show_default="1, 1.25, 1.5 and 2"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A prepared corpus whose test split to count too.", show_default=False, readable=False),
    ] = None,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    draws: Annotated[Path | None, typer.Option(help=_KEPT, show_default=False, readable=False)] = None,
    only_draw: Annotated[bool, typer.Option("--only-draw", help="Stop when it is drawn, and judge elsewhere.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Count the paper's failure cases: what a model draws, raw and repaired, and the authors' sampler with weights."""
    from benchmarks.failures import WEIGHTS, count_failures, draw_failures
    from sketchdnn.generation.repair import available_cores
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    device = find_device(device)
    _check(out, draws, only_draw)
    if weight and not min(weight) > 0:
        raise SketchError(f"the weight of a prediction is above zero, not {min(weight):g}")
    system = from_pretrained(model, device)
    with stages() as on_stage:
        drawn, seconds = draw_failures(
            system, count=count, steps=steps, weights=weight or WEIGHTS, kept=draws, on_stage=on_stage
        )
        if only_draw:
            return
        bench = count_failures(drawn, seconds, steps, system, data, on_stage, workers=available_cores())
    Console().print(bench.table())
    if out is not None:
        weights = "".join(f" --weight {each:g}" for each in weight or ())
        source = f" --data {data.name}" if data else ""
        command = f"python -m benchmarks failures --count {count} --steps {steps}{weights}{source} --device {device}"
        command += of_model(model)
        write_page(out, bench.markdown(command))


def noise_levels(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    count: Annotated[int, typer.Option(min=1, help="Test sketches to noise and draw again.")] = 500,
    steps: Annotated[int, typer.Option(min=1, help="Denoising steps of a whole walk.")] = 50,
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Noise real sketches to several levels and draw them again: at which level does a model go wrong?"""
    from benchmarks.samplers import score_levels
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_file(out)
    device = find_device(device)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        bench = score_levels(system, data, count=count, steps=steps, on_stage=on_stage)
    Console().print(bench.table())
    if out is not None:
        command = (
            f"python -m benchmarks noise-levels --data {data.name} --count {count} --steps {steps} --device {device}"
        )
        write_page(out, bench.markdown(command + of_model(model)))


def _check(out: Path | None, draws: Path | None, only_draw: bool) -> None:
    check_file(out)
    check_file(draws)
    if only_draw and draws is None:
        raise SketchError("--only-draw keeps what is drawn for later: name a file for it with --draws")
