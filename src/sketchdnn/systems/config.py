"""Configs as plain dictionaries, for TOML and JSON, and back. An unknown setting or one of the wrong type is refused.

A config refuses numbers out of their range when it is made (`representation.settings`), before anything is built of it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sketchdnn.errors import SketchError, quoted

from .aliases import SETTING_VALUES, SETTINGS

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
        if isinstance(value, str):
            value = SETTING_VALUES.get(name, {}).get(value, value)
        values[name] = _parse(hints[name], value, f"{where}: {name}")
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _parse(hint: Any, value: Any, where: str) -> Any:
    """A plain value as its annotation has it."""
    if _is_union(hint):
        return _parse_union([option for option in get_args(hint) if option is not type(None)], value, where)
    if is_dataclass(hint):
        return config_from_dict(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            options = ", ".join(map(str, get_args(hint)))
            raise ConfigError(f"{where} must be one of {options}, not {quoted(repr(value))}")
        return value
    if get_origin(hint) is tuple:
        return _parse_tuple(get_args(hint), value, where)
    expected = (int, float) if hint is float else (hint,)
    # A bool is an int to Python, but not to the author of the file.
    if not isinstance(value, expected) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{where} must be {_TYPE_NAMES.get(hint, hint)}, not {quoted(repr(value))}")
    try:
        return float(value) if hint is float else value
    except OverflowError:
        raise ConfigError(f"{where} must be a number, not one of {len(str(value))} digits") from None


def _parse_union(options: list[Any], value: Any, where: str) -> Any:
    if len(options) == 1:
        return _parse(options[0], value, where)
    by_name = {_type_name(option): option for option in options}
    if not isinstance(value, Mapping) or value.get(TYPE) not in by_name:
        raise ConfigError(f"{where} must say its {TYPE}: one of {', '.join(by_name)}")
    return config_from_dict(by_name[value[TYPE]], {k: v for k, v in value.items() if k != TYPE}, where)


def _parse_tuple(hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(hints):
        raise ConfigError(f"{where} must be a list of {len(hints)} values, not {quoted(repr(value))}")
    return tuple(_parse(hint, item, where) for hint, item in zip(hints, value, strict=True))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _type_name(config: type[Any]) -> str:
    return config.__name__.removesuffix("Config")
