"""Checkpoints: safetensors and JSON, written completely or not at all; the newest few are kept.

`RUN/checkpoints/00012000/` holds the weights, their moving average and the optimizer's moments at step 12,000. Random
numbers and the order of the data are functions of the seed and the step, so nothing else is needed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from sketchdnn.errors import SketchError
from sketchdnn.io import flush_to_disk, load_json, temporary_folder
from sketchdnn.systems import System, config_from_dict, find_system
from sketchdnn.systems.aliases import current_settings, current_tensor
from sketchdnn.systems.training_index import check_safetensors_header

from .config import RunError
from .distributed import gather, shard_like

CHECKPOINTS = "checkpoints"
_TENSORS, _FACTS = "state.safetensors", "state.json"


@dataclass(frozen=True, slots=True)
class TrainState:
    """The state of a run: weights, their moving average if there is one, and the optimizer.

    Attributes:
        critic: The second network of an adversarial loss, with its optimizer.
    """

    model: nn.Module
    average: AveragedModel | None
    optimizer: torch.optim.Optimizer
    critic: TrainState | None = None


def save(
    folder: Path, step: int, state: TrainState, facts: dict[str, Any], keep: int = 2, *, writes: bool = True
) -> Path:
    """Write the state after `step` steps and delete all but the newest `keep` checkpoints.

    If the state is sharded, every process must call this; one `writes`.
    """
    final = folder / f"{step:08d}"
    # Every process takes part in gathering.
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in _tensors(state) if writes}
    if not writes:
        return final

    def write(temporary: Path) -> None:
        save_file(tensors, temporary / _TENSORS)
        (temporary / _FACTS).write_text(json.dumps({"step": step, **facts}, indent=1))

    try:
        write_folder(final, write)
    except (OSError, SafetensorError) as error:
        raise RunError(f"{final}: the checkpoint could not be written ({error}); earlier ones are intact") from error
    for old in list_checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def write_folder(final: Path, write: Callable[[Path], None]) -> None:
    """Write a folder completely or not at all: `write` fills a temporary folder, which then replaces `final`."""
    with temporary_folder(final.parent) as temporary:
        write(temporary)
        for path in (*temporary.iterdir(), temporary):
            flush_to_disk(path)
        shutil.rmtree(final, ignore_errors=True)
        temporary.replace(final)
        flush_to_disk(final.parent)


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.isdigit() and (path / _FACTS).exists())


def load(path: Path, state: TrainState, identity: dict[str, Any]) -> dict[str, Any]:
    """Load a checkpoint into `state` and return its facts.

    Raises:
        RunError: It is damaged, or of a run with another `identity`.
    """
    try:
        facts = load_json(path / _FACTS)
        if not isinstance(facts, dict) or not isinstance(facts.get("identity", {}), dict):
            raise ValueError("it does not say how it was made")
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path}: this checkpoint is damaged ({error}); delete it to resume from the one before"
        ) from error
    _check_identity(path, facts.get("identity", identity), identity)
    try:
        check_safetensors_header(path / _TENSORS)
        _restore(state, load_file(path / _TENSORS))
    except (OSError, SafetensorError, ValueError, KeyError, IndexError, RuntimeError) as error:
        raise RunError(
            f"{path}: this checkpoint does not fit or is damaged ({_first_line(error)}); "
            "delete it to resume from the one before"
        ) from error
    return facts


def load_model(run: Path, *, averaged: bool = True) -> System:
    """The model of a run at its newest checkpoint. The run may go on.

    Args:
        run: The folder of the run.
        averaged: Take the averaged weights if there are any, not the last ones.

    Raises:
        RunError: The run has no checkpoint, or it is damaged.
    """
    checkpoints = list_checkpoints(run / CHECKPOINTS)
    if not checkpoints:
        raise RunError(f"{run}: this run has no checkpoint yet")
    path = checkpoints[-1]
    try:
        facts: Any = load_json(path / _FACTS)
        identity = facts["identity"]
        system_class = find_system(identity["name"])
        system = system_class(config_from_dict(system_class.config_class, identity["system"], str(path / _FACTS)))
        check_safetensors_header(path / _TENSORS)
        tensors = {current_tensor(name): value for name, value in load_file(path / _TENSORS).items()}
        prefix = "average.module." if averaged and "average.n_averaged" in tensors else "model."
        system.load_state_dict({n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)})
    except (OSError, SketchError, SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise RunError(f"{path}: this checkpoint is damaged ({_first_line(error)})") from error
    return system.eval()


def _check_identity(path: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to resume with other settings."""
    if then.get("name") != now.get("name"):
        raise RunError(f"{path}: this checkpoint is of a {then.get('name')}, not of a {now.get('name')}")
    before, after = (_flatten(current_settings(table)) for table in (then, now))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            old, new = (table.get(name, "its default") for table in (before, after))
            raise RunError(
                f"{path}: this checkpoint was made with {name} = {old}, not {new}; "
                "resume with the same settings, or start a new run from its weights with --init-from"
            )


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names, with the types of JSON."""
    flat: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(table)).items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _tensors(state: TrainState) -> Iterator[tuple[str, Tensor]]:
    """All tensors by name, one after the other, each gathered."""
    tensors = {f"model.{name}": value for name, value in state.model.state_dict().items()}
    if state.average is not None:
        tensors |= {f"average.{name}": value for name, value in state.average.state_dict().items()}
    for index, moments in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in moments.items()}
    yield from ((name, gather(value)) for name, value in tensors.items())
    if state.critic is not None:
        yield from ((f"critic.{name}", value) for name, value in _tensors(state.critic))


def _restore(state: TrainState, tensors: dict[str, Tensor]) -> None:
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimizer": {}, "critic": {}}
    for name, value in tensors.items():
        part, rest = current_tensor(name).split(".", 1)
        parts[part][rest] = value
    if state.critic is not None:
        _restore(state.critic, parts["critic"])
    _load_tensors(state.model, parts["model"])
    if state.average is not None:
        _load_tensors(state.average, parts["average"])
    weights = [weight for group in state.optimizer.param_groups for weight in group["params"]]
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in parts["optimizer"].items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = shard_like(value, weights[int(index)])
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _load_tensors(module: nn.Module, values: dict[str, Tensor]) -> None:
    current = module.state_dict()
    module.load_state_dict({n: shard_like(v, current[n]) if n in current else v for n, v in values.items()})


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
