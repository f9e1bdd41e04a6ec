"""Whole systems: a network, the process it reverses and how it is trained, behind one small protocol."""

from .presets import Preset, load_preset, preset_names
from .pretrained import PretrainedError, from_pretrained, save_pretrained, save_training_index
from .registry import SYSTEMS
from .system import ConditionMask, RowForm, System
from .tables import ConfigError, from_table, to_table
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
    "from_pretrained",
    "from_table",
    "load_preset",
    "preset_names",
    "save_pretrained",
    "save_training_index",
    "to_table",
]
