"""FreeCAD on documents: it must be able to refuse, and a crash must not stop the benchmark."""

from pathlib import Path

import pytest
from support.freecad_document import document
from support.sketch_sets import polygon

from benchmarks import freecad
from sketchdnn.errors import SketchError
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Line, Sketch

CORNERS = [(0.0, 0.0), (80.0, 0.0), (80.0, 60.0), (0.0, 60.0)]
SQUARE = tuple(polygon(*CORNERS))
PLATE = Sketch((*SQUARE, Circle((30, 30), 10)))
OPEN = Sketch(SQUARE[:3])
GAP = Sketch((*SQUARE[:3], Line((0, 60), (0, 0.3))))
TWO = Sketch((Circle((0, 0), 10), Circle((50, 0), 10)))
CROSSED = Sketch(tuple(Line(CORNERS[a], CORNERS[b]) for a, b in ((0, 1), (1, 3), (3, 2), (2, 0))))


def test_only_closed_profiles_pad_and_repair_makes_solids(freecadcmd: str) -> None:
    counts = [freecad.count_solids(freecadcmd, "", "", [sketch]) for sketch in (PLATE, OPEN, GAP, TWO, CROSSED)]
    assert [(c.opened, c.solved, c.without_conflict) for c in counts] == [(1, 1, 1)] * 5
    assert [(c.pads, c.extrudes) for c in counts] == [(1, 1), (0, 0), (0, 0), (0, 1), (0, 0)]
    assert counts[0].right_volume == 1
    assert freecadcmd
    result = freecad.measure_solids([GAP, PLATE], [PLATE, PLATE])
    pads = {(counts.sketches, counts.treatment): counts.pads for counts in result.sets}
    assert pads[freecad.GENERATED, "raw"] == 1
    assert pads[freecad.GENERATED, freecad.REPAIRED] == pads[freecad.REAL, freecad.REPAIRED] == 2
    assert result.ratio() == 1
    assert all(counts.right_volume == counts.pads for counts in result.sets)
    page = result.markdown("python -m benchmarks solids")
    assert page.count(": met") == 2
    assert "snap" in page
    # Goals can be missed.
    sets = []
    for name, solved, pads in ((freecad.GENERATED, 9, 8), (freecad.REAL, 10, 10)):
        counts = (10, 10, solved, solved, pads, pads, pads, 0, 0)
        sets += [freecad.SolidCounts(name, treatment, *counts) for treatment in (freecad.JOINED, freecad.REPAIRED)]
    sentences = list(freecad.SolidBenchmark(tuple(sets), {}).sentences())
    assert all("missed" in sentence for sentence in sentences[:2])
    assert "80 %" in sentences[2]


def test_freecad_reports_conflicts(freecadcmd: str, tmp_path: Path) -> None:
    """Constraints that our writer would make inactive give another result of `solve()`."""
    script = """
def evaluate(document, task):
    sketch = document.Objects[0]
    for kind, value in task["added"]:
        sketch.addConstraint(Sketcher.Constraint(kind, 0, value) if value else Sketcher.Constraint(kind, 0))
    return {"solve": sketch.solve()}
"""
    write(Sketch(SQUARE[:1]), tmp_path / "line.FCStd")
    added = ([["Horizontal", 0]], [["Horizontal", 0], ["Horizontal", 0]], [["Distance", 80], ["Distance", 90]])
    tasks = [{"document": str(tmp_path / "line.FCStd"), "added": constraints} for constraints in added]
    consistent, redundant, conflicting = (a["solve"] for a in freecad.run_in_freecad(freecadcmd, script, tasks) if a)
    assert max(redundant, conflicting) < consistent == 0


def test_crash_of_freecad_or_its_absence(freecadcmd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [document(tmp_path / f"{i}.FCStd") for i in range(3)]
    script = "def evaluate(document, task):\n    if task['die']: os._exit(3)\n    return {'label': task['die']}"
    tasks = [{"document": str(path), "die": i == 1} for i, path in enumerate(paths)]
    assert freecad.run_in_freecad(freecadcmd, script, tasks) == [{"label": False}, None, {"label": False}]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SketchError, match="install FreeCAD"):
        freecad.find_freecad()
