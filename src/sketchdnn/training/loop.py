"""The training loop: steps until the budget is spent, with logs, validation, previews and checkpoints."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import torch
from safetensors.torch import save_file

from sketchdnn.io import STOP_SIGNALS
from sketchdnn.systems import System

from . import checkpoint
from .config import RunError, TrainConfig
from .corpus import Corpus
from .distributed import Ranks
from .logs import LOGGERS, RunLog
from .run import Report, Run
from .step import random_numbers
from .validation import save_preview

OnReport = Callable[[Report], None]
# Receives the step and the named numbers of a validation, such as the loss at each noise level.
OnValidation = Callable[[int, Mapping[str, float]], None]

# Seconds in which further signals belong to the first. `timeout` signals its command, and then the group of both.
_REPEATED_WITHIN = 1.0


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of a run, called in the first process, and the names of its loggers besides CSV.

    Attributes:
        stop: Asked at each report; True saves and stops the run, as a signal does.
    """

    on_report: OnReport = lambda report: None
    on_validation: OnValidation = lambda step, losses: None
    loggers: Sequence[str] = ()
    stop: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        for name in self.loggers:
            if name not in LOGGERS:
                raise RunError(f"'{name}' is no logger; use {' or '.join(LOGGERS)}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The model, the last step, and the signal that stopped the run before its end, if there was one."""

    model: System
    step: int
    finished: bool
    signal: int | None
    writes: bool  # whether this is the first process


def train(
    system: System,
    corpus: Corpus,
    config: TrainConfig,
    out: Path,
    *,
    validation: Corpus | None = None,
    resume: bool = False,
    hooks: Hooks | None = None,
    ranks: Ranks | None = None,
    make_run: Callable[[System, Corpus, TrainConfig, Ranks | None], Run] = Run,
) -> Outcome:
    """Train a system in place.

    On SIGTERM, SIGINT or SIGHUP, the run is saved and stops, to be resumed later. With a budget of minutes, the time
    before a resume counts.

    Raises:
        RunError: The folder holds another run, the loss is not finite, or the device has too little memory.
    """
    hooks = hooks or Hooks()
    folder = out / checkpoint.CHECKPOINTS
    saved = time.monotonic()
    with _explain_memory(config), interruptible() as signals:
        run = make_run(system, corpus, config, ranks)
        _resume(run, folder, resume)
        with RunLog.open(out, run.step, hooks.loggers) if run.ranks.first else nullcontext() as log:
            stopping = False
            while not (run.done or stopping):
                run.advance()
                # Several processes report only at steps that all can compute.
                interrupted = run.ranks.alone and bool(signals)
                if not (run.step % config.log_every == 0 or run.done or interrupted):
                    continue
                report = run.report()
                _check_loss(run, out)
                if log is not None:
                    log.report(report)
                    hooks.on_report(report)
                _validate(run, validation, log, out, hooks)
                stopping = _any_process(run, bool(signals) or (run.ranks.first and hooks.stop()))
                save_due = time.monotonic() - saved >= 60 * config.checkpoint_minutes
                if stopping or run.done or _any_process(run, save_due):
                    run.save(folder)
                    saved = time.monotonic()
    return Outcome(run.model, run.step, run.done, signals[0] if signals else None, run.ranks.first)


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Yield a list that receives the first SIGTERM, SIGINT or SIGHUP; one a second later has its usual effect.

    `nohup` still works.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread receives signals
        return
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up in handlers and handlers[hang_up] is signal.SIG_IGN:
        del handlers[hang_up]

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    first = 0.0

    def record(number: int, _: FrameType | None) -> None:
        nonlocal first
        if not received:
            received.append(number)
            first = time.monotonic()
        elif time.monotonic() - first >= _REPEATED_WITHIN:
            restore()
            signal.raise_signal(number)

    for number in handlers:
        signal.signal(number, record)
    try:
        yield received
    finally:
        restore()


def _save_failed_batch(run: Run, step: int, folder: Path) -> None:
    """Write the sketches and random numbers of a step."""
    numbers, indices = run.order.numbers(step), run.indices(step)
    random = random_numbers(run.config.seed, numbers, run.corpus.kind.shape[1])
    tensors = {
        "numbers": numbers,
        "indices": indices,
        **random._asdict(),
        "kind": run.corpus.kind[indices],
        "construction": run.corpus.construction[indices],
        "params": run.corpus.params[indices],
    }
    facts = {"step": step, "seed": run.config.seed, "batch_size": run.config.batch_size, "rate": run.rate}

    def write(temporary: Path) -> None:
        save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, temporary / "batch.safetensors")
        (temporary / "facts.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")

    checkpoint.write_folder(folder, write)


def _resume(run: Run, folder: Path, resume: bool) -> None:
    """Continue from the last checkpoint; refuse to start over another run."""
    checkpoints = checkpoint.list_checkpoints(folder)
    if checkpoints and not resume:
        raise RunError(
            f"{folder.parent} holds a run at step {int(checkpoints[-1].name)}; add --resume, or name another --out"
        )
    if checkpoints:
        run.resume(checkpoints[-1])


def _check_loss(run: Run, out: Path) -> None:
    step = run.first_bad_step()
    if step is None:
        return
    folder = out / "failed" / f"{step:08d}"
    if run.ranks.first:
        _save_failed_batch(run, step, folder)
    raise RunError(
        f"the loss of step {step} is not finite; its batch is saved in {folder}. "
        "Try a lower --learning-rate, or --resume from the last checkpoint"
    )


def _validate(run: Run, validation: Corpus | None, log: RunLog | None, out: Path, hooks: Hooks) -> None:
    """Validate and write a preview, if their step has come or the run has ended."""
    validates = validation is not None and _is_due(run, run.config.validate_every)
    previews = _is_due(run, run.config.preview_every)
    if not (validates or previews):
        return
    model = run.model  # gathered by all processes
    if log is None:
        return
    if validation is not None and validates:
        numbers = run.validate(model, validation)
        log.validation(run.step, numbers)
        hooks.on_validation(run.step, numbers)
    if previews:
        save_preview(model, out / "previews" / f"{run.step:08d}.png", run.config.seed)


def _is_due(run: Run, every: int) -> bool:
    """Whether a multiple of `every` steps was passed since the last report, or the run has ended."""
    return every > 0 and (run.done or run.step % every < run.config.log_every)


def _any_process(run: Run, condition: bool) -> bool:
    """Whether the condition holds in any process."""
    return bool(run.ranks.maximum(torch.tensor(int(condition), device=run.device)))


@contextmanager
def _explain_memory(config: TrainConfig) -> Iterator[None]:
    """Turn an out-of-memory error into a sentence for the user."""
    try:
        yield
    except RuntimeError as error:
        if not (isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)):
            raise
        raise RunError(f"a batch of {config.batch_size} does not fit in memory; lower --batch-size") from error
