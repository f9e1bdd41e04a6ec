"""Noise schedules: ᾱ_t and 1 − ᾱ_t for t in 0..T, kept in float64 and cast last.

Both are stored because neither can be had from the other near its zero: 1 − ᾱ_1 of the cosine schedule is 4e-5, and
subtracting from one would leave five digits of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Level(NamedTuple):
    """How noisy a state is: ᾱ_t and 1 − ᾱ_t, float64, one each per sample (or a scalar for all)."""

    alpha_bar: Float[Tensor, "*batch"]
    var: Float[Tensor, "*batch"]

    @property
    def snr(self) -> Float[Tensor, "*batch"]:
        """Signal-to-noise ratio ᾱ / (1 − ᾱ); inf for a clean state."""
        return self.alpha_bar / self.var


@dataclass(frozen=True, slots=True)
class Schedule:
    """ᾱ_t for t in 0..T, falling from a clean state to noise."""

    name: str
    alpha_bar: Float[Tensor, " steps"]
    var: Float[Tensor, " steps"]

    def __post_init__(self) -> None:
        if self.alpha_bar.shape != self.var.shape or self.alpha_bar.ndim != 1 or len(self.alpha_bar) < 2:
            raise ValueError(
                f"alpha_bar and var of a schedule are vectors of T + 1 numbers, not {self.alpha_bar.shape}"
            )

    @property
    def num_steps(self) -> int:
        """T: the schedule has T + 1 levels, 0 clean and T noise."""
        return len(self.alpha_bar) - 1

    def at(self, t: int | Int[Tensor, "*batch"]) -> Level:
        """The level at step t, which lies in 0..T."""
        return Level(self.alpha_bar[t], self.var[t])

    def to(self, device: torch.device | str) -> Schedule:
        return Schedule(self.name, self.alpha_bar.to(device), self.var.to(device))


def cosine(num_steps: int, offset: float = 0.008) -> Schedule:
    """Nichol & Dhariwal 2021, ᾱ_t = f(t)/f(0), f(t) = cos²(π/2 · (t/T + s)/(1 + s)); ᾱ_0 = 1 and ᾱ_T = 0 exactly."""
    start, angle = _angles(num_steps, offset)
    alpha_bar = (angle.cos() / math.cos(start)) ** 2
    # cos²a − cos²b = sin(b − a)·sin(b + a), which does not cancel.
    var = (angle - start).sin() * (angle + start).sin() / math.cos(start) ** 2
    alpha_bar[0], var[0] = 1.0, 0.0  # the limits taken, not computed
    alpha_bar[-1], var[-1] = 0.0, 1.0
    return Schedule("cosine", alpha_bar, var)


def authors_cosine(num_steps: int, low: float = 1e-4, high: float = 0.9999) -> Schedule:
    """The authors' code: cos²(πt/2T) clamped to [low, high]; flat at both ends, where reverse steps do nothing.

    It is neither clean at t = 0 (ᾱ_0 = high) nor pure noise at t = T (ᾱ_T = low).
    """
    _, angle = _angles(num_steps, 0.0)
    return Schedule("authors", (angle.cos() ** 2).clamp(low, high), (angle.sin() ** 2).clamp(1 - high, 1 - low))


def linear(num_steps: int) -> Schedule:
    """ᾱ_t = 1 − t/T: clean at 0, pure noise at T."""
    t = torch.arange(num_steps + 1, dtype=torch.float64) / num_steps
    return Schedule("linear", 1 - t, t)


def log_linear_snr(num_steps: int, first: float = 10.0, last: float = -10.0) -> Schedule:
    """log SNR falls linearly from `first` at t = 0 to `last` at t = T; neither end is reached exactly."""
    log_snr = torch.linspace(first, last, num_steps + 1, dtype=torch.float64)
    return Schedule("log-linear", log_snr.sigmoid(), (-log_snr).sigmoid())


def augment(schedule: Schedule, num_categories: int, label_smoothing: float, *, of_root: bool = False) -> Schedule:
    """The schedule b̄_t for labels, eqn:variance modification: their argmax then changes at the pace ᾱ_t asks for.

    b̄ = f(ᾱ)²/(f(ᾱ)² + f(k)²), f(x) = log((1 − x)/((D − 1)x + 1)). With `of_root` it is f(√ᾱ), as in the authors' code.
    """
    _check_labels(num_categories, label_smoothing)
    x = schedule.alpha_bar
    one_minus_x = schedule.var
    if of_root:
        x = x.sqrt()
        one_minus_x = schedule.var / (1 + x)
    n = _f(x, one_minus_x, num_categories)
    k = torch.tensor(label_smoothing, dtype=torch.float64)
    m = _f(k, 1 - k, num_categories)
    ratio = (m / n) ** 2  # 0 where ᾱ = 1, inf where ᾱ = 0: both ends come out as limits
    b_bar = 1 / (1 + ratio)
    return Schedule(f"{schedule.name}, augmented", b_bar, 1 / (1 + 1 / ratio))


def _f(x: Tensor, one_minus_x: Tensor, num_categories: int) -> Tensor:
    """log((1 − x)/((D − 1)x + 1)), −inf at x = 1; each end from the number that is exact there."""
    log_one_minus_x = torch.where(x < 0.5, torch.log1p(-x.clamp(max=0.5)), one_minus_x.log())
    return log_one_minus_x - torch.log1p((num_categories - 1) * x)


def _angles(num_steps: int, offset: float) -> tuple[float, Tensor]:
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, not {num_steps}")
    t = torch.arange(num_steps + 1, dtype=torch.float64) / num_steps
    return math.pi / 2 * offset / (1 + offset), math.pi / 2 * (t + offset) / (1 + offset)


def _check_labels(num_categories: int, label_smoothing: float) -> None:
    if num_categories < 2:
        raise ValueError(f"num_categories must be at least 2, not {num_categories}")
    if not 0 < label_smoothing < 1:
        raise ValueError(f"label_smoothing must lie strictly between 0 and 1, not {label_smoothing}")
