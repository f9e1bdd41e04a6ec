"""A network that is told which sketches it is to learn from but not to draw, and one that leaves parts out to learn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.random_batches import clean_batch, normal_batch
from support.random_systems import speaking

from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import ConfigError, config_to_dict, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.row_denoiser import RowDenoiser
from sketchdnn.systems.system import ConditionMask, sample_condition_mask

PLAIN = SetDenoiserConfig(width=32, depth=2, heads=2)
TOLD = replace(PLAIN, aside=True)
STEPS = torch.tensor([1, 10, 30, 49])


def made(network: SetDenoiserConfig = TOLD, *, counts: bool = True) -> RowDenoiser[Any]:
    return speaking("sketchdnn", network, "network.aside", counts=counts)


def flags(*aside: bool) -> ConditionMask:
    given = sample_condition_mask(torch.ones(4, 19), clean_batch(4).kind.argmax(dim=-1), 0.0)
    return replace(given, aside=torch.tensor(aside)) if aside else given


def losses(system: RowDenoiser[Any], given: ConditionMask) -> torch.Tensor:
    return system.loss(clean_batch(4), STEPS, normal_batch(4), given).per_sample


def test_it_starts_from_one_that_cannot_be_told_and_says_the_same() -> None:
    plain, told = made(PLAIN), made(counts=False)
    assert told.can_init_from(plain)
    assert not plain.can_init_from(told)
    assert torch.equal(losses(told, flags(True, False, True, False)), losses(plain, flags()))


def test_what_is_aside_is_told_of_that_sketch_alone() -> None:
    system = made()
    plain, some = losses(system, flags()), losses(system, flags(True, False, True, False))
    assert torch.equal(plain, losses(system, flags(False, False, False, False)))
    changed = (plain - some).abs() > 1e-4
    assert changed.tolist() == [True, False, True, False]


def test_what_is_drawn_is_never_aside() -> None:
    noise = seeded_noise(0, torch.arange(2))
    plain = made(PLAIN).sample(noise, SamplingOptions(steps=3))
    assert torch.equal(made().sample(noise, SamplingOptions(steps=3)).flat(), plain.flat())


def test_a_network_that_cannot_be_told_says_so() -> None:
    with pytest.raises(ValueError, match=r"network\.aside is off"):
        losses(made(PLAIN), flags(True, False, True, False))


def test_dropout_is_for_training_alone_and_may_differ_where_a_run_starts() -> None:
    plain, lossy = made(PLAIN), made(replace(PLAIN, dropout=0.5))
    assert lossy.can_init_from(plain)
    assert plain.can_init_from(lossy)
    assert torch.equal(losses(lossy, flags()), losses(plain, flags()))
    torch.manual_seed(0)
    assert not torch.allclose(losses(lossy.train(), flags()), losses(plain.train(), flags()), atol=1e-3)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_a_share_to_leave_out_that_is_none_is_refused(dropout: float, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[system]\nname = "sketchdnn"\n[system.network]\ntype = "SetDenoiser"\ndropout = {dropout}\n')
    with pytest.raises(ConfigError, match="dropout must lie in"):
        load_preset(path)


def test_what_is_saved_comes_back_and_old_tables_are_as_they_were(tmp_path: Path) -> None:
    system = made(replace(TOLD, dropout=0.1))
    for weight in system.parameters():
        weight.data = weight.data.half().float()  # as it is stored
    save_pretrained(system, tmp_path)
    loaded = from_pretrained(tmp_path)
    assert loaded.config == system.config
    assert isinstance(loaded, RowDenoiser)
    some = flags(True, False, True, False)
    assert torch.equal(losses(loaded.eval(), some), losses(system, some))
    assert not {"aside", "dropout"} & set(config_to_dict(made(PLAIN).config)["network"])
