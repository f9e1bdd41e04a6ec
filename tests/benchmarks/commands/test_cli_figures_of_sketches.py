from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from benchmarks.commands.app import app, main
from typer.testing import CliRunner

from sketchdnn.data.procedural import procedural
from sketchdnn.formats import write
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem

runner = CliRunner()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained and small, but it draws."""
    torch.manual_seed(0)
    system = SketchDNNSystem(SketchDNNConfig(network=SetDenoiserConfig(width=32, depth=1, heads=2), num_steps=20))
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    folder = tmp_path_factory.mktemp("model")
    save_pretrained(system, folder)
    return folder


@pytest.mark.parametrize("figure", ["teaser", "pipeline", "failures"])
def test_a_figure_of_a_model(figure: str, model: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path / "new"), "--model", str(model), "--count", "2", "--steps", "3", "--seed", "1"]
    result = runner.invoke(app, ["figures", figure, *options])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [f"{figure}.png", f"{figure}.svg"]


def test_a_comparison_of_a_file_and_a_model(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "part.jsonl"
    write(procedural(0, 1), file)
    file.write_text(file.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    options = ["--samples", f"a file={file}", "--model", f"a model={model}", "--count", "3", "--steps", "3"]
    result = runner.invoke(app, ["figures", "comparison", "--out", str(tmp_path / "new"), *options])
    assert result.exit_code == 0, result.output
    assert "a file" in (tmp_path / "new" / "comparison.svg").read_text(encoding="utf-8")
    assert "left out 1 × not JSON" in result.output


@pytest.mark.parametrize("figure", ["teaser", "pipeline", "comparison", "failures", "turing-test"])
def test_every_figure_of_sketches_has_help_with_an_example(figure: str) -> None:
    result = runner.invoke(app, ["figures", figure, "--help"])
    assert result.exit_code == 0
    assert f"python -m benchmarks figures {figure} --" in result.output


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["comparison"], "two of"),
        (["comparison", "--samples", "no-name.json", "--model", "a=ours"], "NAME=FILE"),
        (["comparison", "--samples", "a=nowhere.json", "--samples", "b=nowhere.json"], "nowhere.json"),
        (["comparison", "--data", "nowhere", "--model", "a=nowhere"], "nowhere"),
        (["turing-test", "--data", "nowhere"], "nowhere"),
        (["teaser", "--model", "nowhere"], "nowhere"),
        (["pipeline", "--steps", "3000"], "3000"),
        (["failures", "--steps", "3000"], "3000"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(wrong, says: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "figures", *wrong, "--out", "out"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())
