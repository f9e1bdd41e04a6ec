"""The settings of a training run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from sketchdnn.errors import SketchError
from sketchdnn.representation.layout import MAX_PRIMITIVES
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems import config_from_dict

# Distribution of the trained timesteps t. `low_noise`: half uniform, half uniform in log σ. `mid_noise`: more weight on
# the noise levels at which ends are matched. `uniform`: the paper's. `authors`: the released code's, without T.
TimestepSampling = Literal["low_noise", "mid_noise", "uniform", "authors"]
# Muon updates the matrices of blocks, AdamW everything else.
Optimizer = Literal["adamw", "muon"]

_BUDGETS = {"steps", "epochs", "minutes"}
# Settings that may change when a run is resumed.
_RESUMABLE = _BUDGETS | {"checkpoint_minutes", "keep", "log_every", "validate_every", "preview_every"}


class RunError(SketchError):
    """A training run that cannot start or continue."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Settings of training; the defaults are those of `ours-base`. Exactly one of steps, epochs and minutes is set.

    The learning rate rises over `warmup` steps, stays constant, and falls to zero over the last `decay` fraction of the
    budget. Zero disables `weight_decay`, `clip`, `warmup`, `decay`, `ema`, `validate_every` and `preview_every`.

    Attributes:
        batch_size: Sketches per step, over all devices.
        betas: Of AdamW; with `muon`, of the weights that AdamW updates.
        timestep_sampling: Distribution of t.
        stratified: Spread the timesteps of a batch evenly over that distribution.
        conditioning: Probability that parts of a sample are given as clean inputs.
        augment: Apply one of the eight symmetries of the square to each sample.
        rare_oversampling: How often sketches with points or construction are seen, relative to others.
        min_primitives: Sketches with fewer primitives are auxiliary samples.
        affine_augmentation: Fraction of samples that are rotated, scaled and stretched; these are auxiliary.
        completion_tasks: Known parts follow the connections of curves (`completion_tasks.py`), and the frame of a part
            may be larger than its sketch. Otherwise known rows are random.
        conditional_below: Smaller sketches are trained only with a known part or number of primitives. So samples
            without conditions have at least this many primitives. Needs `completion_tasks`.
        large_oversampling: How often sketches of `conditional_below` primitives or more are seen, relative to others.
    """

    batch_size: int = field(default=2048, metadata=within(1, 10**15))
    # Added later: omitted from the run's identity at their defaults.
    optimizer: Optimizer = field(default="adamw", metadata={"omit_if_default": True})
    learning_rate: float = field(default=1e-3, metadata=within(0, 10, with_low=False))
    betas: tuple[float, float] = field(default=(0.9, 0.99), metadata=within(0, 1, with_high=False))
    weight_decay: float = field(default=0.01, metadata=within(0, 100))
    clip: float = field(default=1.0, metadata=within(0, 1e6))
    warmup: int = field(default=500, metadata=within(0, 10**9))
    decay: float = field(default=0.6, metadata=within(0, 1))
    ema: float = field(default=0.9995, metadata=within(0, 1, with_high=False))
    timestep_sampling: TimestepSampling = "low_noise"
    stratified: bool = True
    conditioning: float = field(default=0.25, metadata=within(0, 1))
    augment: bool = True
    rare_oversampling: float = field(default=1.0, metadata=within(1, 100))
    min_primitives: int = field(default=0, metadata={"omit_if_default": True} | within(0, MAX_PRIMITIVES))
    affine_augmentation: float = field(default=0.0, metadata={"omit_if_default": True} | within(0, 1))
    completion_tasks: bool = field(default=False, metadata={"omit_if_default": True})
    conditional_below: int = field(default=0, metadata={"omit_if_default": True} | within(0, MAX_PRIMITIVES))
    large_oversampling: float = field(default=1.0, metadata={"omit_if_default": True} | within(1, 100))
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
        if sum(budget is not None for budget in (self.steps, self.epochs, self.minutes)) != 1:
            raise RunError("say how long to train with exactly one of --steps, --epochs and --minutes")
        check_settings(self)
        for name, options in (("timestep_sampling", TimestepSampling), ("optimizer", Optimizer)):
            if getattr(self, name) not in get_args(options):
                raise RunError(f"{name} must be one of {', '.join(get_args(options))}, not '{getattr(self, name)}'")
        if self.conditional_below and not self.completion_tasks:
            raise RunError("conditional_below needs completion_tasks = true")

    @property
    def has_auxiliary(self) -> bool:
        """Whether the training set contains auxiliary samples."""
        return self.min_primitives > 0 or self.affine_augmentation > 0

    def total_steps(self, corpus_size: int) -> int | None:
        """The number of steps; None for a budget in minutes."""
        if self.epochs is not None:
            return max(1, math.ceil(self.epochs * corpus_size / self.batch_size))
        return self.steps

    def rate(self, step: int, progress: float) -> float:
        """The learning rate at a step; `progress` is the fraction of the budget that is spent."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        cool = min(1.0, (1 - progress) / self.decay) if self.decay > 0 else 1.0
        return self.learning_rate * warm * max(0.0, cool)

    def identity(self) -> dict[str, Any]:
        """The settings that must not change when a run is resumed."""
        settings = asdict(self)
        omitted = {f.name for f in fields(self) if f.metadata.get("omit_if_default") and settings[f.name] == f.default}
        return {name: value for name, value in settings.items() if name not in _RESUMABLE | omitted}


def parse_train_config(table: Mapping[str, Any], where: str = "training", **options: object) -> TrainConfig:
    """The settings of a preset's table, overridden by `options` that are not None.

    A budget among the options replaces the preset's.

    Raises:
        ConfigError: A setting is unknown, of the wrong type or out of range.
    """
    options = {name: value for name, value in options.items() if value is not None}
    kept = {name: value for name, value in table.items() if not (name in _BUDGETS and options.keys() & _BUDGETS)}
    return config_from_dict(TrainConfig, kept | options, where)
