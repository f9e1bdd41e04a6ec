"""Weights on disk: safetensors shards with the usual index beside a `config.json`. No pickle anywhere.

`eight_bit` stores the matrices of the blocks as int8 with one scale a row, at half the size of half precision; all the
rest, such as the layers at both ends, which place coordinates, stays in half.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import save_torch_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sketchdnn.geometry import SketchError
from sketchdnn.networks.set_denoiser import SetDenoiserConfig
from sketchdnn.representation.layout import REPRESENTATION_VERSION

from .sketchdnn import SketchDNN, SketchDNNConfig

SHARD_SIZE = 16 * 1024 * 1024
_INDEX, _SINGLE, _CONFIG = "model.safetensors.index.json", "model.safetensors", "config.json"
_SCALE = ".scale"
_BLOCKS = "network.blocks."


class PretrainedError(SketchError):
    """A model folder that cannot be used: the sentence says what is wrong with it."""


def save_pretrained(system: SketchDNN, folder: str | Path, *, eight_bit: bool = False) -> None:
    """Write a model folder; half precision unless `eight_bit`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = system.state_dict()
    stored = _quantised(weights) if eight_bit else {name: w.half() for name, w in weights.items()}
    # The library counts 16 MB as 16·10⁶ bytes, below our limit of 16 MiB with its header.
    save_torch_state_dict({n: w.cpu().contiguous() for n, w in stored.items()}, folder, max_shard_size="16MB")
    facts = {"system": "sketchdnn", "representation": REPRESENTATION_VERSION, **asdict(system.config)}
    (folder / _CONFIG).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def from_pretrained(folder: str | Path) -> SketchDNN:
    """The model of a folder that `save_pretrained` wrote, in float32 on the CPU, ready to draw."""
    folder = Path(folder)
    system = SketchDNN(_config(folder))
    try:
        system.load_state_dict(_restored(_tensors(folder)))
    except (RuntimeError, KeyError) as error:
        raise PretrainedError(f"{folder}: the weights do not fit the configuration ({error})") from error
    return system.eval()


def _config(folder: Path) -> SketchDNNConfig:
    try:
        facts: dict[str, Any] = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PretrainedError(f"{folder}: no model is there, its {_CONFIG} cannot be read ({error})") from error
    version = facts.pop("representation", None)
    if facts.pop("system", None) != "sketchdnn" or version != REPRESENTATION_VERSION:
        raise PretrainedError(f"{folder}: this model is of another system or representation ({version})")
    try:
        return SketchDNNConfig(network=SetDenoiserConfig(**facts.pop("network")), **facts)
    except (KeyError, TypeError) as error:
        raise PretrainedError(f"{folder}: its {_CONFIG} does not describe a model ({error})") from error


def _tensors(folder: Path) -> dict[str, Tensor]:
    try:
        names = [_SINGLE]
        if (folder / _INDEX).exists():
            names = sorted(set(json.loads((folder / _INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
        tensors: dict[str, Tensor] = {}
        for name in names:
            # An index is data: it must not lead out of its folder.
            tensors |= load_file(folder / Path(name).name)
        return tensors
    except (OSError, ValueError, KeyError, AttributeError, SafetensorError) as error:
        raise PretrainedError(f"{folder}: its weights cannot be read ({error})") from error


def _quantised(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and name.startswith(_BLOCKS) and name.endswith(".weight"):
            scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            stored[name] = (weight / scale).round().to(torch.int8)
            stored[name + _SCALE] = scale
        else:
            stored[name] = weight.half()
    return stored


def _restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    scales = {name.removesuffix(_SCALE): scale for name, scale in stored.items() if name.endswith(_SCALE)}
    return {
        name: weight.float() * scales[name] if name in scales else weight.float()
        for name, weight in stored.items()
        if not name.endswith(_SCALE)
    }
