"""A folder that `generate` wrote, read back: each sketch once, by its name, whatever its manifest claims."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.data import Procedural, prepare
from sketchdnn.formats import convert, manifest, read, write
from sketchdnn.generation import GeneratedSketch, write_sketches
from sketchdnn.geometry import Circle, Line, Sketch

SKETCHES = [Sketch((Line((0, 0), (80, 0)), Circle((40, 20), 5.0 + n)), units="mm") for n in range(3)]
NAMES = ["sketch-0000", "sketch-0001", "sketch-0002"]


@pytest.fixture
def plates(tmp_path: Path) -> Path:
    out = tmp_path / "plates"
    write_sketches(map(GeneratedSketch, range(3), SKETCHES), 3, out, ["json", "svg", "dxf", "fcstd"])
    return out


def test_each_sketch_is_read_once_by_its_name(plates: Path) -> None:
    (plates / ".sketchdnn-manifest-00000.part").write_text("{}")  # another run there, which is not finished
    found = read(plates.parent)  # also in a folder above
    assert not found.skipped
    assert [sketch.extra["id"] for sketch in found] == NAMES
    assert [replace(sketch, extra={}) for sketch in found] == SKETCHES
    result = convert(plates, plates.parent / "drawings", format="dxf")
    assert (result.written, not result.skipped) == (3, True)
    assert sorted(path.stem for path in (plates.parent / "drawings").iterdir()) == NAMES


def test_view_shows_each_sketch_once(plates: Path) -> None:
    out = plates.parent / "view.html"
    result = CliRunner().invoke(app, ["view", str(plates), "--out", str(out)])
    assert result.stderr == f"{out}: 3 sketches\n"
    assert all(out.read_text().count(f"{name}<") == 1 for name in NAMES)
    # Nor does a view of the folder replace one of its files.
    before = (plates / "sketch-0001.svg").read_bytes()
    result = CliRunner().invoke(app, ["view", str(plates), "--out", str(plates / "sketch-0001.svg")])
    assert "is an input" in str(result.exception)
    assert (plates / "sketch-0001.svg").read_bytes() == before


def test_files_of_the_user_are_read_too(plates: Path) -> None:
    changed = Sketch((Circle((0, 0), 1),), units="mm")
    write(changed, plates / "sketch-0001.dxf")  # as one does in a CAD program
    write(changed, plates / "mine.json")
    (plates / "sketch-0002.json").unlink()
    found = list(read(plates))
    assert [sketch.extra.get("id") for sketch in found] == [*NAMES, None]
    assert [len(sketch) for sketch in found] == [2, 1, 2, 1]


def test_prepare_takes_each_sketch_once(plates: Path) -> None:
    report = prepare([plates], plates.parent / "corpus", parts=Procedural(20), workers=1)
    assert (report["found"], report["files"], report["files_not_read"]) == (23, 3, {})


def rewritten(plates: Path, **changes: Any) -> None:
    path = plates / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_manifest_leads_nowhere_else(plates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = plates.parent / "outside.json"
    write(SKETCHES[0], outside)
    (plates / "linked.json").symlink_to(outside)
    (plates / "deep").mkdir()
    write(SKETCHES[0], plates / "deep" / "own.json")
    hostile = ["../outside.json", str(outside), "linked.json", "deep/own.json", "..", "", "\0", "\ud800", 7, None, {}]
    hostile += ["sketch-0000.json"] * 1000
    read_entries = [{"files": [name]} for name in hostile] + [{"files": 3}, [], None, {"files": hostile, "sha256": "x"}]
    opened: list[Path] = []
    original = Path.open

    def noted(self: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(self)
        return original(self, *arguments, **options)

    rewritten(plates, sketches=read_entries)
    monkeypatch.setattr(Path, "open", noted)
    found = list(read(plates))
    assert outside not in opened
    assert plates / "linked.json" not in opened
    assert opened.count(plates / "sketch-0000.json") <= 4  # however often it is listed
    own = [sketch for sketch in found if sketch.extra.get("id") is None]
    # What it does not account for is read as in any folder: two sketches in four formats, and the one below.
    assert len(own) == 2 * 4 + 3 + 1


def test_names_of_files_come_before_ids(tmp_path: Path) -> None:
    """`generate` gives each sketch an id such as "seed 0, sketch 1", which is no name for a file."""
    drawn = [replace(sketch, extra={"id": f"seed 0, sketch {number}"}) for number, sketch in enumerate(SKETCHES)]
    write_sketches(map(GeneratedSketch, range(3), drawn), 3, tmp_path / "plates", ["json", "dxf"])
    convert(tmp_path / "plates", tmp_path / "drawings", format="svg")
    assert sorted(path.stem for path in (tmp_path / "drawings").iterdir()) == NAMES


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"null", b'{"program": "another", "sketches": []}'])
def test_a_manifest_that_is_none_is_a_file_like_others(plates: Path, content: bytes) -> None:
    (plates / "manifest.json").write_bytes(content)
    assert len(read(plates)) == 12


def test_a_manifest_too_large_to_parse_is_read_by_lines(plates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "LARGEST_WHOLE", 100)
    monkeypatch.setattr(manifest, "LONGEST_LINE", 2000)
    path = plates / "manifest.json"
    path.write_text(path.read_text() + "x" * 1_000_000)
    assert [sketch.extra["id"] for sketch in read(plates)] == NAMES
    assert write_sketches(map(GeneratedSketch, range(1), SKETCHES), 1, plates, ["json"]).removed == 12


def test_a_copied_folder_is_read_alike(plates: Path) -> None:
    shutil.copytree(plates, plates.parent / "copies" / "of")
    assert [sketch.extra["id"] for sketch in read(plates.parent / "copies")] == NAMES
