"""All systems by name, each with the config that describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sketchdnn.errors import quoted

from .baselines.latent.system import LatentConfig, LatentDiffusion
from .baselines.multinomial.system import SketchDNNCat, SketchDNNCatConfig
from .baselines.tokens.sketchgen import SketchGen, SketchGenConfig
from .baselines.tokens.vitruvion import Vitruvion, VitruvionConfig
from .sketchdnn import SketchDNN, SketchDNNConfig, SketchDNNPos
from .system import System
from .tables import ConfigError, from_table


@dataclass(frozen=True, slots=True)
class Entry:
    """A system's config, and the function that makes the system of it."""

    config: type[Any]
    make: type[System]


SYSTEMS: Mapping[str, Entry] = {
    SketchDNN.name: Entry(SketchDNNConfig, SketchDNN),
    SketchDNNPos.name: Entry(SketchDNNConfig, SketchDNNPos),
    SketchDNNCat.name: Entry(SketchDNNCatConfig, SketchDNNCat),
    LatentDiffusion.name: Entry(LatentConfig, LatentDiffusion),
    Vitruvion.name: Entry(VitruvionConfig, Vitruvion),
    SketchGen.name: Entry(SketchGenConfig, SketchGen),
}


def entry(name: object) -> Entry:
    """The system of that name."""
    if not isinstance(name, str) or name not in SYSTEMS:
        raise ConfigError(f"'{quoted(name)}' is no system; use one of {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def config_of(name: object, table: object, where: str) -> Any:
    """The config of a system from its settings as a plain table."""
    return from_table(entry(name).config, table, where)
