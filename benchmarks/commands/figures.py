"""`python -m benchmarks figures`: the paper's figures and ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.cli.console import report_reading
from sketchdnn.cli.progress import progress
from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Sketch

from . import Model, Seed, Steps

if TYPE_CHECKING:
    from benchmarks.figures import Source

Out = Annotated[Path, typer.Option(help="The folder to write to.")]
DiffusionSteps = Annotated[int, typer.Option(min=2, help="T, the number of diffusion steps.")]
Smoothing = Annotated[float, typer.Option(help="k, the share of a label that smoothing leaves: between 0 and 1.")]
_REPORTS, _PAGES = Path("benchmarks/reports/reproduction"), Path("docs/results")

app = typer.Typer(help="Draw the paper's figures and ours.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the commands to the command line."""
    root.add_typer(app, name="figures", epilog="Example: python -m benchmarks figures schedule --out figures")


@app.command(epilog="Example: python -m benchmarks figures schedule --out figures")
def schedule(
    out: Out,
    steps: DiffusionSteps = 2000,
    categories: Annotated[int, typer.Option(min=2, max=1000, help="D, the number of labels.")] = 5,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=1, help="Monte Carlo samples.")] = 100_000,
    seed: Seed = 0,
) -> None:
    """Survival of a label under the raw and the augmented schedule: the paper's figure 2 (PNG, SVG, CSV)."""
    _check_smoothing(smoothing)
    from benchmarks.figures import label_survival, write_schedule

    survival = label_survival(
        num_steps=steps, num_categories=categories, label_smoothing=smoothing, samples=samples, seed=seed
    )
    _print_paths(write_schedule(out, survival))


@app.command(epilog="Example: python -m benchmarks figures simplex --out figures")
def simplex(
    out: Out,
    steps: DiffusionSteps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=1, help="Points in each triangle.")] = 700,
    seed: Seed = 0,
) -> None:
    """Samples of the Gaussian-Softmax distribution on the simplex over t (PNG, SVG)."""
    _check_smoothing(smoothing)
    from benchmarks.figures import sample_labels, write_simplex

    rows = sample_labels(num_steps=steps, label_smoothing=smoothing, samples=samples, seed=seed)
    _print_paths(write_simplex(out, rows))


@app.command(epilog="Example: python -m benchmarks figures bias --out figures --samples 200")
def bias(
    out: Out,
    steps: DiffusionSteps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=2, help="Sketches of 16 labels per choice of logits.")] = 1000,
    seed: Seed = 0,
) -> None:
    """Bias of labels by the logits in the reverse mean, with a perfect denoiser (PNG, SVG, CSV). Takes minutes."""
    _check_smoothing(smoothing)
    from benchmarks.figures import measure_bias, write_bias

    with progress(_console(), "sampling labels", total=3 * steps) as bar:
        biases = measure_bias(
            num_steps=steps,
            label_smoothing=smoothing,
            samples=samples,
            seed=seed,
            on_step=bar.advance,
        )
    _print_paths(write_bias(out, biases))


@app.command(epilog="Example: python -m benchmarks figures teaser --out figures --seed 1")
def teaser(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=400, help="Number of sketches.")] = 32,
    columns: Annotated[int, typer.Option(min=1, help="Number of columns.")] = 8,
    seed: Seed = 0,
    steps: Steps = 50,
    model: Model = "ours",
) -> None:
    """The first sketches of a seed: the paper's figure 1 (PNG, SVG)."""
    from benchmarks.figures import write_teaser

    _print_paths(write_teaser(out, _generate(model, count, seed, steps), columns=columns))


@app.command(epilog="Example: python -m benchmarks figures pipeline --out figures --count 2")
def pipeline(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=16, help="Number of sketches.")] = 3,
    seed: Seed = 0,
    steps: Steps = 50,
    model: Model = "ours",
) -> None:
    """Denoising from noise to sketches, with the predictions: the paper's figure 3 (PNG, SVG)."""
    from benchmarks.figures import record_denoising, write_pipeline
    from sketchdnn.diffusion.sampling import SamplingOptions
    from sketchdnn.systems import from_pretrained

    system = from_pretrained(model)
    system.resolve(SamplingOptions(steps=steps))
    with _progress("sampling") as on_progress:
        denoising = record_denoising(system, count=count, seed=seed, steps=steps, on_progress=on_progress)
    _print_paths(write_pipeline(out, denoising))


@app.command(epilog="Example: python -m benchmarks figures comparison --data corpus --model ours=ours --out figures")
def comparison(
    out: Out,
    data: Annotated[Path | None, typer.Option(help="A prepared corpus; its test split comes first.")] = None,
    samples: Annotated[list[str] | None, typer.Option(help="NAME=FILE: sketches of a system; may be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="NAME=MODEL: a model to sample; may be repeated.")] = None,
    count: Annotated[int, typer.Option(min=1, max=200, help="Sketches of each source.")] = 16,
    columns: Annotated[int, typer.Option(min=1, help="Number of columns.")] = 8,
    seed: Seed = 0,
    steps: Steps = 50,
) -> None:
    """Random sketches of the data and of systems: the paper's figure 4 (PNG, SVG)."""
    files = [_parse_named(text, "--samples NAME=FILE") for text in samples or []]
    models = [_parse_named(text, "--model NAME=MODEL") for text in model or []]
    if (data is not None) + len(files) + len(models) < 2:
        raise SketchError("a comparison needs at least two of --data, --samples and --model")
    from benchmarks.figures import Source, random_sample, write_comparison_figure

    sources = [] if data is None else [_sample_corpus(data, count, seed)]
    sources += [Source(name, random_sample(_read_sketches(Path(file)), count, seed)) for name, file in files]
    sources += [Source(name, _generate(location, count, seed, steps)) for name, location in models]
    _print_paths(write_comparison_figure(out, sources, columns=columns))


@app.command(epilog="Example: python -m benchmarks figures failures --out figures --count 128")
def failures(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Number of samples to search.")] = 48,
    each: Annotated[int, typer.Option(min=1, max=12, help="Number of the worst to show per failure mode.")] = 4,
    seed: Seed = 0,
    steps: Steps = 50,
    model: Model = "ours",
) -> None:
    """The worst sketches of the model by failure mode: the paper's figure 5 (PNG, SVG)."""
    from benchmarks.figures import find_failures, write_failures

    _print_paths(write_failures(out, find_failures(_generate(model, count, seed, steps), each=each)))


@app.command(epilog="Example: python -m benchmarks figures turing-test --data corpus --out turing")
def turing_test(
    out: Out,
    data: Annotated[Path, typer.Option(help="A prepared corpus with the real sketches.", show_default=False)],
    samples: Annotated[Path | None, typer.Option(help="A file of generated sketches.", show_default=False)] = None,
    model: Model = "ours",
    split: Annotated[str, typer.Option(help="The split of the real sketches.")] = "test",
    count: Annotated[int, typer.Option(min=1, max=400, help="Sketches of each source.")] = 64,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the generated sketches.")] = False,
    mixed: Annotated[bool, typer.Option("--mixed", help="One sheet of both, with numbered cells.")] = False,
    seed: Seed = 0,
    steps: Steps = 50,
) -> None:
    """Real and generated sketches for people to tell apart: two sheets a and b (PNG, SVG), and a file with the answer.

    The seed determines the sketches, but not which sheet is real.
    """
    from benchmarks.figures import sample_source, write_mixed_turing_test, write_turing_test

    corpus = _sample_corpus(data, count, seed, split)
    real = sample_source(replace(corpus, name=f"real, the {split} split of {display_path(data)}"), count, seed)
    generated = _generated_source(samples, model, count, seed, steps, repair)
    _print_paths((write_mixed_turing_test if mixed else write_turing_test)(out, real, generated))


@app.command(epilog="Example: python -m benchmarks figures results --out docs/results/plots")
def results(
    out: Out,
    reports: Annotated[Path, typer.Option(help="The reports of the six systems.")] = _REPORTS,
    pages: Annotated[Path, typer.Option(help="The folder of the result pages, whose tables are drawn.")] = _PAGES,
) -> None:
    """The plots of docs/results/index.md, from kept reports and tables (PNG, SVG); nothing is measured."""
    from benchmarks.figures.results import write_results

    _print_paths(write_results(reports, pages, out))


@app.command(epilog="Example: python -m benchmarks figures studio --out docs/figures/studio")
def studio(out: Out) -> None:
    """Screenshots of every view of the studio, in light and dark, on a desktop and on a phone (PNG); needs Chromium."""
    from benchmarks.figures.studio import write_studio

    for path in write_studio(out):
        _print_paths([path])


@app.command(epilog="Example: python -m benchmarks figures tutorial --out docs/tutorials/outline_to_part")
def tutorial(out: Out) -> None:
    """The pictures of the tutorial from an outline to a part; needs Chromium, FreeCAD and Xvfb."""
    from benchmarks.figures.tutorial import write_tutorial

    paths, part = write_tutorial(out)
    _print_paths(paths)
    _console().print(f"{len(part.sketch)} primitives; FreeCAD: solve {part.solve}, {part.volume:.0f} mm³")


def _generated_source(samples: Path | None, model: str, count: int, seed: int, steps: int, repair: bool) -> Source:
    """Generated sketches, from a file or of a model, with a description of their origin."""
    from benchmarks.figures import Source, sample_source

    suffix = ", repaired" if repair else ""
    if samples is None:
        name = f"generated by {display_path(model)} in {steps} steps from seed {seed}{suffix}"
        return Source(name, _generate(model, count, seed, steps, repair=repair))
    source = sample_source(Source(f"generated, {display_path(samples)}{suffix}", _read_sketches(samples)), count, seed)
    if not repair:
        return source
    from sketchdnn.generation.repair import repair_sketches

    with _progress("repairing") as on_progress:
        repaired = repair_sketches(source.sketches, on_progress=on_progress)
        return replace(source, sketches=[result.sketch for result in repaired])


def _generate(model: str, count: int, seed: int, steps: int, *, repair: bool = False) -> list[Sketch]:
    """Sketches of a model, the same as those of `generate`."""
    from sketchdnn.generation import GenerateRequest, stream
    from sketchdnn.systems import from_pretrained

    system = from_pretrained(model)
    with _progress("generating") as on_progress:
        request = GenerateRequest(count=count, seed=seed, steps=steps, repair=repair)
        drawings = stream(system, request, lambda done: on_progress(done / count))
        return [drawing.sketch for drawing in drawings]


def _sample_corpus(folder: Path, count: int, seed: int, name: str = "test") -> Source:
    import numpy as np

    from benchmarks.figures import Source, random_sample
    from sketchdnn.data.loader import Dataset
    from sketchdnn.representation import decode_compact

    split = Dataset.open(folder).split(name)
    index = np.array(random_sample(range(len(split)), count, seed), dtype=np.int64)
    return Source("data", [decoded.sketch for decoded in decode_compact(split.compact[index])])


def _read_sketches(path: Path) -> list[Sketch]:
    """The sketches of a file. Prints the items that could not be read."""
    from sketchdnn.formats import read

    reading = read(path)
    report_reading(_console(), reading.skipped, reading.notes, f"{display_path(path)}: left out")
    sketches = [sketch for sketch in reading.sketches if len(sketch)]
    if not sketches:
        raise SketchError(f"{display_path(path)}: holds no sketches")
    return sketches


def _parse_named(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise SketchError(f"'{text}' is not of the form {form}")
    return name.strip(), value.strip()


@contextmanager
def _progress(doing: str) -> Iterator[Callable[[float], None]]:
    """Shows progress; yields the callback for the share done."""
    with progress(_console(), doing, total=1.0) as bar:
        yield bar.update


def _check_smoothing(smoothing: float) -> None:
    if not 0 < smoothing < 1:
        raise typer.BadParameter(f"--smoothing must lie between 0 and 1, not {smoothing}")


def _print_paths(paths: list[Path]) -> None:
    for path in paths:
        _console().print(display_path(path))


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
