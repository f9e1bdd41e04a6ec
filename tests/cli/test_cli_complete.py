"""`sketchdnn complete`: a part in any format, completed in all of them, neither moved nor resized."""

import json
import math
from pathlib import Path

import pytest
from support.commands import refused, run
from support.corpora import open_sketches
from support.evaluation_data import small_model
from support.strategies import assert_same

from sketchdnn.formats import read, write
from sketchdnn.generation.completion_request import ADDED_COLOR, PART_COLOR
from sketchdnn.geometry import MM_PER_UNIT, Arc, Circle, Line, Sketch

PART = Sketch(
    (
        Line((1.1, 1.0), (11.0, 1.0)),
        Line((11.0, 6.0), (11.0, 1.0)),
        Arc((10.0, 6.0), 1.0, 0.0, math.pi / 2),
        Circle((3.0, 3.0), 0.8),
    ),
    units="in",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def complete(file: Path, out: Path, model: Path, *options: object, repair: bool = False) -> str:
    """Sketches of an untrained model take long to repair, so they are repaired only where that is the point."""
    arguments = [file, "--out", out, "--model", model, "--steps", 4, *options]
    return run("complete", *arguments, *([] if repair else ["--no-repair"])).output


def in_millimeters(sketch: Sketch, count: int) -> Sketch:
    return Sketch(sketch.primitives[:count], units=sketch.units).in_units("mm")


@pytest.mark.parametrize("suffix", [".dxf", ".svg", ".FCStd", ".json"])
def test_part_is_in_every_file_at_its_size_and_place(tmp_path: Path, model: Path, suffix: str) -> None:
    file, out = tmp_path / f"part{suffix}", tmp_path / "out"
    write(PART, file)
    (part,) = read(file).sketches
    complete(file, out, model, "--count", 2)
    files = sorted(out.glob("completion-*"))
    assert files
    assert len(files) % 4 == 0
    for path in files:
        (sketch,) = read(path).sketches
        assert len(sketch) > len(part)
        assert_same(in_millimeters(sketch, len(part)), in_millimeters(part, len(part)), 1e-6)
        circle, inches = sketch.primitives[3], MM_PER_UNIT[sketch.units or "in"] / MM_PER_UNIT["in"]
        assert isinstance(circle, Circle)
        assert (circle.center[0] * inches, circle.radius * inches) == pytest.approx((3.0, 0.8), rel=1e-6)
        if path.suffix == ".json":  # keeps every digit
            assert (sketch.primitives[: len(part)], sketch.units) == (part.primitives, part.units)


def test_manifest_and_incomplete_repairs(tmp_path: Path, model: Path) -> None:
    write(PART, tmp_path / "part.json")
    out = tmp_path / "out"
    complete(tmp_path / "part.json", out, model, "--count", 3, "--format", "svg", "--scale", "1.0..3")
    assert (out / "gallery.png").is_file()
    page = (out / "gallery.html").read_text()
    number = len(list(out.glob("completion-*.svg")))
    assert page.count(f'stroke="{PART_COLOR}"') == number * len(PART)
    assert page.count(f'stroke="{ADDED_COLOR}"') >= number > 0
    facts = json.loads((out / "manifest.json").read_text())
    assert (facts["part"], facts["num_given"], facts["method"]) == ("part.json", 4, "conditional")
    assert (facts["scale"], facts["goal"], facts["sampler"]) == ([1.0, 3.0], "close", "restart")
    assert [entry["number"] for entry in facts["sketches"]] == list(range(number))
    assert {entry["origin"] for entry in facts["sketches"]} <= {"model", "geometry"}
    assert facts["geometry"] is True
    assert all(1 <= entry["scale"] <= 3 and entry["score"] <= 1 for entry in facts["sketches"])
    far = Sketch((Line((1e9, 0), (1e9 + 10, 0)), Line((1e9 + 10, 0), (1e9 + 10, 10))), units="mm")
    write(far, tmp_path / "part.json")
    output = complete(tmp_path / "part.json", tmp_path / "far", model, "--count", 2, "--format", "json", repair=True)
    assert "2 of them were not repaired: it is so far from the origin" in output


@pytest.mark.parametrize("repair", [True, False])
def test_added_primitives_are_repaired_by_default(tmp_path: Path, model: Path, repair: bool) -> None:
    write(PART, tmp_path / "part.json")
    out = tmp_path / "out"
    options = ["--count", 2, "--format", "json", "--candidates", 1]
    complete(tmp_path / "part.json", out, model, *options, repair=repair)
    facts = json.loads((out / "manifest.json").read_text())
    assert facts["repair"] == repair
    for entry in facts["sketches"]:
        (sketch,) = read(out / entry["files"][0]).sketches
        assert sketch.primitives[: len(PART)] == PART.primitives
        assert bool(sketch.constraints) == ("repair" in entry) == repair


def test_real_parts_are_completed(tmp_path: Path, model: Path, real_data: Path) -> None:
    large = [sketch for sketch in open_sketches(real_data, 12) if len(sketch) >= 4]
    for index, sketch in enumerate(large[:4]):
        file, out = tmp_path / f"part-{index}.FCStd", tmp_path / f"out-{index}"
        write(Sketch(sketch.primitives[:6], units=sketch.units), file)
        (part,) = read(file).sketches
        complete(file, out, model, "--count", 1, "--format", "json")
        (completed,) = read(out / "completion-0000.json").sketches
        assert completed.primitives[: len(part)] == part.primitives


def test_invalid_options_and_parts_are_refused_and_leave_nothing(tmp_path: Path, model: Path) -> None:
    write(PART, tmp_path / "part.json")
    many = [{"type": "line", "start": [i, 0], "end": [i, 1]} for i in range(65)]
    parts = {
        "empty.json": '{"primitives": []}',
        "broken.json": "{",
        "words.txt": "words",
        "many.json": json.dumps({"primitives": many}),
        "two.jsonl": '{"primitives": []}\n{"primitives": []}\n',
    }
    for name, content in parts.items():
        (tmp_path / name).write_text(content)
    for words, sentence in (
        ("part.json --count 0", "count must be at least 1"),
        ("part.json --scale wide", "scale is a number or a range"),
        ("part.json --scale 0.5", "1 to 4, not 0.5"),
        ("part.json --format step", "'step' is no format"),
        ("part.json --primitives 3", "primitives in all, not 3"),
        ("part.json --primitives 8..40", "not 8..40"),
        ("part.json --goal shrink", "'shrink' is no goal"),
        ("part.json --kinds circles", "circles"),
        ("part.json --inside 0,0,1", "inside"),
        (f"part.json --like {tmp_path / 'many.json'}", "begins with the primitives of the part"),
        ("part.json --device tpu", "'tpu' is no device"),
        ("gone.dxf", "gone.dxf"),
        ("empty.json", "the part is empty"),
        ("broken.json", "broken.json"),
        ("words.txt", "no format that we read"),
        ("many.json", "has 65 primitives"),
        ("two.jsonl", "holds 2 sketches"),
    ):
        name, *options = words.split()
        command = ["complete", tmp_path / name, "--out", tmp_path / "out", "--model", model, *options]
        assert sentence in refused(*command)
        assert not (tmp_path / "out").exists()
