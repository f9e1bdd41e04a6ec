"""Every system keeps the same promises, in every form."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch

from sketchdnn.diffusion.conditioning import condition_on_rows
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.diffusion.timesteps import draw_steps
from sketchdnn.errors import SketchError
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.systems import SAMPLERS, System
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.systems.system import sample_condition_mask

SET = SetDenoiserConfig(width=32, depth=2, heads=2)
DIT = DiTConfig(width=32, depth=2, heads=2, num_steps=50)
CONFIGS = {
    "ours": SketchDNNConfig(network=SET, num_steps=50),
    "max": SketchDNNConfig(network=SET, num_steps=50, superposition="max"),
    "paper": SketchDNNConfig(network=DIT, form="paper", num_steps=50),
    "authors": SketchDNNConfig(network=DIT, form="authors", num_steps=50, label_smoothing=0.9999),
}


def made(config: SketchDNNConfig) -> SketchDNNSystem:
    torch.manual_seed(0)
    system = SketchDNNSystem(config)
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.05)
    return system.eval()


@pytest.fixture(params=CONFIGS)
def system(request: pytest.FixtureRequest) -> System:
    return made(CONFIGS[request.param])


def nothing_given(count: int) -> object:
    return sample_condition_mask(
        torch.rand(count, 3 + layout.MAX_PRIMITIVES), torch.zeros(count, 16, dtype=torch.long), 0.0
    )


def test_the_loss_is_one_number_a_sketch_and_trains_every_weight(system: System) -> None:
    loss = system.loss(clean_batch(4), torch.tensor([1, 10, 30, 49]), normal_batch(4), nothing_given(4))
    assert loss.per_sample.shape == (4,)
    assert bool(loss.per_sample.isfinite().all())
    loss.total.backward()
    idle = [name for name, weight in system.named_parameters() if weight.grad is None]
    assert not idle


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_noise_decides_alone_what_is_drawn(system: System, sampler: str) -> None:
    both = system.sample(seeded_noise(1, torch.arange(4)), SamplingOptions(sampler=sampler, steps=5))
    again = system.sample(seeded_noise(1, torch.arange(4)), SamplingOptions(sampler=sampler, steps=5))
    assert torch.equal(both.flat(), again.flat())
    alone = system.sample(seeded_noise(1, torch.tensor([2])), SamplingOptions(sampler=sampler, steps=5))
    # An untrained network magnifies rounding, which differs between batches; other noise would differ by about 1.
    assert torch.allclose(alone.flat()[0], both.flat()[2], atol=5e-3)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_drawing_does_not_care_for_the_order_of_rows(system: System, sampler: str) -> None:
    order = torch.rand(3, 16, generator=torch.Generator().manual_seed(2)).argsort(dim=-1)
    noise = seeded_noise(0, torch.arange(3))
    # Few steps: each magnifies rounding, which depends on the order in which a network adds up.
    plain = system.sample(noise, SamplingOptions(sampler=sampler, steps=4)).permuted(order)
    permuted = system.sample(lambda number: noise(number).permuted(order), SamplingOptions(sampler=sampler, steps=4))
    assert torch.allclose(plain.flat(), permuted.flat(), atol=1e-3)


def test_a_process_is_drawn_from_in_the_way_that_suits_it() -> None:
    own = {name: made(config).default_sampler for name, config in CONFIGS.items()}
    assert own == {"ours": "restart", "max": "restart", "paper": "ancestral", "authors": "authors"}
    by_log = made(replace(CONFIGS["ours"], reverse_logits="log"))
    assert by_log.default_sampler == "ancestral"


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_given_rows_stay_as_they_are(system: SketchDNNSystem, sampler: str) -> None:
    rows = torch.zeros(3, 16, dtype=torch.bool)
    rows[:, :5] = True
    known = clean_batch(3)
    for method in ("repaint", "conditional"):
        given = condition_on_rows(known, rows, method=method)
        if method == "conditional" and system.config.form != "ours":
            with pytest.raises(ValueError, match="repaint"):
                system.sample(
                    seeded_noise(0, torch.arange(3)), SamplingOptions(sampler=sampler, steps=3, conditioning=given)
                )
            continue
        drawn = system.sample(
            seeded_noise(0, torch.arange(3)), SamplingOptions(sampler=sampler, steps=3, conditioning=given)
        )
        assert torch.equal(drawn.flat()[:, :5], known.flat()[:, :5])


def test_what_is_given_costs_nothing_and_is_told() -> None:
    system, x0 = made(CONFIGS["ours"]), clean_batch(4)
    uniform = torch.full((4, 19), 0.0)
    uniform[:, 2] = 1.0
    everything = sample_condition_mask(uniform, x0.kind.argmax(dim=-1), 1.0)
    loss = system.loss(x0, torch.tensor([1, 10, 30, 49]), normal_batch(4), everything)
    assert float(loss.total.detach()) < 1e-6
    some = system.denoise(x0, torch.tensor([30] * 4), everything)
    none = system.denoise(x0, torch.tensor([30] * 4))
    assert not torch.allclose(some.params, none.params)


def test_the_likelihood_is_finite(system: SketchDNNSystem) -> None:
    draws = draw_steps(system.process, 3, 2, torch.Generator().manual_seed(0))
    bound = system.likelihood(clean_batch(3), seeded_noise(0, torch.arange(3)), draws)
    assert bool(bound.nats.isfinite().all())


def test_a_system_knows_how_it_wants_its_rows() -> None:
    assert made(CONFIGS["ours"]).rows.arc_scalar == "sweep"
    config = SketchDNNConfig(network=SET, arc_scalar="signed_radius", none_construction="zero", canonical_lines=False)
    rows = SketchDNNSystem(config).rows
    assert (rows.arc_scalar, rows.none_construction, rows.canonical_lines) == ("signed_radius", "zero", False)


def test_unknown_samplers_and_impossible_steps_are_refused() -> None:
    system, noise = made(CONFIGS["ours"]), seeded_noise(0, torch.arange(1))
    with pytest.raises(SketchError, match="'euler' is no sampler; use one of ancestral"):
        system.sample(noise, SamplingOptions(sampler="euler", steps=5))
    for steps in (0, 51):
        with pytest.raises(SketchError, match="1 to 50 steps"):
            system.sample(noise, SamplingOptions(steps=steps))
