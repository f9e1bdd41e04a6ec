"""From what a person asked for to a finished run: the data opened, the device chosen, the model written at the end."""

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

from .checkpoint import RunError, write_folder
from .config import TrainConfig
from .corpus import Corpus, to_device
from .distributed import joined
from .loop import OnReport, OnValidation, Outcome, train

MODEL = "model"
# Where a run writes, besides its own folder.
FOLDERS = ("checkpoints", "failed", "previews")


@dataclass(frozen=True, slots=True)
class Request:
    """A run as a person asks for it. `device` is auto, cpu, cuda or cuda:N; auto is a GPU where there is one."""

    preset: Preset
    config: TrainConfig
    data: Path
    out: Path
    device: str = "auto"
    resume: bool = False
    init_from: Path | None = None
    fsdp: bool = False  # split the weights over the processes
    on_report: OnReport | None = field(default=None, compare=False)
    on_validation: OnValidation | None = field(default=None, compare=False)


def start(request: Request) -> Outcome:
    """Train, and write the model to `out/model` when the budget is spent."""
    device = find_device(request.device)
    _refuse_mixing(request)
    with joined(device, shards=request.fsdp) as ranks, exclusive_run(request.out) if ranks.first else nullcontext():
        if ranks.first:
            for folder in (request.out, *(request.out / name for name in FOLDERS)):
                remove_abandoned(folder)
        system = _system(request)
        try:
            corpus, validation = _corpora(request.data, device, request.config.fewest)
            system.to_device(device)
        except torch.OutOfMemoryError as error:
            raise RunError(f"the corpus and the model do not fit on {device}; use another --device") from error
        outcome = train(
            system,
            corpus,
            request.config,
            request.out,
            validation=validation,
            resume=request.resume,
            on_report=request.on_report,
            on_validation=request.on_validation,
            ranks=ranks,
        )
        if outcome.finished and ranks.first:
            outcome.model.training_index = _known(request.data, request.config.fewest)
            _write_model(outcome.model, request.out / MODEL)
    return outcome


def _system(request: Request) -> System:
    """The preset's system: its weights from the seed, or those of another model and nothing else of it."""
    torch.manual_seed(request.config.seed)
    system = request.preset.make()
    if request.init_from is not None:
        other = from_pretrained(request.init_from)
        if other.name != system.name:
            raise RunError(f"{request.init_from}: that model is a {other.name}, and the preset's is a {system.name}")
        if not system.can_init_from(other):
            raise RunError(
                f"{request.init_from}: that model is of another shape than the preset; choose the preset it was made by"
            )
        # What the other lacks stays as it starts: it says nothing yet.
        system.load_state_dict(system.state_dict() | other.state_dict())
    return system


def _corpora(folder: Path, device: str, fewest: int) -> tuple[Corpus, Corpus | None]:
    """The train split, and of the validation split such as are to be drawn, where it holds any."""
    dataset = Dataset.open(folder)
    train_split, held_out = (dataset.split(name).compact for name in SPLITS[:2])
    if not len(train_split):
        raise RunError(f"{folder}: its train split is empty; prepare it from more sketches")
    validation = held_out[held_out.counts >= fewest]
    return to_device(train_split, device), to_device(validation, device) if len(validation) else None


def _refuse_mixing(request: Request) -> None:
    """Refuses to write into the corpus, or over the model that the run starts from."""
    out = request.out.resolve()
    if out == request.data.resolve():
        raise RunError(f"{request.out}: the corpus is there; name another folder with --out")
    if request.init_from is not None and request.init_from.resolve() == out / MODEL:
        raise RunError(f"{request.init_from}: the run would overwrite that model; name another --out")


def _known(folder: Path, fewest: int) -> TrainingIndex | None:
    """The index of the training split, by which `generate --novel` refuses its sketches. None if none is drawn."""
    dataset = Dataset.open(folder)
    rows = dataset.split(SPLITS[0]).compact
    if not bool((rows.counts >= fewest).any()):
        return None
    return build_training_index(rows, fewest, half_extent=dataset.half_extent, tight=dataset.tight)


def _write_model(model: System, folder: Path) -> None:
    try:
        write_folder(folder, lambda temporary: save_pretrained(model, temporary))
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{folder}: the model could not be written ({error}); make room and use --resume, nothing is lost"
        ) from error
