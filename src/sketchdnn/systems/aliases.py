"""Old names in files that users may hold, and their present names: the only place where old names are read.

| table | names in |
|---|---|
| `SETTINGS`, `SETTING_VALUES` | presets, `config.json` of models, checkpoints of training runs |
| `SAMPLERS` | command lines, kept reports and manifests |
| `PRESETS` | command lines |
| `TENSORS` | weights of models and checkpoints |
| `REPORT_KEYS` | kept reports of evaluations |
| `INDEX_FILE`, `INDEX_TENSORS`, `MODEL_FACTS` | the training index beside the weights, and its hash in `config.json` |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from sketchdnn.errors import SketchError

Value = TypeVar("Value")

# [system] and [system.network], then [training].
SETTINGS = {
    "form": "variant",
    "boost": "mse_weighting",
    "hears": "self_conditioning",
    "neighbours": "proximity_features",
    "aside": "auxiliary",
    "optimiser": "optimizer",
    "times": "timestep_sampling",
    "spread": "stratified",
    "given": "conditioning",
    "fewest": "min_primitives",
    "vary": "affine_augmentation",
    "rare": "rare_oversampling",
}
SETTING_VALUES = {
    "timestep_sampling": {"matching": "mid_noise"},
    "mse_weighting": {"low": "low_noise", "everywhere": "all", "nowhere": "none"},
}
SAMPLERS = {"closing": "restart", "corrected": "predictor_corrector"}
PRESETS = {"bundled": "ours"}
# Dotted parts of the name of a tensor.
TENSORS = {
    "optimiser": "optimizer",
    "network.heard": "network.embed_previous",
    "network.aside": "network.auxiliary",
    "network.near": "network.embed_proximity",
    "network.near_before": "network.embed_previous_proximity",
}
INDEX_FILE = {"known.safetensors": "training_index.safetensors"}
INDEX_TENSORS = {"mixtures": "kind_counts", "often": "frequency"}
MODEL_FACTS = {"known": "training_index"}
# Keys of evaluation reports.
REPORT_KEYS = {
    "neighbours": "neighbors",
    "found": "in_training",
    "real_found": "real_in_training",
    "specks": "tiny",
    "unique_of_equal": "unique_same_size",
    "equal": "same_size",
    "errors": "z_score",
    "most_of_95": "p95",
    "read_at": "reconstruction_step",
    "drawing": "decoding",
    "drawing sketches": "sampling",
    "most": "max",
    "drawn": "regular",
    "aside": "construction",
}

_TENSOR = re.compile(rf"(?<![^.])({'|'.join(map(re.escape, TENSORS))})(?![^.])")


def current_names(table: Mapping[str, Value], aliases: Mapping[str, str]) -> dict[str, Value]:
    """A table with its keys renamed.

    Raises:
        SketchError: A key is there under its old and its present name.
    """
    renamed: dict[str, Value] = {}
    for name, value in table.items():
        name = aliases.get(name, name)
        if name in renamed:
            raise SketchError(f"'{name}' is set twice, once by its old name: keep one of them")
        renamed[name] = value
    return renamed


def current_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a system or a training run, with nested tables, by their present names and values."""
    renamed = current_names(table, SETTINGS)
    for name, value in renamed.items():
        renamed[name] = current_settings(value) if isinstance(value, Mapping) else current_value(name, value)
    return renamed


def current_value(name: str, value: Any) -> Any:
    """The present value of a setting, of that present name."""
    return SETTING_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value


def current_sampler(name: str) -> str:
    """The present name of a sampler."""
    return SAMPLERS.get(name, name)


def current_tensor(name: str) -> str:
    """The present name of a tensor of weights, also with a prefix before or behind it.

    >>> current_tensor("ema.network.near.weight")
    'ema.network.embed_proximity.weight'
    """
    return _TENSOR.sub(lambda match: TENSORS[match[0]], name)


def rename_report_keys(value: Any) -> Any:
    """A report, or a part of one, with the present names of its keys, which also name the rows of distributions."""
    if isinstance(value, dict):
        renamed = {REPORT_KEYS.get(key, key): rename_report_keys(item) for key, item in value.items()}
        is_row = "is_within" in renamed and "name" in renamed
        return renamed | {"name": REPORT_KEYS.get(renamed["name"], renamed["name"])} if is_row else renamed
    if isinstance(value, list):
        return [rename_report_keys(item) for item in value]
    return value
