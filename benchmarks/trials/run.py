"""Train the trials of an experiment and draw their samples, in as many calls as it takes.

OUT/<trial>-<seed>/run             the training run
OUT/<trial>-<seed>/training.json   written after training
OUT/<trial>-<seed>/<draw>.jsonl.xz samples, raw

What is there is not made again. A file that holds everything but `run` can be written after each step (`bundle`), to be
unpacked elsewhere.
"""

from __future__ import annotations

import json
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import OnStage, ignore_stage
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats import write
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.io import atomic_write, exclusive_run, load_json, remove_abandoned
from sketchdnn.systems import Preset, System, config_from_dict, config_to_dict, load_preset
from sketchdnn.systems.devices import find_device
from sketchdnn.training import load_model
from sketchdnn.training.config import TrainConfig, parse_train_config
from sketchdnn.training.loop import Hooks, OnReport
from sketchdnn.training.start import TrainRequest, start_training

from .errors import measure_errors
from .experiments import Draw, Experiment, Trial

RUN, TRAINING, SAMPLES = "run", "training.json", ".jsonl.xz"
# The protocol compares 2,000; some may have no extent.
COUNT = 2_500
# A run is saved this often, in case the machine is lost.
_CHECKPOINT_MINUTES = 2.0


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What to train and draw.

    Attributes:
        corpora: The folder of the corpora.
        minutes: Of each training; None is the experiment's budget.
        only: Names of trials, or of trials with a seed (`cat-1`); all by default.
        overrides: Further settings of all trials, such as a smaller network for a rehearsal.
        steps: Of each draw, for a rehearsal; None is that of the draw.
        stop_after: Minutes after which the call saves and stops.
        bundle: A tar file with everything but the runs, written whenever something is finished.
    """

    experiment: Experiment
    corpora: Path
    out: Path
    minutes: float | None = None
    only: Sequence[str] = ()
    overrides: Sequence[str] = ()
    count: int = COUNT
    steps: int | None = None
    stop_after: float | None = None
    device: str = "auto"
    bundle: Path | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """One trial with one seed."""

    trial: Trial
    seed: int

    @property
    def name(self) -> str:
        return f"{self.trial.name}-{self.seed}"


def train_trials(
    request: TrialRequest, *, on_stage: OnStage = ignore_stage, on_report: OnReport = lambda report: None
) -> list[str]:
    """Train and draw what is missing, until the time is over or a signal stops a training, which is saved.

    Returns:
        The names of unfinished trials; empty if everything is done.
    """
    pieces = select_pieces(request)
    deadline = float("inf") if request.stop_after is None else time.monotonic() + 60 * request.stop_after

    def stop() -> bool:
        return time.monotonic() >= deadline

    for piece in pieces:
        _config(piece, request)  # refuses a bad setting before anything is trained
        Dataset.open(request.corpora / piece.trial.corpus)
    with exclusive_run(request.out):
        remove_abandoned(request.out)
        for piece in pieces:
            if not _run_piece(piece, request, stop, on_stage, on_report):
                break  # the time is over, or a signal came
        _write_bundle(request)
    return [piece.name for piece in pieces if not _is_finished(piece, request)]


def select_pieces(request: TrialRequest) -> list[Piece]:
    """The trials of a request with their seeds, seed by seed.

    Raises:
        SketchError: A name is of no trial.
    """
    experiment = request.experiment
    pieces = [Piece(trial, seed) for seed in experiment.seeds for trial in experiment.trials]
    if not request.only:
        return pieces
    known = {name for piece in pieces for name in (piece.name, piece.trial.name)}
    for name in request.only:
        if name not in known:
            raise SketchError(f"'{name}' is no trial of {experiment.name}; there are {', '.join(sorted(known))}")
    return [piece for piece in pieces if piece.name in request.only or piece.trial.name in request.only]


def _is_finished(piece: Piece, request: TrialRequest) -> bool:
    files = [TRAINING, *(f"{draw.name}{SAMPLES}" for draw in piece.trial.draws)]
    return all((request.out / piece.name / file).exists() for file in files)


def _run_piece(
    piece: Piece, request: TrialRequest, stop: Callable[[], bool], on_stage: OnStage, on_report: OnReport
) -> bool:
    """Train and draw one trial; whether it is finished."""
    folder = request.out / piece.name
    if not (folder / TRAINING).exists():
        if stop():
            return False
        on_stage(f"{piece.name}: training")
        if not _train(piece, request, folder, Hooks(on_report, stop=stop)):
            return False
        _write_bundle(request)
    for draw in piece.trial.draws:
        path = folder / f"{draw.name}{SAMPLES}"
        if path.exists():
            continue
        if stop():
            return False
        on_stage(f"{piece.name}: drawing {draw.label}")
        _draw(piece, draw, request, path)
        _write_bundle(request)
    return True


def _config(piece: Piece, request: TrialRequest) -> tuple[Preset, TrainConfig]:
    preset = load_preset(piece.trial.preset, overrides=[*piece.trial.overrides, *request.overrides])
    minutes = request.experiment.minutes if request.minutes is None else request.minutes
    config = parse_train_config(
        preset.training,
        f"{piece.name}: training",
        minutes=minutes,
        seed=piece.seed,
        checkpoint_minutes=_CHECKPOINT_MINUTES,
        keep=1,
        validate_every=0,
        preview_every=0,
    )
    return preset, config


def _train(piece: Piece, request: TrialRequest, folder: Path, hooks: Hooks) -> bool:
    """Whether the training is finished; otherwise it is saved."""
    torch.compiler.reset()  # code compiled for the trial before is of no use
    preset, config = _config(piece, request)
    data, device = request.corpora / piece.trial.corpus, find_device(request.device)
    outcome = start_training(TrainRequest(preset, config, data, folder / RUN, request.device, resume=True, hooks=hooks))
    if not outcome.finished:
        return False
    dataset = Dataset.open(data)
    record: dict[str, Any] = {
        "name": piece.name,
        "preset": piece.trial.preset,
        "overrides": [*piece.trial.overrides, *request.overrides],
        "system": preset.system,
        "config": config_to_dict(preset.config),
        "training": config.identity(),
        "minutes": config.minutes,
        "corpus": piece.trial.corpus,
        "train_sketches": len(dataset.split("train")),
        "parameters": sum(weight.numel() for weight in outcome.model.parameters()),
        "steps": outcome.step,
        "samples_seen": outcome.step * config.batch_size,
        "errors": {},
        "device": torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else "the CPU",
    }
    for name, averaged in (("averaged", True), ("last", False)):
        system = load_model(folder / RUN, averaged=averaged).to_device(device)
        record["errors"][name] = measure_errors(system, dataset)
    del outcome, system
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
    with atomic_write(folder / TRAINING) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return True


def _draw(piece: Piece, draw: Draw, request: TrialRequest, path: Path) -> None:
    """Write the samples of a draw, without repair."""
    system = with_settings(load_model(path.parent / RUN, averaged=draw.averaged), draw)
    system.to_device(find_device(request.device))
    steps = draw.steps if request.steps is None else request.steps
    options = GenerateRequest(count=request.count, seed=piece.seed, steps=steps, sampler=draw.sampler, repair=False)
    write([drawing.sketch for drawing in stream(system, options)], path)


def with_settings(system: System, draw: Draw) -> System:
    """The same weights with the settings of a draw.

    Raises:
        SketchError: A setting has an effect on training.
    """
    if not draw.settings:
        return system
    for name in draw.settings:
        if name not in system.inference_only:
            raise SketchError(f"{draw.name}: {name} has an effect on training; make it a trial of its own")
    table = config_to_dict(system.config) | dict(draw.settings)
    changed = type(system)(config_from_dict(type(system).config_class, table, draw.name))
    changed.load_state_dict(system.state_dict())
    return changed.eval()


def read_training(folder: Path) -> dict[str, object]:
    """The record of a finished training."""
    path = folder / TRAINING
    try:
        record = load_json(path)
    except (OSError, ValueError) as error:
        raise FormatError(path, f"cannot be read ({error}); train it again") from error
    if not isinstance(record, dict):
        raise FormatError(path, "is no record of a training; train it again")
    return record


def _write_bundle(request: TrialRequest) -> None:
    if request.bundle is None:
        return
    with atomic_write(request.bundle) as temporary, tarfile.open(temporary, "w") as archive:
        for path in _bundled(request.out):
            archive.add(path, path.relative_to(request.out).as_posix())


def _bundled(out: Path) -> Iterator[Path]:
    """Records and samples, with the log of each training."""
    for folder in sorted(path for path in out.iterdir() if path.is_dir()):
        yield from sorted(path for path in folder.iterdir() if path.name == TRAINING or path.name.endswith(SAMPLES))
        if (folder / RUN / "log.csv").is_file():
            yield folder / RUN / "log.csv"
