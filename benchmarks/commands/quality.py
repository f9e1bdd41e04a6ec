"""`python -m benchmarks samplers`, `noise-levels`, `conditions`, `primitive-counts`, `completion`, `fit-order`,
`design-score`, `memorization`, `failures`, `constraints`, `constraint-speed`, `drag`, `repair`, `intent`, `rounding`
and `solids`: how good results are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sketchdnn.cli.progress import stages
from sketchdnn.errors import SketchError

from . import (
    Corpus,
    Device,
    Inception,
    Model,
    Page,
    RawSamples,
    SampleCache,
    SampleOnly,
    Seed,
    SketchGraphsFile,
    Steps,
    check_files,
    command_line,
    show,
)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    examples: dict[Callable[..., None], str] = {
        samplers: "samplers --data prepared --device cuda --out docs/results/samplers.md",
        noise_levels: "noise-levels --data prepared --out docs/results/noise_levels.md",
        conditions: "conditions --device cuda --out docs/results/conditions.md",
        primitive_counts: "primitive-counts --data prepared --device cuda --out docs/results/primitive_counts.md",
        completion: "completion --data prepared --device cuda --out docs/results/completion.md",
        fit_order: "fit-order --data prepared --parts 200",
        design_score: "design-score --data prepared --out docs/results/design_score.md",
        memorization: "memorization --data prepared --samples ours=raw.jsonl.xz --out docs/results/memorization.md",
        failures: "failures --device cuda --out docs/results/failures.md",
        constraints: "constraints --data sg_subset.npy --out docs/results/constraints.md",
        constraint_speed: "constraint-speed --files parts/ --out docs/results/constraint_speed.md",
        drag: "drag --data sg_subset.npy --out docs/results/drag.md",
        repair: "repair --out docs/results/repair.md",
        intent: "intent --data open-sketches.jsonl.xz --out docs/results/intent.md",
        rounding: "rounding --data prepared --out docs/results/rounding.md",
        solids: "solids --data prepared --out docs/results/solids.md",
    }
    for command, example in examples.items():
        app.command(epilog=f"Example: python -m benchmarks {example}")(command)


def samplers(
    context: typer.Context,
    data: Corpus,
    model: Model = "ours",
    device: Device = "auto",
    count: Annotated[int, typer.Option(min=6, help="Sketches to generate with each sampler.")] = 10_000,
    sampler: Annotated[
        list[str] | None, typer.Option(help="A sampler and its steps, as ddim:50; may be repeated.", show_default="all")
    ] = None,
    few_steps: Annotated[
        bool, typer.Option("--few-steps", help="A student and its teacher, 1 to 50 evaluations.")
    ] = False,
    inception: Inception = None,
    fid: Annotated[bool, typer.Option(help="Also the scores that need the Inception network.")] = True,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    out: Page = None,
) -> None:
    """Quality against time for every sampler. The default of `generate` is chosen by this table."""
    from benchmarks.results import check_output_file
    from benchmarks.samplers import FEW_STEP_SETTINGS, SETTINGS, score_samplers
    from sketchdnn.data.loader import Dataset
    from sketchdnn.evaluation.features import find_inception, load_inception
    from sketchdnn.generation.engine import set_precision
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    settings = FEW_STEP_SETTINGS if few_steps else SETTINGS
    settings = tuple(_parse_sampler(text) for text in sampler) if sampler else settings
    check_output_file(out)
    device = find_device(device)
    dataset = Dataset.open(data)
    system = from_pretrained(model, device)
    set_precision(system, precision)
    extractor = load_inception(find_inception(inception), device) if fid else None
    with stages() as on_stage:
        result = score_samplers(system, dataset, extractor, settings, count, on_stage)
    show(result, out, command_line(context, device=device))


def _parse_sampler(text: str) -> tuple[str, int]:
    sampler, _, steps = text.partition(":")
    if not steps.isdigit() or int(steps) < 1:
        raise SketchError(f"--sampler takes a sampler and its steps, such as ddim:50, not '{text}'")
    return sampler, int(steps)


def noise_levels(
    context: typer.Context,
    data: Corpus,
    count: Annotated[int, typer.Option(min=1, help="Test sketches to noise and denoise.")] = 500,
    steps: Steps = 50,
    model: Model = "ours",
    device: Device = "auto",
    out: Page = None,
) -> None:
    """Noise real sketches to several levels and denoise them: at which level do profiles fail to close?"""
    from benchmarks.results import check_output_file
    from benchmarks.samplers import score_noise_levels
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        result = score_noise_levels(system, data, count=count, steps=steps, on_stage=on_stage)
    show(result, out, command_line(context, device=device))


def conditions(
    context: typer.Context,
    model: Model = "ours",
    device: Device = "auto",
    requests: Annotated[int, typer.Option(min=1, help="Requests of each type.")] = 500,
    steps: Steps = 50,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Request numbers of primitives, kinds and closed profiles, and count how often they are met."""
    from benchmarks.conditions import measure_conditions
    from benchmarks.results import check_output_file
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        result = measure_conditions(system, requests, seed=seed, steps=steps, on_stage=on_stage)
    show(result, out, command_line(context, device=device))


def primitive_counts(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="A corpus with sketches of all these numbers of primitives.")],
    primitives: Annotated[str, typer.Option(help="Numbers of primitives, as a range or a list.")] = "3..16",
    count: Annotated[int, typer.Option(min=2, help="The most sketches of each number.")] = 1000,
    model: Model = "ours",
    device: Device = "auto",
    steps: Steps = 50,
    seed: Seed = 0,
    inception: Inception = None,
    cache: SampleCache = None,
    sample_only: SampleOnly = False,
    out: Page = None,
) -> None:
    """Generate sketches of each number of primitives, and score them beside real ones of that number."""
    from benchmarks.primitive_counts import choose_task, parse_numbers, sample_primitive_counts, score_primitive_counts
    from sketchdnn.data.loader import Dataset
    from sketchdnn.evaluation.features import find_inception, load_inception
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_files(out, cache, sample_only)
    device = find_device(device)
    task = choose_task(Dataset.open(data), parse_numbers(primitives), count, seed=seed, steps=steps)
    network = None if sample_only else find_inception(inception)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        samples = sample_primitive_counts(system, task, cache, on_stage)
        if network is None:
            return
        result = score_primitive_counts(samples, task, load_inception(network, device), on_stage)
    show(result, out, command_line(context, device=device))


def completion(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="A prepared corpus; for more than 16 primitives, a file of sketches.")],
    primitives: Annotated[str, typer.Option(help="Primitives of the original sketches.")] = "8..16",
    parts: Annotated[int, typer.Option(min=2, help="Parts to complete; fewer if the test split has fewer.")] = 500,
    count: Annotated[int, typer.Option(min=1, help="Suggestions for each.")] = 8,
    steps: Steps = 50,
    seed: Seed = 0,
    model: Model = "ours",
    device: Device = "auto",
    cache: SampleCache = None,
    sample_only: SampleOnly = False,
    out: Page = None,
) -> None:
    """Hide outlines, features and symmetric halves of test sketches, and look at what completion suggests."""
    from benchmarks.completion import CompletionTask, sample_completions, score_completions
    from benchmarks.completion_cases import find_cases, held_out_sketches
    from sketchdnn.generation.complete import MAX_ROUNDS
    from sketchdnn.generation.repair import available_cores
    from sketchdnn.geometry.quantities import parse_int_range
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    device = find_device(device)
    check_files(out, cache, sample_only)
    low, high = parse_int_range(primitives, "--primitives", "8..16")
    cases = find_cases(held_out_sketches(data, (low, high), seed), parts, seed)
    task = CompletionTask(tuple(cases), count, steps)
    system = from_pretrained(model, device)
    with stages() as on_stage:
        if sample_only:
            for number in range(MAX_ROUNDS):
                sample_completions(system, task, cache, on_stage, number)
            return
        result = score_completions(system, task, (low, high), cache=cache, workers=available_cores(), on_stage=on_stage)
    show(result, out, command_line(context, device=device))


def fit_order(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="A prepared corpus, or a file of sketches.")],
    primitives: Annotated[str, typer.Option(help="Primitives of the original sketches.")] = "3..16",
    parts: Annotated[int, typer.Option(min=10, help="Parts to complete.")] = 200,
    split: Annotated[str, typer.Option(help="Where the parts are from: train or validation.")] = "train",
    steps: Steps = 50,
    seed: Seed = 0,
    model: Model = "ours",
    device: Device = "auto",
    cache: SampleCache = None,
    out: Page = None,
) -> None:
    """Fit the weights of the order of suggestions on parts of real sketches; the package is not changed."""
    from benchmarks.results import check_output_file
    from benchmarks.suggestion_order import fit_order as fit
    from sketchdnn.data.config import SPLITS
    from sketchdnn.geometry.quantities import parse_int_range
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    device = find_device(device)
    numbers = parse_int_range(primitives, "--primitives", "3..16")
    if split not in SPLITS[:2]:
        raise SketchError(f"--split is {SPLITS[0]} or {SPLITS[1]}, not '{split}': the test split is for measurements")
    with stages() as on_stage:
        system = from_pretrained(model, device)
        result = fit(system, data, numbers, parts, steps=steps, seed=seed, split=split, cache=cache, on_stage=on_stage)
    show(result, out, command_line(context, device=device))


def design_score(
    context: typer.Context,
    data: Corpus,
    per_kind: Annotated[int, typer.Option(min=1, help="Sketches for each kind of corruption.")] = 200,
    fit: Annotated[bool, typer.Option("--fit", help="First fit the weights of the package anew.")] = False,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """How well the score of designs tells real sketches from corrupted ones, by kind of corruption."""
    from benchmarks.design_score import fit_weights, score_design_score, write_weights
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        if fit:
            write_weights(fit_weights(data, seed=seed, on_stage=on_stage))
        result = score_design_score(data, per_kind=per_kind, seed=seed, on_stage=on_stage)
    show(result, out, command_line(context, fit=False))


def memorization(
    context: typer.Context,
    data: Corpus,
    pairs: Annotated[
        list[str], typer.Option("--samples", help="A system and its raw samples, NAME=FILE; may be repeated.")
    ],
    reports: Annotated[
        Path | None, typer.Option(help="A folder of kept reports, for a second table.", show_default=False)
    ] = None,
    device: Device = "auto",
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Are samples nearer to training sketches than real test sketches are? With a picture of pairs beside the page."""
    from benchmarks.memorization import draw_pairs, measure_memorization
    from benchmarks.results import check_output_file, write_page
    from sketchdnn.systems.devices import find_device

    check_output_file(out)
    files = {}
    for text in pairs:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise SketchError(f"--samples takes a name and a file, such as ours=raw.jsonl, not '{text}'")
        files[name] = Path(path)
    device = find_device(device)
    with stages() as on_stage:
        result = measure_memorization(data, files, reports=reports, device=device, seed=seed, on_stage=on_stage)
    named = [f"{name}={path.name}" for name, path in files.items()]
    show(result, None, "")
    if out is not None:
        command = command_line(context, device=device, pairs=named)
        draw_pairs(result, out.parent, out.stem)
        write_page(out, result.markdown(command, f"{out.stem}.png"))


def failures(
    context: typer.Context,
    count: Annotated[int, typer.Option(min=1, help="Sketches to generate with each sampler.")] = 10_000,
    steps: Steps = 50,
    weight: Annotated[
        list[float] | None,
        typer.Option(help="A weight of the prediction; may be repeated.", show_default="1, 1.25, 1.5 and 2"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A prepared corpus; its test split is counted too.", show_default=False)
    ] = None,
    model: Model = "ours",
    device: Device = "auto",
    cache: SampleCache = None,
    sample_only: SampleOnly = False,
    out: Page = None,
) -> None:
    """Count the paper's failure cases: of a model, raw and repaired, and of the authors' sampler with weights."""
    from benchmarks.failures import WEIGHTS, count_failures, sample_for_failures
    from sketchdnn.generation.repair import available_cores
    from sketchdnn.systems import from_pretrained
    from sketchdnn.systems.devices import find_device

    device = find_device(device)
    check_files(out, cache, sample_only)
    if weight and not min(weight) > 0:
        raise SketchError(f"the weight of a prediction must be above zero, not {min(weight):g}")
    system = from_pretrained(model, device)
    with stages() as on_stage:
        samples, seconds = sample_for_failures(
            system, count=count, steps=steps, weights=weight or WEIGHTS, cache=cache, on_stage=on_stage
        )
        if sample_only:
            return
        result = count_failures(samples, seconds, steps, system, data, on_stage, workers=available_cores())
    show(result, out, command_line(context, device=device))


def constraints(
    context: typer.Context,
    data: SketchGraphsFile,
    count: Annotated[int, typer.Option(min=1, help="Sketches to jitter.")] = 1000,
    timed: Annotated[int, typer.Option(min=1, help="Sketches of 16 primitives to time.")] = 100,
    freecad: Annotated[bool, typer.Option(help="Also FreeCAD's autoconstraint on the same sketches.")] = True,
    out: Page = None,
) -> None:
    """Jitter real sketches and infer their constraints again, beside FreeCAD's own autoconstraint."""
    from benchmarks.constraints import measure_constraints
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = measure_constraints(data, count=count, timed=timed, freecad=freecad, on_stage=on_stage)
    show(result, out, command_line(context))


def constraint_speed(
    context: typer.Context,
    files: Annotated[
        Path | None, typer.Option(help="FreeCAD files whose constraints are inferred again.", show_default=False)
    ] = None,
    out: Page = None,
) -> None:
    """Time `constrain` on drawings of up to 4,000 lines, and count how many constraints of real files it infers."""
    from benchmarks.constraint_speed import measure_constraint_speed
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = measure_constraint_speed(files, on_stage=on_stage)
    show(result, out, command_line(context))


def drag(
    context: typer.Context,
    data: SketchGraphsFile,
    count: Annotated[int, typer.Option(min=1, help="Sketches of 16 primitives to drag.")] = 60,
    alternatives: Annotated[int, typer.Option(min=0, help="Sketches to constrain in several ways.")] = 200,
    freecad: Annotated[bool, typer.Option(help="Let FreeCAD solve the alternatives.")] = True,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Drag parts of real sketches, edit their dimensions, and constrain them in several ways."""
    from benchmarks.drag import measure_drags
    from benchmarks.results import check_output_file

    check_output_file(out)
    with stages() as on_stage:
        result = measure_drags(
            data, count=count, alternative_count=alternatives, freecad=freecad, seed=seed, on_stage=on_stage
        )
    show(result, out, command_line(context))


def repair(
    context: typer.Context,
    count: Annotated[int, typer.Option(min=1, help="Raw sketches to repair and measure.")] = 200,
    throughput_count: Annotated[int, typer.Option(min=1, help="Sketches to repair on all cores.")] = 10_000,
    against: Annotated[
        Path | None, typer.Option(file_okay=False, help="The folder src of another version, to compare its speed.")
    ] = None,
    model: Model = "ours",
    seed: Seed = 0,
    samples: RawSamples = None,
    out: Page = None,
) -> None:
    """Repair raw sketches of a model: which ends meet, which profiles close, how far points move, how long it takes."""
    from benchmarks.repair import measure_repair
    from benchmarks.results import check_output_file
    from benchmarks.samples import raw_sketches

    check_output_file(out)
    with stages("generating") as on_stage:
        sketches = raw_sketches(count, model=model, seed=seed, samples=samples)
        result = measure_repair(sketches, throughput_count=throughput_count, against=against, on_stage=on_stage)
    show(result, out, command_line(context))


def intent(
    context: typer.Context,
    data: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="A file of real sketches with their source.")],
    count: Annotated[int, typer.Option(min=1, help="Raw sketches to repair.")] = 400,
    real_count: Annotated[int, typer.Option(min=1, help="Real sketches of either group of sources.")] = 300,
    noise: Annotated[
        float, typer.Option(min=0, max=0.02, help="How far off points are, as a share of the size.")
    ] = 0.0007,
    model: Model = "ours",
    seed: Seed = 0,
    samples: RawSamples = None,
    out: Page = None,
) -> None:
    """Symmetry and pieces of raw sketches before and after repair; symmetry of real sketches with noise."""
    from benchmarks.intent import measure_intent
    from benchmarks.results import check_output_file
    from benchmarks.samples import raw_sketches

    check_output_file(out)
    with stages("generating") as on_stage:
        raw = raw_sketches(count, model=model, seed=seed, samples=samples)
        result = measure_intent(raw, data, count=real_count, noise=noise, seed=seed, on_stage=on_stage)
    show(result, out, command_line(context))


def rounding(
    context: typer.Context,
    data: Corpus,
    count: Annotated[int, typer.Option(min=1, help="Test sketches to round.")] = 300,
    noise: Annotated[
        float, typer.Option(min=0, max=0.02, help="How far off points are, as a share of the size.")
    ] = 0.002,
    freecad: Annotated[int, typer.Option(min=0, help="How many of them FreeCAD opens.")] = 50,
    seed: Seed = 0,
    out: Page = None,
) -> None:
    """Round the dimensions of real sketches with noise: what becomes round, what moves, and what FreeCAD shows."""
    from benchmarks.results import check_output_file
    from benchmarks.rounding import measure_rounding

    check_output_file(out)
    with stages() as on_stage:
        result = measure_rounding(data, count=count, noise=noise, freecad=freecad, seed=seed, on_stage=on_stage)
    show(result, out, command_line(context))


def solids(
    context: typer.Context,
    data: Corpus,
    count: Annotated[int, typer.Option(min=1, help="Sketches of each set.")] = 200,
    model: Model = "ours",
    seed: Seed = 0,
    samples: RawSamples = None,
    out: Page = None,
) -> None:
    """Open, solve and pad generated and real sketches in FreeCAD, raw and repaired."""
    from benchmarks.freecad import find_freecad, measure_solids
    from benchmarks.results import check_output_file
    from benchmarks.samples import raw_sketches, real_sketches

    check_output_file(out)
    find_freecad()
    real = real_sketches(data, count)
    with stages("generating") as on_stage:
        generated = raw_sketches(count, model=model, seed=seed, samples=samples)
        result = measure_solids(generated, real, on_stage)
    show(result, out, command_line(context))
