"""Messages of the commands: they go to standard error, so that standard output holds results only."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from sketchdnn.formats.format import ReasonCounts


def stderr_console(*, quiet: bool = False) -> Console:
    """Return a console that prints plain text to standard error, or nothing if `quiet`."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=quiet)


def report_reading(console: Console, skipped: Counter[str], notes: Counter[str], verb: str = "skipped") -> None:
    """Print a line for each note and for each reason to skip something, the commonest first."""
    for counts, prefix in ((notes, ""), (skipped, verb)):
        reasons = counts if isinstance(counts, ReasonCounts) else ReasonCounts(counts)
        for line in reasons.lines(prefix):
            console.print(line)
