"""docs/paper.md: its tables have the numbers of the kept reports and of the paper."""

from pathlib import Path

import pytest

from benchmarks.reproduction.runner import load_results
from benchmarks.reproduction.tables import PAPER, all_tables, paper_text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = {
    "sketchdnn": "SketchDNN",
    "sketchdnn-pos": "SketchDNN (Pos.)",
    "sketchdnn-cat": "SketchDNN (Cat.)",
    "latent": "Latent Diffusion",
    "vitruvion:arcs=sweep": "Vitruvion",
    "sketchgen": "SketchGen",
    "sketchdnn:preset=paper": "the paper's settings",
    "sketchdnn:preset=authors": "the settings of its code",
}
COLUMNS = {"table1": ("fid", "precision", "recall"), "table2": ("per_sketch", "per_primitive")}


def cells_of(label: str, width: int) -> list[str]:
    """The cells of the row with this label in the table with so many columns."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("|")]
    (found,) = [row for row in rows if row[0] == label and len(row) == width]
    return found[1:]


@pytest.mark.parametrize("name", ["table1", "table2"])
def test_tables_have_the_numbers_of_kept_reports_and_of_the_paper(name: str) -> None:
    tables = {table.name: table for table in all_tables(load_results(ROOT / "benchmarks" / "reports" / "reproduction"))}
    columns, checked = COLUMNS[name], 0
    for system, label in ROWS.items():
        if name == "table2" and "preset" in system:
            continue
        cells = cells_of(label, 1 + 2 * len(columns))
        for number, key in enumerate(columns):
            cell = tables[name].cell(system, key)
            assert cell is not None
            assert cells[2 * number + 1] == cell.text
            plain = "sketchdnn" if "preset" in system else system.partition(":")[0]
            expected = paper_text(plain, key) if key in PAPER[plain] else "—"
            assert cells[2 * number].strip("*") == expected
            checked += 1
    assert checked >= 12
