"""Systems by name, their configs as dictionaries, and presets: the settings of a system and its training as TOML.

[system]            name, and the settings of that system's config
[system.network]    its network
[training]          settings of `training.TrainConfig`

A config refuses numbers out of their range when it is made (`representation.settings`), before anything is built of it.
"""

from __future__ import annotations

import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sketchdnn.errors import SketchError, quoted

from .aliases import PRESETS, SETTINGS, current_value
from .baselines.latent import LatentDiffusion
from .baselines.multinomial import SketchDNNCat
from .baselines.tokens.system import SketchGen, Vitruvion
from .sketchdnn import SketchDNNPos, SketchDNNSystem
from .system import System

# Where a setting may be one of several dataclasses, this key names one, without "Config".
TYPE = "type"
_TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}

Config = TypeVar("Config")


class ConfigError(SketchError):
    """A setting that is refused: the message names it and what is allowed."""


def config_to_dict(config: Any) -> dict[str, Any]:
    """A config dataclass as nested dictionaries of plain values.

    Fields marked `omit_if_default` were added later: at their default they are left out, so that dictionaries and
    hashes from before stay the same.
    """
    hints = get_type_hints(type(config))
    table: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.metadata.get("omit_if_default") and value == field.default:
            continue
        if is_dataclass(value):
            tag = {TYPE: _type_name(type(value))} if _is_union(hints[field.name]) else {}
            table[field.name] = {**tag, **config_to_dict(value)}
        elif value is not None:
            table[field.name] = list(value) if isinstance(value, tuple) else value
    return table


def config_from_dict(config: type[Config], table: object, where: str) -> Config:
    """The dataclass of a dictionary; settings that are left out have their defaults.

    Old names of settings are read by `aliases`.

    Args:
        config: The dataclass.
        table: The dictionary, of any origin.
        where: The beginning of every error message.

    Raises:
        ConfigError: A setting is unknown, of the wrong type or out of range.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table of settings, not {quoted(repr(table))}")
    hints = get_type_hints(config)
    names = [field.name for field in fields(config)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key if key in names else SETTINGS.get(key, key)
        if name not in names:
            raise ConfigError(f"{where}: '{quoted(name)}' is no setting; there are {', '.join(names)}")
        if name in values:
            raise ConfigError(f"{where}: '{name}' is set twice, once by its old name; keep one of them")
        values[name] = _parse(hints[name], current_value(name, value), f"{where}: {name}")
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _parse(hint: Any, value: Any, where: str) -> Any:
    """A plain value as its annotation has it."""
    if _is_union(hint):
        options = {_type_name(option): option for option in get_args(hint) if option is not type(None)}
        if len(options) == 1:
            return _parse(next(iter(options.values())), value, where)
        if not isinstance(value, Mapping) or value.get(TYPE) not in options:
            raise ConfigError(f"{where} must say its {TYPE}: one of {', '.join(options)}")
        return config_from_dict(options[value[TYPE]], {k: v for k, v in value.items() if k != TYPE}, where)
    if is_dataclass(hint):
        return config_from_dict(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            allowed = ", ".join(map(str, get_args(hint)))
            raise ConfigError(f"{where} must be one of {allowed}, not {quoted(repr(value))}")
        return value
    if get_origin(hint) is tuple:
        hints = get_args(hint)
        if isinstance(value, list | tuple) and hints[1:] == (...,):
            hints = hints[:1] * len(value)
        if not isinstance(value, list | tuple) or len(value) != len(hints):
            raise ConfigError(f"{where} must be a list of {len(hints)} values, not {quoted(repr(value))}")
        return tuple(_parse(hint, item, where) for hint, item in zip(hints, value, strict=True))
    expected = (int, float) if hint is float else (hint,)
    # A bool is an int to Python, but not to the author of the file.
    if not isinstance(value, expected) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{where} must be {_TYPE_NAMES.get(hint, hint)}, not {quoted(repr(value))}")
    try:
        return float(value) if hint is float else value
    except OverflowError:
        raise ConfigError(f"{where} must be a number, not one of {len(str(value))} digits") from None


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _type_name(config: type[Any]) -> str:
    return config.__name__.removesuffix("Config")


SYSTEM_ENTRY_POINTS = "sketchdnn.systems"
_SECTIONS = ("system", "training")
_MAX_PRESET_BYTES = 2**20
_DEFAULT_PRESET, _DEFAULT_SYSTEM, _TINY = "ours-base", "sketchdnn", "tiny"

AnySystem = TypeVar("AnySystem", bound=System)

_BUILT_IN = (SketchDNNSystem, SketchDNNPos, SketchDNNCat, LatentDiffusion, Vitruvion, SketchGen)
SYSTEMS: dict[str, type[System]] = {system.name: system for system in _BUILT_IN}


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


def preset_path(name: str | Path) -> Path:
    """The file of a preset: of the package by its name, or a .toml file itself.

    Raises:
        ConfigError: The package has no preset of that name.
    """
    path = Path(name)
    if path.suffix == ".toml":
        return path
    name = PRESETS.get(str(name), str(name))
    if name not in preset_names():
        raise ConfigError(f"'{name}' is no preset; use one of {', '.join(preset_names())}, or a .toml file")
    return Path(str(_preset_folder() / f"{name}.toml"))


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(Path(file.name).stem for file in _preset_folder().iterdir() if file.name.endswith(".toml"))


def load_preset(name: str | Path | None = None, system: str | None = None, overrides: Sequence[str] = ()) -> Preset:
    """A preset of the package by its name, or the preset in a .toml file.

    Args:
        name: With a `system`, None is that system's own preset and `tiny` its small one.
        system: The system that it must be of.
        overrides: Settings in place of the preset's, as `training.learning_rate=3e-4` or `system.network.width=256`.

    Raises:
        ConfigError: There is no such preset, it cannot be read, or it is of another system.
    """
    if system is not None:
        find_system(system)
        # Presets without the name of a system are SketchDNN's; those of another system bear its name.
        own: dict[Any, str] = {} if system == _DEFAULT_SYSTEM else {None: system, _TINY: f"{system}-{_TINY}"}
        name = own.get(name, name)
    preset = _load(_DEFAULT_PRESET if name is None else name, overrides)
    if system not in (None, preset.system):
        raise ConfigError(f"preset '{name}' is of the system {preset.system}, not {system}")
    return preset


def _load(name: str | Path, overrides: Sequence[str]) -> Preset:
    path = preset_path(name)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_PRESET_BYTES + 1)
        table = tomllib.loads(data.decode("utf-8")) if len(data) <= _MAX_PRESET_BYTES else None
    except RecursionError:
        raise ConfigError(f"{path}: the preset is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the preset cannot be read ({error})") from error
    if table is None:
        raise ConfigError(f"{path}: the preset is larger than {_MAX_PRESET_BYTES >> 10} KiB")
    for override in overrides:
        override_setting(table, override)
    return _parse_preset(path, table)


def override_setting(table: dict[str, Any], override: str) -> None:
    """Set `section.name=value` in the tables of a preset; the value is TOML, or else a text."""
    key, equals, text = override.partition("=")
    *sections, name = key.strip().split(".")
    if not equals or not sections or not all((*sections, name)):
        raise ConfigError(f"'{quoted(override)}' is no setting; write it as training.learning_rate=3e-4")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"'{quoted(override)}': '{quoted(section)}' is a setting, not a section")
    # A preset may have the setting under its old name.
    for old in [old for old in table if SETTINGS.get(old) == name]:
        del table[old]
    table[name] = value


def _parse_preset(path: Path, table: Mapping[str, Any]) -> Preset:
    for section, content in table.items():
        if section not in _SECTIONS:
            raise ConfigError(f"{path}: '{quoted(section)}' is no section; there are {', '.join(_SECTIONS)}")
        if not isinstance(content, Mapping):
            raise ConfigError(f"{path}: [{section}] must be a table of settings")
    settings = dict(table.get("system", {}))
    name = settings.pop("name", None)
    config = config_from_dict(find_system(name).config_class, settings, f"{path}: system")
    return Preset(path.stem, str(name), config, dict(table.get("training", {})))


def _preset_folder() -> Any:
    return files("sketchdnn") / "presets"
