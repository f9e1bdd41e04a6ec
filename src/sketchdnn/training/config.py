"""What a run is told: how long, how fast, from which seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.systems import from_table

from .checkpoint import RunError

# Which steps t are trained on: ours dwell on small noise, or where ends find each other; the paper's are 1..T alike;
# the authors' leave out T.
Times = Literal["low_noise", "matching", "uniform", "authors"]
# What moves the weights: Muon is for the matrices of blocks, beside AdamW for all else.
Optimiser = Literal["adamw", "muon"]

# What may differ between the parts of one run: how long it goes on, and how closely it is watched.
_BUDGETS = {"steps", "epochs", "minutes"}
_FREE = _BUDGETS | {"checkpoint_minutes", "keep", "log_every", "validate_every", "preview_every"}
_RANGES = {"rare": (1, 100), "fewest": (0, MAX_PRIMITIVES), "vary": (0, 1)}


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Defaults are what `ours` uses. Exactly one of `steps`, `epochs` and `minutes` says when to stop.

    The learning rate warms up over `warmup` steps, stays, and falls to zero over the last `decay` share of the budget.
    Zero turns off: `weight_decay` (AdamW is then Adam), `clip`, `warmup`, `decay`, `ema`, `validate_every`,
    `preview_every`. With `spread` a batch covers all noise levels evenly; without, each sketch draws its own.
    With `muon` the `betas` are for what it leaves to AdamW, the rate and `weight_decay` for both.
    """

    batch_size: int = 2048  # over all devices
    # Later than runs that are about: an identity leaves it out where it is as ever.
    optimiser: Optimiser = field(default="adamw", metadata={"later": True})
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.01
    clip: float = 1.0
    warmup: int = 500
    decay: float = 0.6
    ema: float = 0.9995
    times: Times = "low_noise"
    spread: bool = True
    given: float = 0.25  # share of samples in which something is given
    augment: bool = True
    rare: float = 1.0  # how often a sketch with points or construction is seen, beside one without
    # Sketches to learn from but not to draw: those of fewer primitives than this, and a share that is varied.
    fewest: int = field(default=0, metadata={"later": True})
    vary: float = field(default=0.0, metadata={"later": True})
    seed: int = 0
    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    checkpoint_minutes: float = 5.0
    keep: int = 2
    log_every: int = 50
    validate_every: int = 0
    preview_every: int = 0

    def __post_init__(self) -> None:
        budgets = [b for b in (self.steps, self.epochs, self.minutes) if b is not None]
        if len(budgets) != 1:
            raise RunError("say how long to train with exactly one of --steps, --epochs and --minutes")
        if not (math.isfinite(budgets[0]) and budgets[0] > 0):
            raise RunError(f"a budget of {budgets[0]} is too small for one step")
        if self.times not in get_args(Times):
            raise RunError(f"times must be one of {', '.join(get_args(Times))}, not '{self.times}'")
        if self.optimiser not in get_args(Optimiser):
            raise RunError(f"optimiser must be one of {', '.join(get_args(Optimiser))}, not '{self.optimiser}'")
        if not 0 <= self.seed < 2**63:
            raise RunError(f"the seed must be a whole number from 0 to 2^63 − 1, not {self.seed}")
        for name in ("batch_size", "log_every", "keep"):
            if getattr(self, name) < 1:
                raise RunError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise RunError(f"the learning rate must be a positive number, not {self.learning_rate}")
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise RunError(f"{name} must lie in {low}..{high}, not {getattr(self, name)}")
        if not 0 <= self.ema < 1:
            raise RunError(f"ema must lie in [0, 1), not {self.ema}")

    @property
    def puts_aside(self) -> bool:
        """Whether some sketches are there to learn from but not to draw."""
        return self.fewest > 0 or self.vary > 0

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

    def identity(self) -> dict[str, Any]:
        """What must not change when a run is resumed."""
        settings = asdict(self)
        as_ever = {one.name for one in fields(self) if one.metadata.get("later") and settings[one.name] == one.default}
        return {name: value for name, value in settings.items() if name not in _FREE | as_ever}


def config_from(table: Mapping[str, Any], where: str = "training", **said: object) -> TrainConfig:
    """A configuration from a preset's table, with what a person said in its place; `None` says nothing.

    A budget that a person gives replaces the preset's.
    """
    said = {name: value for name, value in said.items() if value is not None}
    kept = {name: value for name, value in table.items() if not (name in _BUDGETS and said.keys() & _BUDGETS)}
    return from_table(TrainConfig, kept | said, where)
