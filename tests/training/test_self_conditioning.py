"""Self-conditioning is zero-initialized: training continues from the weights of a plain network."""

from importlib.resources import files
from pathlib import Path

import pytest
import torch
from support.corpora import prepared_parts
from support.random_batches import clean_batch, random_prediction
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.systems import from_pretrained, load_preset
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.start import TrainRequest, _make_system


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a corpus, a preset that hears, and the model of a short run of one that does not."""
    folder = tmp_path_factory.mktemp("self_conditioning")
    prepared_parts(folder, 60)
    tiny = (files("sketchdnn") / "presets" / "tiny.toml").read_text()
    # Training knows nothing of the superposition: it may be another.
    other = tiny.replace("[system.network]", 'superposition = "max"\n[system.network]\nself_conditioning = true')
    (folder / "conditioned.toml").write_text(other)
    _train(folder, "tiny", "plain", "--steps", "4", "--learning-rate", "1e-2")
    return folder


def _train(folder: Path, preset: str, out: str, *more: str, error: str = "None") -> None:
    quiet = ("--device", "cpu", "--validate-every", "0", "--preview-every", "0")
    where = ["train", "--preset", preset, "--data", str(folder / "corpus"), "--out", str(folder / out)]
    result = CliRunner().invoke(app, [*where, *quiet, "--log-every", "1", "--batch-size", "8", *more])
    assert error in str(result.exception)


def _losses(out: Path) -> list[str]:
    return [row.split(",")[2] for row in (out / "log.csv").read_text().split()[1:]]


def test_first_loss_and_output_equal_those_of_the_plain_network(folder: Path) -> None:
    more = ("--init-from", str(folder / "plain" / "model"), "--steps", "4", "--learning-rate", "1e-2")
    _train(folder, "tiny", "on-plain", *more)
    _train(folder, str(folder / "conditioned.toml"), "on-conditioned", *more)
    plain, conditioned = _losses(folder / "on-plain"), _losses(folder / "on-conditioned")
    assert conditioned[0] == plain[0]
    assert conditioned[2:] != plain[2:]
    model = from_pretrained(folder / "on-conditioned" / "model")
    assert getattr(model, "self_conditioning", False)
    assert model.get_parameter("network.embed_previous.weight").abs().max() > 0
    begins = folder / "plain" / "model"
    preset = load_preset(folder / "conditioned.toml")
    request = TrainRequest(preset, TrainConfig(steps=1), folder / "corpus", folder / "x", init_from=begins)
    conditioned, plain = _make_system(request), from_pretrained(begins)
    x, t = clean_batch(3), torch.tensor([5, 500, 1500])
    expected = plain.denoise(x, t)
    assert expected.kind_logits.abs().max() > 0
    for before in (None, random_prediction(3)):
        output = conditioned.eval().denoise(x, t, previous=before)
        assert torch.equal(output.params, expected.params)
        assert torch.equal(output.kind_logits, expected.kind_logits)
    # A plain network cannot start from self-conditioning.
    _train(folder, str(folder / "conditioned.toml"), "conditioned", "--steps", "1")
    more = ("--init-from", str(folder / "conditioned" / "model"), "--steps", "1")
    _train(folder, "tiny", "refused", *more, error="another shape")
