"""The plots of the result pages: what is read from reports and tables."""

from pathlib import Path

import pytest

from benchmarks.figures.results import Bar, completion, numbers, speeds, steps, systems, tables, write_results
from sketchdnn.errors import SketchError

ROOT = Path(__file__).parents[3]
PAGE = """# Title
| name | other |
|---|---|
| a | 1 |

## The model
| sampler | steps | seconds | FID |
|---|---|---|---|
| ddim | 100 | 5 | 4.5 |
| ddim | 50 | 5 | 6.5 |

| sampler | steps | seconds | FID |
|---|---|---|---|
| ddim | 50 | 5 | 16.5 |
"""
COMPLETION = """| task | ideas of | extrudable, first | recovered, best of 8 |
|---|---|---|---|
| holes | model | 1.0% (0.5–2.0) | 1.0% (0.5–2.0) |
| holes | both | 95.8% (86.0–98.8) | 42.1% (28.6–57.0) |
"""


def test_tables_are_found_by_their_columns() -> None:
    assert [len(rows) for rows in tables(PAGE, "sampler", "FID")] == [2, 1]
    assert list(tables(PAGE, "name")) == [[{"name": "a", "other": "1"}]]
    assert numbers("95.8% (86.0–98.8)") == [95.8, 86.0, 98.8]
    assert numbers("−1,720.5") == [-1720.5]


def test_values_of_the_plots_are_those_of_the_tables() -> None:
    assert list(steps(PAGE)) == [("ddim, the model", [(50, 6.5), (100, 4.5)])]
    bars = completion(COMPLETION)
    assert list(bars.values()) == [[Bar("holes", 95.8, 86.0, 98.8)], [Bar("holes", 42.1, 28.6, 57.0)]]
    assert speeds(
        "| model | execution | steps | sketches/s |\n|---|---|---|---|\n| m | as used (x) | 50 | 1,720 |\n"
    ) == [Bar("m\nas used, 50 steps, H200", 1720, 1720, 1720)]


def test_plots_are_drawn_from_the_kept_reports(tmp_path: Path) -> None:
    reports = ROOT / "benchmarks" / "reports" / "reproduction"
    bars, floor = systems(reports)
    assert all(floor.value < bar.low <= bar.value <= bar.high for bar in bars)
    assert len(write_results(reports, ROOT / "docs" / "results", tmp_path)) == 8
    with pytest.raises(SketchError, match="cannot be read"):
        write_results(reports, tmp_path, tmp_path)
