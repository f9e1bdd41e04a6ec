"""Systems by name, and with settings of their own: `sketchdnn:predict=noise+boost=nowhere`.

A setting is one of the system's config, dotted where it lies deeper (`network.depth=4`); `training.` begins those of
its training, and `preset=` names another preset. A value is TOML, or else a text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sketchdnn.systems import ConfigError, Preset, config_from_dict, config_to_dict, load_preset
from sketchdnn.systems.registry import find_system

# The paper's six. Arcs by their sweep put Vitruvion's bits on the grid of the others; by three points it has another.
SIX = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat", "latent", "vitruvion:arcs=sweep", "sketchgen")
LABELS: Mapping[str, str] = {
    "sketchdnn": "SketchDNN",
    "sketchdnn-pos": "SketchDNN (Pos.)",
    "sketchdnn-cat": "SketchDNN (Cat.)",
    "latent": "Latent Diffusion",
    "vitruvion": "Vitruvion",
    "sketchgen": "SketchGen",
}
_PRESET, _TRAINING = "preset", "training"
# One for all systems, so not to be set for one.
_COMMON = {"steps", "epochs", "minutes", "seed"}


@dataclass(frozen=True, slots=True)
class NamedSystem:
    """A system to train; `name` says it with its settings in order, so that one thing has one name."""

    name: str
    preset: Preset

    @property
    def system(self) -> str:
        return self.preset.system

    @property
    def label(self) -> str:
        return label_of(self.name)

    @property
    def folder(self) -> str:
        return folder_of(self.name)


def label_of(name: str) -> str:
    """
    >>> label_of("sketchdnn-pos"), label_of("vitruvion:arcs=sweep"), label_of("sketchdnn:boost=low+predict=noise")
    ('SketchDNN (Pos.)', 'Vitruvion, arcs = sweep', 'SketchDNN, boost = low, predict = noise')
    """
    system, _, settings = name.partition(":")
    said = [one.replace("=", " = ", 1) for one in settings.split("+") if one]
    return ", ".join([LABELS.get(system, system), *said])


def folder_of(name: str) -> str:
    """
    >>> folder_of("sketchdnn:network.depth=4+predict=noise")
    'sketchdnn--network.depth-4-predict-noise'
    """
    system, colon, settings = name.partition(":")
    return system + ("--" + re.sub(r"[^\w.-]", "-", settings) if colon else "")


def named_systems(names: Sequence[str], preset: str | None = None) -> list[NamedSystem]:
    """The systems, each once; `preset` is for all that do not name their own. Refuses what is none."""
    found = [_named(name.strip(), preset) for name in names if name.strip()]
    if not found:
        raise ConfigError(f"no system is named; use some of {', '.join(LABELS)}, with commas between them")
    once = list({one.name: one for one in found}.values())
    for index, one in enumerate(once):
        for other in once[:index]:
            if one.folder == other.folder:
                raise ConfigError(f"{one.name} and {other.name} would have one folder; run one of them alone")
    return once


def _named(text: str, preset: str | None) -> NamedSystem:
    system, colon, rest = text.partition(":")
    find_system(system)  # refuses an unknown name
    settings: dict[str, str] = {}
    for word in rest.split("+") if colon else ():
        setting, equals, value = (part.strip() for part in word.partition("="))
        if not (setting and equals and value):
            raise ConfigError(f"'{text}': after the colon stand settings like predict=noise, with + between them")
        if setting in settings:
            raise ConfigError(f"'{text}' says {setting} twice")
        settings[setting] = value
    base = load_preset(settings.get(_PRESET, preset), system)
    said = "+".join(f"{setting}={value}" for setting, value in sorted(settings.items()))
    changes = {setting: _value(value) for setting, value in settings.items() if setting != _PRESET}
    return NamedSystem(f"{system}:{said}" if said else system, _changed(base, changes, text))


def _changed(preset: Preset, changes: Mapping[str, Any], where: str) -> Preset:
    tables: dict[str, Any] = {_TRAINING: dict(preset.training), "system": config_to_dict(preset.config)}
    for setting, value in changes.items():
        first, dot, rest = setting.partition(".")
        of_training = first == _TRAINING and bool(dot)
        if of_training and rest in _COMMON:
            raise ConfigError(f"'{where}': {rest} is one for all systems; say it with --{rest}")
        path = [_TRAINING, rest] if of_training else ["system", *setting.split(".")]
        table = tables
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"'{where}': {name} has no settings below it")
        table[path[-1]] = value
    config = config_from_dict(find_system(preset.system).config_class, tables["system"], f"'{where}'")
    return replace(preset, config=config, training=tables[_TRAINING])


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
