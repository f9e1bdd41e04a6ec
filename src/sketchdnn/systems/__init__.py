"""Whole systems: a network, the process it reverses and its training loss, behind one small interface."""

from .pretrained import PretrainedError, from_pretrained, save_pretrained, save_training_index
from .registry import (
    SYSTEMS,
    ConfigError,
    Preset,
    config_from_dict,
    config_to_dict,
    find_system,
    load_preset,
    preset_names,
    register_system,
)
from .system import ConditionMask, RowForm, System
from .training_index import TrainingIndex, build_training_index

__all__ = [
    "SYSTEMS",
    "ConditionMask",
    "ConfigError",
    "Preset",
    "PretrainedError",
    "RowForm",
    "System",
    "TrainingIndex",
    "build_training_index",
    "config_from_dict",
    "config_to_dict",
    "find_system",
    "from_pretrained",
    "load_preset",
    "preset_names",
    "register_system",
    "save_pretrained",
    "save_training_index",
]
