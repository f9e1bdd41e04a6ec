"""Messages about several inputs say which file each is about."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from support.commands import invoke, run

from sketchdnn import Circle, Line, Sketch

PLATE = Sketch((Circle((0, 0), 5), *(Line((k, 9), (k + 1, 10)) for k in range(9))), units="mm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sketch that is whole, one with a row that is none, a file that is empty, and lines that are no JSON."""
    folder = tmp_path / "parts"
    folder.mkdir()
    PLATE.save(folder / "whole.json")
    record = json.loads((folder / "whole.json").read_text())
    (folder / "odd.json").write_text(json.dumps({**record, "primitives": [*record["primitives"], 7]}))
    (folder / "empty.dxf").write_text("")
    for name in "abcdef":
        (folder / f"{name}.jsonl").write_text(f"{json.dumps(record)}\nno JSON\n")
    return folder


def test_convert_names_files_of_each_reason(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "parts.tar", "w") as archive:
        archive.add(folder, "parts")
    for source in (folder, tmp_path / "parts.tar"):
        said = run("convert", source, tmp_path / "all.jsonl").stderr.splitlines()
        assert "skipped 6 × not JSON (in a.jsonl, b.jsonl, c.jsonl and 3 more files)" in said
        assert "skipped 1 × an unreadable file: is not a sketch (in odd.json)" in said
        assert "skipped 1 × an unreadable file: is empty (in empty.dxf)" in said
    said = run("convert", folder / "a.jsonl", tmp_path / "one.json").stderr.splitlines()
    assert "skipped 1 × not JSON" in said  # the only input need not be named


def test_losses_name_the_written_file(folder: Path, tmp_path: Path) -> None:
    for name in "abcdef":
        (folder / f"{name}.jsonl").unlink()
    Sketch((Circle((0, 0), 5),)).save(folder / "disc.json")
    said = run("convert", folder, tmp_path / "scripts", "--format", "cadquery").stderr
    assert "a sketch without units, its lengths taken as millimeters (in 000001.py)" in said
    assert "skipped 1 × a sketch that " in said
    assert "(in 000002.py)" in said


def test_view_names_files_of_each_reason(folder: Path, tmp_path: Path) -> None:
    said = run("view", folder / "a.jsonl", folder / "b.jsonl", "--out", tmp_path / "a.svg").stderr
    assert f"skipped 2 × not JSON (in {folder / 'a.jsonl'}, {folder / 'b.jsonl'})" in said


def test_constrain_names_files_of_each_warning(folder: Path, tmp_path: Path) -> None:
    said = run("constrain", folder, "--out", tmp_path / "all.jsonl", "--tolerance", "5mm").stderr
    assert "at most 3% makes sense" in said.replace("…%", "3%")
    assert "(in a.jsonl, b.jsonl, c.jsonl and 4 more files)" in said


def test_complete_names_file_of_skipped_items(folder: Path, tmp_path: Path) -> None:
    said = invoke("complete", folder / "a.jsonl", "--out", tmp_path / "out", "--format", "none")
    assert f"{folder / 'a.jsonl'}: left out 1 × not JSON" in said.stderr


def test_prepare_names_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    said = run("prepare", folder, "--out", tmp_path / "corpus", "--workers", "1")
    assert said.stderr.splitlines() == [
        "parts/empty.dxf: not read, it is empty",
        "parts/odd.json: not read, it is not a sketch",
    ]
