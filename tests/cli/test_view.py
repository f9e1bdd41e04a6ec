"""`sketchdnn view`: the picture asked for, or one sentence and exit code 2."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from typer.testing import CliRunner

from sketchdnn.cli.app import app, main
from sketchdnn.errors import SketchError

CIRCLE = {"primitives": [{"type": "circle", "center": [0, 0], "radius": 2}]}
LINE = {"primitives": [{"type": "line", "start": [0, 0], "end": [1, 0]}]}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.json").write_text(json.dumps(CIRCLE))
    lines = [json.dumps({**(CIRCLE if i % 2 else LINE), "id": f"part {i}"}) for i in range(12)]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    return tmp_path


def view(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["view", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stderr


def refused(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one sentence that the whole program says."""
    monkeypatch.setattr(sys, "argv", ["sketchdnn", "view", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        main()
    said = capfd.readouterr()
    assert exit_.value.code == 2
    assert "Traceback" not in said.err
    return said.err


def captions(path: Path) -> list[str]:
    return [e.text or "" for e in ET.parse(path).iter(f"{SVG}text")]


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def test_one_sketch_becomes_one_picture(folder: Path) -> None:
    assert "one-view.png: 1 sketch" in view("one.json")
    assert size(folder / "one-view.png") == (640, 640)
    view("one.json", "--out", "small.PNG", "--size", "100")
    assert size(folder / "small.PNG") == (100, 100)
    view("one.json", "--out", "one.svg")
    root = ET.parse(folder / "one.svg").getroot()
    assert len(root.findall(f".//{SVG}circle")) == 1
    assert captions(folder / "one.svg") == []


def test_many_become_a_gallery_with_their_names(folder: Path) -> None:
    view("many.jsonl", "--out", "all.svg", "--columns", "4")
    assert captions(folder / "all.svg") == [f"part {i}" for i in range(12)]
    view("many.jsonl", "--out", "all.png", "--columns", "6", "--size", "50")
    width, height = size(folder / "all.png")
    assert 6 * 50 < width < 6 * 60
    assert 2 * 50 < height < 2 * 80
    view("many.jsonl", "--out", "all.html")
    assert (folder / "all.html").read_text().count("<figure") == 12


def test_the_limit_takes_the_first_and_says_that_there_are_more(folder: Path) -> None:
    assert "the first 5 sketches of more" in view("many.jsonl", "--limit", "5", "--out", "some.svg")
    assert captions(folder / "some.svg") == [f"part {i}" for i in range(5)]
    assert "12 sketches" in view("many.jsonl", "--limit", "12", "--out", "some.svg")


def test_a_random_sample_is_a_matter_of_the_seed(folder: Path) -> None:
    samples = []
    for seed in (1, 1, 2):
        said = view("many.jsonl", "--limit", "5", "--random", "--seed", str(seed), "--out", "some.svg")
        assert "5 sketches of 12" in said
        samples.append(captions(folder / "some.svg"))
    assert samples[0] == samples[1] != samples[2]
    assert len(set(samples[0])) == 5
    numbers = [int(name.split()[1]) for name in samples[0]]
    assert numbers == sorted(numbers)


def test_every_sketch_is_as_likely_in_a_random_sample(folder: Path) -> None:
    seen = [0] * 12
    for seed in range(60):
        view("many.jsonl", "--limit", "6", "--random", "--seed", str(seed), "--out", "some.svg")
        for name in captions(folder / "some.svg"):
            seen[int(name.split()[1])] += 1
    assert sum(seen) == 360
    assert all(14 <= count <= 46 for count in seen)  # 30 expected, four standard deviations


def test_files_and_folders_are_mixed_and_named_after_their_files(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "bolt.json").write_text(json.dumps(LINE))
    said = view("one.json", "inner", "--out", "both.svg")
    assert "2 sketches" in said
    assert captions(folder / "both.svg") == ["one.json 1", "bolt.json 1"]


def test_what_is_skipped_is_counted(folder: Path) -> None:
    (folder / "broken.json").write_text("{")
    (folder / "bad.jsonl").write_text("\n".join([json.dumps(CIRCLE), "nonsense", json.dumps(LINE)]))
    said = view("bad.jsonl", "broken.json", "--out", "rest.svg")
    assert "2 sketches" in said
    assert "broken.json" in said
    assert said.count("skipped 1 × ") == 2


def test_a_folder_that_cannot_be_listed_is_counted_unless_it_is_the_only_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "shut").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "skipped 1 × shut: cannot be listed (Permission denied)" in view("one.json", "shut", "--out", "a.svg")
    assert refused(monkeypatch, capfd, "shut") == "sketchdnn: shut: cannot be listed (Permission denied)\n"


def test_an_empty_sketch_is_shown_as_one(folder: Path) -> None:
    (folder / "empty.json").write_text('{"primitives": []}')
    view("empty.json", "--out", "empty.svg")
    assert captions(folder / "empty.svg") == ["empty sketch"]


def test_constraints_are_drawn_and_colored_by_what_they_leave_free(folder: Path) -> None:
    square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    lines = [{"type": "line", "start": a, "end": square[k - 3]} for k, a in enumerate(square)]
    (folder / "drawn.json").write_text(json.dumps({"primitives": lines}))
    level = [{"type": "horizontal", "refs": [[0, "whole"]]}, {"type": "other", "name": "Odd", "refs": [[1, "whole"]]}]
    (folder / "given.json").write_text(json.dumps({"primitives": lines, "constraints": level}))
    assert "inferred: the file has none" in view("drawn.json", "--constraints", "--out", "drawn.svg")
    words = captions(folder / "drawn.svg")
    assert {"4 coincident", "2 horizontal", "2 vertical"} <= set(words)
    assert any("degrees of freedom" in word for word in words)
    said = view("given.json", "--constraints", "--out", "given.svg")
    assert "inferred" not in said
    assert "not drawn: 1 constraint of" in said
    assert "freedom does not count 1 constraint" in said
    words = captions(folder / "given.svg")
    assert "1 horizontal" in words
    assert "3 free" in words
    sized = [*level[:1], {"type": "length", "refs": [[0, "whole"]], "value": 4}]
    (folder / "sized.json").write_text(json.dumps({"primitives": lines, "constraints": sized}))
    for name, dof in (("given.json", 15), ("sized.json", 14)):
        view(name, "--constraints", "--out", "one.svg")
        assert f"{dof} degrees of freedom" in captions(folder / "one.svg")
    view("drawn.json", "--constraints")
    width, height = size(folder / "drawn-view.png")
    assert width == 640 < height


def test_a_dimension_beyond_all_bounds_is_shown_as_a_fault(folder: Path) -> None:
    line = {"type": "line", "start": [0, 0], "end": [4, 0]}
    vast = {"type": "length", "refs": [[0, "whole"]], "value": 1e308}
    (folder / "vast.json").write_text(json.dumps({"primitives": [line], "constraints": [vast]}))
    view("vast.json", "--constraints", "--out", "vast.svg")
    assert "1 over-constrained" in captions(folder / "vast.svg")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_galleries_show_constraints_too(folder: Path, suffix: str) -> None:
    (folder / "empty.json").write_text('{"primitives": []}')
    said = view("many.jsonl", "empty.json", "--constraints", "--out", f"all{suffix}")
    assert "13 sketches have none" in said
    assert (folder / f"all{suffix}").stat().st_size > 1000


def test_a_sketch_that_nothing_can_be_inferred_from_is_still_drawn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sketchdnn import constraints

    def refuse(*_: object) -> None:
        raise SketchError("it is too large")

    monkeypatch.setattr(constraints, "infer", refuse)
    assert "warning: it is too large" in view("one.json", "--constraints", "--out", "one.svg")
    assert "1 free" in captions(folder / "one.svg")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.json"], "missing.json"),
        (["one.json", "--out", "picture.gif"], ".png, .svg, .html"),
        (["hollow.json"], "hollow.json"),
        (["hollow.json", "broken.json"], "nothing to show"),
        (["nothing"], "nothing to show"),
        (["one.json", "--out", "one.json/picture.png"], "picture.png"),
        (["many.jsonl", "--size", "4000"], "pixels"),
    ],
)
def test_bad_input_is_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    (folder / "hollow.json").write_text("")
    (folder / "broken.json").write_text("{")
    (folder / "nothing").mkdir()
    before = sorted(folder.iterdir())
    assert reason in refused(monkeypatch, capfd, *arguments)
    assert sorted(folder.iterdir()) == before


def test_a_picture_never_replaces_what_it_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    view("one.json", "--out", "one.svg")
    before = (folder / "one.svg").read_bytes()
    assert "name another output" in refused(monkeypatch, capfd, "one.svg", "--out", "./one.svg")
    assert (folder / "one.svg").read_bytes() == before


def test_a_path_that_is_no_utf_8_can_be_viewed_and_named(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.json")
    (folder / odd).write_text(json.dumps(CIRCLE))
    said = view(odd)
    assert "caf\\" in said
    assert (folder / os.fsdecode(b"caf\xe9-view.png")).exists()


def test_real_files_of_every_kind(real_data: Path, folder: Path) -> None:
    for name in ("open-sketches.jsonl.xz", "sketchgraphs/sg_subset.npy", "hpsketch_sample.tar.xz", "freecad", "dxf"):
        said = view(real_data / name, "--limit", "12", "--out", "real.png", "--size", "80")
        assert "12 sketches" in said
        assert size(folder / "real.png")[0] > 4 * 80
