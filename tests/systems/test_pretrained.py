"""A model folder: what is saved is what is loaded, and a bad one is refused with a sentence."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from support.generation import randomized

import sketchdnn
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import PretrainedError, aliases, from_pretrained, load_preset, pretrained, save_pretrained
from sketchdnn.systems.pretrained import bundled_names, check_model_sampling, model_hash
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


@pytest.fixture
def system() -> SketchDNNSystem:
    network = SetDenoiserConfig(width=64, depth=2, heads=2)
    return randomized(SketchDNNSystem(SketchDNNConfig(network=network, superposition="none")))


def test_saved_weights_are_loaded_and_identified_by_their_hash(
    system: SketchDNNSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, tolerance in (("half", 1e-3), ("eight", 1.5e-2)):
        save_pretrained(system, tmp_path / name, eight_bit=name == "eight")
        loaded = from_pretrained(tmp_path / name)
        assert (loaded.config, loaded.process.superposition) == (system.config, "none")
        for part, weight in system.state_dict().items():
            assert (loaded.state_dict()[part] - weight).norm() / weight.norm() < tolerance, part
    half, eight = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "eight"))
    assert eight < 0.8 * half  # this small network is mostly ends, which stay in half
    save_pretrained(system, tmp_path / "one")
    save_pretrained(system, tmp_path / "same")
    system.network.head.bias.data += 1
    save_pretrained(system, tmp_path / "other")
    one, same, other = (model_hash(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same != other
    bundled = model_hash("ours")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()
    assert model_hash("ours") == bundled
    save_pretrained(system, tmp_path / "ours")
    assert model_hash("ours") == model_hash(tmp_path / "ours") != bundled


SKETCHDNN = {"system": "sketchdnn", "representation": 1}
BAD_CONFIGS = ({**SKETCHDNN, "representation": 999}, SKETCHDNN, {**SKETCHDNN, "system": "teapot", "config": {}})
BAD_CONFIGS += ({**SKETCHDNN, "config": {"x": 1}}, [])
BAD_FILES = [("config.json", "{"), *(("config.json", json.dumps(facts)) for facts in BAD_CONFIGS)]
BAD_FILES += [("model.safetensors", "not tensors"), ("model.safetensors.index.json", '{"weight_map": [1]}')]
BAD_FILES += [("model.safetensors.index.json", '{"weight_map": {"a": "../../etc/passwd"}}')]


def test_bad_and_damaged_folders_are_refused(system: SketchDNNSystem, tmp_path: Path) -> None:
    for number, (file, content) in enumerate(BAD_FILES):
        save_pretrained(system, tmp_path / f"model{number}")
        (tmp_path / f"model{number}" / file).write_text(content)
        with pytest.raises(PretrainedError, match=f"model{number}"):
            from_pretrained(tmp_path / f"model{number}")
    with pytest.raises(PretrainedError, match="no model is there"):
        from_pretrained(tmp_path)
    with pytest.raises(PretrainedError, match=r"no model is there.*ours"):
        from_pretrained("nonsense")
    save_pretrained(system, tmp_path)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    data, facts = weights.read_bytes(), json.loads(config.read_text())

    def refused(match: str) -> None:
        with pytest.raises(PretrainedError, match=match):
            from_pretrained(tmp_path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "_MAX_WEIGHT_BYTES", len(data) - 1)
        refused("weights are larger than")
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused("not those it was saved with")
    weights.unlink()
    refused(r"model\.safetensors is missing")
    weights.write_bytes(data)
    facts["config"]["network"]["depth"] = 3
    config.write_text(json.dumps(facts))
    refused("do not fit")


def test_interrupted_save_leaves_none(system: SketchDNNSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the model that was in the folder before, whose weights may be overwritten in part."""
    save_pretrained(system, tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("huggingface_hub.save_torch_state_dict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_pretrained(system, tmp_path)
    with pytest.raises(PretrainedError):
        from_pretrained(tmp_path)


def test_bundled_model_is_small_and_complete() -> None:
    assert "ours" in bundled_names()
    folder = Path(sketchdnn.__file__).parent / "weights" / "ours"
    system = from_pretrained()
    assert (
        system.config == from_pretrained("ours").config == load_preset("ours").config == load_preset("bundled").config
    )
    assert sum(weight.numel() for weight in system.parameters()) == 41_366_037
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert max(sizes.values()) <= 16 * 2**20
    assert sum(sizes.values()) <= 48_000_000
    assert sizes["training_index.safetensors"] < 2_000_000
    index = system.training_index
    assert index is not None
    assert (index.primitive_count_range, index.frequency.sum()) == ((3, 16), 58_747)


def test_a_model_folder_with_old_names_is_read(tmp_path: Path) -> None:
    """The folder of an earlier version: other keys, tensors and name of the training index."""
    network = SetDenoiserConfig(
        width=64, depth=2, heads=2, self_conditioning=True, proximity_features=True, auxiliary=True
    )
    system = randomized(SketchDNNSystem(SketchDNNConfig(network=network)))
    system.training_index = from_pretrained().training_index
    save_pretrained(system, tmp_path)
    renamed = sorted((*aliases.SETTINGS.items(), *aliases.TENSORS.items()), key=lambda pair: -len(pair[1]))

    def old(name: str) -> str:
        return next((name.replace(new, old, 1) for old, new in renamed if name.startswith(new)), name)

    weights = {old(name): tensor for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    assert {"network.heard.weight", "network.near.weight", "network.near_before.weight"} < weights.keys()
    save_file(weights, tmp_path / "model.safetensors")
    index = load_file(tmp_path / "training_index.safetensors")
    index_names = {new: old for old, new in aliases.INDEX_TENSORS.items()}
    (tmp_path / "training_index.safetensors").unlink()
    save_file({index_names.get(name, name): each for name, each in index.items()}, tmp_path / "known.safetensors")
    facts = json.loads((tmp_path / "config.json").read_text())
    config = facts["config"]
    config["network"] = {old(name): value for name, value in config["network"].items()}
    facts = {"system": facts["system"], "representation": facts["representation"]} | {
        "config": {old(name): value for name, value in config.items()},
        "sha256": sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest(),
        "known": sha256((tmp_path / "known.safetensors").read_bytes()).hexdigest(),
    }
    assert {"hears", "neighbours", "aside"} < facts["config"]["network"].keys()
    (tmp_path / "config.json").write_text(json.dumps(facts))
    again = from_pretrained(tmp_path)
    assert again.config == system.config
    assert again.training_index is not None
    assert again.training_index.primitive_count_range == (3, 16)
    # Saved again, it has the present names alone.
    save_pretrained(again, tmp_path / "again")
    words = (tmp_path / "again" / "config.json").read_text().split('"')
    assert not {"hears", "neighbours", "aside", "form", "boost", "known"} & set(words)
    assert (tmp_path / "again" / "training_index.safetensors").is_file()


def test_unsupported_options_are_refused_before_weights_are_read(tmp_path: Path) -> None:
    save_pretrained(load_preset("tiny", "vitruvion").make(), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(SketchError, match="cannot draw with ddim"):
        check_model_sampling(tmp_path, SamplingOptions("ddim"))
    with pytest.raises(SketchError, match="1 to 2000 steps"):
        check_model_sampling("ours", SamplingOptions(steps=2001))
    with pytest.raises(SketchError, match="is no device"):
        from_pretrained(tmp_path, "abacus")
