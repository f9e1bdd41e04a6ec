"""Commands that measure speed: of data, training, sampling and completion, of the server and of the studio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sketchdnn.cli.progress import stages

from . import Device, Model, Page, Repeats, Seed, SketchGraphsFile, Steps, command_line, show


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    examples: dict[Callable[..., None], str] = {
        prepare: "prepare --sequences 1000000 --data sg_subset.npy",
        train: "train --device cuda --out docs/results/training_speed.md",
        generate: "generate --device cuda --paper --out docs/results/generate.md",
        step_overhead: "step-overhead --device cuda --batch 4096",
        api: "api --out docs/results/api.md",
        completion_speed: "completion-speed --device cpu --out docs/results/completion_speed.md",
        latency: "latency --out docs/results/latency.md",
        raster: "raster --device cuda --data prepared --out docs/results/raster.md",
        memory: "memory --out docs/results/memory.md",
        serve_load: "serve-load --clients 50 --seconds 60 --out docs/results/serve.md",
        studio_drag: "studio-drag --out docs/results/studio_drag.md",
    }
    for command, example in examples.items():
        app.command(epilog=f"Example: python -m benchmarks {example}")(command)


def memory(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Option(help="A command without `sketchdnn`; may be repeated.", show_default="all of the page"),
    ] = None,
    out: Page = None,
) -> None:
    """Memory that the commands take, of all their processes together."""
    from benchmarks.memory import COMMANDS, measure_memory
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = measure_memory(command or COMMANDS, on_stage)
    show(result, out, command_line(context))


def prepare(
    context: typer.Context,
    data: SketchGraphsFile,
    sequences: Annotated[int, typer.Option(min=1, help="Distinct sequences to prepare.")] = 1_000_000,
    reference: Annotated[int, typer.Option(min=1, help="Sequences that the references prepare.")] = 50_000,
    out: Page = None,
) -> None:
    """Prepare a corpus on all cores, against one-process versions of the authors' steps."""
    from benchmarks.prepare import time_prepare
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = time_prepare(data, sequences, min(reference, sequences), on_stage)
    show(result, out, command_line(context))


def train(
    context: typer.Context,
    device: Device = "auto",
    preset: Annotated[
        list[str] | None,
        typer.Option(help="A preset to time; may be repeated.", show_default="paper and ours-base; tiny"),
    ] = None,
    batch: Annotated[
        list[int] | None, typer.Option(min=1, help="Sketches per step; may be repeated.", show_default="2048 to 16384")
    ] = None,
    eager_batch: Annotated[
        list[int] | None, typer.Option(min=1, help="… of the eager loop.", show_default="128 to 4096")
    ] = None,
    repeats: Repeats = 3,
    out: Page = None,
) -> None:
    """Train at several batch sizes, against an eager float32 loop and the device's fastest matrix product."""
    from benchmarks.results import check_output_file
    from benchmarks.train import time_train
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    on_cpu = device == "cpu"
    presets = preset or (["tiny"] if on_cpu else ["paper", "ours-base"])
    batches = batch or ([32] if on_cpu else [2048, 4096, 8192, 16384])
    eager = eager_batch or (batches if on_cpu else [128, 512, 1024, 2048, 4096])
    with stages() as on_stage:
        result = time_train(presets, batches, eager, device, repeats, on_stage=on_stage)
    show(result, out, command_line(context, device=device, preset=presets, batch=batches, eager_batch=eager))


def generate(
    context: typer.Context,
    device: Device = "auto",
    count: Annotated[
        int | None, typer.Option(min=1, help="Sketches to generate.", show_default="10,000; 16 on a CPU")
    ] = None,
    steps: Steps = 50,
    paper: Annotated[bool, typer.Option("--paper", help="Also the paper's network with its 2000 steps.")] = False,
    paper_steps: Annotated[
        int | None, typer.Option(min=1, help="… of which this many are timed.", show_default="100; 2 on a CPU")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Sketches that the loops are timed on.", show_default="a batch")
    ] = None,
    out: Page = None,
) -> None:
    """Generate sketches without writing them, against an eager float32 loop of the same network."""
    from benchmarks.generate import time_generate
    from benchmarks.results import check_output_file
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    count = count or (16 if device == "cpu" else 10_000)
    timed = paper_steps or (2 if device == "cpu" else 100)
    with stages() as on_stage:
        result = time_generate(
            device, count, steps=steps, paper=paper, paper_steps=timed, batch=batch, on_stage=on_stage
        )
    show(result, out, command_line(context, device=device, count=count, paper_steps=timed if paper else None))


def step_overhead(
    context: typer.Context,
    device: Device = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Sketches in the step.")] = 4096,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a sketch.")] = 16,
    network_batch: Annotated[
        int | None,
        typer.Option(min=1, help="Sketches to time the network on, then scaled; 32 on a CPU.", show_default=False),
    ] = None,
    repeats: Repeats = 5,
    out: Page = None,
) -> None:
    """Time one reverse diffusion step against the forward pass of the network; exit code 1 if it takes too long."""
    from benchmarks.generate import time_step
    from benchmarks.results import check_output_file
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    result = time_step(device, batch, rows, network_batch, repeats)
    show(result, out, command_line(context, device=device))
    raise typer.Exit(0 if result.is_allowed else 1)


def api(
    context: typer.Context,
    model: Model = "ours",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, of which the fastest counts.")] = 5,
    compare: Annotated[
        int, typer.Option(min=0, help="Also compare this many sketches, generated one by one and in batches.")
    ] = 0,
    out: Page = None,
) -> None:
    """Generate 1 and 16 sketches on two cores, alone and beside a busy process; exit code 1 if it takes too long."""
    from benchmarks.api import time_api
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = time_api(model, rounds=rounds, compare=compare, on_stage=on_stage)
    show(result, out, command_line(context, compare=compare or None))
    raise typer.Exit(0 if result.is_allowed else 1)


def completion_speed(
    context: typer.Context,
    model: Model = "ours",
    device: Device = "auto",
    steps: Steps = 50,
    repeats: Repeats = 5,
    out: Page = None,
) -> None:
    """Time one and eight suggestions for an open and a finished part; exit code 1 if eight take too long."""
    from benchmarks.completion_speed import time_completion
    from benchmarks.results import check_output_file
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        result = time_completion(system, steps=steps, rounds=repeats, on_stage=on_stage)
    show(result, out, command_line(context, device=device))
    raise typer.Exit(0 if result.is_allowed else 1)


def latency(
    context: typer.Context,
    model: Model = "ours",
    onnx: Annotated[
        Path | None, typer.Option(help="Also onnxruntime with this file of `sketchdnn export-onnx`.", readable=False)
    ] = None,
    repeats: Repeats = 5,
    out: Page = None,
) -> None:
    """Time one sketch, sixteen and eight completions by quality, precision and engine; three minutes on two cores."""
    from benchmarks.latency import time_latency
    from benchmarks.results import check_output_file
    from sketchdnn.systems import from_pretrained

    check_output_file(out)
    system = from_pretrained(model)
    with stages() as on_stage:
        result = time_latency(system, onnx, rounds=repeats, on_stage=on_stage)
    show(result, out, command_line(context))


def raster(
    context: typer.Context,
    device: Device = "auto",
    count: Annotated[int, typer.Option(min=1, help="Pictures to draw.")] = 10_000,
    matplotlib_count: Annotated[int, typer.Option(min=1, help="Pictures to draw with matplotlib.")] = 100,
    data: Annotated[
        Path | None, typer.Option(help="A prepared corpus; its test split is drawn.", show_default="built-in parts")
    ] = None,
    repeats: Repeats = 3,
    out: Page = None,
) -> None:
    """Draw sketches as pictures for a score, against a matplotlib loop like the authors'."""
    from benchmarks.raster import time_raster
    from benchmarks.results import check_output_file
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    with stages() as on_stage:
        result = time_raster(device, count, matplotlib_count, data, repeats, on_stage)
    show(result, out, command_line(context, device=device))


def serve_load(
    context: typer.Context,
    model: Model = "ours",
    clients: Annotated[int, typer.Option(min=1, help="Clients that ask at the same time.")] = 50,
    seconds: Annotated[float, typer.Option(min=1, help="How long they ask.")] = 60,
    steps: Steps = 50,
    complete_share: Annotated[float, typer.Option(help="Share of requests that complete a part.")] = 0.0,
    compare: Annotated[int, typer.Option(min=1, help="Most sketches to compare with the library's.")] = 1000,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Load a server with many clients, and compare throughput and answers with the library."""
    from benchmarks.results import check_output_file
    from benchmarks.serve_load import run_load

    check_output_file(out)
    with stages() as on_stage:
        result = run_load(
            model,
            clients=clients,
            seconds=seconds,
            steps=steps,
            complete_share=complete_share,
            compare=compare,
            seed=seed,
            on_stage=on_stage,
        )
    show(result, out, command_line(context))


def studio_drag(
    context: typer.Context,
    count: Annotated[int, typer.Option(min=1, max=64, help="Sketches of 16 primitives.")] = 6,
    seconds: Annotated[float, typer.Option(min=1, help="How long each is dragged.")] = 5,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Updates a second while an end is dragged in the studio; needs Chromium."""
    from benchmarks.results import check_output_file
    from benchmarks.studio_drag import measure

    check_output_file(out)
    with stages() as on_stage:
        result = measure(count, seconds, seed, on_stage)
    show(result, out, command_line(context))
