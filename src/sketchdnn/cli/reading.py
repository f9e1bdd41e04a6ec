"""Options of the commands that read drawings, and their report on skipped and changed items."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console

from sketchdnn.formats import DEFAULT_READ_OPTIONS, ReadOptions
from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import MM_PER_UNIT
from sketchdnn.geometry.quantities import parse_length

FLATTEN = f"{DEFAULT_READ_OPTIONS.curve_tolerance_mm:g}mm"

Flatten = Annotated[
    str,
    typer.Option(
        help="Tolerance of the lines and arcs that replace splines, Béziers and ellipses; 'off' skips such curves.",
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
    """The options of readers, from `--flatten` and `--assume-units`."""
    is_off = flatten.strip().lower() == "off"
    return ReadOptions(None if is_off else millimeters(flatten, "--flatten"), assume_units)


def millimeters(text: str, option: str) -> float:
    """A length such as `5mm` or `0.25in` in millimeters."""
    number, units = parse_length(text, option)
    return number * MM_PER_UNIT[units]


def report_reading(console: Console, skipped: Counter[str], notes: Counter[str], verb: str = "skipped") -> None:
    """Print a line for each note and for each reason to skip something, the commonest first."""
    for counts, prefix in ((notes, ""), (skipped, verb)):
        reasons = counts if isinstance(counts, ReasonCounts) else ReasonCounts(counts)
        for line in reasons.lines(prefix):
            console.print(line)
