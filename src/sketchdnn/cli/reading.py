"""Options of the commands that read drawings, and what they print of what was read."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions
from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import MM_PER_UNIT
from sketchdnn.geometry.quantities import length

FLATTEN = f"{DEFAULT_READ_OPTIONS.flatten:g}mm"

Flatten = Annotated[
    str,
    typer.Option(
        help="How far the lines and arcs that stand for splines, Béziers and ellipses may leave them; "
        "'off' leaves such curves out.",
        rich_help_panel="Reading drawings",
    ),
]
AssumeUnits = Annotated[
    str | None,
    typer.Option(
        help="The unit of a file that names none: mm, cm, m, in, …",
        rich_help_panel="Reading drawings",
        show_default="mm",
    ),
]


def read_options(flatten: str, assume_units: str | None) -> ReadOptions:
    """What was typed, as the readers take it."""
    if flatten.strip().lower() == "off":
        return ReadOptions(None, assume_units)
    number, units = length(flatten, "--flatten")
    return ReadOptions(number * MM_PER_UNIT[units], assume_units)


def report_reading(console: Console, skipped: Counter[str], notes: Counter[str], word: str = "skipped") -> None:
    """One line for each note and for each reason that kept something out, the commonest first."""
    for line in (*_reasons(notes).lines(), *_reasons(skipped).lines(word)):
        console.print(line)


def _reasons(counts: Counter[str]) -> ReasonCounts:
    return counts if isinstance(counts, ReasonCounts) else ReasonCounts(counts)
