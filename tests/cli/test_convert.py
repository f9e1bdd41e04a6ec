"""`sketchdnn convert`: from any file to any other, in words a person can use."""

import os
from pathlib import Path

import pytest
from support.commands import invoke, program, refused, run
from support.outlines import rectangle
from support.strategies import assert_same

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import Format, convert, detect_format, read, registry, write
from sketchdnn.geometry import Circle, Line, Point, Sketch

PART = Sketch((Line((0.0, 0.0), (30.0, 0.0)), Circle((5.0, 5.0), 2.0)), units="mm", extra={"id": "plate-7"})
MANY = [Sketch(PART.primitives, units="mm", extra={"id": name}) for name in ("a", "b", "../b", "A", "a")]


@pytest.fixture
def part(tmp_path: Path) -> Path:
    write(PART, tmp_path / "part.json")
    return tmp_path / "part.json"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    write(MANY, tmp_path / "many.jsonl")
    return tmp_path / "many.jsonl"


def test_one_file_to_another(part: Path, tmp_path: Path) -> None:
    result = run("convert", part, tmp_path / "new" / "part.svg")
    assert (result.stdout, result.stderr) == ("", f"{tmp_path}/new/part.svg: 1 sketch\n")
    assert_same(PART, read(tmp_path / "new" / "part.svg").sketches[0])
    good = program("convert", part, tmp_path / "p.dxf")
    assert (good.returncode, good.stdout, good.stderr) == (0, "", f"{tmp_path}/p.dxf: 1 sketch\n")
    bad = program("convert", tmp_path / "none.json", tmp_path / "q.dxf")
    assert bad.returncode == 2
    assert bad.stderr == f"sketchdnn: {tmp_path}/none.json: cannot be read (No such file or directory)\n"
    assert "sketchdnn convert bracket.dxf bracket.FCStd" in run("convert", "--help").stdout


def test_many_to_one_file_or_folder(many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("convert", many, tmp_path / "again.jsonl.gz")
    assert list(read(tmp_path / "again.jsonl.gz")) == MANY
    run("convert", many, f"{tmp_path}/out/")
    assert {p.suffix for p in (tmp_path / "out").iterdir()} == {".json"}
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert "sketches read" in run("convert", many, tmp_path / "out.jsonl").stderr


@pytest.mark.parametrize("how", ["slash", "existing", "format"])
def test_many_to_folder(many: Path, tmp_path: Path, how: str) -> None:
    out = tmp_path / "out"
    if how == "existing":
        out.mkdir()
        (out / "keep.txt").touch()
    run("convert", many, f"{out}/" if how == "slash" else out, "--format", "svg")
    # The id where it can be a name and is not taken, upper and lower case alike; else the number.
    names = {"a.svg", "b.svg", "000003.svg", "000004.svg", "000005.svg"}
    assert ({p.name for p in out.iterdir()} - {"keep.txt"}, len(read(out))) == (names, 5)
    assert {p.name for p in tmp_path.iterdir()} == {"many.jsonl", "out"}


def test_many_sketches_into_single_sketch_file(many: Path, tmp_path: Path) -> None:
    (tmp_path / "part.svg").write_text("precious")
    with pytest.raises(
        FormatError, match=r"part\.svg: a \.svg file holds one sketch.* \.jsonl file.* folder with --format"
    ):
        convert(many, tmp_path / "part.svg")
    assert ((tmp_path / "part.svg").read_text(), len(list(tmp_path.iterdir()))) == ("precious", 2)


def test_lines_are_counted_and_numbers_do_not_collide(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text('{"primitives": [["P", 0, 0, 0]]}\n{\n{"primitives": [["S"]]}\n{"primitives": [3]}\n[\n')
    result = run("convert", path, tmp_path / "out.jsonl")
    assert result.stderr.splitlines() == [
        f"{tmp_path}/out.jsonl: 1 sketch",
        "skipped 2 × not JSON",
        "skipped 1 × a row of an unknown form",
        "skipped 1 × a primitive that is neither an object nor a row",
    ]
    clash = [Sketch((Point((float(i), 0.0)),), extra={"id": name}) for i, name in enumerate(("000002", "?", "000003"))]
    write(clash, tmp_path / "many.jsonl")
    convert(tmp_path / "many.jsonl", f"{tmp_path}/out/")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["000002.json", "000003.json", "000004.json"]
    assert list(read(tmp_path / "out")) == clash


@pytest.mark.parametrize("target", ["out.jsonl", "out.svg", "out/", "out.npy", "out.FCStd", "out.dxf"])
def test_nothing_readable_leaves_nothing_behind(tmp_path: Path, target: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("nonsense\n" * 3)
    with pytest.raises(FormatError, match=r"bad\.jsonl: holds no sketch that can be read: 3 × not JSON$"):
        convert(path, f"{tmp_path}/{target}")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.jsonl"]


@pytest.mark.usefixtures("part")
def test_folder_may_be_converted_into_itself(tmp_path: Path) -> None:
    run("convert", tmp_path, tmp_path, "--format", "svg")
    assert {p.name for p in tmp_path.iterdir()} == {"part.json", "plate-7.svg"}


def test_failure_on_way_leaves_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_off(path: Path):  # type: ignore[no-untyped-def]
        yield PART
        yield PART
        raise OSError(5, "Input/output error")

    broken = Format("broken", (".broken",), multiple_sketches=True, recognizes=lambda p, head: True, read=break_off)
    source = tmp_path / "x.broken"
    source.write_text("x")
    (tmp_path / "out.jsonl").write_text("precious")
    writers = registry.FORMATS
    monkeypatch.setattr(registry, "FORMATS", (broken, *writers))
    for target in ("out.jsonl", "folder/"):
        with pytest.raises(FormatError, match=r"x\.broken: cannot be read \(Input/output error\)"):
            convert(source, f"{tmp_path}/{target}")
    assert (tmp_path / "out.jsonl").read_text() == "precious"
    assert {p.name for p in tmp_path.iterdir()} == {"x.broken", "out.jsonl"}


def test_targets_units_and_formats_that_cannot_be_written(part: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in ("file/part.svg", "file/folder/", "part.step", "nosuffix"):
        with pytest.raises(SketchError):
            convert(part, f"{tmp_path}/{target}")
    assert {p.name for p in tmp_path.iterdir()} == {"part.json", "file"}
    with pytest.raises(SketchError, match="'furlong' is not a known unit"):
        convert(part, tmp_path / "out.json", units="furlong")
    with pytest.raises(SketchError, match="'iges' is no format that we write"):
        convert(part, tmp_path / "out", format="iges")
    write(Sketch((Circle((0.0, 0.0), 1e11),), units="m"), part)
    with pytest.raises(FormatError, match=r"part\.json: cannot be measured in um: "):
        convert(part, tmp_path / "out.json", units="um")
    assert {p.name for p in tmp_path.iterdir()} == {"part.json", "file"}


def test_unreadable_inputs_are_reported_by_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.json").write_text("{")
    for command in (
        "convert broken.json out.json",
        "view broken.json --out folder/picture.png",
        "prepare broken.json --out folder",
        "train --data folder --out folder --init-from folder",
    ):
        result = invoke(*command.split())
        assert isinstance(result.exception, SketchError), result.output


def test_real_files_convert(real_data: Path, tmp_path: Path) -> None:
    result = run("convert", real_data / "hpsketch_sample.tar.xz", tmp_path / "hp.jsonl")
    assert all(each in result.stderr for each in ("516 sketches", "skipped 92 × a sketch with a spline"))
    assert (detect_format(tmp_path / "hp.jsonl").name, len(read(tmp_path / "hp.jsonl"))) == ("jsonl", 516)


PLATE = Sketch((*rectangle(0, 0, 30, 20), Circle((10.0, 10.0), 2.0)), units="mm")


@pytest.fixture
def plate(tmp_path: Path) -> Path:
    write(PLATE, tmp_path / "plate.json")
    return tmp_path / "plate.json"


def test_options_of_solids_and_drawings(plate: Path, tmp_path: Path) -> None:
    for words, height in (("5", 5.0), ("5mm", 5.0), ("0.5in", 12.7), ("2 cm", 20.0)):
        run("convert", plate, tmp_path / "plate.py", "--height", words)
        assert f"\nHEIGHT = {height}\n" in (tmp_path / "plate.py").read_text()
    run("convert", plate, tmp_path / "plate.py")
    assert "\nHEIGHT = 10.0\n" in (tmp_path / "plate.py").read_text()
    run("convert", plate, tmp_path / "plate.dxf", "--polylines")
    assert (tmp_path / "plate.dxf").read_text().count("LWPOLYLINE") > 0
    run("convert", plate, tmp_path / "plate.FCStd", "--dimensions")
    assert len(read(tmp_path / "plate.FCStd").sketches[0].constraints) == 4 * 4 + 3


@pytest.mark.usefixtures("freecadcmd")
def test_solid_is_written(plate: Path, tmp_path: Path) -> None:
    result = run("convert", plate, tmp_path / "plate.step", "--height", "3mm")
    assert result.stderr == f"{tmp_path}/plate.step: 1 sketch\n"
    assert (tmp_path / "plate.step").read_bytes().startswith(b"ISO-10303-21;")


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    write(Sketch((Line((0.0, 0.0), (1.0, 0.0)),)), tmp_path / "line.json")
    for words, sentence in (
        ("out.svg --polylines", "'polylines' is an option of dxf, not of svg"),
        ("out.dxf --height 5mm", "'height' is an option of step, stl, cadquery, build123d, not of dxf"),
        ("out.json --dimensions", "'dimensions' is an option of freecad, not of json"),
        ("out.step --height tall", "--height is a length such as 120mm or 4in, not 'tall'"),
        ("out.step", "There is no closed loop. 1 chain is left open, such as primitive 0."),
    ):
        target, *option = words.split()
        assert sentence in refused("convert", tmp_path / "line.json", tmp_path / target, *option)
        assert [file.name for file in tmp_path.iterdir()] == ["line.json"]


def test_input_is_never_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "parts").mkdir()
    part = folder / "part.dxf"
    write(PART, part)
    before = part.read_bytes()
    (tmp_path / "symbolic.dxf").symlink_to(part)
    (tmp_path / "hard.dxf").hardlink_to(part)
    (tmp_path / "linked").symlink_to(folder)
    ways = [(name, "parts/part.dxf") for name in ("parts/part.dxf", "symbolic.dxf", "hard.dxf", "parts", "linked")]
    ways += [(part, name) for name in ("symbolic.dxf", "hard.dxf", "parts/../parts/part.dxf")]
    for source, target in ways:
        for command in (["convert", str(source), target], ["constrain", str(source), "--out", target]):
            result = invoke(*command)
            assert isinstance(result.exception, FormatError), command
            assert "is an input, and would be overwritten" in str(result.exception)
    assert part.read_bytes() == before
    assert (tmp_path / "symbolic.dxf").is_symlink()


def test_input_in_output_folder_is_kept(tmp_path: Path) -> None:
    source = tmp_path / "plate-7.json"
    write(PART, source)
    before = source.read_bytes()
    assert isinstance(invoke("convert", source, tmp_path, "--units", "in").exception, FormatError)
    assert (source.read_bytes(), [path.name for path in tmp_path.iterdir()]) == (before, ["plate-7.json"])
