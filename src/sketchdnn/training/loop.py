"""The loop: steps until the budget is spent, with logs, checkpoints and pictures on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from sketchdnn.systems import System

from . import checkpoint
from .checkpoint import RunError
from .config import TrainConfig
from .corpus import Corpus
from .distributed import Ranks
from .failure import save_batch
from .interrupt import Interrupt, interruptible
from .logbook import Logbook
from .preview import save_preview
from .run import Report, Run
from .validation import validate

OnReport = Callable[[Report], None]
# The step, and the loss at each noise level.
OnValidation = Callable[[int, Mapping[int, float]], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run: the model, how far it got, and the signal that stopped it before its end, if one did."""

    model: System
    step: int
    finished: bool
    signal: int | None = None
    writes: bool = True  # whether this process is the one that speaks for all


def train(
    system: System,
    corpus: Corpus,
    config: TrainConfig,
    out: Path,
    *,
    validation: Corpus | None = None,
    resume: bool = False,
    pause_after: float = math.inf,
    on_report: OnReport | None = None,
    on_validation: OnValidation | None = None,
    ranks: Ranks | None = None,
) -> Outcome:
    """Train in place. After `pause_after` seconds, or on SIGTERM or SIGINT, it saves and stops, to be resumed later.

    With a budget of minutes, time spent before a resume counts.
    """
    folder = out / "checkpoints"
    ends = time.monotonic() + pause_after
    saved = time.monotonic()
    with _explained(config), interruptible() as interrupt:
        run = Run(system, corpus, config, ranks)
        _take_up(run, folder, resume)
        with Logbook.opened(out, run.step, write=run.ranks.first) as logbook:
            stopping = False
            while not (run.done or stopping):
                run.advance()
                if not _due(run, interrupt):
                    continue
                report = run.report()
                _check(run, out)
                logbook.report(report)
                if on_report is not None and run.ranks.first:
                    on_report(report)
                _look(run, validation, logbook, out, on_validation)
                stopping = _agreed(run, interrupt.caught or time.monotonic() > ends)
                if stopping or run.done or _agreed(run, time.monotonic() - saved >= 60 * config.checkpoint_minutes):
                    run.save(folder)
                    saved = time.monotonic()
    return Outcome(run.model, run.step, run.done, interrupt.signal, run.ranks.first)


def _take_up(run: Run, folder: Path, resume: bool) -> None:
    """Begin at the last checkpoint or at none; never write over another run."""
    before = checkpoint.found(folder)
    if before and not resume:
        raise RunError(
            f"{folder.parent} holds a run at step {int(before[-1].name)}; add --resume, or name another --out"
        )
    if before:
        run.resume(before[-1])


def _due(run: Run, interrupt: Interrupt) -> bool:
    """Whether to look up from the work. Many processes do it only at steps that all know beforehand."""
    return run.step % run.config.log_every == 0 or run.done or (run.ranks.alone and interrupt.caught)


def _check(run: Run, out: Path) -> None:
    wrong = run.wrong_step()
    if wrong is None:
        return
    path = save_batch(run, wrong, out)
    raise RunError(
        f"the loss of step {wrong} is no finite number; its batch is saved in {path}. "
        "Try a lower --learning-rate, or --resume from the last checkpoint"
    )


def _look(
    run: Run, validation: Corpus | None, logbook: Logbook, out: Path, on_validation: OnValidation | None = None
) -> None:
    """Validation and a preview, when their step has come or the end has."""
    validates = validation is not None and _every(run, run.config.validate_every)
    previews = _every(run, run.config.preview_every)
    if not (validates or previews):
        return
    model = run.model  # of all processes, where each has a part of it
    if not run.ranks.first:
        return
    if validation is not None and validates:
        losses = validate(model, validation, run.config)
        logbook.validation(run.step, losses)
        if on_validation is not None:
            on_validation(run.step, losses)
    if previews:
        save_preview(model, out / "previews" / f"{run.step:08d}.png", run.config.seed)


def _every(run: Run, steps: int) -> bool:
    """Whether a report passed a multiple of `steps`, or was the last."""
    return steps > 0 and (run.done or run.step % steps < run.config.log_every)


def _agreed(run: Run, wish: bool) -> bool:
    """One answer for all processes: yes, if any of them says so."""
    return bool(run.ranks.largest(torch.tensor(int(wish), device=run.device))) if not run.ranks.alone else wish


@contextmanager
def _explained(config: TrainConfig) -> Iterator[None]:
    """Memory that runs out is not a fault of the program: say what to do."""
    try:
        yield
    except RuntimeError as error:
        memory = isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
        if not memory:
            raise
        raise RunError(f"a batch of {config.batch_size} does not fit in memory; lower --batch-size") from error
