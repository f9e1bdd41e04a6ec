"""What a run is told: how long, how fast, from which seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems import config_from_dict

from .checkpoint import RunError

# Which steps t are trained on: ours dwell on small noise, or where ends find each other; the paper's are 1..T alike;
# the authors' leave out T.
Times = Literal["low_noise", "matching", "uniform", "authors"]
# What moves the weights: Muon is for the matrices of blocks, beside AdamW for all else.
Optimizer = Literal["adamw", "muon"]

# What may differ between the parts of one run: how long it goes on, and how closely it is watched.
_BUDGETS = {"steps", "epochs", "minutes"}
_FREE = _BUDGETS | {"checkpoint_minutes", "keep", "log_every", "validate_every", "preview_every"}


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Defaults are what `ours` uses. Exactly one of `steps`, `epochs` and `minutes` says when to stop.

    The learning rate warms up over `warmup` steps, stays, and falls to zero over the last `decay` share of the budget.
    Zero turns off: `weight_decay` (AdamW is then Adam), `clip`, `warmup`, `decay`, `ema`, `validate_every`,
    `preview_every`. With `spread` a batch covers all noise levels evenly; without, each sketch draws its own.
    With `muon` the `betas` are for what it leaves to AdamW, the rate and `weight_decay` for both.
    """

    batch_size: int = field(default=2048, metadata=within(1, 10**15))  # over all devices
    # Later than runs that are about: an identity leaves it out where it is as ever.
    optimizer: Optimizer = field(default="adamw", metadata={"omit_if_default": True})
    learning_rate: float = field(default=1e-3, metadata=within(0, 10, with_low=False))
    betas: tuple[float, float] = field(default=(0.9, 0.99), metadata=within(0, 1, with_high=False))
    weight_decay: float = field(default=0.01, metadata=within(0, 100))
    clip: float = field(default=1.0, metadata=within(0, 1e6))
    warmup: int = field(default=500, metadata=within(0, 10**9))
    decay: float = field(default=0.6, metadata=within(0, 1))
    ema: float = field(default=0.9995, metadata=within(0, 1, with_high=False))
    times: Times = "low_noise"
    spread: bool = True
    given: float = field(default=0.25, metadata=within(0, 1))  # share of samples in which something is given
    augment: bool = True
    # How often a sketch with points or construction is seen, beside one without.
    rare: float = field(default=1.0, metadata=within(1, 100))
    # Sketches to learn from but not to draw: those of fewer primitives than this, and a share that is varied.
    fewest: int = field(default=0, metadata={"omit_if_default": True} | within(0, MAX_PRIMITIVES))
    vary: float = field(default=0.0, metadata={"omit_if_default": True} | within(0, 1))
    seed: int = field(default=0, metadata=within(0, 2**63 - 1))
    steps: int | None = field(default=None, metadata=within(1, 10**12))
    epochs: float | None = field(default=None, metadata=within(0, 1e9, with_low=False))
    minutes: float | None = field(default=None, metadata=within(0, 1e7, with_low=False))
    checkpoint_minutes: float = field(default=5.0, metadata=within(0, 1e6))
    keep: int = field(default=2, metadata=within(1, 10**6))
    log_every: int = field(default=50, metadata=within(1, 10**9))
    validate_every: int = field(default=0, metadata=within(0, 10**9))
    preview_every: int = field(default=0, metadata=within(0, 10**9))

    def __post_init__(self) -> None:
        budgets = [b for b in (self.steps, self.epochs, self.minutes) if b is not None]
        if len(budgets) != 1:
            raise RunError("say how long to train with exactly one of --steps, --epochs and --minutes")
        check_settings(self)
        if self.times not in get_args(Times):
            raise RunError(f"times must be one of {', '.join(get_args(Times))}, not '{self.times}'")
        if self.optimizer not in get_args(Optimizer):
            raise RunError(f"optimizer must be one of {', '.join(get_args(Optimizer))}, not '{self.optimizer}'")

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
        as_ever = {
            one.name
            for one in fields(self)
            if one.metadata.get("omit_if_default") and settings[one.name] == one.default
        }
        return {name: value for name, value in settings.items() if name not in _FREE | as_ever}


def config_from(table: Mapping[str, Any], where: str = "training", **said: object) -> TrainConfig:
    """A configuration from a preset's table, with what a person said in its place; `None` says nothing.

    A budget that a person gives replaces the preset's.
    """
    said = {name: value for name, value in said.items() if value is not None}
    kept = {name: value for name, value in table.items() if not (name in _BUDGETS and said.keys() & _BUDGETS)}
    return config_from_dict(TrainConfig, kept | said, where)
