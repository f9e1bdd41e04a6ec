"""What commands say of what they read: notes, counts, units, and the files they are about; on any terminal."""

import json
import os
import tarfile
import zipfile
from pathlib import Path

import ezdxf
import pytest
from support.commands import invoke, program, run

import sketchdnn
from sketchdnn.errors import FormatError, display_path, quoted
from sketchdnn.formats import Skipped, read, write
from sketchdnn.geometry import Circle, Line, Sketch

PART = Sketch((Line((0.0, 0.0), (30.0, 0.0)), Circle((5.0, 5.0), 2.0)), units="mm")
PLATE = Sketch((Circle((0, 0), 5), *(Line((k, 9), (k + 1, 10)) for k in range(9))), units="mm")
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


def test_bad_options_and_narrow_terminals(tmp_path: Path) -> None:
    source = curved(tmp_path / "a.dxf")
    for wrong in (["--flatten", "0"], ["--flatten", "much"], ["--assume-units", "parsec"]):
        assert invoke("convert", source, tmp_path / "a.json", *wrong).exit_code != 0
    for arguments in (["--help"], ["convert", "--help"]):
        told = program(*arguments, cwd=tmp_path, PYTHONIOENCODING="ascii", LANG="C", LC_ALL="C")
        assert told.returncode == 0
        assert "Traceback" not in told.stderr
        assert told.stdout.isascii()


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
    path = Path(os.environ.get("SKETCHDNN_HOSTILE", ""), "terminal_long_reason.FCStd")
    if not path.is_file():
        pytest.skip("SKETCHDNN_HOSTILE does not name the folder of hostile files")
    for reason in read(path).skipped:
        assert len(reason) <= 200
        assert reason.isprintable()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00garbage", b"[core\nno = equals"])
def test_ezdxf_ini_of_working_folder_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ezdxf.ini").write_bytes(content)
    write(PART, tmp_path / "a.json")
    for arguments in (["convert", "a.json", "a.dxf"], ["convert", "a.dxf", "b.json"]):
        told = program(*arguments, cwd=tmp_path)
        assert (told.returncode, told.stdout) == (0, ""), told.stderr
    assert read(tmp_path / "b.json").sketches[0].primitives == PART.primitives


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


def test_commands_name_the_files_of_each_reason(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "parts.tar", "w") as archive:
        archive.add(folder, "parts")
    for source in (folder, tmp_path / "parts.tar"):
        said = run("convert", source, tmp_path / "all.jsonl").stderr.splitlines()
        assert "skipped 6 × not JSON (in a.jsonl, b.jsonl, c.jsonl and 3 more files)" in said
        assert "skipped 1 × an unreadable file: is not a sketch (in odd.json)" in said
        assert "skipped 1 × an unreadable file: is empty (in empty.dxf)" in said
    said = run("convert", folder / "a.jsonl", tmp_path / "one.json").stderr.splitlines()
    assert "skipped 1 × not JSON" in said  # the only input need not be named
    said = run("view", folder / "a.jsonl", folder / "b.jsonl", "--out", tmp_path / "a.svg").stderr
    assert f"skipped 2 × not JSON (in {folder / 'a.jsonl'}, {folder / 'b.jsonl'})" in said
    said = run("constrain", folder, "--out", tmp_path / "all.jsonl", "--tolerance", "5mm").stderr
    assert "at most 3% makes sense" in said.replace("…%", "3%")
    assert "(in a.jsonl, b.jsonl, c.jsonl and 4 more files)" in said
    said = invoke("complete", folder / "a.jsonl", "--out", tmp_path / "out", "--format", "none")
    assert f"{folder / 'a.jsonl'}: left out 1 × not JSON" in said.stderr
    said = run("prepare", folder, "--out", tmp_path / "corpus", "--workers", "1")
    assert said.stderr.splitlines() == [
        "parts/empty.dxf: not read, it is empty",
        "parts/odd.json: not read, it is not a sketch",
    ]
    for name in "abcdef":
        (folder / f"{name}.jsonl").unlink()
    Sketch((Circle((0, 0), 5),)).save(folder / "disc.json")
    said = run("convert", folder, tmp_path / "scripts", "--format", "cadquery").stderr
    assert "a sketch without units, its lengths taken as millimeters (in 000001.py)" in said
    assert all(each in said for each in ("skipped 1 × a sketch that ", "(in 000002.py)"))


def test_version_and_completion_in_a_shell() -> None:
    assert program("--version").stdout == f"sketchdnn {sketchdnn.__version__}\n"
    script = program("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    assert "_SKETCHDNN_COMPLETE=complete_bash" in script
    asked = {"_SKETCHDNN_COMPLETE": "complete_bash", "COMP_WORDS": "sketchdnn con", "COMP_CWORD": "1"}
    assert program(**asked).stdout.split() == ["constrain", "convert"]
