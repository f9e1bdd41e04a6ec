"""What a run is told: how long, how fast, from which seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checkpoint import RunError


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Defaults are what `ours` uses. Exactly one of `steps`, `epochs` and `minutes` says when to stop.

    The learning rate warms up over `warmup` steps, stays, and falls to zero over the last `decay` share of the budget.
    """

    batch_size: int = 2048
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 500
    decay: float = 0.6
    ema: float = 0.9995
    given: float = 0.25  # share of samples in which something is given
    augment: bool = True
    seed: int = 0
    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    checkpoint_minutes: float = 5.0
    log_every: int = 50

    def __post_init__(self) -> None:
        budgets = [b for b in (self.steps, self.epochs, self.minutes) if b is not None]
        if len(budgets) != 1:
            raise RunError("say how long to train with exactly one of --steps, --epochs and --minutes")
        if not (math.isfinite(budgets[0]) and budgets[0] > 0):
            raise RunError(f"a budget of {budgets[0]} is too small for one step")

    def total_steps(self, corpus_size: int) -> int | None:
        """The number of steps, known beforehand unless the budget is minutes."""
        if self.epochs is not None:
            return max(1, math.ceil(self.epochs * corpus_size / self.batch_size))
        return self.steps

    def rate(self, step: int, progress: float) -> float:
        """The learning rate at a step, with `progress` the share of the budget used."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        cool = min(1.0, (1 - progress) / self.decay) if self.decay > 0 else 1.0
        return self.learning_rate * warm * max(0.0, cool)
