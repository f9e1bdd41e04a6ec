"""`sketchdnn complete`: a part in any format, finished in all of them, with nothing of it moved or resized."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from support.evaluation_data import small_model
from support.strategies import assert_same
from typer.testing import CliRunner

from sketchdnn.cli.app import app, main
from sketchdnn.cli.complete import ADDED, GIVEN
from sketchdnn.formats import read, write
from sketchdnn.geometry import MM_PER_UNIT, Arc, Circle, Line, Sketch

runner = CliRunner()

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


def completed(file: Path, out: Path, model: Path, *options: str, repair: bool = False) -> dict[str, Path]:
    """What an untrained model draws takes long to repair, so it is repaired only where that is the point."""
    arguments = ["complete", str(file), "--out", str(out), "--model", str(model), "--steps", "4", *options]
    arguments += [] if repair else ["--no-repair"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return {path.name: path for path in out.iterdir()}


def in_millimeters(sketch: Sketch, count: int) -> Sketch:
    return Sketch(sketch.primitives[:count], units=sketch.units).in_units("mm")


@pytest.mark.parametrize("suffix", [".dxf", ".svg", ".FCStd", ".json"])
def test_the_part_is_in_every_file_at_its_size_and_place(tmp_path: Path, model: Path, suffix: str) -> None:
    file = tmp_path / f"part{suffix}"
    write(PART, file)
    (part,) = read(file).sketches
    files = completed(file, tmp_path / "out", model, "--count", "2")
    ours = [name for name in files if name.startswith("completion-")]
    assert len(ours) == 2 * 4
    for name in ours:
        (sketch,) = read(files[name]).sketches
        assert len(sketch) > len(part)
        assert_same(in_millimeters(sketch, len(part)), in_millimeters(part, len(part)), 1e-6)
        if name.endswith(".json"):  # which writes every digit
            assert sketch.primitives[: len(part)] == part.primitives
            assert sketch.units == part.units


def test_sketches_that_were_not_repaired_are_counted_with_their_reason(tmp_path: Path, model: Path) -> None:
    far = Sketch((Line((1e9, 0), (1e9 + 10, 0)), Line((1e9 + 10, 0), (1e9 + 10, 10))), units="mm")
    write(far, tmp_path / "part.json")
    arguments = ["--out", str(tmp_path / "out"), "--model", str(model), "--steps", "2", "--count", "2"]
    result = runner.invoke(app, ["complete", str(tmp_path / "part.json"), *arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    assert "2 of them were not repaired: it is so far from the origin" in result.output


def test_the_part_is_where_it_was_drawn(tmp_path: Path, model: Path) -> None:
    """Read back by formats alone, without what reading the part said about it."""
    write(PART, tmp_path / "part.json")
    files = completed(tmp_path / "part.json", tmp_path / "out", model, "--count", "1", "--format", "dxf")
    (sketch,) = read(files["completion-0000.dxf"]).sketches
    circle = sketch.primitives[3]
    assert isinstance(circle, Circle)
    scale = MM_PER_UNIT[sketch.units or "in"] / MM_PER_UNIT["in"]
    assert (circle.center[0] * scale, circle.radius * scale) == pytest.approx((3.0, 0.8))


def test_a_gallery_and_a_manifest_come_with_it(tmp_path: Path, model: Path) -> None:
    write(PART, tmp_path / "part.json")
    files = completed(
        tmp_path / "part.json", tmp_path / "out", model, "--count", "3", "--format", "svg", "--room", "1.0..3"
    )
    assert files["gallery.png"].is_file()
    page = files["gallery.html"].read_text()
    assert page.count(f'stroke="{GIVEN}"') == 3 * len(PART)
    assert page.count(f'stroke="{ADDED}"') >= 3
    facts = json.loads(files["manifest.json"].read_text())
    assert (facts["part"], facts["given"], facts["room"]) == ("part.json", 4, [1.0, 3.0])
    assert facts["method"] == "conditional"
    assert facts["sampler"] == "restart"
    assert [entry["number"] for entry in facts["sketches"]] == [0, 1, 2]
    assert all(1 <= entry["room"] <= 3 and entry["score"] <= 1 for entry in facts["sketches"])


def test_what_is_added_is_repaired_unless_told(tmp_path: Path, model: Path) -> None:
    write(PART, tmp_path / "part.json")
    options = ["--count", "2", "--format", "json", "--tries", "1"]
    for name in ("repaired", "raw"):
        files = completed(tmp_path / "part.json", tmp_path / name, model, *options, repair=name == "repaired")
        facts = json.loads(files["manifest.json"].read_text())
        assert facts["repair"] == (name == "repaired")
        for entry in facts["sketches"]:
            (sketch,) = read(files[entry["files"][0]]).sketches
            assert sketch.primitives[: len(PART)] == PART.primitives
            assert bool(sketch.constraints) == ("repair" in entry) == (name == "repaired")


def test_real_parts_are_finished(tmp_path: Path, model: Path, real_data: Path) -> None:
    from support.corpora import open_sketches

    for index, sketch in enumerate(s for s in open_sketches(real_data, 12) if len(s) >= 4):
        file = tmp_path / f"part-{index}.FCStd"
        write(Sketch(sketch.primitives[:6], units=sketch.units), file)
        (part,) = read(file).sketches
        files = completed(file, tmp_path / f"out-{index}", model, "--count", "1", "--format", "json")
        (done,) = read(files["completion-0000.json"]).sketches
        assert done.primitives[: len(part)] == part.primitives
        if index == 3:
            break


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence on stderr; the exit code is 2."""
    monkeypatch.setattr(sys, "argv", ["sketchdnn", "complete", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) == 1
    return error


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--count", "0"], "--count must be at least 1"),
        (["--room", "wide"], "--room is a number or a range"),
        (["--room", "0.5"], "1 to 4, not 0.5"),
        (["--method", "magic"], "'magic' is no method"),
        (["--format", "step"], "'step' is no format"),
        (["--primitives", "3"], "primitives in all, not 3"),
        (["--primitives", "8..40"], "not 8..40"),
        (["--device", "tpu"], "'tpu' is no device"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    sentence: str,
) -> None:
    write(PART, tmp_path / "part.json")
    out = tmp_path / "out"
    arguments = [str(tmp_path / "part.json"), "--out", str(out), "--model", str(model), *options]
    assert sentence in refused(monkeypatch, capsys, *arguments)
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("gone.dxf", None, "gone.dxf"),
        ("empty.json", '{"primitives": []}', "the part is empty"),
        ("broken.json", "{", "broken.json"),
        ("words.txt", "words", "no format that we read"),
        ("point.json", '{"primitives": [{"type": "point", "at": [1, 2]}]}', "no extent"),
        (
            "many.json",
            json.dumps({"primitives": [{"type": "line", "start": [i, 0], "end": [i, 1]} for i in range(20)]}),
            "has 20 primitives",
        ),
        ("two.jsonl", '{"primitives": []}\n{"primitives": []}\n', "holds 2 sketches"),
    ],
)
def test_a_part_that_cannot_be_used_is_a_sentence(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str | None,
    sentence: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    out = tmp_path / "out"
    assert sentence in refused(monkeypatch, capsys, str(tmp_path / name), "--out", str(out), "--model", str(model))
    assert not out.exists()


def test_help_has_an_example_and_does_not_wait_for_torch() -> None:
    assert "sketchdnn complete part.dxf" in runner.invoke(app, ["complete", "--help"]).output
    code = "import sys; from sketchdnn.cli import complete; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
