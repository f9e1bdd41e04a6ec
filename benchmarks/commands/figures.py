"""`python -m benchmarks figures`: the paper's figures and ours, drawn from computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.cli.progress import progress
from sketchdnn.cli.reading import report_reading
from sketchdnn.errors import SketchError, display_path
from sketchdnn.geometry import Sketch

if TYPE_CHECKING:
    from benchmarks.figures import Source

Out = Annotated[Path, typer.Option(help="Folder to write to; it is made if need be.")]
Steps = Annotated[int, typer.Option(min=2, help="T, the number of diffusion steps.")]
Smoothing = Annotated[float, typer.Option(help="k, the share of a label that smoothing leaves: between 0 and 1.")]
Seed = Annotated[int, typer.Option(min=0, help="Which random numbers.")]
Model = Annotated[str, typer.Option(help="A model folder, or the bundled one.")]
Denoising = Annotated[int, typer.Option(min=1, help="Denoising steps: fewer are quicker, more close gaps.")]

app = typer.Typer(help="Draw the paper's figures and ours.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the verb to the command line."""
    root.add_typer(app, name="figures", epilog="Example: python -m benchmarks figures schedule --out figures")


@app.command(epilog="Example: python -m benchmarks figures schedule --out figures")
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
    from benchmarks.figures import label_survival, write_schedule

    survival = label_survival(
        num_steps=steps, num_categories=categories, label_smoothing=smoothing, samples=samples, seed=seed
    )
    _say(write_schedule(out, survival))


@app.command(epilog="Example: python -m benchmarks figures simplex --out figures")
def simplex(
    out: Out,
    steps: Steps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=1, help="Points in each triangle.")] = 700,
    seed: Seed = 0,
) -> None:
    """A label dissolving on the triangle: samples of the Gaussian-Softmax distribution over t (PNG, SVG)."""
    _check(smoothing)
    from benchmarks.figures import label_clouds, write_simplex

    clouds = label_clouds(num_steps=steps, label_smoothing=smoothing, samples=samples, seed=seed)
    _say(write_simplex(out, clouds))


@app.command(epilog="Example: python -m benchmarks figures bias --out figures --samples 200")
def bias(
    out: Out,
    steps: Steps = 2000,
    smoothing: Smoothing = 0.99,
    samples: Annotated[int, typer.Option(min=2, help="Sketches of 16 labels to draw with each form.")] = 1000,
    seed: Seed = 0,
) -> None:
    """What the logits in the reverse mean do to labels, given a perfect denoiser (PNG, SVG, CSV). Takes minutes."""
    _check(smoothing)
    from benchmarks.figures import measure_bias, write_bias

    with progress(_console(), "drawing labels", total=3 * steps) as bar:
        measured = measure_bias(
            num_steps=steps,
            label_smoothing=smoothing,
            samples=samples,
            seed=seed,
            on_step=bar.advance,
        )
    _say(write_bias(out, measured))


@app.command(epilog="Example: python -m benchmarks figures teaser --out figures --seed 1")
def teaser(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=400, help="How many sketches.")] = 32,
    columns: Annotated[int, typer.Option(min=1, help="How many side by side.")] = 8,
    seed: Seed = 0,
    steps: Denoising = 50,
    model: Model = "ours",
) -> None:
    """Sketches of the model, the first of a seed: the paper's figure 1 (PNG, SVG)."""
    from benchmarks.figures import write_teaser

    _say(write_teaser(out, _drawn(model, count, seed, steps), columns=columns))


@app.command(epilog="Example: python -m benchmarks figures pipeline --out figures --count 2")
def pipeline(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=16, help="How many sketches.")] = 3,
    seed: Seed = 0,
    steps: Denoising = 50,
    model: Model = "ours",
) -> None:
    """Noise becoming sketches, with what the network predicts on the way: the paper's figure 3 (PNG, SVG)."""
    from benchmarks.figures import watch, write_pipeline
    from sketchdnn.diffusion.sampling import SamplingOptions
    from sketchdnn.systems import from_pretrained

    system = from_pretrained(model)
    system.resolve(SamplingOptions(steps=steps))
    with _progress("drawing") as on_progress:
        walk = watch(system, count=count, seed=seed, steps=steps, on_progress=on_progress)
    _say(write_pipeline(out, walk))


@app.command(epilog="Example: python -m benchmarks figures comparison --data corpus --model ours=ours --out figures")
def comparison(
    out: Out,
    data: Annotated[Path | None, typer.Option(help="A prepared corpus, whose test split comes first.")] = None,
    samples: Annotated[list[str] | None, typer.Option(help="NAME=FILE: sketches of a system. Can be repeated.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="NAME=MODEL to draw with. Can be repeated.")] = None,
    count: Annotated[int, typer.Option(min=1, max=200, help="Sketches of each.")] = 16,
    columns: Annotated[int, typer.Option(min=1, help="How many side by side.")] = 8,
    seed: Seed = 0,
    steps: Denoising = 50,
) -> None:
    """Data above, systems below, none of them chosen by hand: the paper's figure 4 (PNG, SVG)."""
    files = [_named(words, "--samples NAME=FILE") for words in samples or []]
    models = [_named(words, "--model NAME=MODEL") for words in model or []]
    if (data is not None) + len(files) + len(models) < 2:
        raise SketchError("a comparison needs two of --data, --samples and --model at least")
    from benchmarks.figures import Source, random_sample, write_comparison_figure

    sources = [] if data is None else [_of_corpus(data, count, seed)]
    sources += [Source(name, random_sample(_read(Path(file)), count, seed)) for name, file in files]
    sources += [Source(name, _drawn(place, count, seed, steps)) for name, place in models]
    _say(write_comparison_figure(out, sources, columns=columns))


@app.command(epilog="Example: python -m benchmarks figures failures --out figures --count 128")
def failures(
    out: Out,
    count: Annotated[int, typer.Option(min=1, max=100_000, help="How many samples to look through.")] = 48,
    each: Annotated[int, typer.Option(min=1, max=12, help="How many of the worst to show of each kind.")] = 4,
    seed: Seed = 0,
    steps: Denoising = 50,
    model: Model = "ours",
) -> None:
    """The worst of the model's sketches, by what is wrong with them: the paper's figure 5 (PNG, SVG)."""
    from benchmarks.figures import find_failures, write_failures

    _say(write_failures(out, find_failures(_drawn(model, count, seed, steps), each=each)))


@app.command(epilog="Example: python -m benchmarks figures turing-test --data corpus --out turing")
def turing_test(
    out: Out,
    data: Annotated[Path, typer.Option(help="A prepared corpus, where the real sketches are.", show_default=False)],
    samples: Annotated[
        Path | None, typer.Option(help="A file of drawn sketches, instead of drawing some.", show_default=False)
    ] = None,
    model: Model = "ours",
    split: Annotated[str, typer.Option(help="Of which split the real sketches are.")] = "test",
    count: Annotated[int, typer.Option(min=1, max=400, help="Sketches of each.")] = 64,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the drawn ones, as generate does.")] = False,
    mixed: Annotated[bool, typer.Option("--mixed", help="One sheet of both, its cells numbered.")] = False,
    seed: Seed = 0,
    steps: Denoising = 50,
) -> None:
    """Real sketches and drawn ones, for people to tell apart: two sheets a and b (PNG, SVG), and the answer in a file.

    Sketches are chosen by lot, which the seed decides; which sheet is real, it does not.
    """
    from benchmarks.figures import choose, write_guess, write_mixed_guess

    corpus = _of_corpus(data, count, seed, split)
    real = choose(replace(corpus, name=f"real, the {split} split of {display_path(data)}"), count, seed)
    drawn = _to_judge(samples, model, count, seed, steps, repair)
    _say((write_mixed_guess if mixed else write_guess)(out, real, drawn))


def _to_judge(samples: Path | None, model: str, count: int, seed: int, steps: int, repair: bool) -> Source:
    """Drawn sketches, from a file or by a model, with words on how they came about."""
    from benchmarks.figures import Source, choose

    mended = ", repaired" if repair else ""
    if samples is None:
        words = f"drawn by {display_path(model)} in {steps} steps from seed {seed}{mended}"
        return Source(words, _drawn(model, count, seed, steps, repair=repair))
    found = choose(Source(f"drawn, {display_path(samples)}{mended}", _read(samples)), count, seed)
    if not repair:
        return found
    from sketchdnn.generation.repair import repair_sketches

    with _progress("repairing") as on_progress:
        repaired = repair_sketches(found.sketches, on_progress=on_progress)
        return replace(found, sketches=[each.sketch for each in repaired])


def _drawn(model: str, count: int, seed: int, steps: int, *, repair: bool = False) -> list[Sketch]:
    """Sketches of a model, those that `generate` draws."""
    from sketchdnn.generation import GenerateRequest, stream
    from sketchdnn.systems import from_pretrained

    system = from_pretrained(model)
    with _progress("drawing") as on_progress:
        request = GenerateRequest(count=count, seed=seed, steps=steps, repair=repair)
        drawings = stream(system, request, lambda done: on_progress(done / count))
        return [drawing.sketch for drawing in drawings]


def _of_corpus(folder: Path, count: int, seed: int, name: str = "test") -> Source:
    import numpy as np

    from benchmarks.figures import Source, random_sample
    from sketchdnn.data.loader import Dataset
    from sketchdnn.representation import decode_compact

    split = Dataset.open(folder).split(name)
    index = np.array(random_sample(range(len(split)), count, seed), dtype=np.int64)
    return Source("data", [decoded.sketch for decoded in decode_compact(split.compact[index])])


def _read(path: Path) -> list[Sketch]:
    """The sketches of a file; what could not be read of it is said."""
    from sketchdnn.formats import read

    reading = read(path)
    report_reading(_console(), reading.skipped, reading.notes, f"{display_path(path)}: left out")
    sketches = [sketch for sketch in reading.sketches if len(sketch)]
    if not sketches:
        raise SketchError(f"{display_path(path)}: there are no sketches in it")
    return sketches


def _named(words: str, form: str) -> tuple[str, str]:
    name, equals, rest = words.partition("=")
    if not (equals and name.strip() and rest.strip()):
        raise SketchError(f"'{words}' is not of the form {form}")
    return name.strip(), rest.strip()


@contextmanager
def _progress(words: str) -> Iterator[Callable[[float], None]]:
    """Progress, and what is to be called with the share done."""
    with progress(_console(), words, total=1.0) as bar:
        yield bar.update


def _check(smoothing: float) -> None:
    if not 0 < smoothing < 1:
        raise typer.BadParameter(f"--smoothing must lie between 0 and 1, not {smoothing}")


def _say(paths: list[Path]) -> None:
    for path in paths:
        _console().print(display_path(path))


def _console() -> Console:
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
