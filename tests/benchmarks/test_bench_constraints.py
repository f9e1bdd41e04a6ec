"""`python -m benchmarks constraints`, and FreeCAD's autoconstraint beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.commands.app import app
from typer.testing import CliRunner

from benchmarks.constraint_recall import Score, count, measure_authored, shake_all
from benchmarks.constraint_speed import page, time_large
from benchmarks.constraints import KINDS, OURS, autoconstrained, measure_constraints
from sketchdnn.errors import FormatError
from sketchdnn.formats import scan
from sketchdnn.geometry import Arc, Circle, Line, Sketch

QUARTER = np.pi / 2
SLOT = Sketch(
    (
        Line((0, -10), (40, -10)),
        Arc((40, 0), 10, -QUARTER, 2 * QUARTER),
        Line((40, 10), (0, 10)),
        Arc((0, 0), 10, QUARTER, 2 * QUARTER),
        Circle((60, 40), 10),
    )
)


def test_freecad_finds_a_slot(freecadcmd: str) -> None:
    """Ends that meet smoothly count as a coincident and a tangent; what it solved is the slot again."""
    shaken = shake_all([SLOT], 0.001)
    (judged,) = autoconstrained(freecadcmd, shaken, 0.001)
    kinds = {str(constraint.type) for constraint in judged.found}
    assert {"coincident", "tangent", "equal"} <= kinds
    assert judged.solved is not None
    score = Score()
    count(score, shaken[0], judged)
    assert score.precision() == 1
    assert score.residuals[0] < 1e-9
    assert 0 < score.displacements[0] < 0.01


def test_a_whole_run(real_data: Path, freecadcmd: str, tmp_path: Path) -> None:
    assert freecadcmd
    file = real_data / "sketchgraphs" / "sg_subset.npy"
    page = tmp_path / "constraints.md"
    arguments = ["constraints", "--data", str(file), "--count", "12", "--timed", "2", "--out", str(page)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    words = page.read_text()
    assert words.startswith("# Constraints")
    assert "python -m benchmarks constraints --data sg_subset.npy --count 12 --timed 2" in words
    for column in ("ours, 0.1 %", "FreeCAD, 0.1 %", "ours, 0.5 %", "FreeCAD, 0.5 %"):
        assert f"| {column} |" in words
    assert str(tmp_path) not in words


def test_without_freecad(real_data: Path) -> None:
    bench = measure_constraints(real_data / "sketchgraphs" / "sg_subset.npy", count=12, timed=2, freecad=False)
    assert not any("FreeCAD" in row.name for row in bench.rows)
    ours = next(row.score for row in bench.rows if row.name == OURS)
    assert ours.sketches == 12
    assert sum(ours.true[kind] for kind in KINDS) > 50
    assert ours.recall("coincident") > 0.9
    assert 0 < bench.speed.median <= bench.speed.slow


def test_no_file_is_a_sentence(tmp_path: Path) -> None:
    arguments = ["constraints", "--no-freecad", "--data", str(tmp_path / "none.npy")]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, FormatError)


def test_constraint_speed_page_counts_large_drawings_and_authored_constraints(real_data: Path) -> None:
    large = time_large((200,))
    assert [(row.drawing, row.plain >= 398) for row in large] == [("grid", True)] * 2 + [("chain", True)] * 2
    file = real_data / "freecad" / "f0bc6d_slittingsaw.FCStd"
    authored = measure_authored([found for found in scan(file) if isinstance(found, Sketch)])
    plain, tied = authored[2:]
    assert 0 < tied.outside == plain.outside
    assert tied.found_outside > plain.found_outside
    assert f"| {tied.found_outside} of {tied.outside} |" in page(large, authored)


@pytest.mark.parametrize("name", ["constraints", "constraint-speed", "repair", "solids"])
def test_help_has_an_example(name: str) -> None:
    assert f"python -m benchmarks {name}" in CliRunner().invoke(app, [name, "--help"]).output
