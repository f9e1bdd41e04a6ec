"""A network that is told what lies near each end: as one that is not at first, and by the same rules after that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.random_batches import clean_batch, normal_batch
from support.random_systems import speaking

from sketchdnn.diffusion.conditioning import condition_on_rows
from sketchdnn.diffusion.gaussian import like
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import config_to_dict, from_pretrained, save_pretrained
from sketchdnn.systems.network_inputs import near_noisy, near_said
from sketchdnn.systems.registry import SYSTEMS
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.system import ConditionMask, shown

PLAIN = SetDenoiserConfig(width=32, depth=2, heads=2)
TOLD = replace(PLAIN, neighbours=True)
NAMES = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat")


def made(name: str = "sketchdnn", *, told: bool = True, counts: bool = True, **settings: Any) -> RowDenoiser[Any]:
    """A system that says something; `counts`: and what it is told of neighbours matters."""
    return speaking(name, TOLD if told else PLAIN, "network.near.weight", counts=counts, **settings)


def drawn(system: RowDenoiser[Any], numbers: list[int], **how: Any) -> SketchBatch:
    return system.sample(seeded_noise(1, torch.tensor(numbers)), **{"steps": 5, **how})


def nothing_given(count: int) -> ConditionMask:
    return ConditionMask(*torch.zeros(3, count, 16, dtype=torch.bool))


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_as_one_that_is_not_told(name: str) -> None:
    plain, told, knows = made(name, told=False), made(name, counts=False), made(name)
    assert told.can_init_from(plain)
    assert not plain.can_init_from(told)
    assert torch.equal(drawn(told, [0, 1]).flat(), drawn(plain, [0, 1]).flat())
    assert not torch.equal(drawn(knows, [0, 1]).flat(), drawn(plain, [0, 1]).flat())


def both() -> RowDenoiser[Any]:
    """One that hears what it said, too, and so is told how near ends were by that."""
    system = SYSTEMS["sketchdnn"].make(replace(made().config, network=replace(TOLD, hears=True)))
    assert isinstance(system, RowDenoiser)
    system.load_state_dict(system.state_dict() | made().state_dict())
    return system.eval()


def test_one_that_hears_as_well_starts_from_either_and_says_the_same_at_first() -> None:
    assert both().can_init_from(made())
    assert both().can_init_from(made(told=False))
    assert not made().can_init_from(both())
    assert torch.equal(drawn(both(), [0, 1]).flat(), drawn(made(), [0, 1]).flat())


def test_what_lay_near_by_what_was_said_counts_from_the_second_step_on() -> None:
    system = both()
    torch.nn.init.normal_(system.get_parameter("network.near_before.weight"), std=0.2)
    assert torch.equal(drawn(system, [0], steps=1).flat(), drawn(both(), [0], steps=1).flat())
    assert not torch.equal(drawn(system, [0], steps=2).flat(), drawn(both(), [0], steps=2).flat())


def test_what_was_said_is_measured_in_half_the_noise() -> None:
    """Of a clean sketch, said as it is, ends are twice as many units apart as those of the noisy one without noise."""
    system, x0, t = both(), clean_batch(3), torch.tensor([5, 20, 40])
    level, std = system.process.params.at(t), system.config.data_std
    said = near_said(SketchBatch(x0.construction, x0.kind, x0.params / std), level, std)
    doubled = SketchBatch(x0.construction, x0.kind, 2 * like(level.alpha_bar.sqrt(), x0.params) * x0.params)
    torch.testing.assert_close(said, near_noisy(doubled, level, None), atol=1e-4, rtol=1e-4)


def test_of_silence_nothing_is_near() -> None:
    silent = SketchBatch(torch.zeros(1, 16, 2), torch.zeros(1, 16, 5), torch.zeros(1, 16, 14))
    assert near_said(silent, both().process.params.at(torch.tensor([9])), 0.55).abs().max() == 0


def test_the_table_of_one_that_is_not_told_is_as_ever() -> None:
    assert "neighbours" not in config_to_dict(made(told=False).config)["network"]
    assert config_to_dict(made().config)["network"]["neighbours"] is True


@pytest.mark.parametrize("name", ["sketchdnn", "sketchdnn-cat"])
def test_rows_in_another_order_are_predicted_in_that_order(name: str) -> None:
    system, order = made(name), torch.randperm(16, generator=torch.Generator().manual_seed(3)).expand(2, -1)
    t = torch.tensor([3, 30])
    noisy = system.process.diffuse(clean_batch(2), t, normal_batch(2))
    plain, moved = system.denoise(noisy, t).params, system.denoise(noisy.permuted(order), t).params
    torch.testing.assert_close(moved, plain.gather(1, order[..., None].expand_as(plain)), atol=1e-5, rtol=0)


def test_a_sketch_is_the_same_alone_and_among_others() -> None:
    system = made()
    alone, among = drawn(system, [7]), drawn(system, [3, 7, 9])
    torch.testing.assert_close(alone.params[0], among.params[1], atol=1e-4, rtol=1e-4)


def test_a_given_end_is_as_near_as_if_it_had_been_noised_without_noise() -> None:
    """What is given is shown clean, the rest is √ᾱ of itself and noise: both are told of in the same units."""
    system, x0, t = made(), clean_batch(4), torch.tensor([1, 20, 40, 49])
    level = system.process.params.at(t)
    calm = system.process.diffuse(x0, t, SketchBatch(*(0 * part for part in (x0.construction, x0.kind, x0.params))))
    all_given = ConditionMask(*torch.ones(3, 4, 16, dtype=torch.bool))
    shrunk = near_noisy(SketchBatch(x0.construction, x0.kind, calm.params), level, None)
    told = near_noisy(shown(all_given, x0, calm), level, all_given)
    torch.testing.assert_close(told, shrunk, atol=1e-4, rtol=1e-4)


def test_given_rows_stay_as_they_are() -> None:
    system, x0 = made(), clean_batch(2)
    rows = torch.zeros(2, 16, dtype=torch.bool)
    rows[:, :3] = True
    kept = drawn(system, [0, 1], given=condition_on_rows(x0, rows))
    assert torch.equal(kept.params[:, :3], x0.params[:, :3])


def test_it_learns_from_what_it_is_told_and_stays_finite_at_both_ends() -> None:
    system = made(counts=False).train()
    t = torch.tensor([1, 2, 49, 50])
    system.loss(clean_batch(4), t, normal_batch(4), nothing_given(4)).per_sample.sum().backward()
    gradient = system.get_parameter("network.near.weight").grad
    assert gradient is not None
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0


def test_training_compiles_to_one_graph() -> None:
    system = made().train()
    loss = torch.compile(lambda *a: system.loss(*a).per_sample, backend="eager", fullgraph=True, dynamic=False)
    args = (clean_batch(4), torch.tensor([1, 10, 30, 49]), normal_batch(4), nothing_given(4))
    torch.testing.assert_close(loss(*args), system.loss(*args).per_sample)


def test_it_is_stored_and_comes_back(tmp_path: Path) -> None:
    system = made().half().float()  # as precise as a stored one
    save_pretrained(system, tmp_path)
    back = from_pretrained(tmp_path)
    assert back.config == system.config
    torch.testing.assert_close(drawn(back, [0]).params, drawn(system, [0]).params)  # type: ignore[arg-type]
