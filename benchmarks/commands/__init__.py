"""The command line of the benchmarks: options that commands share, and how a command shows its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.errors import SketchError, display_path

if TYPE_CHECKING:
    from benchmarks.results import BenchmarkResult

Corpus = Annotated[Path, typer.Option(help="A prepared corpus (`sketchdnn prepare`).", show_default=False)]
SketchGraphsFile = Annotated[Path, typer.Option(help="A SketchGraphs file.", show_default=False, readable=False)]
Device = Annotated[str, typer.Option(help="auto (a GPU where there is one), cpu, cuda, cuda:1, …")]
Model = Annotated[str, typer.Option(help="A model folder, a bundled model, or hub:OWNER/NAME.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")]
Steps = Annotated[int, typer.Option(min=1, help="Denoising steps.")]
Repeats = Annotated[int, typer.Option(min=1, help="Rounds, of which the fastest counts.")]
Inception = Annotated[
    Path | None,
    typer.Option(help="The FID Inception as a TorchScript file.", show_default="the installed one", readable=False),
]
Page = Annotated[Path | None, typer.Option(help="Also write the result as Markdown.", show_default=False)]
SampleCache = Annotated[
    Path | None, typer.Option(help="Store the samples in this file, or read them from it.", show_default=False)
]
SampleOnly = Annotated[bool, typer.Option("--sample-only", help="Stop after sampling; score elsewhere.")]
RawSamples = Annotated[
    Path | None,
    typer.Option(help="A file or folder of `sketchdnn generate --no-repair`.", show_default="generated now"),
]

# Options that say where files are, not what is measured.
_NOT_SHOWN = {"out", "cache", "workers", "sample_only", "samples"}


def command_line(context: typer.Context, **resolved: object) -> str:
    """The command that gives the same result, for its page.

    Args:
        context: The context of the running command.
        resolved: Values that replace those of the command line, such as the device that `auto` chose.
    """
    words = [f"python -m benchmarks {context.info_name}"]
    for option in context.command.params:
        value = resolved.get(option.name or "", context.params.get(option.name or ""))
        if option.name in _NOT_SHOWN or value is None or (option.name == "model" and value == "ours"):
            continue
        if isinstance(value, bool):
            words += [(option.opts if value else option.secondary_opts)[0]] if value != option.default else []
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            shown = one.name if isinstance(one, Path) else f"{one:g}" if isinstance(one, float) else str(one)
            words += [option.opts[0], display_path(shown) if option.name == "model" else shown]
    return " ".join(words)


def show(result: BenchmarkResult, out: Path | None, command: str) -> None:
    """Print the table and the sentences, and write the page if one is wanted."""
    from benchmarks.results import write_page

    console = Console()
    console.print(result.table())
    for sentence in result.sentences():
        console.print(sentence)
    if out is not None:
        write_page(out, result.markdown(command))


def check_files(out: Path | None, cache: Path | None, sample_only: bool) -> None:
    """Raises SketchError if a file to write is a folder, or if samples alone are wanted and have no file."""
    from benchmarks.results import check_output_file

    check_output_file(out)
    check_output_file(cache)
    if sample_only and cache is None:
        raise SketchError("--sample-only stores the samples for later: name a file for them with --cache")
