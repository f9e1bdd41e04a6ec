"""What the verbs that draw share: the sketch they begin with, a bar, and a word when they end or are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from sketchdnn.errors import FormatError, display_path
from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions, read
from sketchdnn.geometry import Sketch

from .progress import progress
from .reading import report_reading
from .signals import INTERRUPTED

FORCE = "Replace files in --out that were changed, or that no earlier run wrote."
_MOST_REASONS = 5


def stderr(*, quiet: bool = False) -> Console:
    """Where these verbs speak: their result is files."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=quiet)


def one_sketch(file: Path, console: Console, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Sketch:
    """The one sketch of a file; what could not be read of it is said."""
    reading = read(file, options)
    report_reading(console, reading.skipped, reading.notes, f"{display_path(file)}: left out")
    if not reading.sketches:
        raise FormatError(file, "holds no sketch that can be read")
    if len(reading.sketches) > 1:
        raise FormatError(file, f"holds {len(reading.sketches):,} sketches, and one is wanted; split it with convert")
    return reading.sketches[0]


@contextmanager
def progress_bar(console: Console, doing: str, total: int, out: Path) -> Iterator[Callable[[float], None]]:
    """Shows progress, and yields what is to be called with how many are done. What Ctrl-C leaves is said."""
    try:
        with progress(console, doing, total) as bar:
            yield bar.update
    except KeyboardInterrupt:
        # Of several processes none gathers if they are stopped.
        listed = ", and manifest.json lists it" if (out / "manifest.json").is_file() else ""
        console.print(f"{display_path(out)}: stopped; what was drawn by then is there{listed}")
        raise typer.Exit(INTERRUPTED) from None


def tell_end(console: Console, out: Path, drawn: str, formats: Sequence[str], look: str, written: Any) -> None:
    """What is where, and whether all of it is what was asked for."""
    seconds = written.seconds["drawing"]
    console.print(f"{display_path(out)}: {drawn} as {', '.join(formats)}; {look} (drawn in {seconds:.1f} s)")
    if written.removed:
        console.print(f"{written.removed:,} files of an earlier run there were removed")
    if written.fewer:
        console.print(f"{written.fewer:,} of them are the best of fewer than --best-of; manifest.json says of how many")
    for summary, number in written.unrepaired.most_common(_MOST_REASONS):
        console.print(f"{number:,} of them {'was' if number == 1 else 'were'} {summary}")
    if more := sum(written.unrepaired.values()) - sum(n for _, n in written.unrepaired.most_common(_MOST_REASONS)):
        console.print(f"{more:,} more were not wholly repaired; manifest.json says why")
    if written.short:
        console.print(f"{written.short:,} of them come only close to what was asked for; manifest.json says how close")
