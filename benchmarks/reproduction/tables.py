"""The two tables and what they cost: which measure stands in which column, and its value for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sketchdnn.evaluation.report_format import format_interval, lookup

from .names import label_of
from .paper import FID_TABLE, LEFT_OUT, NLL_TABLE, PAPER, paper_words
from .part import Result

REAL = "real sketches (floor)"
_ARROWS = {"low": "↓", "high": "↑", None: ""}


@dataclass(frozen=True, slots=True)
class Column:
    """A measure: where it is found of a system, where of real sketches, and which end is the better.

    `paper` is a key of the paper's numbers instead. `digits` are for plain numbers, which have no interval.
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
    """A value with its interval, if it has one, and the words for it."""

    words: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A system, or real sketches where `name` is empty."""

    name: str
    label: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table under a name for its files."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str]

    def cell(self, name: str, key: str) -> Cell | None:
        """What a system has in a column, if both are there."""
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


def all_tables(results: Sequence[Result]) -> list[Grid]:
    """Of what is there. The comparison with the training split is left out where it was not made."""
    tables = [
        _grid("table1", f"Fidelity, against the test split (the paper's {FID_TABLE})", FIDELITY, results, floor=True),
        _grid("table1-training", "Fidelity, against the training split", AGAINST_TRAINING, results, floor=True),
        _grid("table2", f"Likelihood (the paper's {NLL_TABLE})", LIKELIHOOD, results, _bits_notes(results)),
        _grid("cost", "What it took", COST, results),
    ]
    return [table for table in tables if table.name != "table1-training" or _has_any(table)]


def _grid(
    name: str,
    title: str,
    columns: Sequence[Column],
    results: Sequence[Result],
    notes: Sequence[str] = (),
    *,
    floor: bool = False,
) -> Grid:
    rows = [
        Row(result.name, label_of(result.name), {column.key: _cell(column, result) for column in columns})
        for result in results
    ]
    if floor and results:
        first = results[0].facts
        cells = {c.key: _measured(lookup(first, c.real) if c.real else None, c) for c in columns}
        rows.append(Row("", REAL, cells))
    return Grid(name, title, columns, rows, notes)


def _cell(column: Column, result: Result) -> Cell:
    if column.paper:
        if result.is_variant and result.name != "vitruvion:arcs=sweep":
            return Cell(LEFT_OUT)
        return Cell(paper_words(result.system, column.paper), PAPER[result.system].get(column.paper))
    return _measured(lookup({**result.facts, **_derived(result)}, column.path), column)


def _derived(result: Result) -> dict[str, float | None]:
    """What follows from two facts: seconds for 10,000 sketches from as many as were drawn, and passes."""
    seconds, drawn = (lookup(result.report, path) for path in ("timings.sampling", "system.samples"))
    seen, sketches = (lookup(result.training, path) for path in ("samples_seen", "train_sketches"))
    return {
        "drawing": 10_000 * seconds / drawn if seconds and drawn else None,
        "passes": seen / sketches if seen and sketches else None,
    }


def _measured(found: Any, column: Column) -> Cell:
    if found is None:
        return Cell(column.absent)
    if isinstance(found, Mapping):
        ends = [None if found.get(end) is None else column.factor * found[end] for end in ("value", "low", "high")]
        return Cell(format_interval(found, column.factor), *ends)
    value = column.factor * float(found)
    return Cell(f"{value:,.{column.digits}f}", value)


def _bits_notes(results: Sequence[Result]) -> list[str]:
    """What a reader of the bits must know, and why some have none."""
    notes = [
        f"{label_of(result.name)} has no bits on the grid: {result.grid['reason']}."
        for result in results
        if result.grid.get("reason")
    ]
    exact = [label_of(result.name) for result in results if result.grid.get("exact") and not result.grid.get("reason")]
    ordered = [
        label_of(result.name) for result in results if result.grid.get("ordered") and not result.grid.get("exact")
    ]
    if exact:
        notes.append(f"Exact on the grid: {'; '.join(exact)}. The others' bits are upper bounds.")
    if ordered:
        notes.append(
            f"The order of rows matters to {'; '.join(ordered)}: theirs are bits of one order, which bound those of "
            "the set. From the bits of systems that know no order, the orders are taken off."
        )
    return notes


def _has_any(table: Grid) -> bool:
    return any(cell.value is not None for row in table.rows for cell in row.cells.values())
