"""`sketchdnn evaluate`: sketches against a corpus, in one report; or several systems in one table."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.errors import SketchError, display_path
from sketchdnn.io import exclusive_run, remove_abandoned

from .progress import progress

if TYPE_CHECKING:
    from sketchdnn.evaluation.run import Run

EXAMPLES = (
    "Example: sketchdnn evaluate --model ours --data corpus --out report",
    "sketchdnn evaluate --samples drawn.jsonl --data corpus --out report --fast",
    "sketchdnn evaluate --compare ours other/model drawn.jsonl --data corpus --out comparison",
)

# Sketches of each system in the figure.
SHOWN = 16


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command(epilog="\n\n".join(EXAMPLES))(evaluate)


def evaluate(
    data: Annotated[
        Path, typer.Option(help="A corpus that `sketchdnn prepare` made.", show_default=False, readable=False)
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the report; it is made if need be.", show_default=False, readable=False)
    ],
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SYSTEM]...", help="With --compare: models, sample files or reports.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Judge a model: a folder, or a bundled one.", show_default=False)
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option(help="Judge sketches: a file, folder or archive.", show_default=False, readable=False),
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Judge several systems, side by side.")] = False,
    count: Annotated[
        int | None, typer.Option(help="How many sketches to draw, or to read at most.", show_default="10,000")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which sketches are drawn.")] = 0,
    steps: Annotated[int, typer.Option(help="Denoising steps.")] = 50,
    sampler: Annotated[
        str | None,
        typer.Option(
            help="restart, predictor_corrector, ancestral, ddim, dpm++ or authors.", show_default="the model's own"
        ),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Real sketches to compare with: validation while you choose, test at the end.")
    ] = "test",
    fast: Annotated[
        bool, typer.Option("--fast", help="500 samples, 500 references, few likelihoods; the report says so.")
    ] = False,
    likelihood: Annotated[
        bool, typer.Option("--likelihood/--no-likelihood", help="Bits of the real sketches under a model.")
    ] = True,
    corruption: Annotated[
        bool | None,
        typer.Option(
            "--corruption/--no-corruption",
            help="Show that scores get worse with damage to real sketches.",
            show_default="yes, unless --fast",
        ),
    ] = None,
    repaired: Annotated[
        bool | None,
        typer.Option(
            "--repaired/--no-repaired",
            help="Score the same sketches after repair too, beside them.",
            show_default="yes, unless --fast",
        ),
    ] = None,
    inception: Annotated[
        Path | None,
        typer.Option(help="The FID Inception as a TorchScript file.", show_default="the one installed", readable=False),
    ] = None,
    device: Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")] = "auto",
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for features of the corpus.", show_default="~/.cache/sketchdnn", readable=False),
    ] = None,
    save_samples: Annotated[
        bool, typer.Option("--save-samples/--no-save-samples", help="Keep the sketches drawn as samples.jsonl.")
    ] = True,
) -> None:
    """Judge sketches against real ones: FID, KID, precision and recall, likelihood, validity and novelty."""
    named = _systems(systems, model, samples, compare)
    from sketchdnn.evaluation.run import Request, Run, settings_from
    from sketchdnn.evaluation.sections import headline
    from sketchdnn.generation.repair import available_cores

    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    request = Request(
        data=data,
        settings=settings_from(
            fast=fast,
            count=count,
            likelihood=likelihood,
            corruption=corruption,
            repaired=not fast if repaired is None else repaired,
            split=split,
        ),
        seed=seed,
        steps=steps,
        sampler=sampler,
        inception=inception,
        device=device,
        cache=cache,
        save_samples=save_samples,
        command=display_path(shlex.join(["sketchdnn", *sys.argv[1:]])),
        workers=available_cores(),
    )
    if out.resolve() == data.resolve():
        raise SketchError(
            f"--out {display_path(out)} is the corpus, whose report would be overwritten; name another folder"
        )
    with progress(console, "starting", total=1.0) as bar, exclusive_run(out):
        remove_abandoned(out)
        run = Run(request, on_stage=lambda name, share: bar.update(share, doing=name))
        if run.device == "cpu":
            console.print(
                f"on the CPU, the features of up to {run.pictures:,} pictures take some {max(1, round(run.minutes))} "
                "minutes; those of the corpus are kept for the next time. --fast gives a first idea"
            )
        if compare:
            written = _compare(run, named, out)
        else:
            report = run.measure(named[0], out, is_model=model is not None).report
            console.print(headline(report))
            written = [out / name for name in ("report.html", "report.md", "report.json")]
    for path in written:
        console.print(display_path(path))


def _systems(systems: list[str] | None, model: str | None, samples: Path | None, compare: bool) -> list[str]:
    """What is to be judged: one model, one set of samples, or several of any kind to compare."""
    given = [str(one) for one in (model, samples) if one is not None]
    named = list(systems or ())
    if compare:
        if given:
            raise SketchError(
                "--compare takes models, sample files and reports alike: name them after it, without --model"
            )
        if len(named) < 2:
            raise SketchError("--compare needs two systems at least: models, sample files or folders of reports")
        return named
    if named:
        raise SketchError(f"what is {named[0]}? Name one system with --model or --samples, or several after --compare")
    if len(given) != 1:
        raise SketchError("name what is to be judged: either --model or --samples, one of them")
    return given


def _compare(run: Run, named: list[str], out: Path) -> list[Path]:
    """Measure what has no report yet, each in a folder of its own, and put all in one table and one figure."""
    from sketchdnn.evaluation.compare import compare_systems, write_tables
    from sketchdnn.evaluation.comparison import Source, by_lot, write_comparison

    compared = compare_systems(run, named, out)
    written = write_tables(out, {name: one.report for name, one in compared.items()})
    sources = [Source("data", by_lot(run.real_sketches(), SHOWN, seed=0))]
    sources += [Source(name, one.sketches[:SHOWN]) for name, one in compared.items() if one.sketches]
    return written + write_comparison(out, sources) if len(sources) > 1 else written
