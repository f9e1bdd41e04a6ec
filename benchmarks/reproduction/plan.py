"""What is going to be done: which systems, for how long, where; and whether a folder can be gone on with."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.evaluation.evaluate import IMAGES_PER_MINUTE, Evaluator
from sketchdnn.evaluation.protocol import Settings, data_hash
from sketchdnn.generation.generate import STEPS
from sketchdnn.io import atomic_write, load_json
from sketchdnn.systems import ConfigError, Preset, System, config_from_dict, config_to_dict, load_preset
from sketchdnn.systems.registry import find_system
from sketchdnn.training.config import TrainConfig, parse_train_config

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


MANIFEST = "reproduction.json"
# Damage to real sketches says something of the scores, and the same for every system.
SETTINGS = replace(Settings(), corruption=False)
# The one that every system knows: processes are compared, not samplers. The authors' process alone needs their own
# sampler: its schedule ends with noise, which `ancestral` leaves on the coordinates.
SAMPLER, AUTHORS = "ancestral", "authors"
# Of one system, 10,000 samples, all of its scores and two likelihoods: about what `ours` takes on an H200.
MINUTES_ON_GPU = 1.3
# A checkpoint takes seconds of the budget, a lost run all that was done since.
_CHECKPOINT_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class Budget:
    """How long each system trains: minutes of the device or steps, one of the two."""

    minutes: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        said = [one for one in (self.minutes, self.steps) if one is not None]
        if len(said) != 1:
            raise SketchError("say how long each system trains: with --minutes or --steps, one of them")
        if not math.isfinite(said[0]):
            raise SketchError(f"{self.words} are no budget; say a number")
        if said[0] <= 0:
            raise SketchError(f"a budget of {self.words} is too small for one step")

    @property
    def words(self) -> str:
        value, words = (
            (self.steps, f"{self.steps:,} step") if self.minutes is None else (self.minutes, f"{self.minutes:g} minute")
        )
        return words + ("" if value == 1 else "s")


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks for. A preset is for all systems, such as `tiny`; without one each has its own."""

    data: Path
    out: Path
    budget: Budget
    systems: Sequence[str] = SIX
    preset: str | None = None
    device: str = "auto"
    seed: int = 0
    settings: Settings = field(default_factory=lambda: SETTINGS)
    steps: int = STEPS  # of drawing
    inception: Path | None = None
    cache: Path | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class Planned:
    """One system of a plan. `done` says what of it is there already."""

    named: NamedSystem
    training: TrainConfig
    parameters: int
    sampler: str
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was asked for is possible, as far as can be told before it is done."""

    request: Request
    device: str
    identity: Mapping[str, Any]
    parts: Sequence[Planned]
    evaluation_minutes: float  # of one system, about
    train_sketches: int

    @property
    def minutes(self) -> float | None:
        """About how long all of it takes; none where the budget is steps, whose pace is not known."""
        if self.request.budget.minutes is None:
            return None
        trainings = sum("trained" not in part.done for part in self.parts)
        evaluations = sum("judged" not in part.done for part in self.parts)
        return trainings * self.request.budget.minutes + evaluations * self.evaluation_minutes


def make_plan(request: Request, judge: Evaluator, device: str) -> Plan:
    """Refuses, before anything is done, a system that is none and a folder that holds something else."""
    named = named_systems(request.systems, request.preset)
    identity = _identity(request, judge.dataset)
    refuse_another(request.out, identity)
    parts = [Planned(one, training_of(one, request), *_made(one), _done(request.out / one.folder)) for one in named]
    return Plan(request, device, identity, parts, _evaluation_minutes(judge, device), len(judge.dataset.split("train")))


def training_of(named: NamedSystem, request: Request) -> TrainConfig:
    """The preset's training under the common budget. Nothing but training is paid from it: no pictures on the way."""
    return parse_train_config(
        named.preset.training,
        f"{named.name}: training",
        minutes=request.budget.minutes,
        steps=request.budget.steps,
        seed=request.seed,
        checkpoint_minutes=_CHECKPOINT_MINUTES,
        keep=1,
        validate_every=0,
        preview_every=0,
    )


def refuse_another(out: Path, identity: Mapping[str, Any]) -> None:
    """A folder holds the results of one budget on one corpus: those of another would stand in one table with them."""
    path = out / MANIFEST
    if not path.exists():
        if out.exists() and not out.is_dir():
            raise FormatError(out, "is no folder; name another --out")
        return
    try:
        there: Any = load_json(path)
        before = {name: there[name] for name in identity}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(path, f"cannot be read ({error}); name another --out") from error
    for name, now in json.loads(json.dumps(identity)).items():
        if before[name] != now:
            raise SketchError(
                f"{out} holds results of another {name} ({_shown(before[name])}, not {_shown(now)}); name another --out"
            )


def write_manifest(plan: Plan) -> None:
    """Says whose results a folder holds."""
    with atomic_write(plan.request.out / MANIFEST) as temporary:
        temporary.write_text(json.dumps(plan.identity, indent=1) + "\n", encoding="utf-8")


def _identity(request: Request, dataset: Dataset) -> dict[str, Any]:
    """What all systems of a folder share."""
    judged = asdict(request.settings)
    for same in ("repaired", "split"):  # a section more or less changes no score; it is always the test split
        judged.pop(same)
    return {
        "budget": request.budget.words,
        "corpus": data_hash(dataset),
        "preset": request.preset or "each system's own",
        "seed": request.seed,
        "protocol": {**judged, "sampler": SAMPLER, "steps": request.steps},
    }


def _shown(value: Any) -> str:
    words = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
    return words if len(words) <= 40 or isinstance(value, dict) else words[:12] + "…"


def _made(named: NamedSystem) -> tuple[int, str]:
    """How many parameters the system has, and the sampler it is judged with."""
    with torch.random.fork_rng(devices=[]):
        system: System = named.preset.make()
    sampler = AUTHORS if system.default_sampler == AUTHORS else SAMPLER
    return sum(weight.numel() for weight in system.parameters()), sampler


def _done(folder: Path) -> tuple[str, ...]:
    there = {"trained": "training.json", "judged": "grid.json"}
    return tuple(words for words, file in there.items() if (folder / file).exists())


def _evaluation_minutes(judge: Evaluator, device: str) -> float:
    """Pictures are what takes long on a CPU; drawing comes on top of it and depends on the system."""
    if device == "cpu":
        return judge.num_images / IMAGES_PER_MINUTE / max(1, torch.get_num_threads())
    return MINUTES_ON_GPU * judge.request.settings.count / 10_000
