"""SketchDNN in every variant: loss, sampling, conditioning, likelihood, and the settings of the paper's ablations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from support.generation import randomized
from support.random_batches import clean_batch, normal_batch
from support.small_systems import plain_samplers, small_system

from sketchdnn.diffusion.gaussian import posterior
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.samplers import sample_ddim
from sketchdnn.diffusion.sampling import SAMPLERS, Conditioning, Progress, SamplingOptions, condition_on_rows
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.errors import SketchError
from sketchdnn.generation.conditioning import encode_sketches
from sketchdnn.geometry import Circle, Line, Sketch
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant
from sketchdnn.representation.loose import has_loose_end
from sketchdnn.systems import RowForm, System, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.system import ConditionMask, sample_condition_mask

SET = SetDenoiserConfig(width=32, depth=2, heads=2)
DIT = DiTConfig(width=32, depth=2, heads=2, num_steps=50)
CONFIGS = {
    "ours": SketchDNNConfig(network=SET, num_steps=50),
    "max": SketchDNNConfig(network=SET, num_steps=50, superposition="max"),
    "direct": SketchDNNConfig(network=replace(SET, octaves=0), num_steps=50, preconditioned=False),
    "paper": SketchDNNConfig(network=DIT, variant="paper", num_steps=50),
    "authors": SketchDNNConfig(network=DIT, variant="authors", num_steps=50, label_smoothing=0.9999),
}
NOTHING = ConditionMask(*torch.zeros(3, 4, 16, dtype=torch.bool))


def make(config: SketchDNNConfig) -> SketchDNNSystem:
    return randomized(SketchDNNSystem(config), std=0.05)


@pytest.fixture(params=CONFIGS)
def system(request: pytest.FixtureRequest) -> SketchDNNSystem:
    return make(CONFIGS[request.param])


def test_without_preconditioning_the_network_predicts_the_clean_parameters() -> None:
    """A fresh network outputs zeros: that is its prediction, where a preconditioned one starts from its input."""
    t = torch.tensor([1, 10, 30, 49])
    fresh, preconditioned = SketchDNNSystem(CONFIGS["direct"]), SketchDNNSystem(CONFIGS["ours"])
    batch_t = fresh.process.diffuse(clean_batch(4), t, normal_batch(4))
    assert not fresh.denoise(batch_t, t).params.any()
    torch.testing.assert_close(preconditioned.denoise(batch_t, t).params[0], batch_t.params[0], atol=0.1, rtol=0.1)


@pytest.mark.parametrize(("variant", "sampler"), [("paper", "ancestral"), ("authors", "authors")])
def test_own_samplers_of_the_paper_and_its_authors(variant: str, sampler: str) -> None:
    """Text and code: every step in 2,000, the posterior with (2·)log ŷ_0; the code returns its last prediction."""
    weight = {"paper": 1.0, "authors": 2.0}[variant]
    assert load_preset(variant).make().resolve(SamplingOptions(steps=50)).sampler == sampler
    assert list(SamplingOptions(steps=2000).timesteps(2000)) == list(range(2000, -1, -1))
    system = make(CONFIGS[variant])
    seen: list[Progress] = []
    source = seeded_noise(0, torch.arange(2))
    result = system.sample(source, SamplingOptions(steps=50, on_step=seen.append))
    assert [(step.t, step.s) for step in seen] == list(pairwise(range(50, -1, -1)))
    before, step = seen[20:22]
    level_s, level_t = (system.process.kind.at(t) for t in (step.s, step.t))
    y0 = system.config.label_smoothing * step.prediction.kind + (1 - system.config.label_smoothing) / 5
    mean, std = posterior(weight * y0.log(), before.batch.kind.log(), level_s, level_t)
    expected = (mean + std * source(step.number).kind).softmax(dim=-1)
    torch.testing.assert_close(step.batch.kind, expected, atol=1e-4, rtol=1e-3)
    if variant == "authors":
        torch.testing.assert_close(result.kind, seen[-1].prediction.kind)


def test_loss_and_bound_are_finite_and_every_weight_is_trained(system: SketchDNNSystem) -> None:
    x0, noise = clean_batch(4), seeded_noise(0, torch.arange(4))
    loss = system.loss(x0, torch.tensor([1, 10, 30, 49]), normal_batch(4), NOTHING)
    assert loss.per_sample.shape == (4,)
    assert bool(loss.per_sample.isfinite().all())
    loss.total.backward()
    assert not [name for name, weight in system.named_parameters() if weight.grad is None]
    draws = draw_steps(system.process, 4, 2, torch.Generator().manual_seed(0))
    assert bool(system.likelihood(x0, noise, draws).nats.isfinite().all())
    with pytest.raises(ValueError, match="steps"):
        system.likelihood(x0, noise, None)


@pytest.mark.parametrize("sampler", plain_samplers("sketchdnn"))
def test_known_rows_stay_by_methods_that_the_network_supports(system: SketchDNNSystem, sampler: str) -> None:
    rows = torch.zeros(3, 16, dtype=torch.bool)
    rows[:, :5] = True
    known, noise = clean_batch(3), seeded_noise(0, torch.arange(3))
    for method in ("repaint", "conditional"):
        options = SamplingOptions(sampler, 3, condition_on_rows(known, rows, method=method))
        if method in system.conditioning_methods:
            assert torch.equal(system.sample(noise, options).flat()[:, :5], known.flat()[:, :5])
        else:
            with pytest.raises(ValueError, match="repaint"):
                system.sample(noise, options)


def test_samplers_and_row_form_follow_the_config_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = {name: make(config).default_sampler for name, config in CONFIGS.items()}
    assert defaults.pop("direct") == "restart"
    assert defaults == {"ours": "restart", "max": "restart", "paper": "ancestral", "authors": "authors"}
    assert make(replace(CONFIGS["ours"], reverse_logits="log")).default_sampler == "ancestral"
    assert make(CONFIGS["ours"]).rows == RowForm("sweep", "one_hot", True)
    config = SketchDNNConfig(network=SET, arc_scalar="signed_radius", none_construction="zero", canonical_lines=False)
    assert SketchDNNSystem(config).rows == RowForm("signed_radius", "zero", False)
    system, noise = make(CONFIGS["ours"]), seeded_noise(0, torch.arange(2))
    monkeypatch.setitem(SAMPLERS, "mine", sample_ddim)
    by_name, *others = (system.sample(noise, SamplingOptions(s, 4)).flat() for s in ("ddim", sample_ddim, "mine"))
    assert all(torch.equal(other, by_name) for other in others)
    with pytest.raises(SketchError, match="'euler' is no sampler; use one of ancestral"):
        system.sample(noise, SamplingOptions("euler", 5))
    for steps in (0, -1, 51):
        with pytest.raises(SketchError, match=f"1 to 50 steps, not {steps}"):
            system.sample(noise, SamplingOptions(steps=steps))
    for steps in (1, 50):
        assert system.resolve(SamplingOptions(steps=steps)).sampler == "restart"


def test_known_parts_add_nothing_to_the_loss_and_change_the_prediction() -> None:
    system, x0 = make(CONFIGS["ours"]), clean_batch(4)
    everything = ConditionMask(*torch.ones(3, 4, 16, dtype=torch.bool))
    loss = system.loss(x0, torch.tensor([1, 10, 30, 49]), normal_batch(4), everything)
    assert float(loss.total.detach()) < 1e-6
    t = torch.tensor([30] * 4)
    assert not torch.allclose(system.denoise(x0, t, everything).params, system.denoise(x0, t).params)


def random_mask(task: float, *, chance: float = 0.0, probability: float = 0.5, part: float = 1.0) -> ConditionMask:
    """For one sketch of ten lines and six empty rows; all rows are known if the task is completion."""
    kind = torch.tensor([[0] * 10 + [layout.NONE] * 6])
    uniform = torch.tensor([[chance, task, part] + [0.5] * 16], dtype=torch.float64)
    return sample_condition_mask(uniform, kind, probability)


def test_condition_mask_has_one_of_three_tasks() -> None:
    """Up to 0.4 rows are known, from there to 0.7 all kinds, and from there on the empty rows."""
    every = torch.ones(1, 16, dtype=torch.bool)
    none, empty = ~every, torch.arange(16)[None] >= 10
    for task, (kind, rest) in {
        **dict.fromkeys((0.0, 0.2, 0.399), (every, every)),
        **dict.fromkeys((0.4, 0.5, 0.699), (every, none)),
        **dict.fromkeys((0.7, 0.9, 0.999), (empty, empty)),
    }.items():
        mask = random_mask(task)
        assert torch.equal(mask.kind, kind), task
        assert torch.equal(mask.construction, rest), task
        assert torch.equal(mask.params, rest), task
    for task in (0.1, 0.5, 0.9):
        for chance, probability in ((0.5, 0.5), (0.9, 0.5), (0.0, 0.0)):
            mask = random_mask(task, chance=chance, probability=probability)
            assert not (mask.kind | mask.construction | mask.params).any()
    assert not random_mask(0.2, part=0.5).kind.any()


NETWORKS = {"ours": SET, "paper": replace(DIT, num_steps=300), "authors": replace(DIT, num_steps=300)}
STEPS = torch.tensor([1, 150, 151, 299])
ABLATIONS = ["predict=noise", "mse_weighting=all", "label_schedule=raw", "superposition=none"]
ABLATIONS += ["reverse_logits=log", "reverse_logits=2log"]


class Constant(torch.nn.Module):
    """A network that outputs the same parameters for any input."""

    def __init__(self, params: torch.Tensor) -> None:
        super().__init__()
        self.params = params

    def forward(self, rows: SketchBatch, *_: object) -> Prediction:
        return Prediction(rows.construction, rows.kind, self.params)


def configure(variant: str = "ours", **settings: Any) -> SketchDNNConfig:
    return SketchDNNConfig(network=NETWORKS[variant], variant=variant, num_steps=300, **settings)  # type: ignore[arg-type]


def params_loss(system: System, noise: SketchBatch) -> torch.Tensor:
    return system.loss(clean_batch(4), STEPS, noise, NOTHING).params_per_sample.detach()


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_true_noise_gives_the_sketch(variant: str) -> None:
    x0, noise = clean_batch(4), normal_batch(4)
    system = make(configure(variant, predict="noise"))
    system.network = Constant(noise.params)
    prediction = system.denoise(system.process.diffuse(x0, STEPS, noise), STEPS)
    assert torch.allclose(prediction.params[:3], x0.params[:3], atol=1e-4)
    assert float(params_loss(system, noise)[:3].max()) < 1e-4
    if variant == "ours":  # the loss is the mean square of the error in the noise
        system.network = Constant(torch.zeros_like(noise.params))
        mask = relevant(x0.kind.argmax(dim=-1))
        mean_square = (noise.params**2 * mask).sum(dim=(1, 2)) / mask.sum(dim=(1, 2))
        assert torch.allclose(params_loss(system, noise)[:3], mean_square[:3], rtol=1e-3)


@pytest.mark.parametrize("variant", ["ours", "paper", "authors"])
def test_mse_weighting(variant: str) -> None:
    loss = {
        weighting: params_loss(make(configure(variant, mse_weighting=weighting)), normal_batch(4))
        for weighting in ("none", "low_noise", "all", None)
    }
    assert torch.allclose(loss["all"], 16 * loss["none"])
    assert torch.allclose(loss["low_noise"], torch.tensor([16.0, 16.0, 1.0, 1.0]) * loss["none"])
    assert torch.equal(loss[None], loss["none" if variant == "ours" else "low_noise"])


def test_label_schedule_and_reverse_logits() -> None:
    raw, augmented = make(configure(label_schedule="raw")).process, make(configure()).process
    assert torch.equal(raw.kind.alpha_bar, raw.params.alpha_bar)
    assert torch.equal(raw.construction.alpha_bar, raw.params.alpha_bar)
    assert not torch.equal(augmented.kind.alpha_bar, augmented.params.alpha_bar)
    for variant, default in (("ours", "expected"), ("paper", "log"), ("authors", "2log")):
        assert make(configure(variant)).process.reverse_logits == default
        for logits in ("log", "2log", "expected"):
            assert make(configure(variant, reverse_logits=logits)).process.reverse_logits == logits


@pytest.mark.parametrize("variant", ["ours", "paper"])
@pytest.mark.parametrize("setting", ABLATIONS)
def test_ablation_trains_samples_and_is_saved(variant: str, setting: str, tmp_path: Path) -> None:
    name, value = setting.split("=")
    network = 'type = "SetDenoiser"' if variant == "ours" else 'type = "DiT"\nnum_steps = 300'
    (tmp_path / "mine.toml").write_text(
        f'[system]\nname = "sketchdnn"\nvariant = "{variant}"\nnum_steps = 300\n{name} = "{value}"\n'
        f"[system.network]\n{network}\nwidth = 32\ndepth = 2\nheads = 2\n"
    )
    torch.manual_seed(0)
    system = load_preset(tmp_path / "mine.toml").make().eval()
    assert system.config == configure(variant, **{name: value})
    assert bool(params_loss(system, normal_batch(4)).isfinite().all())
    for steps in (3, 100):
        batch = system.sample(seeded_noise(0, torch.arange(2)), SamplingOptions(steps=steps))
        assert bool(batch.flat().isfinite().all())
    save_pretrained(system, tmp_path / "model")
    assert from_pretrained(tmp_path / "model").config == system.config


SIDES = tuple(Line(a, b) for a, b in pairwise([(-1, 0.5), (-1, -0.5), (1, -0.5), (1, 0.5)]))
PART = Sketch((*SIDES, Circle((-0.5, 0), 0.2)))


def passes(system: System, numbers: list[int], known: Conditioning) -> tuple[SketchBatch, SketchBatch, list[Progress]]:
    """The result of the first pass of `restart`, its result, and its progress."""
    steps, noise = list[Progress](), seeded_noise(0, torch.tensor(numbers))
    first = system.sample(noise, SamplingOptions("predictor_corrector", 12, known))
    return first, system.sample(noise, SamplingOptions("restart", 16, known, on_step=steps.append)), steps


@pytest.mark.parametrize(("method", "resamples"), [("conditional", 1), ("repaint", 1), ("repaint", 3)])
def test_restart_keeps_known_rows(method: Any, resamples: int) -> None:
    known = encode_sketches([PART] * 3, RowForm())
    rows = known.kind.argmax(dim=-1) != layout.NONE
    conditioning = condition_on_rows(known, rows, method=method, resamples=resamples)
    first, end, steps = passes(small_system(), [0, 1, 2], conditioning)
    assert has_loose_end(first).all()
    assert not torch.isclose(end.flat()[~rows], first.flat()[~rows]).all(dim=-1).any()
    assert torch.equal(end.flat()[rows], known.flat()[rows])
    seen = steps if method == "conditional" else [progress for progress in steps if progress.s == 0]
    assert len(seen) == (16 if method == "conditional" else 2)
    assert all(torch.equal(progress.batch.flat()[rows], known.flat()[rows]) for progress in seen)
    shares = [progress.number / progress.total for progress in steps]
    assert (shares, shares[-1]) == (sorted(shares), 1)


def test_restart_keeps_known_kinds_and_closed_profiles() -> None:
    known = clean_batch(3)
    every, none = torch.ones(3, 16, dtype=torch.bool), torch.zeros(3, 16, dtype=torch.bool)
    conditioning = Conditioning(known, none, every, none[..., None].expand_as(known.params), "conditional")
    first, end, _ = passes(small_system(), [0, 1, 2], conditioning)
    loose = has_loose_end(first)
    assert loose.any()
    assert not torch.isclose(end.params[loose], first.params[loose]).all(dim=-1).all(dim=-1).any()
    assert torch.equal(end.kind, known.kind)
    system = from_pretrained()
    # Two that close in 36 steps, and six that do not.
    noise = seeded_noise(0, torch.tensor([0, 1, 2, 3, 6, 8, 14, 35]))
    plain, closed = (
        system.sample(noise, SamplingOptions(*options)) for options in (("predictor_corrector", 36), ("restart", 50))
    )
    loose = has_loose_end(plain)
    assert 3 <= int(loose.sum()) < 8
    assert torch.equal(closed.flat()[~loose], plain.flat()[~loose])
    assert not torch.isclose(closed.flat()[loose], plain.flat()[loose]).all(dim=-1).all(dim=-1).any()
    assert int(has_loose_end(closed).sum()) < int(loose.sum())
