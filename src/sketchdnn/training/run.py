"""A run: a system in training, all that changes from step to step, and how one step changes it."""

from __future__ import annotations

import hashlib
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from sketchdnn.representation.layout import REPRESENTATION_VERSION
from sketchdnn.systems import System, config_to_dict

from . import checkpoint
from .checkpoint import RunError, State
from .config import TrainConfig
from .corpus import Corpus
from .distributed import Ranks
from .optimizer import optimizer_of
from .order import DataOrder, balanced
from .sharding import local, whole
from .step import Objective, draw


@dataclass(frozen=True, slots=True)
class Report:
    """Where a run stands; losses are means since the report before."""

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
    """What `train` moves forward. Nothing here waits for the device but `report`."""

    def __init__(self, system: System, corpus: Corpus, config: TrainConfig, ranks: Ranks | None = None) -> None:
        if config.puts_aside and not system.supports_auxiliary:
            raise RunError("fewest and vary put sketches aside, and this network cannot be told: set network.aside too")
        self.system, self.corpus, self.config = system, corpus, config
        self.ranks = ranks = ranks or Ranks()
        self.device = device = corpus.params.device
        self.entries = balanced(corpus, config.rare)
        self.order = DataOrder(len(self.entries), config.batch_size, config.seed, device, ranks.rank, ranks.world)
        self.total = config.total_steps(len(self.entries))
        average = _average(system) if config.ema else None
        objective = ranks.wrapped(Objective(system, corpus, config), average.module if average else None)
        self.state = State(system, average, optimizer_of(system, config, device))
        compiles = device.type == "cuda" and not ranks.shards  # sharding compiles what it can
        self.objective = torch.compile(objective, dynamic=False) if compiles else objective
        self.positions = self.order.positions()
        self.step, self.progress, self.rate = 0, 0.0, 0.0
        self._seconds_before, self._started = 0.0, time.monotonic()
        # Kept on the device, so that a step need not wait: loss terms since the last report, the first step gone wrong.
        self._sums = torch.zeros(3, device=device)
        self._wrong = torch.full((), -1, dtype=torch.int64, device=device)
        self._reported_step, self._reported_at = 0, self._started
        system.train()

    @property
    def done(self) -> bool:
        return self.progress >= 1

    @property
    def seconds(self) -> float:
        """Time spent in training, before a resume too."""
        return self._seconds_before + time.monotonic() - self._started

    @property
    def model(self) -> System:
        """What the run is for: the averaged weights if there are any. Split ones are gathered, by all processes."""
        average = self.state.average
        model: System = average.module if isinstance(average, AveragedModel) else self.system  # type: ignore[assignment]
        if not self.ranks.shards:
            return model
        gathered = type(self.system)(self.system.config).to_device(self.device)
        gathered.load_state_dict({name: whole(value) for name, value in model.state_dict().items()})
        return gathered

    def advance(self) -> None:
        """One step."""
        self.rate = self.config.rate(self.step, self.progress)
        for group in self.state.optimizer.param_groups:
            group["lr"] = self.rate
        terms = self._terms()
        loss = terms.sum(dim=0).mean()
        torch.autograd.backward(loss)
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.system.parameters(), self.config.clip)
        self.state.optimizer.step()
        self.state.optimizer.zero_grad(set_to_none=True)
        if isinstance(self.state.average, AveragedModel):
            _follow(self.state.average, self.system, self.config.ema)
        self._sums += terms.detach().mean(dim=1)
        self._wrong.masked_fill_((self._wrong < 0) & ~torch.isfinite(loss.detach()), self.step)
        self.step += 1
        self._measure()

    def report(self) -> Report:
        """Where the run stands, over all processes. Waits for the device."""
        count = max(1, self.step - self._reported_step)
        params, kind, construction = (self.ranks.averaged(self._sums) / count).tolist()
        now = time.monotonic()
        speed = count * self.config.batch_size / max(1e-9, now - self._reported_at)
        self._sums.zero_()
        self._reported_step, self._reported_at = self.step, now
        total = params + kind + construction
        return Report(self.step, self.progress, total, params, kind, construction, self.rate, speed, self.seconds)

    def indices(self, step: int) -> Tensor:
        """The sketches of a step, those of this process."""
        return self.entries[self.order.indices(step)]

    def wrong_step(self) -> int | None:
        """The first step whose loss was no finite number, if one was. Waits for the device."""
        wrong = int(self.ranks.largest(self._wrong))
        return None if wrong < 0 else wrong

    def save(self, folder: Path) -> None:
        """Write a checkpoint, by the first process alone; the others have a part in it only if they hold one."""
        if self.ranks.first or self.ranks.shards:
            facts = {"seconds": self.seconds, "identity": self._identity()}
            checkpoint.save(folder, self.step, self.state, facts, self.config.keep, writes=self.ranks.first)

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint as if nothing had happened."""
        facts = checkpoint.load(path, self.state, self._identity())
        self.step = self._reported_step = int(facts["step"])
        self._seconds_before = float(facts["seconds"])
        self._measure(always=True)

    def _terms(self) -> Tensor:
        draws = draw(self.config.seed, self.order.numbers(self.step), self.corpus.kind.shape[1])
        # What a network draws by itself, as dropout does, is a function of the seed and the step too.
        torch.manual_seed((self.config.seed + self.step * self.ranks.world + self.ranks.rank) % 2**63)
        with precision(self.device):
            terms: Tensor = self.objective(self.indices(self.step), self.positions, draws.noise, draws.choices)
        return terms

    def _measure(self, *, always: bool = False) -> None:
        """How much of the budget is used. By the clock only the first process can tell, and only now and then."""
        if self.config.minutes is None:
            self.progress = self.step / (self.total or 1)
        elif always or self.ranks.alone or self.step % self.config.log_every == 0:
            self.progress = self.ranks.of_first(self.seconds / (60 * self.config.minutes), self.device)

    def _identity(self) -> dict[str, Any]:
        return {
            "representation": REPRESENTATION_VERSION,
            "name": self.system.name,
            "system": config_to_dict(self.system.config),
            "training": self.config.identity(),
            "data": {"sketches": len(self.corpus), "kinds": _digest(self.corpus.kind)},
        }


def precision(device: torch.device) -> AbstractContextManager[object]:
    """Half precision where the device is fast at it."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def _average(system: nn.Module) -> AveragedModel:
    return AveragedModel(system)


def _follow(average: AveragedModel, system: nn.Module, decay: float) -> None:
    """One step of torch's exponential average, which is short in the first steps: they are soon to be forgotten.

    `update_parameters` would copy its counter to the device at every step and wait for it; the counter stays here.
    """
    count = int(average.n_averaged)
    update = get_ema_multi_avg_fn(min(decay, (1 + count) / (10 + count)))  # type: ignore[no-untyped-call]
    update(local(list(average.module.parameters())), local(list(system.parameters())), count)
    average.n_averaged += 1


def _digest(kind: Tensor) -> str:
    """Tells one corpus from another."""
    return hashlib.blake2b(kind.cpu().numpy().tobytes(), digest_size=8).hexdigest()
