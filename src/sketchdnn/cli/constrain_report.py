"""The report of `constrain`: all details of one sketch, or totals of many."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Column, Table

from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import ConstraintType, Sketch, bounds
from sketchdnn.render.annotations import describe_constraint

if TYPE_CHECKING:
    from sketchdnn.constraints.constrain import ConstrainResult

# A smaller move, as a share of the size, is rounding.
_ROUNDING = 1e-9
# More lines of a kind, and more primitives that can move, are only counted.
_MAX_LINES = 40
_INDENT = 20
# Numbers differ from sketch to sketch in warnings that are counted.
_NUMBER = re.compile(r"\d[\d.]*(e[-+]?\d+)?")


class ConstrainReport:
    """Collects results; of many sketches it keeps only totals."""

    def __init__(self) -> None:
        self.first: tuple[Sketch, ConstrainResult] | None = None
        self.count = self.moved = self.lost = 0
        self.before, self.after = Counter[ConstraintType](), Counter[ConstraintType]()
        self.actions, self.freedom = Counter[str](), Counter[int]()
        self.warnings, self.skipped = ReasonCounts(), ReasonCounts()
        self.max_move = 0.0
        self.rounded, self.left = Counter[bool](), Counter[str]()
        self.max_round_move = 0.0

    def add(self, before: Sketch, result: ConstrainResult, file: str = "") -> None:
        """Add a result; `file` is its name in a folder or archive."""
        self.first = self.first or (before, result)
        self.count += 1
        self.before.update(c.type for c in before.constraints)
        self.after.update(c.type for c in result.sketch.constraints)
        self.actions.update(str(action.kind) for action in result.actions)
        self.freedom[result.dof] += 1
        self.moved += result.displacement > _ROUNDING
        self.max_move = max(self.max_move, result.displacement)
        self.lost += len(result.lost)
        if rounding := result.rounding:
            self.rounded[rounding.is_fully_rounded] += 1
            self.left.update([rounding.warning] if rounding.warning else [left.reason for left in rounding.left])
            self.max_round_move = max(self.max_round_move, rounding.displacement)
        for counts, reason in ((self.skipped, result.skipped), (self.warnings, result.warning)):
            if reason:
                counts.add(_NUMBER.sub("…", reason), file=file)

    def print(self, console: Console) -> None:
        """Print a table of constraints and the other rows."""
        if self.first is None:
            return
        rows = _rows_of_one(*self.first) if self.count == 1 else self._rows_of_many()
        if self.before or self.after:
            console.print(self._constraints())
        for name, text in rows:
            console.print(f"{name:<{_INDENT}}{text}")

    def _constraints(self) -> Table:
        counts = (Column(name, justify="right") for name in ("before", "now"))
        table = Table("constraint", *counts, box=box.SIMPLE_HEAD, pad_edge=False)
        for kind in ConstraintType:
            if self.before[kind] or self.after[kind]:
                table.add_row(kind.replace("_", " "), f"{self.before[kind]:,}", f"{self.after[kind]:,}")
        if len(self.before | self.after) > 1:
            table.add_row("all", f"{self.before.total():,}", f"{self.after.total():,}", style="bold")
        return table

    def _rows_of_many(self) -> list[tuple[str, str]]:
        total = sorted(self.freedom.elements())
        free = f"{total[len(total) // 2]:,} in the median sketch, from {total[0]:,} to {total[-1]:,}"
        moved = f"{self.moved:,} sketches, by at most {_percent(self.max_move)} of their size"
        rows = [("degrees of freedom", free), ("moved", moved if self.moved else "nothing")]
        if self.actions:
            rows.append(("repaired", ", ".join(f"{count:,} × {kind}" for kind, count in self.actions.most_common())))
        if self.lost:
            rows.append(("left out", f"{self.lost:,} constraints of the files: they conflict with others or moved"))
        if total_rounded := self.rounded.total():
            share = f"{self.rounded[True]:,} of {total_rounded:,} sketches in full"
            rows.append(("rounded", f"{share}, which moved things by at most {_percent(self.max_round_move)}"))
            rows += [("not rounded", f"{count:,} × {reason}") for reason, count in self.left.most_common()]
        rows += [("skipped", line) for line in self.skipped.lines(max_lines=_MAX_LINES)]
        rows += [("warning", line) for line in self.warnings.lines(max_lines=_MAX_LINES)]
        return rows


def _rows_of_one(before: Sketch, result: ConstrainResult) -> list[tuple[str, str]]:
    moved = "nothing"
    if result.displacement > _ROUNDING:
        far = f"{result.displacement * bounds(before).size:.3g}{f' {before.units}' if before.units else ''}"
        moved = f"by at most {far}, {_percent(result.displacement)} of the size"
    rows = [("degrees of freedom", f"{result.dof:,}"), ("", _free_parts(result)), ("moved", moved)]
    rows += _lines("repaired", [str(action) for action in result.actions])
    if rounding := result.rounding:
        rows.append(("rounded", f"{rounding.summary}, which moved things by at most {_percent(rounding.displacement)}"))
        left = [f"{describe_constraint(item.constraint, result.sketch)}: {item.reason}" for item in rounding.left]
        rows += _lines("not rounded", left)
    # Repairs may have given other numbers to what is still there.
    for name, those, owner in (
        ("left out", result.lost, before),
        ("redundant", result.redundant, result.sketch),
        ("not checked", result.unsupported, result.sketch),
    ):
        rows += _lines(name, [describe_constraint(c, owner) for c in those])
    rows += [(name, text) for name, text in (("skipped", result.skipped), ("warning", result.warning)) if text]
    return [row for row in rows if row[1]]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _free_parts(result: ConstrainResult) -> str:
    from sketchdnn.constraints.equation_set import describe_freedom

    if len(result.sketch) <= _MAX_LINES:
        return describe_freedom(result.freedom, [p.kind.label for p in result.sketch]) if result.freedom else ""
    counts = Counter(result.freedom)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def _lines(name: str, sentences: list[str]) -> list[tuple[str, str]]:
    shown = sentences[:_MAX_LINES]
    if more := len(sentences) - len(shown):
        shown.append(f"and {more:,} more")
    return [(name if k == 0 else "", text) for k, text in enumerate(shown)]
