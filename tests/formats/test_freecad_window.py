"""What FreeCAD's window shows of the documents that we write, as they open. It is started once."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.freecad_forms import all_forms
from support.freecad_window import look

from sketchdnn.formats import freecad
from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch

SIDES = Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 0))
FAR_AWAY = Sketch(tuple(Line((x, y), (x + 1, y + 1)) for x, y in ((9000, 9000), (9001, 9000))), units="m")
SHOWN = {
    "plain": [Sketch((*SIDES, Circle((28, 10), 5), Arc((0, 0), 20, 0.1, 1.2)), units="mm")],
    "small": [Sketch((Circle((0, 0), 1e-3),), units="mm")],
    "far": [FAR_AWAY],
    "many": list(all_forms()),
    "with_an_empty_one": [Sketch(SIDES), Sketch(())],
}


@pytest.mark.usefixtures("freecad_window")
def test_documents_are_visible_and_fitted_as_they_open(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.FCStd" for name in SHOWN]
    for path, sketches in zip(paths, SHOWN.values(), strict=True):
        freecad.FORMAT.write(sketches, path)
    (tmp_path / "views").mkdir()
    for path, found in zip(paths, look(paths, tmp_path / "views"), strict=True):
        assert found["visible"] == [True] * len(SHOWN[path.stem]), path.stem
        assert 0.002 < found["lit"] < 0.5, path.stem  # a drawing, neither nothing nor a speck


@pytest.mark.parametrize("sketches", [[], [Sketch(())], [Sketch((Point((1, 1)),))], SHOWN["many"]])
def test_written_documents_are_the_same_bytes_and_show_every_object(tmp_path: Path, sketches: list[Sketch]) -> None:
    for name in ("a.FCStd", "b.FCStd"):
        freecad.FORMAT.write(sketches, tmp_path / name)
    assert (tmp_path / "a.FCStd").read_bytes() == (tmp_path / "b.FCStd").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.FCStd") as archive:
        assert archive.namelist() == ["Document.xml", "GuiDocument.xml"]
        view = archive.read("GuiDocument.xml").decode()
    assert view.count("<ViewProvider name=") == view.count('<Bool value="true"/>') == len(sketches)
    assert view.count("<Camera ") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("freecad_window")
def test_generated_documents_are_visible(tmp_path: Path) -> None:
    """60 of them: minutes on a CPU."""
    command = [sys.executable, "-m", "sketchdnn", "generate", "--count", "60", "--seed", "0", "--format", "fcstd"]
    subprocess.run([*command, "--out", str(tmp_path / "out")], check=True)
    paths = sorted((tmp_path / "out").rglob("*.FCStd"))
    assert len(paths) == 60
    (tmp_path / "views").mkdir()
    found = look(paths, tmp_path / "views", patience=1800)
    assert sum(one["lit"] > 0 and all(one["visible"]) for one in found) == 60
