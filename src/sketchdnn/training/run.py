"""A training run: a system, its optimizer and moving average, and one step of training."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sketchdnn.representation.layout import REPRESENTATION_VERSION
from sketchdnn.systems import System, config_to_dict

from . import checkpoint
from .checkpoint import TrainState
from .config import RunError, TrainConfig
from .corpus import Corpus, DataOrder, oversample
from .distributed import Ranks, gather, local_shards
from .optimizer import make_optimizer
from .step import Objective, precision, random_numbers
from .validation import validate


@dataclass(frozen=True, slots=True)
class Report:
    """The progress of a run; losses are means since the previous report."""

    step: int
    progress: float
    loss: float
    params: float
    kind: float
    construction: float
    rate: float
    sketches_per_second: float
    seconds: float


class Run:
    """The state of training. Only `report` and `first_bad_step` wait for the device."""

    num_terms = 3  # of the loss: parameters, kind, construction
    compiles = True  # the objective as a whole, on a GPU

    def __init__(self, system: System, corpus: Corpus, config: TrainConfig, ranks: Ranks | None = None) -> None:
        if config.has_auxiliary and not system.supports_auxiliary:
            raise RunError(
                "min_primitives and affine_augmentation make auxiliary samples, which this network cannot mark; "
                "set network.auxiliary too"
            )
        self.system, self.corpus, self.config = system, corpus, config
        self.ranks = ranks = ranks or Ranks()
        self.device = device = corpus.params.device
        self.entries = oversample(corpus, config.rare_oversampling, config.large_oversampling, config.conditional_below)
        self.order = DataOrder(len(self.entries), config.batch_size, config.seed, device, ranks.rank, ranks.world)
        self.total = config.total_steps(len(self.entries))
        average = AveragedModel(system) if config.ema else None
        objective = ranks.wrap(self._make_objective(), average.module if average else None)
        self.state = TrainState(system, average, make_optimizer(system, config, device))
        compiles = self.compiles and device.type == "cuda" and not ranks.shards  # sharded units are compiled one by one
        self.objective = torch.compile(objective, dynamic=False) if compiles else objective
        self.positions = self.order.positions()
        self.step, self.progress, self.rate = 0, 0.0, 0.0
        self._seconds_before, self._started = 0.0, time.monotonic()
        # On the device, so that a step does not wait: sums of the loss terms, first step without a finite loss.
        self._sums = torch.zeros(self.num_terms, device=device)
        self._bad_step = torch.full((), -1, dtype=torch.int64, device=device)
        self._reported_step, self._reported_at = 0, self._started
        system.train()

    @property
    def done(self) -> bool:
        return self.progress >= 1

    @property
    def seconds(self) -> float:
        """Time spent in training, including the time before a resume."""
        return self._seconds_before + time.monotonic() - self._started

    @property
    def model(self) -> System:
        """The system with the averaged weights if there are any. Sharded weights are gathered, by all processes."""
        average = self.state.average
        model: System = self.system if average is None else average.module  # type: ignore[assignment]
        if not self.ranks.shards:
            return model
        gathered = type(self.system)(self.system.config).to_device(self.device)
        gathered.load_state_dict({name: gather(value) for name, value in model.state_dict().items()})
        return gathered

    def advance(self) -> None:
        """Train one step."""
        self.rate = self.config.rate(self.step, self.progress)
        for group in self.state.optimizer.param_groups:
            group["lr"] = self.rate
        terms = self._loss_terms()
        loss = terms.sum(dim=0).mean()
        torch.autograd.backward(loss)
        self._update_weights(self.state)
        if self.state.average is not None:
            _update_average(self.state.average, self.system, self.config.ema)
        self._sums += terms.detach().mean(dim=1)
        self._bad_step.masked_fill_((self._bad_step < 0) & ~torch.isfinite(loss.detach()), self.step)
        self.step += 1
        self._update_progress()

    def report(self) -> Report:
        """The progress, averaged over all processes. Waits for the device."""
        count = max(1, self.step - self._reported_step)
        params, kind, construction = (self.ranks.mean(self._sums[:3]) / count).tolist()
        now = time.monotonic()
        speed = count * self.config.batch_size / max(1e-9, now - self._reported_at)
        self._sums.zero_()
        self._reported_step, self._reported_at = self.step, now
        total = params + kind + construction
        return Report(self.step, self.progress, total, params, kind, construction, self.rate, speed, self.seconds)

    def indices(self, step: int) -> Tensor:
        """The sketches of a step for this process."""
        return self.entries[self.order.indices(step)]

    def first_bad_step(self) -> int | None:
        """The first step whose loss was not finite, if there was one. Waits for the device."""
        step = int(self.ranks.maximum(self._bad_step))
        return None if step < 0 else step

    def save(self, folder: Path) -> None:
        """Write a checkpoint. The first process writes; the others take part if weights are sharded."""
        if self.ranks.first or self.ranks.shards:
            facts = {"seconds": self.seconds, "identity": self._identity()}
            checkpoint.save(folder, self.step, self.state, facts, self.config.keep, writes=self.ranks.first)

    def resume(self, path: Path) -> None:
        """Continue from a checkpoint, equal to the bit to a run without interruption."""
        facts = checkpoint.load(path, self.state, self._identity())
        self.step = self._reported_step = int(facts["step"])
        self._seconds_before = float(facts["seconds"])
        self._update_progress(always=True)

    def validate(self, model: System, validation: Corpus) -> Mapping[str, float]:
        """Numbers that show the quality of the present `model`: the loss at each noise level."""
        return {f"t{t}": loss for t, loss in validate(model, validation, self.config).items()}

    def _make_objective(self) -> nn.Module:
        return Objective(self.system, self.corpus, self.config)

    def _update_weights(self, state: TrainState) -> None:
        """Clip the gradients and update the weights."""
        if self.config.clip:
            nn.utils.clip_grad_norm_(state.model.parameters(), self.config.clip)
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)

    def _loss_terms(self) -> Tensor:
        numbers = random_numbers(self.config.seed, self.order.numbers(self.step), self.corpus.kind.shape[1])
        # Random numbers of the network, as for dropout, depend on the seed and the step too.
        torch.manual_seed((self.config.seed + self.step * self.ranks.world + self.ranks.rank) % 2**63)
        with precision(self.device):
            terms: Tensor = self.objective(self.indices(self.step), self.positions, *numbers)
        return terms

    def _update_progress(self, *, always: bool = False) -> None:
        """Update the spent fraction of the budget. By the clock, the first process decides, at reports only."""
        if self.config.minutes is None:
            self.progress = self.step / (self.total or 1)
        elif always or self.ranks.alone or self.step % self.config.log_every == 0:
            self.progress = self.ranks.from_first(self.seconds / (60 * self.config.minutes), self.device)

    def _identity(self) -> dict[str, Any]:
        return {
            "representation": REPRESENTATION_VERSION,
            "name": self.system.name,
            "system": config_to_dict(self.system.config),
            "training": self.config.identity(),
            "data": {"sketches": len(self.corpus), "kinds": _digest(self.corpus.kind)},
        }


def _update_average(average: AveragedModel, system: nn.Module, decay: float) -> None:
    """Update the exponential moving average, with a smaller decay in the first steps.

    `AveragedModel.update_parameters` would copy its counter to the device at every step and wait for it.
    """
    count = int(average.n_averaged)
    update = get_ema_multi_avg_fn(min(decay, (1 + count) / (10 + count)))  # type: ignore[no-untyped-call]
    update(local_shards(list(average.module.parameters())), local_shards(list(system.parameters())), count)
    average.n_averaged += 1


def _digest(kind: Tensor) -> str:
    """A hash of the corpus."""
    return hashlib.blake2b(kind.cpu().numpy().tobytes(), digest_size=8).hexdigest()
