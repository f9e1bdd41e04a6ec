"""FreeCAD as the judge of solids: it must be able to say no."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.freecad_document import document

from benchmarks.freecad import (
    GENERATED,
    JOINED,
    REAL,
    REPAIRED,
    SolidBench,
    Solids,
    ask_freecad,
    find_freecad,
    judge_solids,
    measure_solids,
)
from sketchdnn.errors import SketchError
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Line, Sketch

CORNERS = [(0.0, 0.0), (80.0, 0.0), (80.0, 60.0), (0.0, 60.0)]
SQUARE = tuple(Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True))
PLATE = Sketch((*SQUARE, Circle((30, 30), 10)))
OPEN = Sketch(SQUARE[:3])
GAP = Sketch((*SQUARE[:3], Line((0, 60), (0, 0.3))))
TWO = Sketch((Circle((0, 0), 10), Circle((50, 0), 10)))
CROSSED = Sketch(tuple(Line(CORNERS[a], CORNERS[b]) for a, b in ((0, 1), (1, 3), (3, 2), (2, 0))))


def test_what_pads_and_what_does_not(freecadcmd: str) -> None:
    found = [judge_solids(freecadcmd, "", "", [sketch]) for sketch in (PLATE, OPEN, GAP, TWO, CROSSED)]
    assert [(each.opened, each.solved, each.clean) for each in found] == [(1, 1, 1)] * 5
    assert [each.pads for each in found] == [1, 0, 0, 0, 0]
    assert [each.extrudes for each in found] == [1, 0, 0, 1, 0]
    assert found[0].as_meant == 1


def test_repair_makes_solids(freecadcmd: str) -> None:
    assert freecadcmd
    bench = measure_solids([GAP, PLATE], [PLATE, PLATE])
    pads = {(each.sketches, each.how): each.pads for each in bench.sets}
    assert pads[GENERATED, "raw"] == 1
    assert pads[GENERATED, REPAIRED] == pads[REAL, REPAIRED] == 2
    assert bench.ratio() == 1
    assert all(each.as_meant == each.pads for each in bench.sets)
    words = bench.markdown("python -m benchmarks solids")
    assert words.count(": met") == 2
    assert "snap" in words


def test_goals_can_be_missed() -> None:
    sets = [
        Solids(name, how, 10, 10, solved, solved, pads, pads, pads, 0, 0)
        for name, solved, pads in ((GENERATED, 9, 8), (REAL, 10, 10))
        for how in (JOINED, REPAIRED)
    ]
    words = list(SolidBench(tuple(sets), {}).sentences())
    assert all("missed" in sentence for sentence in words[:2])
    assert "80 %" in words[2]


def test_freecad_sees_a_conflict(freecadcmd: str, tmp_path: Path) -> None:
    """So a `solve()` of 0 says something: what our own writer would switch off makes it another number."""
    look = """
def look(document, task):
    sketch = document.Objects[0]
    for kind, value in task["added"]:
        sketch.addConstraint(Sketcher.Constraint(kind, 0, value) if value else Sketcher.Constraint(kind, 0))
    return {"solve": sketch.solve()}
"""
    write(Sketch(SQUARE[:1]), tmp_path / "line.FCStd")
    added = ([["Horizontal", 0]], [["Horizontal", 0], ["Horizontal", 0]], [["Distance", 80], ["Distance", 90]])
    tasks = [{"document": str(tmp_path / "line.FCStd"), "added": each} for each in added]
    fine, redundant, conflicting = (answer["solve"] for answer in ask_freecad(freecadcmd, look, tasks) if answer)
    assert fine == 0
    assert redundant < 0
    assert conflicting < 0


def test_a_document_that_kills_freecad_is_one_without_an_answer(freecadcmd: str, tmp_path: Path) -> None:
    paths = [document(tmp_path / f"{i}.FCStd") for i in range(3)]
    look = "def look(document, task):\n    if task['die']: os._exit(3)\n    return {'label': task['die']}"
    tasks = [{"document": str(path), "die": i == 1} for i, path in enumerate(paths)]
    assert ask_freecad(freecadcmd, look, tasks) == [{"label": False}, None, {"label": False}]


def test_without_freecad_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SketchError, match="install FreeCAD"):
        find_freecad()
