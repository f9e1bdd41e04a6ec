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

__all__ = ["SYSTEMS", "ConditionMask", "RowForm", "System", "TrainingIndex", "build_training_index", "find_system"]
__all__ += ["ConfigError", "Preset", "config_from_dict", "config_to_dict", "load_preset", "preset_names"]
__all__ += ["PretrainedError", "from_pretrained", "register_system", "save_pretrained", "save_training_index"]
