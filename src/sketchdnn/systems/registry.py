"""Systems by name, and presets: the settings of a system and of its training as TOML.

[system]            name, and the settings of that system's config
[system.network]    its network
[training]          settings of `training.TrainConfig`
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from sketchdnn.errors import quoted

from .aliases import PRESETS
from .baselines.latent.system import LatentDiffusion
from .baselines.multinomial.system import SketchDNNCat
from .baselines.tokens.sketchgen import SketchGen
from .baselines.tokens.vitruvion import Vitruvion
from .config import ConfigError, config_from_dict
from .sketchdnn import SketchDNNPos, SketchDNNSystem
from .system import System

SYSTEM_ENTRY_POINTS = "sketchdnn.systems"
_SECTIONS = ("system", "training")
_MAX_PRESET_BYTES = 2**20
_DEFAULT_PRESET, _DEFAULT_SYSTEM, _TINY = "ours-base", "sketchdnn", "tiny"

AnySystem = TypeVar("AnySystem", bound=System)

SYSTEMS: dict[str, type[System]] = {
    system.name: system
    for system in (SketchDNNSystem, SketchDNNPos, SketchDNNCat, LatentDiffusion, Vitruvion, SketchGen)
}


def register_system(system: type[AnySystem]) -> type[AnySystem]:
    """Make a system available by its `name`: to presets, `from_pretrained`, `train` and all other commands.

    A class decorator. Packages may also declare the class as an entry point of the group `sketchdnn.systems`.

    Raises:
        ValueError: The name is taken by another system.
    """
    if SYSTEMS.setdefault(system.name, system) is not system:
        raise ValueError(f"there is a system '{system.name}' already; give yours another name")
    return system


def find_system(name: object) -> type[System]:
    """The system of that name; entry points are loaded when the name is not registered yet.

    Raises:
        ConfigError: There is none.
    """
    if isinstance(name, str) and name not in SYSTEMS:
        for point in entry_points(group=SYSTEM_ENTRY_POINTS):
            if point.name not in SYSTEMS:
                register_system(point.load())
    if not isinstance(name, str) or name not in SYSTEMS:
        raise ConfigError(f"'{quoted(name)}' is no system; use one of {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


@dataclass(frozen=True, slots=True)
class Preset:
    """A system and the settings of its training, which `training` checks."""

    name: str
    system: str
    config: Any
    training: Mapping[str, Any]

    def make(self) -> System:
        """The system with its initial weights."""
        return find_system(self.system)(self.config)


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(Path(file.name).stem for file in _preset_folder().iterdir() if file.name.endswith(".toml"))


def load_preset(name: str | Path | None = None, system: str | None = None) -> Preset:
    """A preset of the package by its name, or the preset in a .toml file.

    Args:
        name: With a `system`, None is that system's own preset and `tiny` its small one.
        system: The system that it must be of.

    Raises:
        ConfigError: There is no such preset, it cannot be read, or it is of another system.
    """
    if system is not None:
        find_system(system)
        name = _preset_of_system(name, system)
    preset = _load(_DEFAULT_PRESET if name is None else name)
    if system not in (None, preset.system):
        raise ConfigError(f"preset '{name}' is of the system {preset.system}, not {system}")
    return preset


def _preset_of_system(name: str | Path | None, system: str) -> str | Path:
    """Presets without the name of a system are SketchDNN's; those of another system bear its name."""
    if system == _DEFAULT_SYSTEM:
        return _DEFAULT_PRESET if name is None else name
    if name is None:
        return system
    return f"{system}-{_TINY}" if name == _TINY else name


def _load(name: str | Path) -> Preset:
    path = Path(name)
    if path.suffix != ".toml":
        name = PRESETS.get(str(name), str(name))
        if name not in preset_names():
            raise ConfigError(f"'{name}' is no preset; use one of {', '.join(preset_names())}, or a .toml file")
        path = Path(str(_preset_folder() / f"{name}.toml"))
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_PRESET_BYTES + 1)
        if len(data) > _MAX_PRESET_BYTES:
            raise ConfigError(f"{path}: the preset is larger than {_MAX_PRESET_BYTES >> 10} KiB")
        table = tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ConfigError(f"{path}: the preset is nested too deeply") from None
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the preset cannot be read ({error})") from error
    return _parse_preset(path, table)


def _parse_preset(path: Path, table: Mapping[str, Any]) -> Preset:
    for section in table:
        if section not in _SECTIONS:
            raise ConfigError(f"{path}: '{quoted(section)}' is no section; there are {', '.join(_SECTIONS)}")
    for section in _SECTIONS:
        if not isinstance(table.get(section, {}), Mapping):
            raise ConfigError(f"{path}: [{section}] must be a table of settings")
    settings = dict(table.get("system", {}))
    name = settings.pop("name", None)
    config = config_from_dict(find_system(name).config_class, settings, f"{path}: system")
    return Preset(path.stem, str(name), config, dict(table.get("training", {})))


def _preset_folder() -> Any:
    return files("sketchdnn") / "presets"
