"""Configs as plain tables, for TOML and JSON, and back: a setting that is unknown or of the wrong type is named.

A config refuses numbers out of their range when it is made (`representation.settings`), before anything is built of it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sketchdnn.errors import SketchError, quoted

# Where a setting may be one of several dataclasses, this key says which, by its name without "Config".
TYPE = "type"

Config = TypeVar("Config")


class ConfigError(SketchError):
    """A setting that cannot be: the sentence names it and what may stand there."""


def to_table(config: Any) -> dict[str, Any]:
    """A config dataclass as nested dictionaries of plain values.

    A setting marked as `later` is left out where it is as ever: tables from before it stay the same, and so do the runs
    and models that are known by them.
    """
    hints = get_type_hints(type(config))
    table: dict[str, Any] = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.metadata.get("later") and value == field.default:
            continue
        if is_dataclass(value):
            tag = {TYPE: _tag(type(value))} if _is_union(hints[field.name]) else {}
            table[field.name] = {**tag, **to_table(value)}
        elif value is not None:
            table[field.name] = list(value) if isinstance(value, tuple) else value
    return table


def from_table(config: type[Config], table: object, where: str) -> Config:
    """The dataclass that a table describes; what it leaves out has its default. `where` begins every complaint."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table of settings, not {quoted(repr(table))}")
    hints = get_type_hints(config)
    names = [field.name for field in fields(config)]  # type: ignore[arg-type]
    values = {}
    for name, value in table.items():
        if name not in names:
            raise ConfigError(f"{where}: '{quoted(name)}' is no setting; there are {', '.join(names)}")
        values[name] = _value(hints[name], value, f"{where}: {name}")
    try:
        return config(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _value(hint: Any, value: Any, where: str) -> Any:
    """A plain value as its annotation wants it."""
    if _is_union(hint):
        return _one_of([option for option in get_args(hint) if option is not type(None)], value, where)
    if is_dataclass(hint):
        return from_table(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ConfigError(
                f"{where} must be one of {', '.join(map(str, get_args(hint)))}, not {quoted(repr(value))}"
            )
        return value
    if get_origin(hint) is tuple:
        return _tuple(get_args(hint), value, where)
    wanted = (int, float) if hint is float else (hint,)
    # A bool is an int to Python, but not to whoever wrote the file.
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{where} must be {_ARTICLE.get(hint, hint)}, not {quoted(repr(value))}")
    try:
        return float(value) if hint is float else value
    except OverflowError:
        raise ConfigError(f"{where} must be a number, not one of {len(str(value))} digits") from None


_ARTICLE = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _one_of(options: list[Any], value: Any, where: str) -> Any:
    if len(options) == 1:
        return _value(options[0], value, where)
    by_name = {_tag(option): option for option in options}
    if not isinstance(value, Mapping) or value.get(TYPE) not in by_name:
        raise ConfigError(f"{where} must say its {TYPE}: one of {', '.join(by_name)}")
    return from_table(by_name[value[TYPE]], {k: v for k, v in value.items() if k != TYPE}, where)


def _tuple(hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(hints):
        raise ConfigError(f"{where} must be a list of {len(hints)} values, not {quoted(repr(value))}")
    return tuple(_value(hint, item, where) for hint, item in zip(hints, value, strict=True))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _tag(config: type[Any]) -> str:
    return config.__name__.removesuffix("Config")
