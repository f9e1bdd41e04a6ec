"""A network that hears what it said: as a deaf one at first, then with a memory of one walk and of one row each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.random_batches import clean_batch, normal_batch, random_prediction
from support.random_systems import speaking

from sketchdnn.diffusion.conditioning import condition_on_rows
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start, step_sequence
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.systems import ConfigError, config_to_dict, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.network_inputs import as_heard, every_other, rolled, silence, step_before
from sketchdnn.systems.registry import SYSTEMS
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.system import ConditionMask, sample_condition_mask, shown, told

DEAF = SetDenoiserConfig(width=32, depth=2, heads=2)
HEARING = replace(DEAF, hears=True)
NAMES = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat")
# Every system with each of its samplers.
WAYS = [(name, sampler) for name in NAMES for sampler in SYSTEMS[name].make.samplers]  # type: ignore[attr-defined]
STEPS = torch.tensor([1, 10, 30, 49, 20])


def made(name: str = "sketchdnn", *, hears: bool = True, heard: bool = True, **settings: Any) -> RowDenoiser[Any]:
    """A system that says something; `heard`: and what it hears counts."""
    return speaking(name, HEARING if hears else DEAF, "network.heard.weight", counts=heard, **settings)


def walked(system: RowDenoiser[Any], numbers: list[int], **how: Any) -> tuple[SketchBatch, list[Progress]]:
    steps: list[Progress] = []
    drawn = system.sample(
        seeded_noise(1, torch.tensor(numbers)), SamplingOptions(on_step=steps.append), **{"steps": 5, **how}
    )
    return drawn, steps


def flags(count: int, share: float) -> ConditionMask:
    uniform = torch.rand(count, 19, generator=torch.Generator().manual_seed(4))
    uniform[:, 1] = 0.0  # some rows
    return sample_condition_mask(uniform, clean_batch(count).kind.argmax(dim=-1), share)


def same(one: Prediction, other: Prediction) -> bool:
    return all(
        torch.equal(getattr(one, part), getattr(other, part))
        for part in ("construction_logits", "kind_logits", "params")
    )


@pytest.mark.parametrize(("name", "sampler"), WAYS)
def test_it_begins_as_a_deaf_one_to_the_bit(name: str, sampler: str) -> None:
    deaf, hearing = made(name, hears=False), made(name, heard=False)
    assert hearing.can_init_from(deaf)
    assert not deaf.can_init_from(hearing)
    assert torch.equal(
        walked(hearing, [0, 1], sampler=sampler)[0].flat(), walked(deaf, [0, 1], sampler=sampler)[0].flat()
    )
    x0, noise, given = clean_batch(5), normal_batch(5), flags(5, 0.5)
    assert torch.equal(hearing.loss(x0, STEPS, noise, given).per_sample, deaf.loss(x0, STEPS, noise, given).per_sample)


@pytest.mark.parametrize(("name", "sampler"), WAYS)
def test_from_the_second_step_on_it_hears_what_it_said(name: str, sampler: str) -> None:
    hearing, deaf = made(name), made(name, hears=False)
    _, steps = walked(hearing, [0, 1], sampler=sampler)
    _, plain = walked(deaf, [0, 1], sampler=sampler)
    assert same(steps[0].prediction, plain[0].prediction)
    assert torch.equal(steps[0].batch.flat(), plain[0].batch.flat())
    assert not torch.allclose(steps[1].prediction.params, plain[1].prediction.params, atol=1e-3)
    # And it is the last thing said that counts, of that very walk.
    seen, t = steps[1].batch, torch.full((2,), steps[2].t)
    if sampler != "predictor_corrector":  # which moves a sketch once more before it is seen
        told = hearing.denoise(seen, t, before=steps[1].prediction)
        torch.testing.assert_close(told.params, steps[2].prediction.params, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("name", "sampler"), WAYS)
def test_a_walk_knows_nothing_of_another_nor_a_sketch_of_its_neighbors(name: str, sampler: str) -> None:
    system = made(name)
    both, _ = walked(system, [0, 1, 2], sampler=sampler)
    again, _ = walked(system, [0, 1, 2], sampler=sampler)
    assert torch.equal(both.flat(), again.flat())
    alone, _ = walked(system, [2], sampler=sampler)
    assert torch.allclose(alone.flat()[0], both.flat()[2], atol=5e-3)


@pytest.mark.parametrize(("name", "sampler"), WAYS)
def test_rows_in_another_order_are_drawn_in_that_order(name: str, sampler: str) -> None:
    system, noise = made(name), seeded_noise(0, torch.arange(3))
    order = torch.rand(3, 16, generator=torch.Generator().manual_seed(2)).argsort(dim=-1)
    plain = system.sample(noise, SamplingOptions(sampler=sampler, steps=4)).permuted(order)
    moved = system.sample(lambda number: noise(number).permuted(order), SamplingOptions(sampler=sampler, steps=4))
    assert torch.allclose(plain.flat(), moved.flat(), atol=1e-3) == (name != "sketchdnn-pos")


@pytest.mark.parametrize(("name", "sampler"), WAYS)
@pytest.mark.parametrize("method", ["conditional", "repaint"])
def test_given_rows_stay_and_a_walk_may_go_up_again(name: str, sampler: str, method: Any) -> None:
    rows = torch.zeros(2, 16, dtype=torch.bool)
    rows[:, :5] = True
    known = clean_batch(2)
    given = condition_on_rows(known, rows, method=method, resamples=2)
    drawn, steps = walked(made(name), [0, 1], sampler=sampler, given=given)
    _, plain = walked(made(name, hears=False), [0, 1], sampler=sampler, given=given)
    assert torch.equal(drawn.flat()[:, :5], known.flat()[:, :5])
    assert bool(drawn.flat().isfinite().all())
    assert same(steps[0].prediction, plain[0].prediction)
    assert not torch.allclose(steps[-1].prediction.params[:, 5:], plain[-1].prediction.params[:, 5:], atol=1e-3)


def test_what_is_given_is_heard_for_sure_whatever_was_said() -> None:
    system, x0, given, t = made(), clean_batch(4), flags(4, 1.0), torch.full((4,), 30)
    assert bool(given.params.any()) and not bool(given.params.all())  # noqa: PT018
    one, other = random_prediction(4, seed=2), random_prediction(4, seed=3)
    rows = given.params[..., None]
    # Two that agree but for what is given.
    mixed = Prediction(
        torch.where(rows, one.construction_logits, other.construction_logits),
        torch.where(rows, one.kind_logits, other.kind_logits),
        torch.where(rows, one.params, other.params),
    )
    assert same(system.denoise(x0, t, given, mixed), system.denoise(x0, t, given, other))
    assert not same(system.denoise(x0, t, given, one), system.denoise(x0, t, given, other))
    heard = as_heard(one, x0, given, 0.5)
    assert torch.equal(heard.kind[given.kind], x0.kind[given.kind])
    assert torch.equal(heard.params[given.params], x0.params[given.params] / 0.5)
    assert torch.allclose(heard.params[~given.params], one.params[~given.params] / 0.5)


def test_silence_is_all_zeros_even_of_what_is_given() -> None:
    system, x0, given, t = made(), clean_batch(4), flags(4, 1.0), torch.full((4,), 30)
    quiet = silence(x0.params)
    assert as_heard(quiet, x0, given, 0.5).flat().abs().max() == 0
    assert same(system.denoise(x0, t, given, quiet), system.denoise(x0, t, given))
    # What went wrong is not to pass for silence.
    wrong = replace(quiet, kind_logits=torch.full_like(quiet.kind_logits, torch.nan))
    assert bool(as_heard(wrong, x0, None, 0.5).kind.isnan().all())


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_other_sketch_is_told_in_training(count: int) -> None:
    said = random_prediction((count + 1) // 2)
    told = every_other(said, count)
    assert len(told.params) == count
    assert torch.equal(told.params[::2], said.params)
    assert torch.equal(told.kind_logits[::2], said.kind_logits)
    assert same(
        Prediction(told.construction_logits[1::2], told.kind_logits[1::2], told.params[1::2]),
        silence(told.params[1::2]),
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 4, 5])
def test_the_loss_tells_the_one_half_and_not_the_other(name: str, count: int) -> None:
    hearing, deaf = made(name), made(name, hears=False)
    x0, t, noise, given = clean_batch(count), STEPS[:count], normal_batch(count), flags(count, 0.5)
    loss = hearing.loss(x0, t, noise, given)
    plain = deaf.loss(x0, t, noise, given).per_sample
    assert torch.equal(loss.per_sample, hearing.loss(x0, t, noise, given).per_sample)
    torch.testing.assert_close(loss.per_sample[1::2], plain[1::2], atol=1e-5, rtol=1e-4)
    assert bool(((loss.per_sample - plain).abs()[::2] > 1e-3).any())
    loss.total.backward()
    idle = [part for part, weight in hearing.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not [part for part in idle if "position" not in part]


def test_what_is_told_in_training_was_said_a_step_earlier_and_is_not_learned_from() -> None:
    system, x0, noise, given = made(), clean_batch(5), normal_batch(5), flags(5, 1.0)
    system.loss(x0, STEPS, noise, given).total.backward()
    found = system.get_parameter("network.embed.weight").grad
    system.zero_grad()
    batch_t = system.process.diffuse(x0, STEPS, noise)
    at = STEPS[::2].clamp(max=49)
    earlier = step_before(at, 50)
    noisier = system.process.step_forward(batch_t[::2], at, earlier, rolled(noise)[::2])
    before = every_other(system.denoise(shown(given[::2], x0[::2], noisier), earlier, given[::2]), 5)
    before = Prediction(before.construction_logits.detach(), before.kind_logits.detach(), before.params.detach())
    seen = shown(given, x0, batch_t)
    system._judged(told(given, x0, system.denoise(seen, STEPS, given, before)), x0, STEPS).total.backward()
    assert found is not None
    torch.testing.assert_close(found, system.get_parameter("network.embed.weight").grad)


def test_a_step_earlier_is_one_of_a_walk() -> None:
    t = torch.arange(1, 2000)
    earlier = step_before(t, 2000)
    assert bool((earlier > t).all())
    assert int(earlier.max()) == 2000
    for count in (25, 50, 200):
        walk = torch.tensor(step_sequence(2000, count, power=2))
        # No further up than the longest stride takes it, and the walks between have shorter ones.
        longest = step_before(walk[1:-1].repeat_interleave(8), 2000)[7::8]
        assert bool((longest + 1 >= walk[:-2]).all())  # both are rounded
    assert torch.equal(step_before(torch.full((8,), 1999), 2000), torch.full((8,), 2000))


@pytest.mark.parametrize("name", NAMES)
def test_noise_itself_has_nothing_before_it_and_does_no_harm(name: str) -> None:
    system, t = made(name), torch.tensor([50, 50, 49, 50])
    loss = system.loss(clean_batch(4), t, normal_batch(4), flags(4, 0.5))
    assert bool(loss.per_sample.isfinite().all())


def test_gradients_reach_all_weights_from_zero_and_in_half_precision() -> None:
    # A cast of a weight that was made without gradients must not be used with them.
    system = made(heard=False).train()
    with torch.autocast("cpu", torch.bfloat16):
        loss = system.loss(clean_batch(4), STEPS[:4], normal_batch(4), flags(4, 0.5))
    loss.total.backward()
    assert not [part for part, weight in system.named_parameters() if weight.grad is None or not weight.grad.any()]


def test_the_loss_is_one_graph() -> None:
    system, x0, noise, given = made(), clean_batch(5), normal_batch(5), flags(5, 0.5)

    def loss(*batch: Any) -> torch.Tensor:
        return system.loss(*batch).per_sample

    compiled = torch.compile(loss, backend="eager", fullgraph=True, dynamic=False)
    torch.testing.assert_close(compiled(x0, STEPS, noise, given), loss(x0, STEPS, noise, given))


def test_a_bound_is_of_the_network_without_memory() -> None:
    bounds = []
    for system in (made(), made(hears=False)):
        draws = draw_steps(system.process, 3, 2, torch.Generator().manual_seed(0))
        bounds.append(system.likelihood(clean_batch(3), seeded_noise(0, torch.arange(3)), draws).nats)
    assert torch.equal(bounds[0], bounds[1])


def test_variations_and_noise_for_parameters_are_heard_too() -> None:
    drawn, steps = walked(made(predict="noise"), [0, 1], start=Start(30, clean_batch(2)))
    _, plain = walked(made(hears=False, predict="noise"), [0, 1], start=Start(30, clean_batch(2)))
    assert bool(drawn.flat().isfinite().all())
    assert not torch.allclose(steps[1].prediction.params, plain[1].prediction.params, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_comes_back_with_its_hearing(name: str, tmp_path: Path) -> None:
    system = made(name)
    for weight in system.parameters():
        weight.data = weight.data.half().float()  # as it is stored
    save_pretrained(system, tmp_path)
    loaded = from_pretrained(tmp_path)
    assert loaded.config == system.config
    assert torch.equal(walked(loaded, [3])[0].flat(), walked(system, [3])[0].flat())  # type: ignore[arg-type]


def test_tables_of_deaf_networks_are_as_they_were() -> None:
    assert "hears" not in config_to_dict(made(hears=False).config)["network"]
    assert config_to_dict(made().config)["network"]["hears"] is True


def test_a_preset_may_ask_for_it_and_the_papers_network_may_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[system]\nname = "sketchdnn"\n[system.network]\ntype = "SetDenoiser"\nwidth = 32\nhears = true\n')
    assert load_preset(path).config == SketchDNNConfig(network=SetDenoiserConfig(width=32, hears=True))
    path.write_text('[system]\nname = "sketchdnn"\n[system.network]\ntype = "DiT"\nhears = true\n')
    with pytest.raises(ConfigError, match="'hears' is no setting"):
        load_preset(path)
    paper = SketchDNNSystem(SketchDNNConfig(network=DiTConfig(width=32, depth=1, heads=2), form="paper"))
    for system in (paper, made(hears=False)):
        with pytest.raises(ValueError, match="does not hear"):
            system.denoise(clean_batch(2), torch.tensor([3, 4]), before=random_prediction(2))


def test_what_training_knows_nothing_of_may_differ_where_a_run_starts() -> None:
    system = made(superposition="max")
    assert system.can_init_from(made(hears=False, superposition="none", reverse_logits="log"))
    assert not system.can_init_from(made(hears=False, predict="noise"))
    assert not system.can_init_from(made("sketchdnn-pos", hears=False))
    wider = SketchDNNSystem(SketchDNNConfig(network=replace(DEAF, width=64), num_steps=50))
    assert not system.can_init_from(wider)
