"""`python -m benchmarks`: how fast and how good things are, each against something else in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import stages
from sketchdnn.errors import SketchError

from . import bench_api, bench_constraints, bench_drawing, bench_generate
from .page import check_file, of_model, write_page

bench = typer.Typer(help="Measure how fast and how good things are.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    bench_api.add(bench)
    bench_constraints.add(bench)
    bench_drawing.add(bench)
    bench_generate.add(bench)
    app.add_typer(bench)


@bench.command(epilog="Example: python -m benchmarks prepare --sequences 1000000 --data sg_subset.npy")
def prepare(
    data: Annotated[
        Path, typer.Option(help="A SketchGraphs file to make the corpus from.", show_default=False, readable=False)
    ],
    sequences: Annotated[int, typer.Option(min=1, help="How many distinct sequences to prepare.")] = 1_000_000,
    reference: Annotated[int, typer.Option(min=1, help="How many of them the plain reference prepares.")] = 50_000,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Prepare a corpus on all cores, against a plain one-process version of the authors' steps."""
    from benchmarks.prepare import time_prepare

    check_file(out)
    with stages() as on_stage:
        timing = time_prepare(data, sequences, min(reference, sequences), on_stage)
    Console().print(timing.table())
    if out is not None:
        command = f"python -m benchmarks prepare --sequences {sequences} --reference {reference} --data {data.name}"
        write_page(out, timing.markdown(command))


@bench.command(epilog="Example: python -m benchmarks step-overhead --device cuda --batch 4096")
def step_overhead(
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Sketches in the step.")] = 4096,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a sketch.")] = 16,
    network_batch: Annotated[
        int | None,
        typer.Option(min=1, help="Sketches to time the network on, then scaled; 32 on a CPU.", show_default=False),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, of which the best counts.")] = 5,
) -> None:
    """Time one reverse diffusion step against the forward pass of the paper's network; exit code 1 if it is felt."""
    from benchmarks.generate import ALLOWED, time_step
    from sketchdnn.systems.devices import find_device

    device = find_device(device)
    timing = time_step(device, batch, rows, network_batch, repeats)
    console = Console()
    console.print(timing.table())
    console.print(f"The step takes {timing.ratio:.2%} of the network's time; {ALLOWED:.0%} is allowed.")
    raise typer.Exit(0 if timing.ratio < ALLOWED else 1)


@bench.command(epilog="Example: python -m benchmarks train --device cuda --out docs/results/training_speed.md")
def train(
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    preset: Annotated[
        list[str] | None, typer.Option(help="Presets to time; may be repeated.", show_default="paper and ours; tiny")
    ] = None,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Sketches a step; may be repeated.", show_default="2048 to 16384")
    ] = None,
    eager_batch: Annotated[
        list[int] | None, typer.Option(min=1, help="… of the eager loop.", show_default="128 to 4096")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, of which the best counts.")] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Train at several batch sizes, beside a plain eager float32 loop and the device's fastest matrix product."""
    from benchmarks.train import time_train
    from sketchdnn.systems.devices import find_device

    check_file(out)
    device = find_device(device)
    small = device == "cpu"
    presets = preset or (["tiny"] if small else ["paper", "ours-base"])
    batches = batch or ([32] if small else [2048, 4096, 8192, 16384])
    eager = eager_batch or (batches if small else [128, 512, 1024, 2048, 4096])
    with stages() as on_stage:
        timed = time_train(presets, batches, eager, device, repeats, on_stage=on_stage)
    console = Console()
    console.print(timed.table())
    for sentence in timed.summary():
        console.print(sentence)
    if out is not None:
        write_page(out, timed.markdown(_command(device, presets, batches, eager)))


def _command(device: str, presets: list[str], batches: list[int], eager: list[int]) -> str:
    """What to type for the same table."""
    chosen: dict[str, list[str] | list[int]] = {"--preset": presets, "--batch": batches, "--eager-batch": eager}
    options = [f"{option} {value}" for option, values in chosen.items() for value in values]
    return " ".join([f"python -m benchmarks train --device {device}", *options])


@bench.command(epilog="Example: python -m benchmarks raster --device cuda --data prepared --out docs/results/raster.md")
def raster(
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu (one core), cuda, …")] = "auto",
    count: Annotated[int, typer.Option(min=1, help="Pictures to draw.")] = 10_000,
    plotted: Annotated[int, typer.Option(min=1, help="… and how many of them with matplotlib.")] = 100,
    data: Annotated[
        Path | None,
        typer.Option(help="A prepared corpus whose test split to draw.", show_default="built-in parts", readable=False),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, of which the best counts.")] = 3,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Draw sketches as a score sees them, against a matplotlib loop as the authors draw them."""
    from benchmarks.raster import time_raster
    from sketchdnn.systems.devices import find_device

    check_file(out)
    device = find_device(device)
    with stages() as on_stage:
        timing = time_raster(device, count, plotted, data, repeats, on_stage)
    Console().print(timing.table())
    if out is not None:
        source = f" --data {data.name}" if data else ""
        command = f"python -m benchmarks raster --device {device} --count {count}{source}"
        write_page(out, timing.markdown(command))


@bench.command(
    epilog="Example: python -m benchmarks samplers --data prepared --device cuda --out docs/results/samplers.md"
)
def samplers(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    model: Annotated[str, typer.Option(help="A model folder, or the bundled one.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    count: Annotated[int, typer.Option(min=6, help="Sketches to draw with each.")] = 10_000,
    way: Annotated[
        list[str] | None, typer.Option(help="A sampler and its steps, as ddim:50; may be repeated.", show_default="all")
    ] = None,
    inception: Annotated[
        Path | None,
        typer.Option(help="The FID Inception as a TorchScript file.", show_default="the one installed", readable=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Quality against time for every sampler: what the default of `generate` is chosen by."""
    from benchmarks.samplers import WAYS, score_samplers
    from sketchdnn.data.loader import Dataset
    from sketchdnn.evaluation.features import find_inception, load_inception
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    ways = [_way(words) for words in way] if way else WAYS
    check_file(out)
    device = find_device(device)
    dataset = Dataset.open(data)
    system = from_pretrained(model, device)
    extractor = load_inception(find_inception(inception), device)
    with stages() as on_stage:
        scored = score_samplers(system, dataset, extractor, ways, count, on_stage)
    Console().print(scored.table())
    if out is not None:
        chosen = "".join(f" --way {words}" for words in way or ())
        command = f"python -m benchmarks samplers --data {data.name} --device {device} --count {count}{chosen}"
        command += of_model(model)
        write_page(out, scored.markdown(command))


def _way(words: str) -> tuple[str, int]:
    sampler, _, steps = words.partition(":")
    if not steps.isdigit() or int(steps) < 1:
        raise SketchError(f"a way to draw is a sampler and its steps, such as ddim:50, not '{words}'")
    return sampler, int(steps)


@bench.command(epilog="Example: python -m benchmarks conditions --device cuda --out docs/results/conditions.md")
def conditions(
    model: Annotated[str, typer.Option(help="A model folder, a bundled one, or hub:OWNER/NAME.")] = "ours",
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    requests: Annotated[int, typer.Option(min=1, help="Requests of each sort.")] = 500,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the sampler.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False, readable=False)
    ] = None,
) -> None:
    """Ask for numbers of primitives, kinds and closed profiles, and count how often they are drawn."""
    from benchmarks.conditions import measure_conditions
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_file(out)
    device = find_device(device)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        measured = measure_conditions(system, requests, seed=seed, steps=steps, on_stage=on_stage)
    Console().print(measured.table())
    if out is not None:
        command = (
            f"python -m benchmarks conditions --device {device} --requests {requests} --steps {steps} --seed {seed}"
        )
        command += of_model(model)
        write_page(out, measured.markdown(command))
