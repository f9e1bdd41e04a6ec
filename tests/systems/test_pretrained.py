"""A model folder: what is saved is what is loaded, and a bad one is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems import load_preset
from sketchdnn.systems.pretrained import (
    PretrainedError,
    bundled_names,
    check_model_sampling,
    from_pretrained,
    model_hash,
    save_pretrained,
)
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem

MEBIBYTE = 2**20


@pytest.fixture
def system() -> SketchDNNSystem:
    torch.manual_seed(0)
    system = SketchDNNSystem(
        SketchDNNConfig(network=SetDenoiserConfig(width=64, depth=2, heads=2), superposition="none")
    )
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system


def test_saved_weights_are_loaded(system: SketchDNNSystem, tmp_path: Path) -> None:
    for name, tolerance in (("half", 1e-3), ("eight", 1.5e-2)):
        save_pretrained(system, tmp_path / name, eight_bit=name == "eight")
        loaded = from_pretrained(tmp_path / name)
        assert loaded.config == system.config
        assert loaded.process.superposition == "none"
        for part, weight in system.state_dict().items():
            assert (loaded.state_dict()[part] - weight).norm() / weight.norm() < tolerance, part
    half, eight = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "eight"))
    assert eight < 0.8 * half  # this small network is mostly ends, which stay in half


def test_hash_identifies_the_weights(system: SketchDNNSystem, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path / "one")
    save_pretrained(system, tmp_path / "same")
    system.network.head.bias.data += 1
    save_pretrained(system, tmp_path / "other")
    one, same, other = (model_hash(tmp_path / name) for name in ("one", "same", "other"))
    assert one == same != other


def test_folder_without_a_model_does_not_hide_a_bundled_one(
    system: SketchDNNSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = model_hash("ours")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours").mkdir()
    assert model_hash("ours") == bundled
    save_pretrained(system, tmp_path / "ours")
    assert model_hash("ours") == model_hash(tmp_path / "ours") != bundled


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", "[]"),
        ("config.json", json.dumps({"system": "sketchdnn", "representation": 999})),
        ("config.json", json.dumps({"system": "sketchdnn", "representation": 1})),
        ("config.json", json.dumps({"system": "teapot", "representation": 1, "config": {}})),
        ("config.json", json.dumps({"system": "sketchdnn", "representation": 1, "config": {"x": 1}})),
        ("model.safetensors", "not tensors"),
        ("model.safetensors.index.json", json.dumps({"weight_map": {"a": "../../etc/passwd"}})),
        ("model.safetensors.index.json", json.dumps({"weight_map": [1]})),
    ],
)
def test_bad_folder_is_refused(system: SketchDNNSystem, tmp_path: Path, file: str, content: str) -> None:
    save_pretrained(system, tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(PretrainedError, match=tmp_path.name):
        from_pretrained(tmp_path)


def test_damaged_model_is_refused(system: SketchDNNSystem, tmp_path: Path) -> None:
    save_pretrained(system, tmp_path)
    weights, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    data, facts = weights.read_bytes(), json.loads(config.read_text())

    def refused(match: str) -> None:
        with pytest.raises(PretrainedError, match=match):
            from_pretrained(tmp_path)

    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refused("not those it was saved with")
    weights.unlink()
    refused(r"model\.safetensors is missing")
    weights.write_bytes(data)
    facts["config"]["network"]["depth"] = 3
    config.write_text(json.dumps(facts))
    refused("do not fit")


def test_interrupted_save_leaves_no_model(
    system: SketchDNNSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the model that was in the folder before, whose weights may be overwritten in part."""
    save_pretrained(system, tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("huggingface_hub.save_torch_state_dict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_pretrained(system, tmp_path)
    with pytest.raises(PretrainedError):
        from_pretrained(tmp_path)


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match="no model is there"):
        from_pretrained(tmp_path)
    with pytest.raises(PretrainedError, match=r"no model is there.*ours"):
        from_pretrained("nonsense")


def test_bundled_model_is_small_and_complete() -> None:
    assert "ours" in bundled_names()
    system = from_pretrained()
    assert sum(weight.numel() for weight in system.parameters()) == 41_366_037
    import sketchdnn

    sizes = [file.stat().st_size for file in (Path(sketchdnn.__file__).parent / "weights" / "ours").iterdir()]
    assert max(sizes) <= 16 * MEBIBYTE
    assert sum(sizes) <= 48_000_000


def test_unsupported_options_are_refused_before_weights_are_read(tmp_path: Path) -> None:
    save_pretrained(load_preset("tiny", "vitruvion").make(), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(SketchError, match="cannot draw with ddim"):
        check_model_sampling(tmp_path, SamplingOptions("ddim"))
    with pytest.raises(SketchError, match="1 to 2000 steps"):
        check_model_sampling("ours", SamplingOptions(steps=2001))
    with pytest.raises(SketchError, match="is no device"):
        from_pretrained(tmp_path, "abacus")
