"""The parts of a command that writes a gallery (`generate`, `complete`).

These are the common options, reading of the input sketch, the run with its progress bar, and the printed summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sketchdnn.errors import FormatError, display_path
from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions, read
from sketchdnn.geometry import Sketch

from .console import report_reading
from .progress import progress
from .signals import INTERRUPTED

if TYPE_CHECKING:
    from sketchdnn.generation import CompleteRequest, GenerateRequest, OutputOptions, OutputSummary

    Request = GenerateRequest | CompleteRequest

FORMATS = "json,svg,dxf,fcstd"
_MAX_REASONS = 5

Out = Annotated[Path, typer.Option(help="Output folder; the sketches of an earlier run in it are replaced.")]
Formats = Annotated[str, typer.Option(help="File formats to write for each sketch, separated by commas.")]
Model = Annotated[str, typer.Option(help="Folder of a model, or the name of the bundled model.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace files in --out that were changed, or that no earlier run wrote.")
]


def read_sketches(path: Path, console: Console, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Sequence[Sketch]:
    """Return the sketches of a file or folder, and print which entities could not be read."""
    reading = read(path, options)
    report_reading(console, reading.skipped, reading.notes, f"{display_path(path)}: left out")
    if not reading.sketches:
        raise FormatError(path, "holds no sketch that can be read")
    return reading.sketches


def read_one_sketch(file: Path, console: Console, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Sketch:
    """Return the only sketch of a file, and print which entities could not be read."""
    sketches = read_sketches(file, console, options)
    if len(sketches) > 1:
        raise FormatError(file, f"holds {len(sketches):,} sketches, and one is wanted; split it with convert")
    return sketches[0]


def write_gallery(
    console: Console, request: Request, options: OutputOptions, source: Path | None, *, model: str, **loading: Any
) -> OutputSummary:
    """Load the model and write a gallery, with progress. On Ctrl-C, print where the finished sketches are, and exit.

    `source` is the file of the initial sketch or of the part, `loading` options of `SketchDNN.from_pretrained`.
    """
    from sketchdnn.generation import SketchDNN

    share, name = options.share, display_path(options.folder)
    loaded = SketchDNN.from_pretrained(model, local_rank=share.local_rank, **loading)
    activity = "drawing" if request.stem == "sketch" else "completing"
    try:
        with progress(console, activity, len(share.select(request.indices))) as bar:
            return loaded.write_gallery(request, options, source, bar.update)
    except KeyboardInterrupt:
        # A run of several processes writes no manifest if it is stopped.
        listed = ", and manifest.json lists it" if (options.folder / "manifest.json").is_file() else ""
        console.print(f"{name}: stopped; what was drawn by then is there{listed}")
        raise typer.Exit(INTERRUPTED) from None


def print_summary(console: Console, options: OutputOptions, what: str, look: str, summary: OutputSummary) -> None:
    """Print what was written where, and how many sketches do not meet the conditions."""
    out, formats = display_path(options.folder), ", ".join(options.formats)
    console.print(f"{out}: {what} as {formats}; {look} (drawn in {summary.seconds['drawing']:.1f} s)")
    if summary.removed:
        console.print(f"{summary.removed:,} files of an earlier run there were removed")
    if summary.few:
        console.print(f"{summary.few:,} of them are the best of fewer than --best-of; see manifest.json")
    reasons = summary.unrepaired.most_common()
    for reason, number in reasons[:_MAX_REASONS]:
        console.print(f"{number:,} of them {'was' if number == 1 else 'were'} {reason}")
    if more := sum(number for _, number in reasons[_MAX_REASONS:]):
        console.print(f"{more:,} more were not wholly repaired; see manifest.json")
    if short := summary.short.total():
        (lack, _), *others = summary.short.most_common()
        rest = "; the others: see manifest.json" if others else ""
        verb = "does" if short == 1 else "do"
        console.print(f"{short:,} of {summary.sketches:,} {verb} not meet what was asked for: {lack}{rest}")
