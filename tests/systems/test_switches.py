"""The paper's claims as settings: each does what it says, can be said in a file, and is off unless said."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from support.random_batches import clean_batch, normal_batch

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import SketchBatch, relevant
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems import from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.sketchdnn_cat import SketchDNNCat, SketchDNNCatConfig
from sketchdnn.systems.system import sample_condition_mask

SET = SetDenoiserConfig(width=32, depth=1, heads=2)
DIT = DiTConfig(width=32, depth=1, heads=2, num_steps=300)
NETWORKS = {"ours": SET, "paper": DIT, "authors": DIT}
STEPS = torch.tensor([1, 150, 151, 299])


class Says(torch.nn.Module):
    """A network that puts out the same parameters whatever it sees."""

    def __init__(self, params: torch.Tensor) -> None:
        super().__init__()
        self.params = params

    def forward(self, rows: SketchBatch, *_: object) -> Prediction:
        return Prediction(rows.construction, rows.kind, self.params)


def config(form: str = "ours", **said: object) -> SketchDNNConfig:
    return SketchDNNConfig(network=NETWORKS[form], form=form, num_steps=300, **said)  # type: ignore[arg-type]


def params_loss(system: SketchDNNSystem, noise: SketchBatch) -> torch.Tensor:
    x0 = clean_batch(4)
    nothing = sample_condition_mask(torch.ones(4, 19), x0.kind.argmax(dim=-1), 0.0)
    return system.loss(x0, STEPS, noise, nothing).params_per_sample.detach()


def made(**said: object) -> SketchDNNSystem:
    torch.manual_seed(0)
    return SketchDNNSystem(config(**said)).eval()  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["ours", "paper"])
def test_a_network_that_knows_the_noise_knows_the_sketch(form: str) -> None:
    x0, noise = clean_batch(4), normal_batch(4)
    system = made(form=form, predict="noise")
    system.network = Says(noise.params)
    said = system.denoise(system.process.diffuse(x0, STEPS, noise), STEPS)
    assert torch.allclose(said.params[:3], x0.params[:3], atol=1e-4)
    assert float(params_loss(system, noise)[:3].max()) < 1e-4


def test_predicting_noise_is_judged_by_the_noise() -> None:
    noise, mask = normal_batch(4), relevant(clean_batch(4).kind.argmax(dim=-1))
    system = made(predict="noise")
    system.network = Says(torch.zeros_like(noise.params))
    mean_square = (noise.params**2 * mask).sum(dim=(1, 2)) / mask.sum(dim=(1, 2))
    assert torch.allclose(params_loss(system, noise)[:3], mean_square[:3], rtol=1e-3)


@pytest.mark.parametrize("form", ["ours", "paper", "authors"])
def test_the_boost_weighs_where_it_says(form: str) -> None:
    loss = {
        where: params_loss(made(form=form, boost=where), normal_batch(4))
        for where in ("nowhere", "low", "everywhere", None)
    }
    assert torch.allclose(loss["everywhere"], 16 * loss["nowhere"])
    assert torch.allclose(loss["low"], torch.tensor([16.0, 16.0, 1.0, 1.0]) * loss["nowhere"])
    assert torch.equal(loss[None], loss["nowhere" if form == "ours" else "low"])


def test_labels_may_follow_the_schedule_of_parameters() -> None:
    raw, augmented = made(label_schedule="raw").process, made().process
    assert torch.equal(raw.kind.alpha_bar, raw.params.alpha_bar)
    assert torch.equal(raw.construction.alpha_bar, raw.params.alpha_bar)
    assert not torch.equal(augmented.kind.alpha_bar, augmented.params.alpha_bar)


@pytest.mark.parametrize("form", ["ours", "paper", "authors"])
def test_the_logits_of_the_reverse_mean_are_any_forms(form: str) -> None:
    own = {"ours": "expected", "paper": "log", "authors": "2log"}[form]
    assert made(form=form).process.reverse_logits == own
    for logits in ("log", "2log", "expected"):
        assert made(form=form, reverse_logits=logits).process.reverse_logits == logits


@pytest.mark.parametrize(
    "said",
    [
        {"predict": "noise"},
        {"boost": "everywhere"},
        {"boost": "nowhere"},
        {"label_schedule": "raw"},
        {"superposition": "none"},
        {"reverse_logits": "log"},
        {"reverse_logits": "2log"},
    ],
)
@pytest.mark.parametrize("form", ["ours", "paper"])
def test_every_row_of_the_report_learns_draws_and_is_kept(form: str, said: dict[str, str], tmp_path: Path) -> None:
    lines = [f'{name} = "{value}"' for name, value in said.items()]
    kind = "SetDenoiser" if form == "ours" else "DiT"
    (tmp_path / "mine.toml").write_text(
        "\n".join(
            ["[system]", 'name = "sketchdnn"', f'form = "{form}"', "num_steps = 300", *lines]
            + ["[system.network]", f'type = "{kind}"', "width = 32", "depth = 1", "heads = 2"]
            + (["num_steps = 300"] if kind == "DiT" else [])
        )
    )
    torch.manual_seed(0)
    system = load_preset(tmp_path / "mine.toml").make().eval()
    assert system.config == config(form, **said)
    assert bool(params_loss(system, normal_batch(4)).isfinite().all())  # type: ignore[arg-type]
    for steps in (3, 300):
        assert bool(
            system.sample(seeded_noise(0, torch.arange(2)), SamplingOptions(steps=steps)).flat().isfinite().all()
        )
    save_pretrained(system, tmp_path / "model")
    assert from_pretrained(tmp_path / "model").config == system.config


def test_a_model_from_before_the_switches_is_read_as_it_was(tmp_path: Path) -> None:
    save_pretrained(made(), tmp_path)
    facts = json.loads((tmp_path / "config.json").read_text())
    for name in ("predict", "boost", "label_schedule", "reverse_logits"):
        facts["config"].pop(name, None)
    facts["config"]["network"].pop("positions")
    (tmp_path / "config.json").write_text(json.dumps(facts))
    assert from_pretrained(tmp_path).config == config()


def test_the_categorical_one_shares_the_switches_that_make_sense() -> None:
    shared = {field.name for field in fields(SketchDNNCatConfig)} - {"reverse"}
    assert {"predict", "boost", "superposition", "form"} <= shared < {field.name for field in fields(SketchDNNConfig)}
    for form in ("ours", "paper", "authors"):
        settings = SketchDNNCatConfig(network=NETWORKS[form], form=form, num_steps=300, predict="noise")  # type: ignore[arg-type]
        drawn = SketchDNNCat(settings).eval().sample(seeded_noise(0, torch.arange(2)), SamplingOptions(steps=5))
        assert bool(drawn.flat().isfinite().all())
