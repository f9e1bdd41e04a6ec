"""What commands say of what they read: notes, counts, units; on any terminal, from any folder."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import ezdxf
import pytest
from support.commands import invoke, program, run

from sketchdnn.errors import FormatError, display_path, quoted
from sketchdnn.formats import Skipped, read, write
from sketchdnn.geometry import Circle, Line, Sketch

PART = Sketch((Line((0.0, 0.0), (30.0, 0.0)), Circle((5.0, 5.0), 2.0)), units="mm")
EVIL = "\x1b]0;title\x07\x9b2J\u202e\n" + "Z" * 5000


def curved(path: Path) -> Path:
    """A drawing without units: a line, half an ellipse, and a line that is not shown."""
    document = ezdxf.new(units=0)
    document.layers.add("HIDDEN").off()
    space = document.modelspace()
    space.add_line((0, 0), (4, 0))
    space.add_ellipse((2, 0), (2, 0), 0.5, start_param=0, end_param=3.141592653589793)
    space.add_line((0, 0), (9, 9), {"layer": "HIDDEN"})
    document.saveas(path)
    return path


@pytest.mark.parametrize("command", ["convert", "constrain", "view"])
def test_commands_report_changes_and_omissions(tmp_path: Path, command: str) -> None:
    source, out = curved(tmp_path / "a.dxf"), tmp_path / ("out.png" if command == "view" else "out.json")
    names = [source, out] if command == "convert" else [source, "--out", out]
    told = run(command, *names)
    assert "1 × ELLIPSE read as lines and arcs within 0.01 mm" in told.stderr
    assert "1 × a drawing without units, its lengths taken as mm (--assume-units names another unit)" in told.stderr
    assert "skipped 1 × LINE on a layer that is off" in told.stderr
    told = run(command, *names, "--flatten", "off", "--assume-units", "in")
    assert "skipped 1 × ELLIPSE that is no circle" in told.stderr
    assert "without units" not in told.stderr
    if command == "convert":
        assert [sketch.units for sketch in read(out)] == ["in"]


def test_bad_read_options_are_refused(tmp_path: Path) -> None:
    source = curved(tmp_path / "a.dxf")
    for wrong in (["--flatten", "0"], ["--flatten", "much"], ["--assume-units", "parsec"]):
        assert invoke("convert", source, tmp_path / "a.json", *wrong).exit_code != 0


def test_quoted_text_is_short_and_printable(tmp_path: Path) -> None:
    for text in (str(FormatError("a", EVIL)), Skipped(EVIL).reason, quoted(EVIL), display_path(EVIL)):
        assert text.isprintable()
    assert max(len(Skipped(EVIL).reason), len(quoted(EVIL)), len(quoted("\n" * 5000))) <= 200
    write(PART, tmp_path / "a.FCStd")
    with zipfile.ZipFile(tmp_path / "a.FCStd") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert b'type="Part::GeomCircle"' in members["Document.xml"]
    evil = EVIL.replace("\x1b", "").replace("\x07", "").replace("\n", "").encode()  # XML has no place for those
    members["Document.xml"] = members["Document.xml"].replace(b"Part::GeomCircle", b"Part::" + evil)
    with zipfile.ZipFile(tmp_path / "a.FCStd", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    (tmp_path / "b.json").write_text(json.dumps({"primitives": [["P", 0, 0, 0]], "units": EVIL}))
    for told in (
        invoke("convert", tmp_path / "a.FCStd", tmp_path / "a.json"),
        invoke("convert", tmp_path / "b.json", tmp_path / "a.json"),
    ):
        said = told.stderr + str(told.exception or "")
        assert "ZZZ" in said
        assert "Z" * 201 not in said
        assert all(line.isprintable() for line in said.splitlines())


def test_long_reasons_are_cut() -> None:
    path = Path(os.environ.get("SKETCHDNN_HOSTILE", ""), "terminal_long_reason.FCStd")
    if not path.is_file():
        pytest.skip("SKETCHDNN_HOSTILE does not name the folder of hostile files")
    for reason in read(path).skipped:
        assert len(reason) <= 200
        assert reason.isprintable()


def test_help_on_ascii_terminal(tmp_path: Path) -> None:
    for arguments in (["--help"], ["convert", "--help"]):
        told = program(*arguments, cwd=tmp_path, PYTHONIOENCODING="ascii", LANG="C", LC_ALL="C")
        assert told.returncode == 0
        assert "Traceback" not in told.stderr
        assert told.stdout.isascii()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00garbage", b"[core\nno = equals"])
def test_ezdxf_ini_of_working_folder_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ezdxf.ini").write_bytes(content)
    write(PART, tmp_path / "a.json")
    for arguments in (["convert", "a.json", "a.dxf"], ["convert", "a.dxf", "b.json"]):
        told = program(*arguments, cwd=tmp_path)
        assert (told.returncode, told.stdout) == (0, ""), told.stderr
    assert read(tmp_path / "b.json").sketches[0].primitives == PART.primitives
