"""Extra inputs of the denoiser: self-conditioning, proximity features, auxiliary samples, and dropout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.random_batches import clean_batch, normal_batch, random_prediction
from support.small_systems import plain_samplers, random_system

from sketchdnn.diffusion.gaussian import like
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import parts
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start, step_sequence
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems import config_to_dict, from_pretrained, row_denoiser, save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.system import ConditionMask, sample_condition_mask

PLAIN = SetDenoiserConfig(width=32, depth=2, heads=2)
# The weights of each extra input, which are zero at first.
WEIGHTS = {
    "self_conditioning": "network.embed_previous.weight",
    "proximity_features": "network.embed_proximity.weight",
    "auxiliary": "network.auxiliary",
}
NAMES = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat")
SYSTEM_SAMPLERS = [(name, sampler) for name in NAMES for sampler in plain_samplers(name)]
STEPS = torch.tensor([1, 10, 30, 49, 20])
RowDenoiser = row_denoiser.RowDenoiser


def make(
    name: str = "sketchdnn", extra: str | None = "self_conditioning", *, zero: bool = False, **settings: Any
) -> RowDenoiser:
    """A system with one extra input, whose weights are random or zero."""
    network = PLAIN if extra is None else replace(PLAIN, **{extra: True})
    return random_system(name, network, WEIGHTS.get(extra or ""), zero=zero, **settings)


def sample(system: RowDenoiser, numbers: list[int], **options: Any) -> tuple[SketchBatch, list[Progress]]:
    steps: list[Progress] = []
    given = SamplingOptions(**{"steps": 5, "on_step": steps.append, **options})
    return system.sample(seeded_noise(1, torch.tensor(numbers)), given), steps


def make_mask(count: int, probability: float, auxiliary: list[bool] | None = None) -> ConditionMask:
    uniform = torch.rand(count, 19, generator=torch.Generator().manual_seed(4))
    uniform[:, 1] = 0.0  # some rows
    mask = sample_condition_mask(uniform, clean_batch(count).kind.argmax(dim=-1), probability)
    return mask if auxiliary is None else replace(mask, auxiliary=torch.tensor(auxiliary))


def loss(system: RowDenoiser, mask: ConditionMask, count: int = 5) -> torch.Tensor:
    return system.loss(clean_batch(count), STEPS[:count], normal_batch(count), mask).per_sample


def same(one: Prediction, other: Prediction) -> bool:
    return all(map(torch.equal, parts(one), parts(other)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extra", WEIGHTS)
def test_zero_initialized_input_changes_nothing(name: str, extra: str) -> None:
    plain, extended, trained = make(name, None), make(name, extra, zero=True), make(name, extra)
    assert extended.can_init_from(plain)
    assert not plain.can_init_from(extended)
    for sampler in plain_samplers(name):
        a, b = (sample(system, [0, 1], sampler=sampler)[0] for system in (plain, extended))
        assert torch.equal(a.flat(), b.flat())
    mask = make_mask(5, 0.5, [True, False] * 2 + [True]) if extra == "auxiliary" else make_mask(5, 0.5)
    assert torch.equal(loss(extended, mask), loss(plain, make_mask(5, 0.5)))
    assert not torch.equal(loss(trained, mask), loss(plain, make_mask(5, 0.5)))


def test_initial_weights_may_differ_in_settings_of_inference_but_not_in_inputs() -> None:
    system = make(superposition="max")
    assert system.can_init_from(make(extra=None, superposition="none", reverse_logits="log"))
    assert not system.can_init_from(make(extra=None, predict="noise"))
    assert not system.can_init_from(make("sketchdnn-pos", None))
    assert not system.can_init_from(SketchDNNSystem(SketchDNNConfig(network=replace(PLAIN, width=64), num_steps=50)))
    plain, lossy = make(extra=None), random_system("sketchdnn", replace(PLAIN, dropout=0.5), None)
    assert lossy.can_init_from(plain)
    assert plain.can_init_from(lossy)
    mask = make_mask(5, 0.0)
    assert torch.equal(loss(lossy, mask), loss(plain, mask))
    torch.manual_seed(0)
    assert not torch.allclose(loss(lossy.train(), mask), loss(plain.train(), mask), atol=1e-3)
    paper = SketchDNNSystem(SketchDNNConfig(network=DiTConfig(width=32, depth=1, heads=2), variant="paper"))
    for system in (paper, make(extra=None)):
        with pytest.raises(ValueError, match=r"network\.self_conditioning is off"):
            system.denoise(clean_batch(2), torch.tensor([3, 4]), previous=random_prediction(2))
    with pytest.raises(ValueError, match=r"network\.auxiliary is off"):
        loss(make(extra=None), make_mask(5, 0.0, [True] * 5))


@pytest.mark.parametrize("name", NAMES)
def test_extra_inputs_are_saved_and_omitted_from_old_configs(name: str, tmp_path: Path) -> None:
    network = replace(PLAIN, dropout=0.1, **dict.fromkeys(WEIGHTS, True))
    system = random_system(name, network, None)
    for weight in system.parameters():
        weight.data = weight.data.half().float()  # as it is stored
    save_pretrained(system, tmp_path)
    loaded = from_pretrained(tmp_path)
    assert isinstance(loaded, RowDenoiser)
    assert loaded.config == system.config
    assert torch.equal(sample(loaded, [3])[0].flat(), sample(system, [3])[0].flat())
    assert not {*WEIGHTS, "dropout"} & set(config_to_dict(make(extra=None).config)["network"])


@pytest.mark.parametrize("extra", ["self_conditioning", "proximity_features"])
def test_loss_is_one_graph_with_gradients_everywhere(extra: str) -> None:
    system, mask = make(extra=extra), make_mask(5, 0.5)
    arguments = (clean_batch(5), STEPS, normal_batch(5), mask)
    compiled = torch.compile(lambda *a: system.loss(*a).per_sample, backend="eager", fullgraph=True, dynamic=False)
    torch.testing.assert_close(compiled(*arguments), system.loss(*arguments).per_sample)
    # From zero and in half precision: the cast of a weight made without gradients must not be reused with them.
    system = make(extra=extra, zero=True).train()
    with torch.autocast("cpu", torch.bfloat16):
        total = system.loss(*arguments).total
    total.backward()
    assert not [name for name, w in system.named_parameters() if w.grad is None or not w.grad.any()]
    assert all(w.grad.isfinite().all() for w in system.parameters() if w.grad is not None)


def test_auxiliary_flag_affects_its_own_sketch_and_never_sampling() -> None:
    system = make(extra="auxiliary")
    flags = [True, False, True, False]
    plain, some = loss(system, make_mask(4, 0.0), 4), loss(system, make_mask(4, 0.0, flags), 4)
    assert torch.equal(plain, loss(system, make_mask(4, 0.0, [False] * 4), 4))
    assert ((plain - some).abs() > 1e-4).tolist() == flags
    assert torch.equal(sample(system, [0, 1])[0].flat(), sample(make(extra=None), [0, 1])[0].flat())


@pytest.mark.parametrize(("name", "sampler"), SYSTEM_SAMPLERS)
def test_previous_prediction_is_used_from_the_second_step(name: str, sampler: str) -> None:
    system = make(name)
    batch, steps = sample(system, [0, 1, 2], sampler=sampler)
    _, plain = sample(make(name, None), [0, 1, 2], sampler=sampler)
    assert same(steps[0].prediction, plain[0].prediction)
    assert torch.equal(steps[0].batch.flat(), plain[0].batch.flat())
    assert not torch.allclose(steps[1].prediction.params, plain[1].prediction.params, atol=1e-3)
    # It is the last prediction of the same trajectory.
    if sampler != "predictor_corrector":  # which changes the state once more before the network sees it
        again = system.denoise(steps[1].batch, torch.full((3,), steps[2].t), previous=steps[1].prediction)
        torch.testing.assert_close(again.params, steps[2].prediction.params, atol=1e-5, rtol=0)
    # Nothing is carried over from another trajectory or another sketch.
    assert torch.equal(batch.flat(), sample(system, [0, 1, 2], sampler=sampler)[0].flat())
    assert torch.allclose(sample(system, [2], sampler=sampler)[0].flat()[0], batch.flat()[2], atol=5e-3)


def test_known_parts_replace_the_previous_prediction_and_null_is_all_zeros() -> None:
    system, x0, mask, t = make(), clean_batch(4), make_mask(4, 1.0), torch.full((4,), 30)
    assert bool(mask.params.any())
    assert not bool(mask.params.all())
    one, other = random_prediction(4, seed=2), random_prediction(4, seed=3)
    # Agrees with `other` but for the known parts.
    mixed = Prediction(*map(torch.where, [mask.params[..., None]] * 3, parts(one), parts(other)))
    assert same(system.denoise(x0, t, mask, mixed), system.denoise(x0, t, mask, other))
    assert not same(system.denoise(x0, t, mask, one), system.denoise(x0, t, mask, other))
    inputs = row_denoiser.prediction_rows(one, x0, mask, 0.5)
    assert torch.equal(inputs.kind[mask.kind], x0.kind[mask.kind])
    assert torch.equal(inputs.params[mask.params], x0.params[mask.params] / 0.5)
    assert torch.allclose(inputs.params[~mask.params], one.params[~mask.params] / 0.5)
    null = row_denoiser.null_prediction(x0.params)
    assert row_denoiser.prediction_rows(null, x0, mask, 0.5).flat().abs().max() == 0
    assert same(system.denoise(x0, t, mask, null), system.denoise(x0, t, mask))
    # NaN must not pass for null.
    wrong = replace(null, kind_logits=torch.full_like(null.kind_logits, torch.nan))
    assert bool(row_denoiser.prediction_rows(wrong, x0, None, 0.5).kind.isnan().all())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 4, 5])
def test_every_other_sketch_is_self_conditioned_in_training(name: str, count: int) -> None:
    prediction = random_prediction((count + 1) // 2)
    interleaved = row_denoiser.interleave_null(prediction, count)
    even, odd = (Prediction(*(part[begin::2] for part in parts(interleaved))) for begin in (0, 1))
    assert same(even, prediction)
    assert same(odd, row_denoiser.null_prediction(odd.params))
    system, mask = make(name), make_mask(count, 0.5)
    own, plain = loss(system, mask, count), loss(make(name, None), mask, count)
    assert torch.equal(own, loss(system, mask, count))
    torch.testing.assert_close(own[1::2], plain[1::2], atol=1e-5, rtol=1e-4)
    assert bool(((own - plain).abs()[::2] > 1e-3).any())
    # At t = T there is no noisier step.
    last = system.loss(clean_batch(4), torch.tensor([50, 50, 49, 50]), normal_batch(4), make_mask(4, 0.5))
    assert bool(last.per_sample.isfinite().all())


def test_previous_step_is_one_of_a_sampling_run() -> None:
    t = torch.arange(1, 2000)
    earlier = row_denoiser.previous_step(t, 2000)
    assert bool((earlier > t).all())
    assert int(earlier.max()) == 2000
    for count in (25, 50, 200):
        steps = torch.tensor(step_sequence(2000, count, power=2))
        # No further up than the longest stride; runs of more steps have shorter ones.
        longest = row_denoiser.previous_step(steps[1:-1].repeat_interleave(8), 2000)[7::8]
        assert bool((longest + 1 >= steps[:-2]).all())  # both are rounded
    assert torch.equal(row_denoiser.previous_step(torch.full((8,), 1999), 2000), torch.full((8,), 2000))


def test_bound_is_without_self_conditioning_and_variations_are_with_it() -> None:
    nats = []
    for system in (make(), make(extra=None)):
        draws = draw_steps(system.process, 3, 2, torch.Generator().manual_seed(0))
        nats.append(system.likelihood(clean_batch(3), seeded_noise(0, torch.arange(3)), draws).nats)
    assert torch.equal(nats[0], nats[1])
    start = Start(30, clean_batch(2))
    batch, steps = sample(make(predict="noise"), [0, 1], start=start)
    _, plain = sample(make(extra=None, predict="noise"), [0, 1], start=start)
    assert bool(batch.flat().isfinite().all())
    assert not torch.allclose(steps[1].prediction.params, plain[1].prediction.params, atol=1e-3)


@pytest.mark.parametrize("extra", ["self_conditioning", "proximity_features"])
@pytest.mark.parametrize("name", NAMES)
def test_permuted_noise_gives_permuted_rows(name: str, extra: str) -> None:
    system, noise = make(name, extra), seeded_noise(0, torch.arange(3))
    order = torch.rand(3, 16, generator=torch.Generator().manual_seed(2)).argsort(dim=-1)
    for sampler in plain_samplers(name):
        options = SamplingOptions(sampler, 4)
        plain = system.sample(noise, options).permuted(order)
        permuted = system.sample(lambda number: noise(number).permuted(order), options)
        assert torch.allclose(plain.flat(), permuted.flat(), atol=1e-3) == (name != "sketchdnn-pos")


def with_both() -> RowDenoiser:
    """Proximity features and self-conditioning, the latter with zero weights."""
    base = make(extra="proximity_features")
    config = replace(base.config, network=replace(base.config.network, self_conditioning=True))
    system = SketchDNNSystem(config)
    system.load_state_dict(system.state_dict() | base.state_dict())
    return system.eval()


def test_proximity_is_measured_in_units_of_noise_and_counts_from_the_second_step() -> None:
    plain, system = with_both(), with_both()
    assert plain.can_init_from(make(extra="proximity_features"))
    assert not make(extra="proximity_features").can_init_from(plain)
    assert torch.equal(sample(plain, [0])[0].flat(), sample(make(extra="proximity_features"), [0])[0].flat())
    torch.nn.init.normal_(system.get_parameter("network.embed_previous_proximity.weight"), std=0.2)
    for steps, equal in ((1, True), (2, False)):
        a, b = (sample(one, [0], steps=steps)[0] for one in (system, plain))
        assert torch.equal(a.flat(), b.flat()) == equal
    levels: list[torch.Tensor] = []
    system.get_submodule("network").register_forward_pre_hook(lambda _, inputs: levels.append(inputs[1]))
    system.denoise(clean_batch(3), torch.tensor([5, 20, 40]))
    level = system.process.params.at(torch.tensor([5, 20, 40]))
    assert levels[0].tolist() == pytest.approx(((level.var / level.alpha_bar).log() / 6).tolist(), abs=1e-3)
    # Predicted places are measured in half the unit of noisy ones, known places as if diffused without noise.
    system, x0, t = with_both(), clean_batch(3), torch.tensor([5, 20, 40])
    level, std = system.process.params.at(t), system.config.data_std
    predicted = row_denoiser.predicted_proximity(SketchBatch(x0.construction, x0.kind, x0.params / std), level, std)
    scaled = like(level.alpha_bar.sqrt(), x0.params) * x0.params
    doubled = SketchBatch(x0.construction, x0.kind, 2 * scaled)
    torch.testing.assert_close(predicted, row_denoiser.noisy_proximity(doubled, level, None), atol=1e-4, rtol=1e-4)
    all_known = ConditionMask(*torch.ones(3, 3, 16, dtype=torch.bool))
    noiseless = row_denoiser.noisy_proximity(SketchBatch(x0.construction, x0.kind, scaled), level, None)
    torch.testing.assert_close(row_denoiser.noisy_proximity(x0, level, all_known), noiseless, atol=1e-4, rtol=1e-4)
    null = SketchBatch(torch.zeros(3, 16, 2), torch.zeros(3, 16, 5), torch.zeros(3, 16, 14))
    assert row_denoiser.predicted_proximity(null, level, 0.55).abs().max() == 0
