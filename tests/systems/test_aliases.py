"""Old names in settings, weights, training indexes and reports are read as their present ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sketchdnn.diffusion import SAMPLERS, SamplingOptions, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import ConfigError, aliases, from_pretrained, load_preset
from sketchdnn.systems.registry import preset_names
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem
from sketchdnn.training.config import TrainConfig

NETWORK = SetDenoiserConfig(width=32, depth=1, heads=2, self_conditioning=True, proximity_features=True, auxiliary=True)


def test_old_names_lead_to_present_ones() -> None:
    fields = {name for c in (SketchDNNConfig, SetDenoiserConfig, TrainConfig) for name in c.__dataclass_fields__}
    assert all((new in fields) != (old in fields) for old, new in aliases.SETTINGS.items())
    assert set(aliases.SAMPLERS.values()) <= set(SAMPLERS)
    assert set(aliases.PRESETS.values()) <= set(preset_names())
    weights = SketchDNNSystem(SketchDNNConfig(network=NETWORK)).state_dict()
    networks = [new for new in aliases.TENSORS.values() if new.startswith("network.")]
    assert all(any(name == new or name.startswith(new + ".") for name in weights) for new in networks)
    old = {"system": {"form": "ours", "network": {"hears": True, "width": 8}}, "training": {"times": "matching"}}
    new = {
        "system": {"variant": "ours", "network": {"self_conditioning": True, "width": 8}},
        "training": {"timestep_sampling": "mid_noise"},
    }
    assert aliases.current_settings(old) == aliases.current_settings(new) == new
    with pytest.raises(SketchError, match="twice"):
        aliases.current_settings({"form": "ours", "variant": "ours"})
    assert aliases.current_tensor("average.network.near.weight") == "average.network.embed_proximity.weight"
    assert aliases.current_tensor("network.near_before.weight") == "network.embed_previous_proximity.weight"
    assert aliases.current_tensor("optimiser.3.exp_avg") == "optimizer.3.exp_avg"
    for name in ("network.nearest.weight", "subnetwork.near.weight", "network.embed.weight"):
        assert aliases.current_tensor(name) == name
    system, noise = from_pretrained("ours"), seeded_noise(0, torch.arange(1))
    assert system.resolve(SamplingOptions("closing")).sampler == "restart"
    old, new = (system.sample(noise, SamplingOptions(name, 2)) for name in ("corrected", "predictor_corrector"))
    assert torch.equal(old.flat(), new.flat())


def test_old_settings_of_a_preset_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    head = '[system]\nname = "sketchdnn"\nform = "paper"\nboost = "nowhere"\n'
    path.write_text(head + '[system.network]\ntype = "SetDenoiser"\nhears = true\n')
    config = load_preset(path).config
    assert (config.variant, config.mse_weighting, config.network.self_conditioning) == ("paper", "none", True)
    path.write_text(head + 'variant = "paper"\n')
    with pytest.raises(ConfigError, match="'variant' is set twice"):
        load_preset(path)
