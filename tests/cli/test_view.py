"""The command `sketchdnn view`."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from support.commands import refused, run

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
    return run("view", *arguments).stderr


def captions(path: Path) -> list[str]:
    return [e.text or "" for e in ET.parse(path).iter(f"{SVG}text")]


def size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def test_one_sketch_and_galleries(folder: Path) -> None:
    assert "one-view.png: 1 sketch" in view("one.json")
    assert size(folder / "one-view.png") == (640, 640)
    view("one.json", "--out", "small.PNG", "--size", "100")
    assert size(folder / "small.PNG") == (100, 100)
    view("one.json", "--out", "one.svg")
    root = ET.parse(folder / "one.svg").getroot()
    assert (len(root.findall(f".//{SVG}circle")), captions(folder / "one.svg")) == (1, [])
    view("many.jsonl", "--out", "all.svg", "--columns", "4")
    assert captions(folder / "all.svg") == [f"part {i}" for i in range(12)]
    view("many.jsonl", "--out", "all.png", "--columns", "6", "--size", "50")
    width, height = size(folder / "all.png")
    assert 6 * 50 < width < 6 * 60
    assert 2 * 50 < height < 2 * 80
    view("many.jsonl", "--out", "all.html")
    assert (folder / "all.html").read_text().count("<figure") == 12
    assert "the first 5 sketches; there are more" in view("many.jsonl", "--limit", "5", "--out", "some.svg")
    assert captions(folder / "some.svg") == [f"part {i}" for i in range(5)]
    assert "12 sketches" in view("many.jsonl", "--limit", "12", "--out", "some.svg")
    (folder / "inner").mkdir()
    (folder / "inner" / "bolt.json").write_text(json.dumps(LINE))
    output = view("one.json", "inner", "--out", "both.svg")
    assert "2 sketches" in output
    assert captions(folder / "both.svg") == ["one.json 1", "bolt.json 1"]
    (folder / "empty.json").write_text('{"primitives": []}')
    view("empty.json", "--out", "empty.svg")
    assert captions(folder / "empty.svg") == ["empty sketch"]


def test_random_sample_is_seeded_and_uniform(folder: Path) -> None:
    samples = []
    for seed in (1, 1, 2):
        output = view("many.jsonl", "--limit", "5", "--random", "--seed", str(seed), "--out", "some.svg")
        assert "5 sketches of 12" in output
        samples.append(captions(folder / "some.svg"))
    assert samples[0] == samples[1] != samples[2]
    assert len(set(samples[0])) == 5
    numbers = [int(name.split()[1]) for name in samples[0]]
    assert numbers == sorted(numbers)
    seen = [0] * 12
    for seed in range(60):
        view("many.jsonl", "--limit", "6", "--random", "--seed", str(seed), "--out", "some.svg")
        for name in captions(folder / "some.svg"):
            seen[int(name.split()[1])] += 1
    assert sum(seen) == 360
    assert all(14 <= count <= 46 for count in seen)  # 30 expected, four standard deviations


def test_unreadable_items_and_failed_inference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "broken.json").write_text("{")
    (folder / "bad.jsonl").write_text("\n".join([json.dumps(CIRCLE), "nonsense", json.dumps(LINE)]))
    output = view("bad.jsonl", "broken.json", "--out", "rest.svg")
    assert all(each in output for each in ("2 sketches", "broken.json"))
    assert output.count("skipped 1 × ") == 2
    (folder / "shut").mkdir()
    real = os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert "skipped 1 × shut: cannot be listed (Permission denied)" in view("one.json", "shut", "--out", "a.svg")
    assert refused("view", "shut") == "sketchdnn: shut: cannot be listed (Permission denied)"
    from sketchdnn import constraints

    def refuse(*_: object) -> None:
        raise SketchError("it is too large")

    monkeypatch.setattr(constraints, "infer", refuse)
    assert "warning: it is too large" in view("one.json", "--constraints", "--out", "one.svg")
    assert "1 free" in captions(folder / "one.svg")


def test_constraints_are_drawn(folder: Path) -> None:
    square = [[0, 0], [4, 0], [4, 4], [0, 4]]
    lines = [{"type": "line", "start": a, "end": square[k - 3]} for k, a in enumerate(square)]
    (folder / "drawn.json").write_text(json.dumps({"primitives": lines}))
    level = [{"type": "horizontal", "refs": [[0, "whole"]]}, {"type": "other", "name": "Odd", "refs": [[1, "whole"]]}]
    (folder / "given.json").write_text(json.dumps({"primitives": lines, "constraints": level}))
    assert "inferred: the file has none" in view("drawn.json", "--constraints", "--out", "drawn.svg")
    words = captions(folder / "drawn.svg")
    assert {"4 coincident", "2 horizontal", "2 vertical"} <= set(words)
    assert any("degrees of freedom" in word for word in words)
    output = view("given.json", "--constraints", "--out", "given.svg")
    assert "inferred" not in output
    assert all(each in output for each in ("not drawn: 1 constraint of", "freedom does not count 1 constraint"))
    words = captions(folder / "given.svg")
    assert all(each in words for each in ("1 horizontal", "3 free"))
    sized = [*level[:1], {"type": "length", "refs": [[0, "whole"]], "value": 4}]
    (folder / "sized.json").write_text(json.dumps({"primitives": lines, "constraints": sized}))
    for name, dof in (("given.json", 15), ("sized.json", 14)):
        view(name, "--constraints", "--out", "one.svg")
        assert f"{dof} degrees of freedom" in captions(folder / "one.svg")
    view("drawn.json", "--constraints")
    width, height = size(folder / "drawn-view.png")
    assert width == 640 < height
    line = {"type": "line", "start": [0, 0], "end": [4, 0]}
    vast = {"type": "length", "refs": [[0, "whole"]], "value": 1e308}
    (folder / "vast.json").write_text(json.dumps({"primitives": [line], "constraints": [vast]}))
    view("vast.json", "--constraints", "--out", "vast.svg")
    assert "1 over-constrained" in captions(folder / "vast.svg")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_gallery_with_constraints(folder: Path, suffix: str) -> None:
    (folder / "empty.json").write_text('{"primitives": []}')
    output = view("many.jsonl", "empty.json", "--constraints", "--out", f"all{suffix}")
    assert "13 sketches have none" in output
    assert (folder / f"all{suffix}").stat().st_size > 1000


def test_bad_input_is_an_error(folder: Path) -> None:
    (folder / "hollow.json").write_text("")
    (folder / "broken.json").write_text("{")
    (folder / "nothing").mkdir()
    before = sorted(folder.iterdir())
    for words, reason in (
        ("missing.json", "missing.json"),
        ("one.json --out picture.gif", ".png, .svg, .html"),
        ("hollow.json", "hollow.json"),
        ("nothing", "nothing to show"),
        ("hollow.json broken.json", "nothing to show"),
        ("one.json --out one.json/picture.png", "picture.png"),
        ("many.jsonl --size 4000", "pixels"),
    ):
        assert reason in refused("view", *words.split(), after_notes=True)
        assert sorted(folder.iterdir()) == before


def test_names_of_pictures(folder: Path) -> None:
    view("one.json", "--out", "one.svg")
    before = (folder / "one.svg").read_bytes()
    assert "name another output" in refused("view", "one.svg", "--out", "./one.svg")
    assert (folder / "one.svg").read_bytes() == before
    odd = os.fsdecode(b"caf\xe9.json")
    (folder / odd).write_text(json.dumps(CIRCLE))
    output = view(odd)
    assert "caf\\" in output
    assert (folder / os.fsdecode(b"caf\xe9-view.png")).exists()
