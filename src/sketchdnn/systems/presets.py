"""Presets: a system's settings and how it is trained, as TOML beside the code or in a file of one's own.

[system]            name, and the settings of that system's config
[system.network]    its network
[training]          what `training` makes its own config of
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sketchdnn.errors import quoted

from .registry import entry
from .system import System
from .tables import ConfigError, from_table

_SECTIONS = ("system", "training")
_LARGEST = 2**20
_DEFAULT, _DEFAULT_SYSTEM, _TINY = "ours", "sketchdnn", "tiny"


@dataclass(frozen=True, slots=True)
class Preset:
    """A system to make, and the settings of its training, which are checked by the room that trains."""

    name: str
    system: str
    config: Any
    training: Mapping[str, Any]

    def make(self) -> System:
        """The system, fresh: its weights as they are before training."""
        return entry(self.system).make(self.config)


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(Path(file.name).stem for file in _folder().iterdir() if file.name.endswith(".toml"))


def load_preset(name: str | Path | None = None, system: str | None = None) -> Preset:
    """A preset of the package by its name, or one's own by the path of a .toml file; it must be of the `system` told.

    Of a system alone it is that system's own, and `tiny` of a system is its tiny one.
    """
    if system is not None:
        entry(system)
        name = _named(name, system)
    preset = _load(_DEFAULT if name is None else name)
    if system not in (None, preset.system):
        raise ConfigError(f"preset '{name}' is of the system {preset.system}, not {system}")
    return preset


def _named(name: str | Path | None, system: str) -> str | Path:
    """`ours` and `tiny` are SketchDNN's; those of any other system bear its name."""
    if system == _DEFAULT_SYSTEM:
        return _DEFAULT if name is None else name
    if name is None:
        return system
    return f"{system}-{_TINY}" if name == _TINY else name


def _load(name: str | Path) -> Preset:
    path = Path(name)
    if path.suffix != ".toml":
        if str(name) not in preset_names():
            raise ConfigError(f"'{name}' is no preset; use one of {', '.join(preset_names())}, or a .toml file")
        path = Path(str(_folder() / f"{name}.toml"))
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ConfigError(f"{path}: the preset is larger than {_LARGEST >> 10} KiB")
        table = tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ConfigError(f"{path}: the preset is nested too deeply") from None
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the preset cannot be read ({error})") from error
    return _preset(path, table)


def _preset(path: Path, table: Mapping[str, Any]) -> Preset:
    for section in table:
        if section not in _SECTIONS:
            raise ConfigError(f"{path}: '{quoted(section)}' is no section; there are {', '.join(_SECTIONS)}")
    for section in _SECTIONS:
        if not isinstance(table.get(section, {}), Mapping):
            raise ConfigError(f"{path}: [{section}] must be a table of settings")
    settings = dict(table.get("system", {}))
    name = settings.pop("name", None)
    config = from_table(entry(name).config, settings, f"{path}: system")
    return Preset(path.stem, str(name), config, dict(table.get("training", {})))


def _folder() -> Any:
    return files("sketchdnn") / "presets"
