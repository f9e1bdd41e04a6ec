"""A model folder: what is saved is what is loaded, and a bad one is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.systems.pretrained import PretrainedError, from_pretrained, save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNN, SketchDNNConfig


@pytest.fixture
def system() -> SketchDNN:
    torch.manual_seed(0)
    system = SketchDNN(SketchDNNConfig(network=SetDenoiserConfig(width=64, depth=2, heads=2)))
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return system


@pytest.mark.parametrize(("eight_bit", "tolerance"), [(False, 1e-3), (True, 1.5e-2)])
def test_what_is_saved_is_loaded(system: SketchDNN, tmp_path: Path, eight_bit: bool, tolerance: float) -> None:
    save_pretrained(system, tmp_path, eight_bit=eight_bit)
    loaded = from_pretrained(tmp_path)
    assert loaded.config == system.config
    for name, weight in system.state_dict().items():
        error = (loaded.state_dict()[name] - weight).norm() / weight.norm()
        assert error < tolerance, name


def test_eight_bits_take_about_half_the_room_of_half_precision(system: SketchDNN, tmp_path: Path) -> None:
    for name, eight_bit in (("half", False), ("eight", True)):
        save_pretrained(system, tmp_path / name, eight_bit=eight_bit)
    half, eight = ((tmp_path / n / "model.safetensors").stat().st_size for n in ("half", "eight"))
    assert eight < 0.8 * half  # this small network is mostly ends, which stay in half


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", json.dumps({"system": "sketchdnn", "representation": 999})),
        ("config.json", json.dumps({"system": "sketchdnn", "representation": 1, "network": {"depth": 2, "x": 1}})),
        ("model.safetensors", "not tensors"),
        ("model.safetensors.index.json", json.dumps({"weight_map": {"a": "../../etc/passwd"}})),
    ],
)
def test_a_bad_folder_is_refused(system: SketchDNN, tmp_path: Path, file: str, content: str) -> None:
    save_pretrained(system, tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(PretrainedError, match=tmp_path.name):
        from_pretrained(tmp_path)


def test_a_folder_without_a_model_is_said(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match="no model is there"):
        from_pretrained(tmp_path)
