"""The tables: the paper's numbers, the columns, the value of each system, and Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sketchdnn.evaluation.report_format import format_interval, lookup
from sketchdnn.render.html import Document, Section, Table

from .plan import system_label

# The paper's numbers (tab:fid-calculations, tab:nll-calculations) by system.
PAPER: Mapping[str, Mapping[str, float]] = {
    "sketchdnn": {"fid": 7.80, "precision": 0.246, "recall": 0.266, "per_sketch": 81.33, "per_primitive": 5.08},
    "sketchdnn-pos": {"fid": 10.26, "precision": 0.230, "recall": 0.245, "per_sketch": 83.03, "per_primitive": 5.18},
    "sketchdnn-cat": {"fid": 148.93, "precision": 0.117, "recall": 0.028, "per_sketch": 106.10, "per_primitive": 6.63},
    "latent": {"fid": 93.34, "precision": 0.134, "recall": 0.033},
    "vitruvion": {"fid": 16.04, "precision": 0.294, "recall": 0.176, "per_sketch": 84.80, "per_primitive": 8.19},
    "sketchgen": {"per_sketch": 88.22, "per_primitive": 8.60},
}
DIGITS: Mapping[str, int] = {"fid": 2, "precision": 3, "recall": 3, "per_sketch": 2, "per_primitive": 2}
NOT_IN_PAPER = "not in the paper"

# The labels of the tables in the paper's source.
FID_TABLE, NLL_TABLE = "tab:fid-calculations", "tab:nll-calculations"


def paper_text(system: str, key: str) -> str:
    """
    >>> paper_text("latent", "fid"), paper_text("latent", "per_sketch")
    ('93.34', 'not in the paper')
    """
    value = PAPER[system].get(key)
    return NOT_IN_PAPER if value is None else f"{value:.{DIGITS[key]}f}"


REAL = "real sketches (floor)"
_ARROWS = {"low": "↓", "high": "↑", None: ""}


@dataclass(frozen=True, slots=True)
class Result:
    """The results of one system: its training record, its report, and its bits on the common grid."""

    name: str
    folder: Path
    training: Mapping[str, Any]
    report: Mapping[str, Any]
    grid: Mapping[str, Any]

    @property
    def system(self) -> str:
        return self.name.partition(":")[0]

    @property
    def is_variant(self) -> bool:
        return ":" in self.name

    @property
    def values(self) -> dict[str, Any]:
        """All results in one table, for lookup by dotted paths."""
        return {"training": self.training, "report": self.report, "grid": self.grid}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `path` and `real` are the dotted paths of the value of a system and of real sketches, `best` is the better end.
    `paper` is a key of the paper's numbers instead of a path. `digits` is for values without an interval.
    """

    key: str
    head: str
    path: str = ""
    real: str = ""
    factor: float = 1.0
    best: Literal["low", "high"] | None = None
    paper: str = ""
    digits: int = 0
    absent: str = "—"

    @property
    def title(self) -> str:
        return f"{self.head} {_ARROWS[self.best]}".strip()


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell, and its value with the interval, if it has one."""

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A system; real sketches if `name` is empty."""

    name: str
    label: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table. Its files begin with `name`."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str]

    def cell(self, name: str, key: str) -> Cell | None:
        """The cell of a system and a column; None if there is none."""
        return next((row.cells.get(key) for row in self.rows if row.name == name), None)


_ABSENT = "not available"
_TEST, _TRAIN = "report.scores.test", "report.scores.train"
FIDELITY = (
    Column("fid", "FID", f"{_TEST}.system.fid", f"{_TEST}.floor.fid", best="low"),
    Column("kid", "KID × 1000", f"{_TEST}.system.kid", f"{_TEST}.floor.kid", 1000.0, best="low"),
    Column("precision", "Precision", f"{_TEST}.system.precision", f"{_TEST}.floor.precision", best="high"),
    Column("recall", "Recall", f"{_TEST}.system.recall", f"{_TEST}.floor.recall", best="high"),
    Column("paper_fid", "paper's FID", paper="fid"),
    Column("paper_precision", "paper's precision", paper="precision"),
    Column("paper_recall", "paper's recall", paper="recall"),
)
AGAINST_TRAINING = (
    Column("fid", "FID", f"{_TRAIN}.system.fid", f"{_TRAIN}.floor.fid", best="low"),
    Column("precision", "Precision", f"{_TRAIN}.system.precision", f"{_TRAIN}.floor.precision", best="high"),
    Column("recall", "Recall", f"{_TRAIN}.system.recall", f"{_TRAIN}.floor.recall", best="high"),
    Column(
        "authors_precision",
        "authors' precision",
        f"{_TRAIN}.system.authors_precision",
        f"{_TRAIN}.floor.authors_precision",
        best="high",
    ),
    Column(
        "authors_recall",
        "authors' recall",
        f"{_TRAIN}.system.authors_recall",
        f"{_TRAIN}.floor.authors_recall",
        best="high",
    ),
)
LIKELIHOOD = (
    Column("per_sketch", "Bits/sketch, grid", "grid.bits.grid_set.per_sketch", best="low", absent=_ABSENT),
    Column("per_primitive", "Bits/primitive, grid", "grid.bits.grid_set.per_primitive", best="low", absent=_ABSENT),
    Column("per_row", "Bits/row of 16, grid", "grid.bits.grid_set.per_row", best="low", absent=_ABSENT),
    Column("density", "continuous ELBO, bits/sketch", "report.likelihood.density.bits.per_sketch"),
    Column("authors", "authors' estimate, bits/sketch", "report.likelihood.authors.per_sketch"),
    Column("tokens", "own tokens, bits/sketch", "report.likelihood.tokens.per_sketch"),
    Column("paper_per_sketch", "paper's bits/sketch", paper="per_sketch"),
    Column("paper_per_primitive", "paper's bits/primitive", paper="per_primitive"),
)
COST = (
    Column("parameters", "parameters", "training.parameters"),
    Column("batch_size", "batch", "training.batch_size"),
    Column("steps", "steps", "training.steps"),
    Column("samples_seen", "sketches seen", "training.samples_seen"),
    Column("passes", "passes over the corpus", "passes", digits=1),
    Column("minutes", "minutes of training", "training.seconds", factor=1 / 60, digits=2),
    Column("drawing", "seconds to draw 10,000", "drawing", digits=1),
)


def all_tables(results: Sequence[Result]) -> list[ResultTable]:
    """The tables of some results, without that of the training split if no result has it."""
    tables = [
        _make_table(
            "table1", f"Fidelity, against the test split (the paper's {FID_TABLE})", FIDELITY, results, floor=True
        ),
        _make_table("table1-training", "Fidelity, against the training split", AGAINST_TRAINING, results, floor=True),
        _make_table("table2", f"Likelihood (the paper's {NLL_TABLE})", LIKELIHOOD, results, _likelihood_notes(results)),
        _make_table("cost", "What it took", COST, results),
    ]
    return [table for table in tables if table.name != "table1-training" or _has_values(table)]


def _make_table(
    name: str,
    title: str,
    columns: Sequence[Column],
    results: Sequence[Result],
    notes: Sequence[str] = (),
    *,
    floor: bool = False,
) -> ResultTable:
    rows = [
        Row(result.name, system_label(result.name), {column.key: _system_cell(column, result) for column in columns})
        for result in results
    ]
    if floor and results:
        first = results[0].values
        cells = {c.key: _make_cell(lookup(first, c.real) if c.real else None, c) for c in columns}
        rows.append(Row("", REAL, cells))
    return ResultTable(name, title, columns, rows, notes)


def _system_cell(column: Column, result: Result) -> Cell:
    if column.paper:
        if result.is_variant and result.name != "vitruvion:arcs=sweep":
            return Cell(NOT_IN_PAPER)
        return Cell(paper_text(result.system, column.paper), PAPER[result.system].get(column.paper))
    return _make_cell(lookup({**result.values, **_derived(result)}, column.path), column)


def _derived(result: Result) -> dict[str, float | None]:
    """Derived values: seconds to sample 10,000 sketches, and passes over the corpus."""
    seconds, count = (lookup(result.report, path) for path in ("timings.sampling", "system.samples"))
    seen, sketches = (lookup(result.training, path) for path in ("samples_seen", "train_sketches"))
    return {
        "drawing": 10_000 * seconds / count if seconds and count else None,
        "passes": seen / sketches if seen and sketches else None,
    }


def _make_cell(value: Any, column: Column) -> Cell:
    if value is None:
        return Cell(column.absent)
    if isinstance(value, Mapping):
        ends = [None if value.get(end) is None else column.factor * value[end] for end in ("value", "low", "high")]
        return Cell(format_interval(value, column.factor), *ends)
    scaled = column.factor * float(value)
    return Cell(f"{scaled:,.{column.digits}f}", scaled)


def _likelihood_notes(results: Sequence[Result]) -> list[str]:
    """Which bits are exact, which are bounds, and why some systems have none."""
    notes = [
        f"{system_label(result.name)} has no bits on the grid: {result.grid['reason']}."
        for result in results
        if result.grid.get("reason")
    ]
    exact = [
        system_label(result.name) for result in results if result.grid.get("exact") and not result.grid.get("reason")
    ]
    ordered = [
        system_label(result.name) for result in results if result.grid.get("ordered") and not result.grid.get("exact")
    ]
    if exact:
        notes.append(f"Exact on the grid: {'; '.join(exact)}. The others' bits are upper bounds.")
    if ordered:
        notes.append(
            f"The bits of {'; '.join(ordered)} are of one order of rows, which bounds those of the set. The bits of "
            "systems without an order are reduced by the number of orders."
        )
    return notes


def _has_values(table: ResultTable) -> bool:
    return any(cell.value is not None for row in table.rows for cell in row.cells.values())


def as_markdown(table: ResultTable) -> str:
    """A Markdown page with the table and its notes."""
    return Document(table.title, [], sections=[Section("Table", table.notes, [format_table(table)])]).to_markdown()


def format_table(table: ResultTable) -> Table:
    """The table as a page shows it."""
    head = ("", *(column.title for column in table.columns))
    return Table(head, [(row.label, *(row.cells[c.key].text for c in table.columns)) for row in table.rows])


def as_csv(table: ResultTable) -> str:
    """One row per system: value, low and high of each column, empty where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    ends = {"": "value", "_low": "low", "_high": "high"}
    keys = [(column.key, ending) for column in table.columns for ending in ends if not (column.paper and ending)]
    writer.writerow(["system", *(key + ending for key, ending in keys)])
    for row in table.rows:
        numbers = [getattr(row.cells[key], ends[ending]) for key, ending in keys]
        writer.writerow([row.name or "real", *("" if value is None else f"{value:.6g}" for value in numbers)])
    return text.getvalue()


def as_latex(table: ResultTable) -> str:
    """A tabular; the best system of each column is bold."""
    best = {column.key: _best(table, column) for column in table.columns}
    lines = [f"% {_escape_latex(table.title)}", rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\hline"]
    lines.append(" & ".join(["Method", *(_escape_latex(column.title) for column in table.columns)]) + r" \\ \hline")
    for row in table.rows:
        cells = [_escape_latex(row.label)]
        for column in table.columns:
            text = _escape_latex(row.cells[column.key].text)
            cells.append(rf"\textbf{{{text}}}" if best[column.key] == row.name != "" else text)
        lines.append(" & ".join(cells) + r" \\")
    notes = [f"% {_escape_latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\hline", r"\end{tabular}", *notes]) + "\n"


def _best(table: ResultTable, column: Column) -> str | None:
    """The name of the best system in a column."""
    if column.best is None:
        return None
    values = {row.name: v for row in table.rows if row.name and (v := row.cells[column.key].value) is not None}
    choose = min if column.best == "low" else max
    return choose(values, key=lambda name: values[name]) if values else None


_LATEX_ESCAPES = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "×": r"$\times$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    "—": "---",
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(mark, mark) for mark in text)
