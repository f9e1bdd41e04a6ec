"""The plan of a reproduction: systems and their settings, the budget, and whether a folder can be resumed."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from sketchdnn.data.loader import Dataset
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.evaluation.evaluate import IMAGES_PER_MINUTE, Evaluator
from sketchdnn.evaluation.protocol import Settings, data_hash
from sketchdnn.generation.quality import STEPS
from sketchdnn.io import atomic_write, load_json
from sketchdnn.systems import ConfigError, Preset, System, config_from_dict, config_to_dict, load_preset
from sketchdnn.systems.aliases import SETTING_VALUES
from sketchdnn.systems.aliases import SETTINGS as SETTING_NAMES
from sketchdnn.systems.registry import find_system
from sketchdnn.training.config import TrainConfig, parse_train_config

# The paper's six systems. Arcs with a sweep put Vitruvion's bits on the grid of the others; three points do not.
PAPER_SYSTEMS = ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat", "latent", "vitruvion:arcs=sweep", "sketchgen")
LABELS: Mapping[str, str] = {
    "sketchdnn": "SketchDNN",
    "sketchdnn-pos": "SketchDNN (Pos.)",
    "sketchdnn-cat": "SketchDNN (Cat.)",
    "latent": "Latent Diffusion",
    "vitruvion": "Vitruvion",
    "sketchgen": "SketchGen",
}
TRAINING, GRID = "training.json", "grid.json"
_PRESET, _TRAINING = "preset", "training"
# Settings of training that all systems share.
_COMMON = {"steps", "epochs", "minutes", "seed"}


@dataclass(frozen=True, slots=True)
class SystemVariant:
    """A system to train. `name` is canonical: present names of settings, in alphabetical order."""

    name: str
    preset: Preset

    @property
    def system(self) -> str:
        return self.preset.system

    @property
    def label(self) -> str:
        return system_label(self.name)

    @property
    def folder(self) -> str:
        return folder_name(self.name)


def system_label(name: str) -> str:
    """
    >>> system_label("sketchdnn-pos"), system_label("sketchdnn:mse_weighting=none+predict=noise")
    ('SketchDNN (Pos.)', 'SketchDNN, mse_weighting = none, predict = noise')
    """
    system, _, settings = name.partition(":")
    return ", ".join([LABELS.get(system, system), *(s.replace("=", " = ", 1) for s in settings.split("+") if s)])


def folder_name(name: str) -> str:
    """
    >>> folder_name("sketchdnn:network.depth=4+predict=noise")
    'sketchdnn--network.depth-4-predict-noise'
    """
    system, colon, settings = name.partition(":")
    return system + ("--" + re.sub(r"[^\w.-]", "-", settings) if colon else "")


def current_name(name: str) -> str:
    """The canonical name of a system that an older record or command names.

    >>> current_name("sketchdnn:predict=noise+boost=everywhere")
    'sketchdnn:mse_weighting=all+predict=noise'
    """
    system, colon, settings = name.partition(":")
    pairs = [_current_setting(*setting.partition("=")[::2]) for setting in settings.split("+")] if colon else []
    return system + colon + "+".join(f"{setting}={value}" for setting, value in sorted(pairs))


def _current_setting(setting: str, value: str) -> tuple[str, str]:
    setting = ".".join(SETTING_NAMES.get(part, part) for part in setting.split("."))
    return setting, SETTING_VALUES.get(setting.rpartition(".")[2], {}).get(value, value)


def find_folder(out: Path, name: str) -> Path:
    """The folder of a system in `out`, also if a record there has an older name of it."""
    folder = out / folder_name(name)
    if not folder.exists():
        for path in sorted(out.glob(f"*/{TRAINING}")):
            with suppress(OSError, ValueError):
                record = load_json(path)
                if isinstance(record, dict) and current_name(str(record.get("name"))) == name:
                    return path.parent
    return folder


def parse_systems(names: Sequence[str], preset: str | None = None) -> list[SystemVariant]:
    """Systems by name, each once.

    A name is a system, and settings after a colon with + between them: `sketchdnn:predict=noise+network.depth=4`. A
    setting is one of the system's config, dotted where it is nested; `training.` begins those of training, and
    `preset=` names another preset. A value is TOML, or else a string.

    Args:
        names: The names.
        preset: The preset of all systems that do not name their own.

    Raises:
        ConfigError: A system, setting or value is unknown, or two systems would share a folder.
    """
    variants = {variant.name: variant for name in names if name.strip() for variant in [_parse(name.strip(), preset)]}
    if not variants:
        raise ConfigError(f"no system is named; use some of {', '.join(LABELS)}, with commas between them")
    by_folder: dict[str, SystemVariant] = {}
    for variant in variants.values():
        if (other := by_folder.setdefault(variant.folder, variant)) is not variant:
            raise ConfigError(f"{variant.name} and {other.name} would share a folder; run one of them alone")
    return list(variants.values())


def _parse(text: str, preset: str | None) -> SystemVariant:
    system, colon, rest = text.partition(":")
    find_system(system)  # refuses an unknown name
    settings: dict[str, str] = {}
    for part in rest.split("+") if colon else ():
        setting, equals, value = (word.strip() for word in part.partition("="))
        if not (setting and equals and value):
            raise ConfigError(f"'{text}': after the colon come settings like predict=noise, with + between them")
        setting, value = _current_setting(setting, value)
        if setting in settings:
            raise ConfigError(f"'{text}' sets {setting} twice")
        settings[setting] = value
    base = load_preset(settings.get(_PRESET, preset), system)
    changes = {setting: _parse_value(value) for setting, value in settings.items() if setting != _PRESET}
    name = system + colon + "+".join(f"{setting}={value}" for setting, value in sorted(settings.items()))
    return SystemVariant(name, _override(base, changes, text))


def _override(preset: Preset, changes: Mapping[str, Any], text: str) -> Preset:
    tables: dict[str, Any] = {_TRAINING: dict(preset.training), "system": config_to_dict(preset.config)}
    for setting, value in changes.items():
        first, dot, rest = setting.partition(".")
        is_training = first == _TRAINING and bool(dot)
        if is_training and rest in _COMMON:
            raise ConfigError(f"'{text}': {rest} is the same for all systems; set it with --{rest}")
        path = [_TRAINING, rest] if is_training else ["system", *setting.split(".")]
        table = tables
        for name in path[:-1]:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"'{text}': {name} has no settings below it")
        table[path[-1]] = value
    config = config_from_dict(find_system(preset.system).config_class, tables["system"], f"'{text}'")
    return replace(preset, config=config, training=tables[_TRAINING])


def _parse_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


MANIFEST = "reproduction.json"
# Scores of corrupted real sketches are the same for every system.
SETTINGS = replace(Settings(), corruption=False)
# The sampler that every system has, so that processes are compared and not samplers. The authors' process alone needs
# their sampler: its schedule ends with noise, which `ancestral` leaves on the coordinates.
SAMPLER, AUTHORS = "ancestral", "authors"
# Minutes of an H200 for 10,000 samples of a system, all scores and two likelihoods.
MINUTES_ON_GPU = 1.3
# A checkpoint takes seconds of the budget.
_CHECKPOINT_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class Budget:
    """The training of each system: either minutes of the device or steps."""

    minutes: float | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        amounts = [amount for amount in (self.minutes, self.steps) if amount is not None]
        if len(amounts) != 1:
            raise SketchError("set how long each system trains: with --minutes or --steps, one of them")
        if not math.isfinite(amounts[0]):
            raise SketchError(f"{self.text} are no budget; give a number")
        if amounts[0] <= 0:
            raise SketchError(f"a budget of {self.text} is too small for one step")

    @property
    def text(self) -> str:
        text = f"{self.steps:,} step" if self.minutes is None else f"{self.minutes:g} minute"
        return text + ("" if 1 in (self.minutes, self.steps) else "s")


@dataclass(frozen=True, slots=True)
class ReproductionRequest:
    """The settings of a reproduction. `preset` is for all systems, such as `tiny`; by default each has its own."""

    data: Path
    out: Path
    budget: Budget
    systems: Sequence[str] = PAPER_SYSTEMS
    preset: str | None = None
    device: str = "auto"
    seed: int = 0
    settings: Settings = field(default_factory=lambda: SETTINGS)
    steps: int = STEPS  # of sampling
    inception: Path | None = None
    cache: Path | None = None
    command: str = ""


@dataclass(frozen=True, slots=True)
class PlannedSystem:
    """One system of a plan. `done` names the stages that are finished: trained, evaluated."""

    variant: SystemVariant
    training: TrainConfig
    parameters: int
    sampler: str
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked request, with the systems and an estimate of the time."""

    request: ReproductionRequest
    device: str
    identity: Mapping[str, Any]
    systems: Sequence[PlannedSystem]
    evaluation_minutes: float  # of one system, estimated
    train_sketches: int

    @property
    def minutes(self) -> float | None:
        """The estimated time; None if the budget is in steps."""
        if self.request.budget.minutes is None:
            return None
        trainings = sum("trained" not in planned.done for planned in self.systems)
        evaluations = sum("evaluated" not in planned.done for planned in self.systems)
        return trainings * self.request.budget.minutes + evaluations * self.evaluation_minutes


def make_plan(request: ReproductionRequest, evaluator: Evaluator, device: str) -> Plan:
    """Check a request; raises before any work if a system is unknown or the folder holds other results."""
    variants = parse_systems(request.systems, request.preset)
    identity = _identity(request, evaluator.dataset)
    check_manifest(request.out, identity)
    systems = [
        PlannedSystem(
            variant,
            training_config(variant, request),
            *_parameters_and_sampler(variant),
            _finished_stages(find_folder(request.out, variant.name)),
        )
        for variant in variants
    ]
    minutes, train_sketches = _evaluation_minutes(evaluator, device), len(evaluator.dataset.split("train"))
    return Plan(request, device, identity, systems, minutes, train_sketches)


def training_config(variant: SystemVariant, request: ReproductionRequest) -> TrainConfig:
    """The preset's training under the common budget, without validation and previews."""
    return parse_train_config(
        variant.preset.training,
        f"{variant.name}: training",
        minutes=request.budget.minutes,
        steps=request.budget.steps,
        seed=request.seed,
        checkpoint_minutes=_CHECKPOINT_MINUTES,
        keep=1,
        validate_every=0,
        preview_every=0,
    )


def check_manifest(out: Path, identity: Mapping[str, Any]) -> None:
    """Raises SketchError if a folder holds results of another budget, corpus or protocol."""
    path = out / MANIFEST
    if not path.exists():
        if out.exists() and not out.is_dir():
            raise FormatError(out, "is not a folder; name another --out")
        return
    try:
        manifest: Any = load_json(path)
        before = {name: manifest[name] for name in identity}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(path, f"cannot be read ({error}); name another --out") from error
    for name, now in json.loads(json.dumps(identity)).items():
        if before[name] != now:
            raise SketchError(
                f"{out} holds results of another {name} ({_shorten(before[name])}, not {_shorten(now)}); "
                "name another --out"
            )


def write_manifest(plan: Plan) -> None:
    """Write the identity of the results into their folder."""
    with atomic_write(plan.request.out / MANIFEST) as temporary:
        temporary.write_text(json.dumps(plan.identity, indent=1) + "\n", encoding="utf-8")


def _identity(request: ReproductionRequest, dataset: Dataset) -> dict[str, Any]:
    """The settings that all systems of a folder share."""
    protocol = asdict(request.settings)
    for name in ("repaired", "split"):  # they change no score
        protocol.pop(name)
    return {
        "budget": request.budget.text,
        "corpus": data_hash(dataset),
        "preset": request.preset or "each system's own",
        "seed": request.seed,
        "protocol": {**protocol, "sampler": SAMPLER, "steps": request.steps},
    }


def _shorten(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return str(value) if len(str(value)) <= 40 else str(value)[:12] + "…"


def _parameters_and_sampler(variant: SystemVariant) -> tuple[int, str]:
    """The number of parameters of a system, and the sampler of its evaluation."""
    with torch.random.fork_rng(devices=[]):
        system: System = variant.preset.make()
    sampler = AUTHORS if system.default_sampler == AUTHORS else SAMPLER
    return sum(weight.numel() for weight in system.parameters()), sampler


def _finished_stages(folder: Path) -> tuple[str, ...]:
    files = {"trained": TRAINING, "evaluated": GRID}
    return tuple(stage for stage, file in files.items() if (folder / file).exists())


def _evaluation_minutes(evaluator: Evaluator, device: str) -> float:
    """The estimated time of an evaluation; on a CPU, that of the images without sampling."""
    if device == "cpu":
        return evaluator.num_images / IMAGES_PER_MINUTE / max(1, torch.get_num_threads())
    return MINUTES_ON_GPU * evaluator.request.settings.count / 10_000
