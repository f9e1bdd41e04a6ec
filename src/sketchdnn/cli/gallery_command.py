"""The parts of a command that writes a gallery (`generate`, `complete`).

These are the common options, reading of the input sketch, the progress bar, and the printed summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sketchdnn.errors import FormatError, display_path
from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions, read
from sketchdnn.geometry import Sketch

from .progress import progress
from .reading import report_reading
from .signals import INTERRUPTED

if TYPE_CHECKING:
    from sketchdnn.generation import OutputSummary

FORMATS = "json,svg,dxf,fcstd"
_MAX_REASONS = 5

Out = Annotated[
    Path,
    typer.Option(help="Output folder; the sketches of an earlier run in it are replaced.", show_default=False),
]
Formats = Annotated[str, typer.Option(help="File formats to write for each sketch, separated by commas.")]
Steps = Annotated[int, typer.Option(help="Number of denoising steps: fewer are faster, more leave fewer gaps.")]
SamplerName = Annotated[
    str | None,
    typer.Option(
        help="restart, predictor_corrector, ancestral, ddim, dpm++ or authors.", show_default="default of the model"
    ),
]
Model = Annotated[str, typer.Option(help="Folder of a model, or the name of the bundled model.")]
Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1, …")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace files in --out that were changed, or that no earlier run wrote.")
]


def count_of(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "sketch", "sketches"), count_of(1200, "sketch", "sketches")
    ('1 sketch', '1,200 sketches')
    """
    return f"{count:,} {singular if count == 1 else plural}"


def read_one_sketch(file: Path, console: Console, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Sketch:
    """Return the only sketch of a file, and print which entities could not be read."""
    reading = read(file, options)
    report_reading(console, reading.skipped, reading.notes, f"{display_path(file)}: left out")
    if not reading.sketches:
        raise FormatError(file, "holds no sketch that can be read")
    if len(reading.sketches) > 1:
        raise FormatError(file, f"holds {len(reading.sketches):,} sketches, and one is wanted; split it with convert")
    return reading.sketches[0]


@contextmanager
def progress_bar(console: Console, activity: str, total: int, out: Path) -> Iterator[Callable[[float], None]]:
    """Show progress, and yield a function to call with the number of finished sketches.

    On Ctrl-C, print where the finished sketches are, and exit.
    """
    try:
        with progress(console, activity, total) as bar:
            yield bar.update
    except KeyboardInterrupt:
        # A run of several processes writes no manifest if it is stopped.
        listed = ", and manifest.json lists it" if (out / "manifest.json").is_file() else ""
        console.print(f"{display_path(out)}: stopped; what was drawn by then is there{listed}")
        raise typer.Exit(INTERRUPTED) from None


def print_summary(console: Console, out: Path, what: str, look: str, summary: OutputSummary) -> None:
    """Print what was written where, and how many sketches do not meet the conditions."""
    console.print(f"{display_path(out)}: {what}; {look} (drawn in {summary.seconds['drawing']:.1f} s)")
    if summary.removed:
        console.print(f"{summary.removed:,} files of an earlier run there were removed")
    if summary.few:
        console.print(f"{summary.few:,} of them are the best of fewer than --best-of; see manifest.json")
    reasons = summary.unrepaired.most_common()
    for reason, number in reasons[:_MAX_REASONS]:
        console.print(f"{number:,} of them {'was' if number == 1 else 'were'} {reason}")
    if more := sum(number for _, number in reasons[_MAX_REASONS:]):
        console.print(f"{more:,} more were not wholly repaired; see manifest.json")
    if summary.short:
        console.print(f"{summary.short:,} of them come only close to what was asked for; see manifest.json")
