"""Old names in settings, weights, training indexes and reports are read as their present ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from support.sketch_sets import parts

from sketchdnn.diffusion import SAMPLERS, SamplingOptions, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import ConfigError, aliases, build_training_index, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.pretrained import _hash
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


def test_old_model_folder_is_read(tmp_path: Path) -> None:
    """Names of settings, tensors and the training index as they were before they were renamed."""
    torch.manual_seed(0)
    system = SketchDNNSystem(replace(SketchDNNConfig(network=NETWORK), mse_weighting="all"))
    for weight in system.parameters():
        weight.data = torch.randn_like(weight).half().float()
    system.training_index = build_training_index(parts(20))
    save_pretrained(system, tmp_path)
    old = {new: old for old, new in aliases.SETTINGS.items()}
    facts = json.loads((tmp_path / "config.json").read_text())
    config = {old.get(name, name): value for name, value in facts["config"].items()}
    config["network"] = {old.get(name, name): value for name, value in config["network"].items()}
    assert {"hears", "neighbours", "aside"} < config["network"].keys()
    assert {"form", "boost"} < config.keys()
    tensors = load_file(tmp_path / "model.safetensors")
    renames = {
        "network.embed_previous.weight": "network.heard.weight",
        "network.embed_proximity.weight": "network.near.weight",
        "network.embed_previous_proximity.weight": "network.near_before.weight",
        "network.auxiliary": "network.aside",
    }
    assert renames.keys() < tensors.keys()
    save_file({renames.get(name, name): tensor for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    index = load_arrays(tmp_path / "training_index.safetensors")
    index = {"keys": index["keys"], "mixtures": index["kind_counts"], "often": index["frequency"]}
    save_arrays(index, tmp_path / "known.safetensors")
    (tmp_path / "training_index.safetensors").unlink()
    del facts["training_index"]
    facts |= {"config": config | {"boost": "everywhere"}, "known": _hash(tmp_path, ["known.safetensors"])}
    facts |= {"sha256": _hash(tmp_path, ["model.safetensors"])}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    loaded = from_pretrained(tmp_path)
    assert loaded.config == system.config
    for name, weight in system.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight), name
    assert loaded.training_index is not None
    assert np.array_equal(loaded.training_index.kind_counts, system.training_index.kind_counts)
    # Saved again, it has the present names alone.
    save_pretrained(loaded, tmp_path / "again")
    names = {path.name for path in (tmp_path / "again").iterdir()}
    assert names == {"config.json", "model.safetensors", "training_index.safetensors"}
    assert not {"form", "boost", "known"} & set((tmp_path / "again" / "config.json").read_text().split('"'))


def test_old_settings_of_a_preset_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    head = '[system]\nname = "sketchdnn"\nform = "paper"\nboost = "nowhere"\n'
    path.write_text(head + '[system.network]\ntype = "SetDenoiser"\nhears = true\n')
    config = load_preset(path).config
    assert (config.variant, config.mse_weighting, config.network.self_conditioning) == ("paper", "none", True)
    path.write_text(head + 'variant = "paper"\n')
    with pytest.raises(ConfigError, match="'variant' is set twice"):
        load_preset(path)
