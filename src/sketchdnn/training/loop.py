"""The loop: steps until the budget is spent, with logs, checkpoints and an average of the weights on the way."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sketchdnn.systems.sketchdnn import SketchDNN

from . import checkpoint
from .checkpoint import RunError, State
from .config import TrainConfig
from .corpus import Corpus
from .order import DataOrder
from .step import batch_loss, draw, time_edges


@dataclass(frozen=True, slots=True)
class Report:
    """Where a run stands."""

    step: int
    progress: float
    loss: float
    params: float
    kind: float
    construction: float
    rate: float
    sketches_per_second: float


OnReport = Callable[[Report], None]


def train(
    system: SketchDNN,
    corpus: Corpus,
    config: TrainConfig,
    out: Path,
    *,
    resume: bool = False,
    pause_after: float = math.inf,
    on_report: OnReport | None = None,
) -> AveragedModel:
    """Train in place and return the averaged model. `pause_after` seconds it saves and stops, to be resumed later.

    With a budget of minutes, time spent before a resume counts.
    """
    device = corpus.params.device
    order = DataOrder(len(corpus), config.batch_size, config.seed, device)
    edges = time_edges(system.process.params).to(device)
    average = AveragedModel(system, multi_avg_fn=get_ema_multi_avg_fn(config.ema))  # type: ignore[no-untyped-call]
    optimiser = torch.optim.AdamW(
        system.parameters(),
        lr=config.learning_rate,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=device.type == "cuda",
    )
    state = State(system, average, optimiser)
    folder = out / "checkpoints"
    step, spent = 0, 0.0
    if resume and checkpoint.found(folder):
        facts = checkpoint.load(checkpoint.found(folder)[-1], state)
        step, spent = int(facts["step"]), float(facts["seconds"])
    loss_of = torch.compile(batch_loss) if device.type == "cuda" else batch_loss
    started = saved = reported = time.monotonic()
    total = config.total_steps(len(corpus))

    def progress() -> float:
        if config.minutes is not None:
            return (spent + time.monotonic() - started) / (60 * config.minutes)
        return step / (total or 1)

    system.train()
    while (done := progress()) < 1:
        rate = config.rate(step, done)
        for group in optimiser.param_groups:
            group["lr"] = rate
        with _precision(device):
            draws = draw(config.seed, order.numbers(step), corpus.kind.shape[1])
            loss, _ = loss_of(system, corpus, edges, order.indices(step), draws, config)
        torch.autograd.backward(loss.total)
        torch.nn.utils.clip_grad_norm_(system.parameters(), config.clip)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        average.update_parameters(system)
        step += 1
        if step % config.log_every == 0:
            now = time.monotonic()
            report = Report(
                step,
                done,
                float(loss.total.detach()),
                float(loss.params.detach()),
                float(loss.kind.detach()),
                float(loss.construction.detach()),
                rate,
                config.log_every * config.batch_size / (now - reported),
            )
            reported = now
            _log(out / "log.csv", report)
            if not math.isfinite(report.loss):
                raise RunError(f"the loss became {report.loss} near step {step}; try a lower learning rate")
            if on_report is not None:
                on_report(report)
            if now - saved > 60 * config.checkpoint_minutes or now - started > pause_after:
                checkpoint.save(folder, step, state, {"seconds": spent + now - started})
                saved = time.monotonic()
            if now - started > pause_after:
                return average
    checkpoint.save(folder, step, state, {"seconds": spent + time.monotonic() - started})
    return average


def _precision(device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def _log(path: Path, report: Report) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(Report.__slots__)
        writer.writerow(getattr(report, name) for name in Report.__slots__)
