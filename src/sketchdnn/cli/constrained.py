"""What came of constraining sketches, as a table: all about one, or the sums of many."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

from sketchdnn.formats.format import ReasonCounts
from sketchdnn.geometry import ConstraintType, Sketch, bounds
from sketchdnn.render.notes import describe_constraint

if TYPE_CHECKING:
    from sketchdnn.constraints.constrain import Constrained

# What moves by less, as a share of the size, was where it belongs but for rounding.
_STILL = 1e-9
_MOST_LINES = 40
_INDENT = 20
# What differs from sketch to sketch, in a warning that is counted.
_NUMBER = re.compile(r"\d[\d.]*(e[-+]?\d+)?")
# Of more primitives than this, those that can move are counted, not named.
_MOST_NAMED = 40


class Findings:
    """Gathers what came of sketches, one after the other; of many it keeps only sums."""

    def __init__(self) -> None:
        self.first: tuple[Sketch, Constrained] | None = None
        self.count = self.moved = self.lost = 0
        self.before: Counter[ConstraintType] = Counter()
        self.after: Counter[ConstraintType] = Counter()
        self.actions: Counter[str] = Counter()
        self.warnings = ReasonCounts()
        self.skipped = ReasonCounts()
        self.freedom: Counter[int] = Counter()
        self.farthest = 0.0

    def add(self, before: Sketch, done: Constrained, file: str = "") -> None:
        """One more, of one file of several or of the only one."""
        self.first = self.first or (before, done)
        self.count += 1
        self.before.update(c.type for c in before.constraints)
        self.after.update(c.type for c in done.sketch.constraints)
        self.actions.update(str(action.kind) for action in done.actions)
        self.freedom[done.dof] += 1
        self.moved += done.displacement > _STILL
        self.farthest = max(self.farthest, done.displacement)
        self.lost += len(done.lost)
        if done.skipped:
            self.skipped.add(_NUMBER.sub("…", done.skipped), file=file)
        if done.warning:
            self.warnings.add(_NUMBER.sub("…", done.warning), file=file)

    def show(self, console: Console) -> None:
        """Print the tables."""
        if self.first is None:
            return
        rows = _about_one(*self.first) if self.count == 1 else self._about_many()
        if self.before or self.after:
            console.print(self._constraints())
        for name, words in rows:
            console.print(f"{name:<{_INDENT}}{words}")

    def _constraints(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("constraint")
        table.add_column("before", justify="right")
        table.add_column("now", justify="right")
        for kind in ConstraintType:
            if self.before[kind] or self.after[kind]:
                table.add_row(kind.replace("_", " "), f"{self.before[kind]:,}", f"{self.after[kind]:,}")
        if len(self.before | self.after) > 1:
            table.add_row("all", f"{self.before.total():,}", f"{self.after.total():,}", style="bold")
        return table

    def _about_many(self) -> list[tuple[str, str]]:
        total = sorted(self.freedom.elements())
        free = f"{total[len(total) // 2]:,} in the median sketch, from {total[0]:,} to {total[-1]:,}"
        moved = f"{self.moved:,} sketches, by at most {_percent(self.farthest)} of their size"
        rows = [("degrees of freedom", free), ("moved", moved if self.moved else "nothing")]
        if self.actions:
            rows.append(("repaired", ", ".join(f"{count:,} × {kind}" for kind, count in self.actions.most_common())))
        if self.lost:
            rows.append(("left out", f"{self.lost:,} constraints that files had, as they contradict others or moved"))
        rows += [("skipped", line) for line in self.skipped.lines(max_lines=_MOST_LINES)]
        rows += [("warning", line) for line in self.warnings.lines(max_lines=_MOST_LINES)]
        return rows


def _about_one(before: Sketch, done: Constrained) -> list[tuple[str, str]]:
    rows = [("degrees of freedom", f"{done.dof:,}"), ("", _parts(done))]
    if done.displacement > _STILL:
        far = f"{done.displacement * bounds(before).size:.3g}{f' {before.units}' if before.units else ''}"
        rows.append(("moved", f"by at most {far}, {_percent(done.displacement)} of the size"))
    else:
        rows.append(("moved", "nothing"))
    rows += _lines("repaired", [str(action) for action in done.actions])
    # Repairs may have given other numbers to what is still there.
    for name, those, owner in (
        ("left out", done.lost, before),
        ("redundant", done.redundant, done.sketch),
        ("not checked", done.unread, done.sketch),
    ):
        rows += _lines(name, [describe_constraint(c, owner) for c in those])
    rows += [(name, words) for name, words in (("skipped", done.skipped), ("warning", done.warning)) if words]
    return [row for row in rows if row[1]]


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _parts(done: Constrained) -> str:
    from sketchdnn.constraints.freedom import named

    if len(done.sketch) <= _MOST_NAMED:
        return named(done.freedom, [p.kind.label for p in done.sketch]) if done.freedom else ""
    counts = Counter(done.freedom)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def _lines(name: str, sentences: list[str]) -> list[tuple[str, str]]:
    shown = sentences[:_MOST_LINES]
    if more := len(sentences) - len(shown):
        shown.append(f"and {more:,} more")
    return [(name if k == 0 else "", words) for k, words in enumerate(shown)]
