"""All formats through one interface: detection, folders, archives, errors, losses, dumps and loads."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.freecad_document import document_xml
from support.outlines import rectangle
from support.strategies import assert_same
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import FORMATS, Format, ReadItem, Skipped, archives, convert, registry, scan
from sketchdnn.formats.registry import detect_format, dumps, find_writer, loads, read, write
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch

PART = Sketch(
    (Line((0.0, 0.0), (30.0, 0.0)), Arc((30.0, 10.0), 10.0, -1.5, 3.0), Circle((5.0, 5.0), 2.0), Point((1.0, 2.0))),
    units="mm",
)
WRITABLE = [f for f in FORMATS if f.write and f.read]  # solids and scripts are written alone
# What each format is written as when the suffix decides.
BY_SUFFIX = {
    ".json": "json", ".onshape.json": "onshape", ".jsonl": "jsonl", ".jsonl.xz": "jsonl", ".corpus.jsonl": "corpus",
    ".svg": "svg", ".stp": "step", ".py": "cadquery", ".build123d.py": "build123d",
}  # fmt: skip


def test_formats_are_chosen_by_suffix_or_name(tmp_path: Path) -> None:
    assert len({f.name.lower() for f in FORMATS}) == len(FORMATS)
    assert all(suffix.startswith(".") for f in FORMATS for suffix in f.suffixes)
    suffixes = [suffix.lower() for f in FORMATS if f.write for suffix in f.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for suffix, name in BY_SUFFIX.items():
        assert find_writer(f"folder.svg/part{suffix}").name == name
        assert find_writer(f"PART{suffix.upper()}").name == name
    write(PART, tmp_path / "part.jsonl", "corpus")
    assert detect_format(tmp_path / "part.jsonl").name == "corpus"
    assert find_writer("x", "FCStd") is find_writer("x.fcstd")
    with pytest.raises(SketchError, match=r"'iges' is no format that we write; use one of .*jsonl"):
        write(PART, tmp_path / "part.iges", "iges")
    with pytest.raises(FormatError, match=r"part\.iges: cannot be written: its name must end in .*\.jsonl"):
        write(PART, tmp_path / "part.iges")
    with pytest.raises(SketchError, match="'hpsketch' is no format that we write"):
        write(PART, tmp_path / "part.h5", "hpsketch")
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(FormatError, match=r"notes\.txt: is in no format that we read: .*\.npy.*\.dxf") as caught:
        read(tmp_path / "notes.txt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", WRITABLE, ids=lambda f: f.name)
def test_every_writer_has_its_reader(tmp_path: Path, form: Format) -> None:
    path, nameless = tmp_path / f"part{form.suffixes[0]}", tmp_path / "nameless"
    write(PART, path)
    assert detect_format(path) is form
    reading = read(path)
    assert not reading.skipped
    assert_same(PART, reading.sketches[0].in_units("mm"))
    path.rename(nameless)
    if form.name in ("json", "jsonl", "corpus", "onshape"):  # text that only its name tells from any other JSON
        with pytest.raises(FormatError, match="in no format that we read"):
            detect_format(nameless)
    else:
        assert detect_format(nameless) is form


@pytest.mark.parametrize("form", WRITABLE, ids=lambda f: f.name)
def test_many_sketches_keep_their_order_or_are_refused(tmp_path: Path, form: Format) -> None:
    path = tmp_path / f"many{form.suffixes[0]}"
    many = [PART.moved(1.0, (float(i), 0.0)) for i in range(5)]
    if form.multiple_sketches:
        write(iter(many), path)
        for before, after in zip(many, read(path), strict=True):
            assert_same(before, after.in_units("mm"))
        return
    for some in ([], many):
        with pytest.raises(FormatError, match="holds one sketch"):
            write(some, path)
    assert list(tmp_path.iterdir()) == []


def test_folder_is_read_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    (folder / "b" / "deep").mkdir(parents=True)
    write(replace(PART, extra={"id": "first"}), folder / "a.json")
    write(
        [replace(PART, extra={"id": "second"}), replace(PART, extra={"id": "third"})], folder / "b" / "deep" / "x.jsonl"
    )
    write(replace(PART, extra={"id": "fourth"}), folder / "c.json")
    (folder / "readme.txt").write_text("hello")
    (folder / "notes.txt").write_text("hello")
    (folder / "b" / "broken.json").write_text("{")
    (folder / "empty.svg").touch()
    (folder / "gone.dxf").symlink_to(tmp_path / "nowhere")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.dxf")
    reading = read(folder)
    assert [sketch.extra["id"] for sketch in reading] == ["first", "fourth", "second", "third"]
    assert reading.skipped == {
        "an unreadable file: is in no format that we read": 2, "an unreadable file: is not a sketch": 1,
        "an unreadable file: is empty": 1, "an unreadable file: cannot be read (No such file or directory)": 1,
        "an unreadable file: is not a regular file": 1,
    }  # fmt: skip


def test_unlistable_folder_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shut = tmp_path / "parts" / "shut"
    shut.mkdir(parents=True)
    write(PART, tmp_path / "parts" / "open.json")
    write(PART, shut / "lost.json")
    real = os.scandir

    def scandir(path: str) -> object:
        if Path(path) == shut:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    reading = read(tmp_path / "parts")
    assert len(reading) == 1
    assert reading.skipped == {"an unreadable file: cannot be listed (Permission denied)": 1}
    with pytest.raises(FormatError, match=r"shut: cannot be listed \(Permission denied\)"):
        read(shut)


def test_archive_may_hold_any_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mixed.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for form in WRITABLE:
            file = tmp_path / f"part{form.suffixes[0]}"
            write(PART, file)
            archive.add(file, f"folder/{file.name}")
            file.unlink()
    assert len(read(path)) == len(WRITABLE)
    with pytest.raises(FormatError, match="is an archive"):
        detect_format(path)
    with tarfile.open(tmp_path / "untold", "w") as archive:
        archive.addfile(tarfile.TarInfo("nothing.txt"), io.BytesIO())
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    no_file = "an archive member that is no plain file"
    assert read(tmp_path / "untold").skipped == {"an unreadable file: is empty": 1, no_file: 1}
    monkeypatch.setattr(archives, "LARGEST_MEMBER", 10)
    path = tmp_path / "big.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("big.json")
        member.size = 11
        archive.addfile(member, io.BytesIO(bytes(11)))
    assert list(scan(path)) == [Skipped("an archive member larger than 0 MiB")]


def _failing(error: Exception) -> Format:
    def fail(path: Path) -> Iterator[ReadItem]:
        yield PART
        raise error

    return Format("failing", (".fail",), multiple_sketches=True, recognizes=lambda path, head: True, read=fail)


@pytest.mark.parametrize(("error", "reason"), [
    (OSError(5, "Input/output error"), r"cannot be read \(Input/output error\)"),
    (MemoryError(), r"cannot be read \(MemoryError\)"),
    (RecursionError("too deep\nin here"), r"cannot be read \(too deep\)"),
    (KeyError("x"), r"cannot be read \('x'\)"),
    (SketchError("is odd"), "is odd"),
])  # fmt: skip
def test_reader_exceptions_become_format_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(registry, "FORMATS", (_failing(error),))
    path = tmp_path / "file.fail"
    path.write_text("x")
    found = scan(path)
    assert next(found) == PART
    with pytest.raises(FormatError, match=rf"file\.fail: {reason}$") as caught:
        next(found)
    assert caught.value.__cause__ is error
    # In a folder the same failure costs one file, not the rest.
    (tmp_path / "other.fail").write_text("x")
    assert len(read(tmp_path)) == 2


@pytest.mark.parametrize("name", ["nothing.dxf", "nul\0.dxf", "x" * 5000 + ".dxf"])
def test_paths_that_lead_nowhere(tmp_path: Path, name: str) -> None:
    for ask in (read, detect_format):
        with pytest.raises(FormatError):
            ask(tmp_path / name)


@pytest.mark.parametrize("name", ["part.json", "part.svg", "part.dxf", "part.FCStd"])
def test_same_sketch_gives_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sketch = Sketch((Line((0, 0), (3, 1)), Circle((1, 1), 2, True)), units="mm")
    sketch.save(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    later = time.time() + 4_000_000
    monkeypatch.setattr(time, "time", lambda: later)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(later))
    sketch.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == before


def test_processes_write_same_bytes(tmp_path: Path) -> None:
    """Nothing follows the order of a set, which is another in every process."""
    program = (
        "import sys; from sketchdnn import Circle, Sketch\n"
        "for name in ('part.dxf', 'part.FCStd', 'part.svg', 'part.json'):\n"
        "    Sketch((Circle((1, 1), 2, True),), units='mm').save(f'{sys.argv[1]}/{name}')"
    )
    for seed in "12":
        (tmp_path / seed).mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", program, str(tmp_path / seed)], check=True, env=environment)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


T = ConstraintType
OFF = "a constraint switched off in FreeCAD"
MISSED = f"{OFF}: the geometry does not satisfy it ('sketchdnn constrain' moves it)"
PARAMETER = "a constraint's parameter that is neither a number, a word nor a flag"
METERS = "a sketch without units, its lengths taken as meters"
ENDS = [(0, 0), (100, 0.2), (100.2, 50), (0.2, 50.2)]
# A rectangle drawn by hand: every side is off by 0.2 % of the size.
CROOKED = Sketch(
    tuple(Line(ENDS[i], ENDS[(i + 1) % 4]) for i in range(4)),
    (
        *(Constraint(T.HORIZONTAL if i % 2 == 0 else T.VERTICAL, (Ref(i),)) for i in range(4)),
        *(Constraint(T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4)),
    ),
    "mm",
)
# Something of everything that one format or another does not hold.
RICH = Sketch(
    (*rectangle(0, 0, 30, 20), Circle((10.0, 10.0), 2.0), Line((0.0, 0.0), (30.0, 20.0), construction=True),
        Point((3.0, 3.0))),
    (Constraint(T.HORIZONTAL, (Ref(0),)), Constraint(T.HORIZONTAL, (Ref(0),)),
        Constraint(T.RADIUS, (Ref(4),), 2.0, extra={"list": [1, 2]}),
        Constraint(T.PARALLEL, (Ref(0), Ref(None, Part.EXTERNAL))), Constraint(T.OTHER, (Ref(4),), name="Pierce")),
    None,
    {"id": "plate", "author": "me", "primitives": {"0": {"color": "red"}}},
)  # fmt: skip


def losses(tmp_path: Path, sketch: Sketch, name: str, **options: object) -> tuple[Counter[str], Counter[str]]:
    write(sketch, tmp_path / "in.json")
    result = convert(tmp_path / "in.json", tmp_path / name, **options)  # type: ignore[arg-type]
    return result.skipped, result.changed


def test_inactive_constraints_are_reported(tmp_path: Path) -> None:
    write(CROOKED, tmp_path / "in.json")
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "in.json"), str(tmp_path / "out.FCStd")])
    assert result.stderr.splitlines() == [f"{tmp_path}/out.FCStd: 1 sketch", f"changed 4 × {MISSED}"]
    assert document_xml(tmp_path / "out.FCStd").count(b'IsActive="0"') == 4
    result = CliRunner().invoke(app, ["constrain", str(tmp_path / "in.json"), "--out", str(tmp_path / "out.FCStd")])
    assert result.exit_code == 0, result.output
    assert MISSED not in result.stderr


@pytest.mark.parametrize("name", ["out.FCStd", "folder/"])
def test_freecad_losses_are_counted(tmp_path: Path, name: str) -> None:
    options = {"format": "freecad"} if name.endswith("/") else {}
    skipped, changed = losses(tmp_path, RICH, name, **options)
    assert not skipped
    assert changed == {
        f"{OFF}: it follows from the others": 1,
        "a constraint only noted in the file: it refers to something outside the sketch": 1,
        "a constraint only noted in the file: FreeCAD has no such constraint for what it refers to": 1,
        "a sketch without units, its lengths taken as millimeters": 1,
    }


@pytest.mark.parametrize(
    ("name", "format_", "left_out", "changed"),
    [("out.svg", "svg", {"a constraint": 5, "a name or other key of a sketch": 2}, {}),
        ("out.dxf", "dxf", {"a constraint": 5, "a name or other key of a sketch": 2}, {}),
        ("out.py",
            "cadquery",
            {"a constraint": 5, "a name or other key of a sketch": 2, "construction geometry": 1, "a point": 1},
            {"a sketch without units, its lengths taken as millimeters": 1}),
        ("out.npy", "sketchgraphs", {"a name or other key of a sketch": 2, PARAMETER: 1}, {METERS: 1}),
        ("out.onshape.json", "onshape", {"a name or other key of a sketch": 2, PARAMETER: 1},
            {METERS: 1, "a reference to something outside the sketch, written as an empty query": 1}),
        ("out.corpus.jsonl", "corpus", {"a primitive's own keys": 1}, {}),
        ("out.jsonl", "jsonl", {}, {})],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_format_losses_are_counted(
    tmp_path: Path, name: str, format_: str, left_out: dict[str, int], changed: dict[str, int]
) -> None:
    found, found_changed = losses(tmp_path, RICH, name)
    assert {reason.removesuffix(f", which {format_} cannot hold"): count for reason, count in found.items()} == left_out
    assert found_changed == changed


@pytest.mark.parametrize(("suffix", "facets"), [("step", 0), ("stl", 1)])
def test_solid_losses_are_counted(tmp_path: Path, freecadcmd: str, suffix: str, facets: int) -> None:
    found, changed = losses(tmp_path, replace(RICH, constraints=(), units="mm", extra={}), f"out.{suffix}")
    assert found == {f"construction geometry, which {suffix} cannot hold": 1, f"a point, which {suffix} cannot hold": 1}
    assert changed == ({"a curve, which stl holds as flat facets": 1} if facets else {})


def test_gaps_that_polylines_close_are_counted(tmp_path: Path) -> None:
    first, *rest = rectangle(0, 0, 30, 20)
    moved = replace(first, end=(30.001, 0.0))
    assert losses(tmp_path, Sketch((first, *rest), units="mm"), "out.dxf", polylines=True)[1] == {}
    assert losses(tmp_path, Sketch((moved, *rest), units="mm"), "out.dxf", polylines=True)[1] == {
        "a gap between ends, closed where a polyline has one corner": 1
    }


def test_dumps_and_loads_are_inverse_or_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    for form in WRITABLE:
        data = dumps(PART, form.name)
        assert isinstance(data, str if form.is_text else bytes)
        result = loads(data, form.name)
        assert not result.skipped
        assert_same(PART, result.sketches[0].in_units("mm"))
        if form.multiple_sketches:
            assert len(loads(dumps([PART, PART], form.name), form.name)) == 2
    for suffix in ("jsonl.gz", "svgz"):
        data = dumps(PART, suffix)
        assert isinstance(data, bytes)
        assert_same(PART, loads(data, suffix).sketches[0])
    assert "import cadquery" in dumps(Sketch((Circle((0.0, 0.0), 1.0),), units="mm"), "cadquery", height=3)
    for form in (f for f in FORMATS if f.read):
        if form.name in ("jsonl", "corpus"):  # a bad line is counted
            assert loads(b"nonsense", form.name).skipped == {"not JSON": 1}
            continue
        with pytest.raises(FormatError, match=f"^{form.name} data: [^/]*$"):
            loads(b"\x00nonsense", form.name)
    monkeypatch.setattr("sketchdnn.formats.json_files.LARGEST_RECORD", 100)
    with pytest.raises(FormatError, match="json data: is larger than"):
        loads(" " * 200)
    with pytest.raises(SketchError, match="'step' is no format that we read"):
        loads(b"", "step")
    with pytest.raises(FormatError, match=r"svg data: a \.svg file holds one sketch"):
        dumps([PART, PART], "svg")
