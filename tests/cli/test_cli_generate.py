"""`sketchdnn generate`: files on the disk, the same for the same seed, and sentences for what is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import sketchdnn
from sketchdnn.cli.app import app, main

runner = CliRunner()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model: untrained, but with weights in it."""
    from sketchdnn.systems import load_preset, save_pretrained

    torch.manual_seed(0)
    system = load_preset("tiny").make()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    folder = tmp_path_factory.mktemp("model")
    save_pretrained(system, folder)
    return folder


def drawn(out: Path, *options: str) -> dict[str, bytes]:
    result = runner.invoke(app, ["generate", "--out", str(out), *options])
    assert result.exit_code == 0, result.output
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_files_do_not_depend_on_how_many_are_asked_for(tmp_path: Path, model: Path) -> None:
    options = ["--model", str(model), "--steps", "4", "--format", "json"]
    few = drawn(tmp_path / "few", "--count", "3", *options)
    many = drawn(tmp_path / "many", "--count", "20", *options)
    assert sorted(few) == ["gallery.png", "sketch-0000.json", "sketch-0001.json", "sketch-0002.json"]
    assert len(many) == 21
    assert all(many[name] == content for name, content in few.items() if name.endswith(".json"))
    sketch = json.loads(few["sketch-0002.json"])
    assert sketch["units"] == "mm"
    assert sketch["primitives"]


def test_all_formats_by_default_and_the_size_asked_for(tmp_path: Path, model: Path) -> None:
    drawn(tmp_path / "out", "--count", "1", "--model", str(model), "--steps", "3", "--size", "2in")
    names = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert names == {".json", ".svg", ".dxf", ".FCStd", ".png"}
    from sketchdnn.geometry import bounds

    sketch = sketchdnn.read(tmp_path / "out" / "sketch-0000.json").sketches[0]
    assert (bounds(sketch).size, sketch.units) == (pytest.approx(2.0), "in")


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    monkeypatch.setattr(sys, "argv", ["sketchdnn", "generate", *options])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--count", "0"], "--count must be at least 1"),
        (["--format", "stl"], "'stl' is no format"),
        (["--format", ""], "at least one format"),
        (["--size", "12 parsecs"], "--size is a length"),
        (["--size", "-5mm"], "--size is a length"),
        (["--seed", "-1"], "seed"),
        (["--steps", "0"], "steps"),
        (["--steps", "100000"], "1 to 2000 steps"),
        (["--sampler", "euler"], "'euler' is no sampler"),
        (["--model", "nowhere"], "no model is there"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_leaves_nothing(
    options: list[str],
    words: str,
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chosen = [] if "--model" in options else ["--model", str(model)]
    assert words in refused(monkeypatch, capsys, "--out", str(tmp_path / "out"), *chosen, *options)
    assert not (tmp_path / "out").exists()


def test_a_broken_model_is_one_sentence(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out")]
    shutil.copytree(model, tmp_path / "changed")
    weights = bytearray((tmp_path / "changed" / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "changed" / "model.safetensors").write_bytes(weights)
    said = refused(monkeypatch, capsys, *out, "--model", str(tmp_path / "changed"))
    assert "not those it was saved with" in said
    (tmp_path / "changed" / "model.safetensors").unlink()
    assert "is missing" in refused(monkeypatch, capsys, *out, "--model", str(tmp_path / "changed"))


def test_a_file_in_the_way_is_named(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in refused(
        monkeypatch, capsys, "--out", str(tmp_path / "file"), "--model", str(model)
    )


def test_help_has_an_example_and_does_not_wait_for_torch() -> None:
    assert "sketchdnn generate --count 16" in runner.invoke(app, ["generate", "--help"]).output
    code = "import sys; from sketchdnn.cli import generate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
