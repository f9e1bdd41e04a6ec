"""The page of `python -m benchmarks constraint-speed`."""

from __future__ import annotations

from collections.abc import Sequence

from .authored import Authored
from .constraint_speed import LargeSpeed


def page(large: Sequence[LargeSpeed], authored: Sequence[Authored]) -> str:
    """Both tables as Markdown."""
    rows = [
        f"| {r.drawing} | {r.lines:,} | {_way(r.repairing)} | {r.seconds:.1f} s | {r.plain:,} | {r.others:,} |"
        for r in large
    ]
    words = _SPEED.format(rows="\n".join(rows))
    if authored:
        found = [
            f"| {_way(a.repairing)}{', origin' if a.origin else ''} | {a.found_inside:,} of {a.inside:,} | "
            f"{a.found_outside:,} of {a.outside:,} |"
            for a in authored
        ]
        words += _AUTHORED.format(rows="\n".join(found))
    return words


def _way(repairing: bool) -> str:
    return "repair" if repairing else "infer only"


_SPEED = """# Constraints of large drawings, and of real files

    python -m benchmarks constraint-speed --files FOLDER

`constrain` on rectangles in rows (grid) and on lines joined end to end (chain): processor time of one core, how many
coincident, horizontal and vertical constraints it finds, and how many others.

| drawing | lines | how | time | plain | others |
| --- | --- | --- | --- | --- | --- |
{rows}
"""
_AUTHORED = """
Constraints that the authors of FreeCAD files gave and that hold to 1e-6 of the size, found again by `constrain` in the
sketches without their constraints: between primitives, and on the origin or an axis. Dimensions are not inferred, and
a sketch in which a repair drops or merges something does not count.

| how | between primitives | on the origin or an axis |
| --- | --- | --- |
{rows}
"""
