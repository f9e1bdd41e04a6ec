"""A network that hears what it said starts where a deaf one ended, and learns from there."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import torch
from support.corpora import parts, written
from support.random_batches import clean_batch, random_prediction
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.data import PrepareConfig, prepare
from sketchdnn.systems import from_pretrained, load_preset
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.start import TrainRequest, _make_system


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a corpus, a preset that hears, and the model of a short run of one that does not."""
    folder = tmp_path_factory.mktemp("hearing")
    prepare([written(parts(60), folder / "parts.jsonl")], folder / "corpus", PrepareConfig(), workers=1)
    tiny = (files("sketchdnn") / "presets" / "tiny.toml").read_text()
    # Training knows nothing of the superposition: it may be another.
    other = tiny.replace("[system.network]", 'superposition = "max"\n[system.network]\nself_conditioning = true')
    (folder / "hearing.toml").write_text(other)
    _train(folder, "tiny", "deaf", "--steps", "4", "--learning-rate", "1e-2")
    return folder


def _train(folder: Path, preset: str, out: str, *more: str) -> None:
    quiet = ("--device", "cpu", "--validate-every", "0", "--preview-every", "0")
    where = ["train", "--preset", preset, "--data", str(folder / "corpus"), "--out", str(folder / out)]
    result = CliRunner().invoke(app, [*where, *quiet, "--log-every", "1", "--batch-size", "8", *more])
    assert result.exit_code == 0, result.exception


def _losses(out: Path) -> list[str]:
    return [row.split(",")[2] for row in (out / "log.csv").read_text().split()[1:]]


def test_its_first_loss_is_the_deaf_ones_and_its_second_its_own(folder: Path) -> None:
    more = ("--init-from", str(folder / "deaf" / "model"), "--steps", "4", "--learning-rate", "1e-2")
    _train(folder, "tiny", "on-deaf", *more)
    _train(folder, str(folder / "hearing.toml"), "on-hearing", *more)
    deaf, hearing = _losses(folder / "on-deaf"), _losses(folder / "on-hearing")
    assert hearing[0] == deaf[0]
    assert hearing[2:] != deaf[2:]
    model = from_pretrained(folder / "on-hearing" / "model")
    assert isinstance(model, RowDenoiser)
    assert model.self_conditioning
    assert model.get_parameter("network.embed_previous.weight").abs().max() > 0


def test_it_begins_by_saying_what_the_deaf_one_says(folder: Path) -> None:
    begins = folder / "deaf" / "model"
    preset = load_preset(folder / "hearing.toml")
    request = TrainRequest(preset, TrainConfig(steps=1), folder / "corpus", folder / "x", init_from=begins)
    hearing, deaf = _make_system(request), from_pretrained(begins)
    assert isinstance(hearing, RowDenoiser)
    assert isinstance(deaf, RowDenoiser)
    x, t = clean_batch(3), torch.tensor([5, 500, 1500])
    plain = deaf.denoise(x, t)
    assert plain.kind_logits.abs().max() > 0
    for before in (None, random_prediction(3)):
        said = hearing.eval().denoise(x, t, prev_x0=before)
        assert torch.equal(said.params, plain.params)
        assert torch.equal(said.kind_logits, plain.kind_logits)


def test_a_deaf_one_does_not_start_from_one_that_hears(folder: Path) -> None:
    _train(folder, str(folder / "hearing.toml"), "heard", "--steps", "1")
    more = ["--init-from", str(folder / "heard" / "model"), "--steps", "1", "--device", "cpu"]
    where = ["train", "--preset", "tiny", "--data", str(folder / "corpus"), "--out", str(folder / "y")]
    result = CliRunner().invoke(app, [*where, *more])
    assert result.exit_code != 0
    assert "another shape" in str(result.exception)
