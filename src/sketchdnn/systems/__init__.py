"""Whole systems: a network, the process it reverses and how it is trained, behind one small protocol."""

from .known import Known, known_of
from .presets import Preset, load_preset, preset_names
from .pretrained import PretrainedError, from_pretrained, save_known, save_pretrained
from .registry import SYSTEMS
from .sampling import SAMPLERS
from .system import GivenFlags, RowForm, System
from .tables import ConfigError, from_table, to_table

__all__ = [
    "SAMPLERS",
    "SYSTEMS",
    "ConfigError",
    "GivenFlags",
    "Known",
    "Preset",
    "PretrainedError",
    "RowForm",
    "System",
    "from_pretrained",
    "from_table",
    "known_of",
    "load_preset",
    "preset_names",
    "save_known",
    "save_pretrained",
    "to_table",
]
