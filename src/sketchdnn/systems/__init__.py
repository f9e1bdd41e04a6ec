"""Whole systems: a network, the process it reverses and how it is trained, behind one small protocol."""

from .presets import Preset, load_preset, preset_names
from .pretrained import PretrainedError, from_pretrained, save_pretrained
from .registry import SYSTEMS
from .sampling import SAMPLERS
from .system import GivenFlags, RowForm, System
from .tables import ConfigError, from_table, to_table

__all__ = [
    "SAMPLERS",
    "SYSTEMS",
    "ConfigError",
    "GivenFlags",
    "Preset",
    "PretrainedError",
    "RowForm",
    "System",
    "from_pretrained",
    "from_table",
    "load_preset",
    "preset_names",
    "save_pretrained",
    "to_table",
]
