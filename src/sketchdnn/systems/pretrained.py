"""Models on disk: safetensors shards with the usual index beside a `config.json`. No pickle anywhere.

`eight_bit` stores the matrices of blocks and adapters as int8 with one scale a row, at half the size of half precision;
the other weights, such as the first and last layers, stay in half precision. `config.json` records a hash of the
shards, which identifies the model and reveals damage. Beside them lie, where there are any, the training index
(`training_index.safetensors`, with a hash of its own), a few-step student (`student.safetensors`, or its shards), and
an image encoder with its adapters (`image.safetensors`), which is read at its first use. Old names are read by
`aliases`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from functools import partial
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

from .aliases import INDEX_FILE, MODEL_FACTS, current_names, current_tensor
from .devices import find_device, passive_threads
from .image_conditioned import ImageConditionedSystem, ImageFacts, image_facts, image_tensors, rebuild_image_model
from .registry import ConfigError, config_from_dict, config_to_dict, find_system
from .sketchdnn import SketchDNNSystem
from .students import StudentFacts, rebuild_student, student_facts, student_tensors
from .system import System, check_sampling
from .training_index import TrainingIndex, check_safetensors_header, read_training_index, write_training_index

DEFAULT_MODEL = "ours"
# The library counts 16 MB as 16·10⁶ bytes, below our limit of 16 MiB with its header.
_SHARD_SIZE = "16MB"
LICENSE_NOTE = "NOTICE.md"
_MODEL, _STUDENT, _IMAGE, _CONFIG = "model", "student", "image", "config.json"
_INDEX = "{}.safetensors.index.json"
_TRAINING_INDEX = "training_index.safetensors"
_SCALE = ".scale"
# Modules whose matrices are stored in eight bits.
_MATRICES = ("network.blocks.", "encoder.blocks.", "adapters.")
_HUB = "hub:"
_HUB_NAME = re.compile(r"[\w.-]++/[\w.-]++")
# All shards: the largest network in single precision.
_MAX_WEIGHT_BYTES = 4 * LARGEST_NETWORK


class PretrainedError(SketchError):
    """A model that cannot be used; the message says why."""


class MissingModelError(PretrainedError, MissingError):
    """A model that does not exist, or lacks a file."""


def save_pretrained(system: System, folder: str | Path, *, eight_bit: bool = False) -> None:
    """Write a model folder, in half precision unless `eight_bit`."""
    (folder := Path(folder)).mkdir(parents=True, exist_ok=True)
    # Removed first and written last: a folder without it is no model, so an interrupted save leaves none.
    (folder / _CONFIG).unlink(missing_ok=True)
    facts = {"system": system.name, "representation": REPRESENTATION_VERSION}
    facts["sha256"] = _write_tensors(system.state_dict(), folder, _MODEL, eight_bit=eight_bit)
    facts["config"] = config_to_dict(system.config)
    if isinstance(system, SketchDNNSystem) and system.student is not None:
        facts["student"] = _write_student(system.student, folder, eight_bit=eight_bit)
    if isinstance(system, SketchDNNSystem) and system.image is not None:
        facts["image"] = _write_image(system.image, folder, eight_bit=eight_bit)
    if system.training_index is not None:
        write_training_index(system.training_index, folder / _TRAINING_INDEX)
        facts["training_index"] = _hash(folder, [_TRAINING_INDEX])
    _write_facts(folder, facts)


def save_training_index(index: TrainingIndex, model: str | Path) -> None:
    """Add a training index to an existing model folder; its weights stay untouched."""
    folder = _find_model(model)
    facts = _read_facts(folder)
    write_training_index(index, folder / _TRAINING_INDEX)
    _write_facts(folder, facts | {"training_index": _hash(folder, [_TRAINING_INDEX])})


def save_student(student: SketchDNNSystem, model: str | Path, *, eight_bit: bool = False) -> None:
    """Add a student to the model folder of its teacher, in place of an earlier one; other weights stay untouched."""
    folder = _find_model(model)
    facts = _read_facts(folder)
    _write_facts(folder, {name: value for name, value in facts.items() if name != "student"})
    _write_facts(folder, facts | {"student": _write_student(student, folder, eight_bit=eight_bit)})


def save_image_model(image: ImageConditionedSystem, model: str | Path, *, eight_bit: bool = False) -> None:
    """Add an image encoder to the model folder of its trunk, in place of an earlier one; the rest stays untouched."""
    folder = _find_model(model)
    facts = _read_facts(folder)
    _write_facts(folder, {name: value for name, value in facts.items() if name != "image"})
    _write_facts(folder, facts | {"image": _write_image(image, folder, eight_bit=eight_bit)})


def from_pretrained(model: str | Path = DEFAULT_MODEL, device: str = "cpu", *, local: int = 0) -> System:
    """A model in float32, ready to sample.

    The files are checked before anything is built: a config cannot request more memory than they account for.

    Args:
        model: A folder, the name of a model of the package, or hub:OWNER/NAME.
        device: As for `find_device`, and `local` too; checked before anything is loaded.

    Raises:
        PretrainedError: There is no such model, or it is damaged.
    """
    where = find_device(device, local)
    folder = _find_model(model)
    facts, system_class, config = _read_config(folder)
    tensors = _read_tensors(folder, facts.get("sha256"), _MODEL)
    if least_parameters(config) > sum(tensor.numel() for tensor in tensors.values()):
        raise PretrainedError(f"{folder}: its weights are fewer than its {_CONFIG} describes; copy the model again")
    system = system_class(config)
    try:
        with passive_threads():
            system.load_state_dict(_dequantize(tensors))
    except (RuntimeError, KeyError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise PretrainedError(f"{folder}: the weights do not fit the configuration ({quoted(first)})") from error
    system.training_index = _read_index(folder, facts.get("training_index"))
    if facts.get("student") is not None and isinstance(system, SketchDNNSystem):
        system.attach_student(_read_student(system, folder, facts["student"]))
    if facts.get("image") is not None and isinstance(system, SketchDNNSystem):
        system.attach_image(partial(_read_image, folder, facts["image"]))
    return system.eval().to_device(where)


def check_model_sampling(model: str | Path, options: SamplingOptions) -> None:
    """Refuse options that a model does not support, by its `config.json` alone."""
    _, system_class, config = _read_config(_find_model(model))
    check_sampling(system_class, options, getattr(config, "num_steps", None))


def model_hash(model: str | Path = DEFAULT_MODEL) -> str:
    """The identity of a model: the SHA-256 of its weights as stored."""
    return str(_read_facts(_find_model(model)).get("sha256"))


def license_note(model: str | Path | None) -> Path | None:
    """The license note of a model's weights; None without one."""
    note = None if model is None else _find_model(model) / LICENSE_NOTE
    return note if note is not None and note.is_file() else None


def copy_license_note(model: str | Path | None, folder: Path) -> None:
    """Copy the license note of the weights that a model comes from, if there is one."""
    if (note := license_note(model)) is not None:
        shutil.copyfile(note, folder / LICENSE_NOTE)


def bundled_names() -> list[str]:
    """The models that come with the package."""
    weights = files("sketchdnn") / "weights"
    return sorted(item.name for item in weights.iterdir() if item.is_dir()) if weights.is_dir() else []


def _find_model(model: str | Path) -> Path:
    """The folder of a model, downloaded for names that start with `hub:`.

    A folder of that name that holds no model, such as a corpus, does not hide a model of the package.
    """
    folder = Path(model)
    if str(model) in bundled_names() and not (folder / _CONFIG).exists():
        return Path(str(files("sketchdnn") / "weights" / str(model)))
    if folder.exists():
        return folder
    if isinstance(model, str) and model.startswith(_HUB):
        return _download(model.removeprefix(_HUB))
    names = ", ".join(bundled_names()) or "none"
    raise MissingModelError(f"{model}: no model is there; name a folder, a bundled one ({names}), or {_HUB}OWNER/NAME")


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download

    if not _HUB_NAME.fullmatch(name):
        raise PretrainedError(f"{_HUB}{name}: a model on the Hub is named {_HUB}OWNER/NAME")
    try:
        return Path(
            snapshot_download(name, allow_patterns=[_CONFIG, "*.safetensors", _INDEX.format("*"), LICENSE_NOTE])
        )
    except Exception as error:  # the library and its dependencies raise many types; each means no model
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise PretrainedError(f"{_HUB}{name}: it cannot be fetched from the Hub ({first})") from error


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts = load_json(folder / _CONFIG)
    except (OSError, ValueError) as error:
        kind = MissingModelError if isinstance(error, FileNotFoundError) else PretrainedError
        raise kind(f"{folder}: no model is there, its {_CONFIG} cannot be read ({quoted(error)})") from error
    version = facts.get("representation") if isinstance(facts, dict) else None
    if not isinstance(facts, dict) or version != REPRESENTATION_VERSION:
        versions = f"this model is of representation {version}, and this version reads {REPRESENTATION_VERSION}"
        hint = "train it again or use the version of the program that wrote it"
        raise PretrainedError(f"{folder}: {versions}; {hint}")
    return current_names(facts, MODEL_FACTS)


def _read_config(folder: Path) -> tuple[dict[str, Any], type[System], Any]:
    """The facts of a model, its system and its config."""
    facts = _read_facts(folder)
    try:
        system_class = find_system(facts["system"])
        return facts, system_class, config_from_dict(system_class.config_class, facts["config"], str(folder / _CONFIG))
    except (KeyError, ConfigError) as error:
        raise PretrainedError(f"{folder}: its {_CONFIG} does not describe a model ({quoted(error)})") from error


def _write_facts(folder: Path, facts: Mapping[str, Any]) -> None:
    with atomic_write(folder / _CONFIG) as temporary:
        temporary.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _read_index(folder: Path, recorded: object) -> TrainingIndex | None:
    """The training index of a model, under its present or its old file name; None if it was saved without one."""
    if recorded is None:
        return None
    names = [_TRAINING_INDEX, *INDEX_FILE]
    name = next((name for name in names if (folder / name).is_file()), None)
    if name is None:
        raise MissingModelError(f"{folder}: {_TRAINING_INDEX} is missing; copy the model again, all of its files")
    if _hash(folder, [name]) != recorded:
        raise PretrainedError(f"{folder}: its {name} is not the one it was saved with; copy the model again")
    try:
        return read_training_index(folder / name)
    except SketchError as error:
        raise PretrainedError(f"{folder}: {error}") from error


def _write_student(student: SketchDNNSystem, folder: Path, *, eight_bit: bool) -> dict[str, Any]:
    """Write the weights of a student; its facts."""
    digest = _write_tensors(student_tensors(student), folder, _STUDENT, eight_bit=eight_bit)
    return {**student_facts(student), "sha256": digest}


def _read_student(teacher: SketchDNNSystem, folder: Path, recorded: object) -> SketchDNNSystem:
    try:
        facts = StudentFacts.parse(recorded)
        digest = recorded.get("sha256") if isinstance(recorded, Mapping) else None
        return rebuild_student(teacher, facts, _dequantize(_read_tensors(folder, digest, _STUDENT)))
    except (ValueError, KeyError, RuntimeError) as error:
        raise PretrainedError(f"{folder}: its student does not fit the model ({quoted(error)})") from error


def _write_image(image: ImageConditionedSystem, folder: Path, *, eight_bit: bool) -> dict[str, Any]:
    """Write the weights of an image encoder and its adapters; its facts."""
    digest = _write_tensors(image_tensors(image), folder, _IMAGE, eight_bit=eight_bit)
    return {**image_facts(image), "sha256": digest}


def _read_image(folder: Path, recorded: object, trunk: SketchDNNSystem) -> ImageConditionedSystem:
    try:
        facts = ImageFacts.parse(recorded)
        digest = recorded.get("sha256") if isinstance(recorded, Mapping) else None
        tensors = _dequantize(_read_tensors(folder, digest, _IMAGE))
        if least_parameters(facts.config) > sum(tensor.numel() for tensor in tensors.values()):
            raise ValueError("its weights are fewer than it describes")
        return rebuild_image_model(trunk, facts, tensors)
    except (ValueError, KeyError, RuntimeError) as error:
        raise PretrainedError(f"{folder}: its image encoder does not fit the model ({quoted(error)})") from error


def _write_tensors(weights: Mapping[str, Tensor], folder: Path, stem: str, *, eight_bit: bool) -> str:
    """Write weights as shards of this name; their hash."""
    from huggingface_hub import save_torch_state_dict

    (folder / _INDEX.format(stem)).unlink(missing_ok=True)
    stored = _quantize(weights) if eight_bit else {name: w.half() for name, w in weights.items()}
    stored = {name: weight.cpu().contiguous() for name, weight in stored.items()}
    pattern = f"{stem}{{suffix}}.safetensors"
    save_torch_state_dict(stored, folder, filename_pattern=pattern, max_shard_size=_SHARD_SIZE)
    for name in _shards(folder, stem):
        (folder / name).chmod(new_file_mode(folder))  # the library creates them private
    return _hash(folder, _shards(folder, stem))


def _read_tensors(folder: Path, recorded: object, stem: str) -> dict[str, Tensor]:
    names = _shards(folder, stem)
    for name in names:
        if not (folder / name).is_file():
            raise MissingModelError(f"{folder}: {name} is missing; copy the model again, all of its files")
    try:
        if sum((folder / name).stat().st_size for name in names) > _MAX_WEIGHT_BYTES:
            raise PretrainedError(f"{folder}: its weights are larger than {_MAX_WEIGHT_BYTES >> 30} GiB")
        if _hash(folder, names) != recorded:
            raise PretrainedError(f"{folder}: its weights are not those it was saved with; copy the model again")
        tensors: dict[str, Tensor] = {}
        for name in names:
            check_safetensors_header(folder / name)
            tensors |= load_file(folder / name)
        return {current_tensor(name): tensor for name, tensor in tensors.items()}
    except PretrainedError:
        raise
    except (OSError, SafetensorError, ValueError) as error:
        raise PretrainedError(f"{folder}: its weights cannot be read ({quoted(error)})") from error


def _shards(folder: Path, stem: str) -> list[str]:
    """The files of the weights. The index is untrusted: names are reduced to files of the folder."""
    if not (folder / _INDEX.format(stem)).exists():
        return [f"{stem}.safetensors"]
    try:
        index: Any = load_json(folder / _INDEX.format(stem))
        return sorted({Path(name).name for name in index["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PretrainedError(f"{folder}: its {_INDEX.format(stem)} cannot be read ({quoted(error)})") from error


def _hash(folder: Path, names: list[str]) -> str:
    """SHA-256 of some files, one after the other."""
    digest = hashlib.sha256()
    for name in names:
        with (folder / name).open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def _quantize(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.ndim == 2 and name.startswith(_MATRICES) and name.endswith(".weight"):
            scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / 127
            stored[name] = (weight / scale).round().to(torch.int8)
            stored[name + _SCALE] = scale
        else:
            stored[name] = weight.half()
    return stored


def _dequantize(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    scales = {name.removesuffix(_SCALE): scale for name, scale in stored.items() if name.endswith(_SCALE)}
    weights = {name: weight.float() for name, weight in stored.items() if not name.endswith(_SCALE)}
    return weights | {name: weights[name] * scale for name, scale in scales.items()}
