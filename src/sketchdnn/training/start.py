"""Start a run: open the data, select the device, make the system, and write the model at the end."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError

from sketchdnn.data import Dataset
from sketchdnn.data.config import SPLITS
from sketchdnn.io import exclusive_run, remove_abandoned
from sketchdnn.systems import Preset, System, TrainingIndex, build_training_index, from_pretrained, save_pretrained
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.pretrained import copy_license_note

from .checkpoint import CHECKPOINTS, write_folder
from .config import RunError, TrainConfig
from .corpus import Corpus, to_device
from .distributed import process_group
from .loop import Hooks, Outcome, train

MODEL = "model"
# Subfolders of a run.
FOLDERS = (CHECKPOINTS, "failed", "previews")


@dataclass(frozen=True, slots=True)
class TrainRequest:
    """All options of a run.

    Attributes:
        device: auto (a GPU if there is one), cpu, cuda or cuda:N.
        init_from: A model whose weights the run starts with.
        fsdp: Shard the weights over the processes.
    """

    preset: Preset
    config: TrainConfig
    data: Path
    out: Path
    device: str = "auto"
    resume: bool = False
    init_from: Path | None = None
    fsdp: bool = False
    hooks: Hooks = field(default_factory=Hooks, compare=False)


def start_training(request: TrainRequest) -> Outcome:
    """Train, and write the model to `out/model` when the budget is spent."""
    config, out = request.config, request.out
    device = find_device(request.device)
    _check_folders(request)
    with (
        process_group(device, shards=request.fsdp) as ranks,
        exclusive_run(out) if ranks.first else nullcontext(),
    ):
        if ranks.first:
            for folder in (out, *(out / name for name in FOLDERS)):
                remove_abandoned(folder)
        system = _make_system(request)
        try:
            dataset = Dataset.open(request.data)
            corpus, validation = load_corpora(dataset, device, max(config.min_primitives, config.conditional_below))
            system.to_device(device)
        except torch.OutOfMemoryError as error:
            raise RunError(f"the corpus and the model do not fit on {device}; use another --device") from error
        outcome = train(
            system, corpus, config, out, validation=validation, resume=request.resume, hooks=request.hooks, ranks=ranks
        )
        if outcome.finished and ranks.first:
            outcome.model.training_index = _index_corpus(dataset, config.min_primitives)
            write_model(outcome.model, out / MODEL, request.init_from)
    return outcome


def _make_system(request: TrainRequest) -> System:
    """The preset's system, with weights from the seed or from another model."""
    torch.manual_seed(request.config.seed)
    system = request.preset.make()
    if request.init_from is not None:
        other = from_pretrained(request.init_from)
        if other.name != system.name:
            raise RunError(f"{request.init_from}: that model is a {other.name}, and the preset's is a {system.name}")
        if not system.can_init_from(other):
            raise RunError(
                f"{request.init_from}: that model has another shape than the preset; use the preset it was trained with"
            )
        # Inputs that the other model lacks keep their zero-initialized weights.
        system.load_state_dict(system.state_dict() | other.state_dict())
    return system


def load_corpora(dataset: Dataset, device: str, min_primitives: int) -> tuple[Corpus, Corpus | None]:
    """The train split, and the validation split without auxiliary sketches, if any are left."""
    train_split, held_out = (dataset.split(name).compact for name in SPLITS[:2])
    if not len(train_split):
        raise RunError(f"{dataset.folder}: its train split is empty; prepare it from more sketches")
    validation = held_out[held_out.counts >= min_primitives]
    return to_device(train_split, device), to_device(validation, device) if len(validation) else None


def _check_folders(request: TrainRequest) -> None:
    """Refuse to write into the corpus, or over the model that the run starts from."""
    out = request.out.resolve()
    if out == request.data.resolve():
        raise RunError(f"{request.out}: the corpus is there; name another folder with --out")
    if request.init_from is not None and request.init_from.resolve() == out / MODEL:
        raise RunError(f"{request.init_from}: the run would overwrite that model; name another --out")


def _index_corpus(dataset: Dataset, min_primitives: int) -> TrainingIndex | None:
    """The index of the train split for `generate --novel`; None if all its sketches are auxiliary."""
    rows = dataset.split(SPLITS[0]).compact
    if not bool((rows.counts >= min_primitives).any()):
        return None
    return build_training_index(rows, min_primitives, half_extent=dataset.half_extent, tight=dataset.tight)


def write_model(model: System, folder: Path, origin: str | Path | None, *, eight_bit: bool = False) -> None:
    """Write the model of a run, with the license note of the model that it started from."""

    def write(temporary: Path) -> None:
        save_pretrained(model, temporary, eight_bit=eight_bit)
        copy_license_note(origin, temporary)

    try:
        write_folder(folder, write)
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{folder}: the model could not be written ({error}); make room and use --resume, nothing is lost"
        ) from error
