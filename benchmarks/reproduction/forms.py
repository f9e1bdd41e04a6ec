"""A table as Markdown, CSV and LaTeX, all of the same cells."""

from __future__ import annotations

import csv
import io

from sketchdnn.evaluation.report_format import Document
from sketchdnn.render.html import Section, Table

from .tables import Column, Grid


def as_markdown(table: Grid) -> str:
    """A page with the table and its notes."""
    return Document(table.title, [], sections=[Section("Table", table.notes, [words_of(table)])]).to_markdown()


def words_of(table: Grid) -> Table:
    """The table as a page shows it."""
    head = ("", *(column.title for column in table.columns))
    return Table(head, [(row.label, *(row.cells[c.key].words for c in table.columns)) for row in table.rows])


def as_csv(table: Grid) -> str:
    """A row a system: value, low and high of each column, empty where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    ends = {"": "value", "_low": "low", "_high": "high"}
    keys = [(column.key, ending) for column in table.columns for ending in ends if not (column.paper and ending)]
    writer.writerow(["system", *(key + ending for key, ending in keys)])
    for row in table.rows:
        numbers = [getattr(row.cells[key], ends[ending]) for key, ending in keys]
        writer.writerow([row.name or "real", *("" if value is None else f"{value:.6g}" for value in numbers)])
    return text.getvalue()


def as_latex(table: Grid) -> str:
    """A tabular; the best of each column is bold, of the systems alone."""
    best = {column.key: _best(table, column) for column in table.columns}
    lines = [f"% {_latex(table.title)}", rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}", r"\hline"]
    lines.append(" & ".join(["Method", *(_latex(column.title) for column in table.columns)]) + r" \\ \hline")
    for row in table.rows:
        cells = [_latex(row.label)]
        for column in table.columns:
            words = _latex(row.cells[column.key].words)
            cells.append(rf"\textbf{{{words}}}" if best[column.key] == row.name != "" else words)
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", *(f"% {_latex(note)}" for note in table.notes)]) + "\n"


def _best(table: Grid, column: Column) -> str | None:
    if column.best is None:
        return None
    found = {
        row.name: cell.value for row in table.rows if row.name and (cell := row.cells[column.key]).value is not None
    }
    chosen = min if column.best == "low" else max
    return chosen(found, key=lambda name: found[name]) if found else None


_LATEX = {
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


def _latex(words: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in words)
