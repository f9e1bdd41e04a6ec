"""`sketchdnn evaluate`: score sketches against a corpus in one report, or compare several systems in one table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sketchdnn.errors import SketchError, display_path
from sketchdnn.io import exclusive_run, remove_abandoned

from .console import stderr_console
from .options import Device, SamplerName, path_option
from .progress import progress

EPILOG = """Example: sketchdnn evaluate --model ours --data corpus --out report

sketchdnn evaluate --samples drawn.jsonl --data corpus --out report --fast

sketchdnn evaluate --compare ours other/model drawn.jsonl --data corpus --out comparison"""


def evaluate(
    data: Annotated[Path, path_option(help="A corpus made by `sketchdnn prepare`.")],
    out: Annotated[Path, path_option(help="Folder for the report.")],
    systems: Annotated[
        list[str] | None, Argument(metavar="[SYSTEM]...", help="With --compare: models, files, reports.")
    ] = None,
    model: Annotated[str | None, Option(help="A model: a folder, or a bundled one.")] = None,
    samples: Annotated[Path | None, path_option(help="Sketches: a file, folder or archive.")] = None,
    compare: Annotated[bool, Option("--compare", help="Compare several systems.")] = False,
    count: Annotated[int | None, Option(help="How many to draw, or to read at most; by default 10,000.")] = None,
    seed: Annotated[int, Option(help="Seed of the drawn sketches.")] = 0,
    steps: Annotated[int, Option(help="Number of denoising steps.")] = 50,
    sampler: SamplerName = None,
    split: Annotated[str, Option(help="Real sketches to compare with: test, or validation to select models.")] = "test",
    fast: Annotated[bool, Option("--fast", help="500 samples and references, few likelihoods.")] = False,
    likelihood: Annotated[bool, Option(help="Bits of the real sketches under a model.")] = True,
    corruption: Annotated[bool | None, Option(help="Score damaged sketches; by default unless --fast.")] = None,
    repaired: Annotated[bool | None, Option(help="Score repaired samples too; by default unless --fast.")] = None,
    inception: Annotated[Path | None, path_option(help="A file of the FID Inception, if not installed.")] = None,
    device: Device = "auto",
    cache: Annotated[Path | None, path_option(help="For features of the corpus; by default in ~/.cache.")] = None,
    save_samples: Annotated[bool, Option(help="Save the drawn sketches as samples.jsonl.")] = True,
) -> None:
    """Score sketches against real ones: FID, KID, precision and recall, likelihood, validity and novelty."""
    names = _system_names(systems, model, samples, compare)
    from sketchdnn.evaluation.comparison import compare_and_write
    from sketchdnn.evaluation.evaluate import EvaluationRequest, Evaluator
    from sketchdnn.evaluation.protocol import make_settings
    from sketchdnn.evaluation.report import headline
    from sketchdnn.generation.repair import available_cores

    repaired = not fast if repaired is None else repaired
    options = {"count": count, "likelihood": likelihood, "corruption": corruption, "repaired": repaired, "split": split}
    settings = make_settings(fast=fast, **options)
    command = display_path(shlex.join(["sketchdnn", *sys.argv[1:]]))
    request = EvaluationRequest(
        data, settings, seed, steps, sampler, inception, device, cache, save_samples, command, workers=available_cores()
    )
    if out.resolve() == data.resolve():
        raise SketchError(
            f"--out {display_path(out)} is the corpus, whose report would be overwritten; name another folder"
        )
    console = stderr_console()
    with progress(console, "starting", total=1.0) as bar, exclusive_run(out):
        remove_abandoned(out)
        evaluator = Evaluator(request, on_stage=lambda name, share: bar.update(share, doing=name))
        if evaluator.device == "cpu":
            console.print(
                f"on the CPU, the features of up to {evaluator.num_images:,} images take about "
                f"{max(1, round(evaluator.minutes))} minutes; those of the corpus are cached. --fast gives a first idea"
            )
        if compare:
            written = compare_and_write(evaluator, names, out)
        else:
            console.print(headline(evaluator.evaluate(names[0], out, is_model=model is not None).report))
            written = [out / name for name in ("report.html", "report.md", "report.json")]
    console.print(*map(display_path, written), sep="\n")


def _system_names(systems: list[str] | None, model: str | None, samples: Path | None, compare: bool) -> list[str]:
    """The systems to evaluate: one model, one set of samples, or several of any kind to compare."""
    options, names = [str(option) for option in (model, samples) if option is not None], list(systems or ())
    if compare and options:
        raise SketchError("--compare takes models, sample files and reports alike: name them after it, without --model")
    if compare and len(names) < 2:
        raise SketchError("--compare needs two systems at least: models, sample files or folders of reports")
    if names and not compare:
        raise SketchError(f"what is {names[0]}? Name one system with --model or --samples, or several after --compare")
    if not compare and len(options) != 1:
        raise SketchError("name a system to evaluate: either --model or --samples, one of them")
    return names or options
