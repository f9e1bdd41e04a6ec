"""Weights on disk: safetensors shards with the usual index beside a `config.json`. No pickle anywhere.

`eight_bit` stores the matrices of the blocks as int8 with one scale a row, at half the size of half precision; all the
rest, such as the layers at both ends, which place coordinates, stays in half. `config.json` records a hash of the
shards, by which a model is known and a damaged one found out. What the model remembers of its corpus lies beside them,
if it was told (`known.safetensors`, with a hash of its own).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import MissingError, SketchError, quoted
from sketchdnn.io import atomic_write, load_json, new_file_mode
from sketchdnn.representation.layout import REPRESENTATION_VERSION
from sketchdnn.representation.settings import LARGEST_NETWORK, least_parameters

from .devices import find_device
from .registry import config_of, entry
from .safetensors_files import check_header
from .system import System, check_sampling
from .tables import ConfigError, to_table
from .threads import patient_threads
from .training_index import TrainingIndex, read_training_index, write_training_index

BUNDLED = "ours"
# The library counts 16 MB as 16·10⁶ bytes, below our limit of 16 MiB with its header.
_SHARD_SIZE = "16MB"
_INDEX, _SINGLE, _CONFIG = "model.safetensors.index.json", "model.safetensors", "config.json"
_KNOWN = "known.safetensors"
_SCALE = ".scale"
_BLOCKS = "network.blocks."
_HUB = "hub:"
_HUB_NAME = re.compile(r"[\w.-]++/[\w.-]++")
# Of all shards: the largest network in single precision.
_LARGEST_WEIGHTS = 4 * LARGEST_NETWORK


class PretrainedError(SketchError):
    """A model that cannot be used: the sentence says what is wrong with it."""


class MissingModelError(PretrainedError, MissingError):
    """A model that is not there, or one that lacks a file."""


def save_pretrained(system: System, folder: str | Path, *, eight_bit: bool = False) -> None:
    """Write a model folder; half precision unless `eight_bit`."""
    from huggingface_hub import save_torch_state_dict

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Last to be written and first to go: a folder without it is no model, so none is ever half there.
    (folder / _CONFIG).unlink(missing_ok=True)
    weights = system.state_dict()
    stored = _quantized(weights) if eight_bit else {name: w.half() for name, w in weights.items()}
    save_torch_state_dict({n: w.cpu().contiguous() for n, w in stored.items()}, folder, max_shard_size=_SHARD_SIZE)
    mode = new_file_mode(folder)
    for name in _shards(folder):
        (folder / name).chmod(mode)  # the library makes them private; a result is an ordinary file
    facts = {
        "system": system.name,
        "representation": REPRESENTATION_VERSION,
        "sha256": _hash(folder, _shards(folder)),
        "config": to_table(system.config),
    }
    if system.training_index is not None:
        write_training_index(system.training_index, folder / _KNOWN)
        facts["known"] = _hash(folder, [_KNOWN])
    _write_facts(folder, facts)


def save_training_index(known: TrainingIndex, model: str | Path) -> None:
    """Add to a model that is there what it is to remember of its corpus, without a touch on its weights."""
    folder = _found(model)
    facts = _facts(folder)
    write_training_index(known, folder / _KNOWN)
    _write_facts(folder, facts | {"known": _hash(folder, [_KNOWN])})


def from_pretrained(model: str | Path = BUNDLED, device: str = "cpu", *, local: int = 0) -> System:
    """A model in float32, ready to draw: a folder, the name of a bundled model, or hub:OWNER/NAME.

    `device` and `local` are those of `find_device`; a device that is not there is refused before anything is loaded.
    The files are looked at before anything is built: a config cannot ask for more memory than they account for.
    """
    where = find_device(device, local)
    folder = _found(model)
    with _describing(folder):
        facts = _facts(folder)
        config = config_of(facts["system"], facts["config"], str(folder / _CONFIG))
    tensors = _tensors(folder, facts.get("sha256"))
    if least_parameters(config) > sum(tensor.numel() for tensor in tensors.values()):
        raise PretrainedError(f"{folder}: its weights are fewer than its {_CONFIG} describes; copy the model again")
    system = entry(facts["system"]).make(config)
    try:
        with patient_threads():
            system.load_state_dict(_restored(tensors))
    except (RuntimeError, KeyError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise PretrainedError(f"{folder}: the weights do not fit the configuration ({quoted(first)})") from error
    system.training_index = _known(folder, facts.get("known"))
    return system.eval().to_device(where)


def check_model_sampling(model: str | Path, options: SamplingOptions) -> None:
    """Refuse options that a model does not support, by its `config.json` alone."""
    folder = _found(model)
    with _describing(folder):
        facts = _facts(folder)
        config = config_of(facts["system"], facts["config"], str(folder / _CONFIG))
    check_sampling(entry(facts["system"]).make, options, getattr(config, "num_steps", None))


def model_hash(model: str | Path = BUNDLED) -> str:
    """What a model is known by: the SHA-256 of its weights as stored."""
    return str(_facts(_found(model)).get("sha256"))


def bundled_names() -> list[str]:
    """The models that come with the package."""
    weights = files("sketchdnn") / "weights"
    return sorted(item.name for item in weights.iterdir() if item.is_dir()) if weights.is_dir() else []


def _found(model: str | Path) -> Path:
    """The folder of a model, fetched from the Hub only if asked to.

    A folder that holds no model, such as a corpus, does not stand in the way of a bundled one of its name.
    """
    folder = Path(model)
    if str(model) in bundled_names() and not (folder / _CONFIG).exists():
        return Path(str(files("sketchdnn") / "weights" / str(model)))
    if folder.exists():
        return folder
    if isinstance(model, str) and model.startswith(_HUB):
        if not _HUB_NAME.fullmatch(name := model.removeprefix(_HUB)):
            raise PretrainedError(f"{model}: a model on the Hub is named {_HUB}OWNER/NAME")
        return _fetched(name)
    names = ", ".join(bundled_names()) or "none"
    raise MissingModelError(f"{model}: no model is there; name a folder, a bundled one ({names}), or {_HUB}OWNER/NAME")


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=[_CONFIG, "*.safetensors", _INDEX]))
    except Exception as error:  # the library and those below it raise all sorts; any of them means no model
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise PretrainedError(f"{_HUB}{name}: it cannot be fetched from the Hub ({first})") from error


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts = load_json(folder / _CONFIG)
    except (OSError, ValueError) as error:
        kind = MissingModelError if isinstance(error, FileNotFoundError) else PretrainedError
        raise kind(f"{folder}: no model is there, its {_CONFIG} cannot be read ({quoted(error)})") from error
    version = facts.get("representation") if isinstance(facts, dict) else None
    if version != REPRESENTATION_VERSION:
        raise PretrainedError(
            f"{folder}: this model is of representation {version}, and we read {REPRESENTATION_VERSION}; "
            "train it anew or use the version of the program that wrote it"
        )
    return dict(facts) if isinstance(facts, dict) else {}


@contextmanager
def _describing(folder: Path) -> Iterator[None]:
    """What goes wrong with the settings of a model is said of its file."""
    try:
        yield
    except (KeyError, ConfigError) as error:
        raise PretrainedError(f"{folder}: its {_CONFIG} does not describe a model ({quoted(error)})") from error


def _write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    with atomic_write(folder / _CONFIG) as temporary:
        temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _known(folder: Path, recorded: object) -> TrainingIndex | None:
    """What a model remembers; nothing if it never was told anything."""
    if recorded is None:
        return None
    if not (folder / _KNOWN).is_file():
        raise MissingModelError(f"{folder}: {_KNOWN} is missing; copy the model again, all of its files")
    if _hash(folder, [_KNOWN]) != recorded:
        raise PretrainedError(f"{folder}: its {_KNOWN} is not the one it was saved with; copy the model again")
    try:
        return read_training_index(folder / _KNOWN)
    except SketchError as error:
        raise PretrainedError(f"{folder}: {error}") from error


def _tensors(folder: Path, recorded: object) -> dict[str, Tensor]:
    names = _shards(folder)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise MissingModelError(f"{folder}: {missing[0]} is missing; copy the model again, all of its files")
    try:
        if sum((folder / name).stat().st_size for name in names) > _LARGEST_WEIGHTS:
            raise PretrainedError(f"{folder}: its weights are larger than {_LARGEST_WEIGHTS >> 30} GiB")
        if _hash(folder, names) != recorded:
            raise PretrainedError(f"{folder}: its weights are not those it was saved with; copy the model again")
        tensors: dict[str, Tensor] = {}
        for name in names:
            check_header(folder / name)
            tensors |= load_file(folder / name)
        return tensors
    except PretrainedError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise PretrainedError(f"{folder}: its weights cannot be read ({quoted(error)})") from error


def _shards(folder: Path) -> list[str]:
    """The files that hold the weights. An index is data: it must not lead out of its folder."""
    if not (folder / _INDEX).exists():
        return [_SINGLE]
    try:
        index: Any = load_json(folder / _INDEX)
        return sorted({Path(name).name for name in index["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PretrainedError(f"{folder}: its {_INDEX} cannot be read ({quoted(error)})") from error


def _hash(folder: Path, names: list[str]) -> str:
    """Of all shards, one after the other."""
    digest = hashlib.sha256()
    for name in names:
        with (folder / name).open("rb") as file:
            while piece := file.read(2**20):
                digest.update(piece)
    return digest.hexdigest()


def _quantized(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and name.startswith(_BLOCKS) and name.endswith(".weight"):
            scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            stored[name] = (weight / scale).round().to(torch.int8)
            stored[name + _SCALE] = scale
        else:
            stored[name] = weight.half()
    return stored


def _restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    scales = {name.removesuffix(_SCALE): scale for name, scale in stored.items() if name.endswith(_SCALE)}
    return {
        name: weight.float() * scales[name] if name in scales else weight.float()
        for name, weight in stored.items()
        if not name.endswith(_SCALE)
    }
