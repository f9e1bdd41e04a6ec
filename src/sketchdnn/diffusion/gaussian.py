"""Noise schedules, Gaussian transitions between any two noise levels s < t, and preconditioning of the network.

A schedule keeps ᾱ_t and 1 − ᾱ_t for t in 0..T in float64. Both are stored because neither can be computed from the
other near its zero: 1 − ᾱ_1 of the cosine schedule is 4e-5, and subtracting from one would leave five digits of it.

The transitions apply to coordinates and, on logits, to labels. They are pure functions: noise is an argument, no device
is chosen. Coefficients are computed in float64 and cast to the type of the state last.

Preconditioning follows Karras et al. 2022, for a process that keeps the variance. The network gets an input of unit
variance and predicts only the remainder of a linear estimate: its target F has unit variance at every noise level, so
an error in F costs the same everywhere.
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
            raise ValueError(f"alpha_bar and var must be vectors of T + 1 numbers, not {tuple(self.alpha_bar.shape)}")
        if not bool((self.alpha_bar.diff() <= 0).all()) or not bool((self.var.diff() >= 0).all()):
            raise ValueError("alpha_bar must fall and var rise from t = 0 to T")
        if not bool((self.alpha_bar >= 0).all()) or not bool((self.var >= 0).all()):
            raise ValueError("alpha_bar and var must lie in 0..1")
        if not bool(torch.isclose(self.alpha_bar + self.var, torch.ones_like(self.var)).all()):
            raise ValueError("alpha_bar and var must be parts of one, var = 1 − alpha_bar")

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
    t = _fractions(num_steps)
    return Schedule("linear", t.flip(0), t)


def log_linear_snr(num_steps: int, first: float = 10.0, last: float = -10.0) -> Schedule:
    """log SNR falls linearly from `first` at t = 0 to `last` at t = T; neither end is reached exactly."""
    if first < last:
        raise ValueError(f"first must not be below last: log SNR falls, but goes from {first} to {last}")
    _fractions(num_steps)
    log_snr = torch.linspace(first, last, num_steps + 1, dtype=torch.float64)
    return Schedule("log-linear", log_snr.sigmoid(), (-log_snr).sigmoid())


def augment(schedule: Schedule, num_categories: int, label_smoothing: float, *, of_root: bool = False) -> Schedule:
    """The schedule b̄_t for labels, eqn:variance modification: their argmax then changes at the pace of ᾱ_t.

    b̄ = f(ᾱ)²/(f(ᾱ)² + f(k)²), f(x) = log((1 − x)/((D − 1)x + 1)). With `of_root` it is f(√ᾱ), as in the authors' code.
    """
    if num_categories < 2:
        raise ValueError(f"num_categories must be at least 2, not {num_categories}")
    check_smoothing(label_smoothing)
    # A clean state stays clean and noise stays noise: b̄ = ᾱ there, the limit of the formula, which is inf/inf itself.
    # Something harmless stands in for them on the way, so that no gradient is infinite either.
    end = (schedule.alpha_bar == 0) | (schedule.var == 0)
    x, one_minus_x = schedule.alpha_bar.masked_fill(end, 0.5), schedule.var.masked_fill(end, 0.5)
    if of_root:
        x = x.sqrt()
        one_minus_x = one_minus_x / (1 + x)
    k = torch.tensor(label_smoothing, dtype=torch.float64)
    n, m = _f(x, one_minus_x, num_categories), _f(k, 1 - k, num_categories)
    ratio = (n / m) ** 2
    alpha_bar, var = ratio / (1 + ratio), 1 / (1 + ratio)
    ends = torch.where(end, schedule.alpha_bar, alpha_bar), torch.where(end, schedule.var, var)
    return Schedule(f"{schedule.name}, augmented", *ends)


def _f(x: Tensor, one_minus_x: Tensor, num_categories: int) -> Tensor:
    """log((1 − x)/((D − 1)x + 1)). 1 − x comes along: near one it cannot be had from x, nor near zero x from it."""
    log_one_minus_x = torch.where(x < 0.5, torch.log1p(-x.clamp(max=0.5)), one_minus_x.log())
    return log_one_minus_x - torch.log1p((num_categories - 1) * x)


def _angles(num_steps: int, offset: float) -> tuple[float, Tensor]:
    if offset < 0:
        raise ValueError(f"offset must not be negative, not {offset}")
    return math.pi / 2 * offset / (1 + offset), math.pi / 2 * (_fractions(num_steps) + offset) / (1 + offset)


def _fractions(num_steps: int) -> Tensor:
    """t/T for t in 0..T."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, not {num_steps}")
    return torch.arange(num_steps + 1, dtype=torch.float64) / num_steps


State = Float[Tensor, "batch *shape"]


def diffuse(x0: State, noise: State, level_t: Level) -> State:
    """x_t from x_0 in one shot, eqn:continous cumulative transition."""
    return like(root(level_t.alpha_bar), x0) * x0 + like(root(level_t.var), x0) * noise


def step_forward(x_s: State, noise: State, level_s: Level, level_t: Level) -> State:
    """x_t from x_s, one step of the forward chain when s = t − 1."""
    alpha_ts, var_ts = transition(level_s, level_t)
    return like(root(alpha_ts), x_s) * x_s + like(root(var_ts), x_s) * noise


def posterior(x0: State, x_t: State, level_s: Level, level_t: Level) -> tuple[State, Tensor]:
    """Mean and std of q(x_s | x_t, x_0), eqn:continous reverse transition; the std broadcasts against the mean.

    On logits it is the Gaussian-Softmax posterior.
    """
    of_x_t, of_x0, std = posterior_weights(level_s, level_t)
    return like(of_x_t, x_t) * x_t + like(of_x0, x_t) * x0, like(std, x_t)


def posterior_weights(level_s: Level, level_t: Level) -> tuple[Tensor, Tensor, Tensor]:
    """The weights of x_t and of x_0 in the mean of q(x_s | x_t, x_0), and its standard deviation, in float64."""
    alpha_ts, var_ts = transition(level_s, level_t)
    of_x_t = root(alpha_ts) * level_s.var / level_t.var
    of_x0 = root(level_s.alpha_bar) * var_ts / level_t.var
    return of_x_t, of_x0, root(var_ts * level_s.var / level_t.var)


def transition(level_s: Level, level_t: Level) -> Level:
    """α_ts = ᾱ_t/ᾱ_s and 1 − α_ts, the noise that is added between s and t.

    1 − α_ts is (ᾱ_s − ᾱ_t)/ᾱ_s, which cancels near t = 0, or the same difference taken between the variances, which
    cancels near t = T (an augmented b̄ is 1e-13 there): each is used where it is exact.
    """
    late = level_s.alpha_bar < 0.5
    fall = torch.where(late, level_s.alpha_bar - level_t.alpha_bar, level_t.var - level_s.var)
    return Level(level_t.alpha_bar / level_s.alpha_bar, fall / level_s.alpha_bar)


def root(x: Tensor) -> Tensor:
    """√x with slope 0, not infinity, at x = 0, so that gradients through the ends of a schedule stay finite."""
    zero = x == 0
    return x.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)


def like(coefficient: Tensor, state: Tensor) -> Tensor:
    """Cast to the state's type and device and give it trailing axes, so that one number a sample scales all of it."""
    cast = coefficient.to(device=state.device, dtype=state.dtype)
    return cast.reshape(cast.shape + (1,) * (state.ndim - cast.ndim)) if cast.ndim else cast


def squared_norm_perp(v: Float[Tensor, "*batch cat"]) -> Float[Tensor, "*batch"]:
    """‖v‖²_⊥ = ‖v‖² − (1ᵀv)²/D, the norm of the Gaussian-Softmax density: invariant to shifts."""
    return torch.sum((v - v.mean(dim=-1, keepdim=True)) ** 2, dim=-1)


class Preconditioning(NamedTuple):
    """x̂_0 = skip·x_t + out·F(input·x_t), float64."""

    skip: Float[Tensor, "*batch"]
    out: Float[Tensor, "*batch"]
    input: Float[Tensor, "*batch"]


def preconditioning(level_t: Level, data_std: float) -> Preconditioning:
    """c_skip, c_out and c_in for data of this standard deviation σ_d.

    c_skip·x_t is the best linear estimate of x_0, and c_out the standard deviation of its error.
    """
    if not data_std > 0:
        raise ValueError(f"data_std must be positive, not {data_std}")
    var = level_t.alpha_bar * data_std**2 + level_t.var  # of x_t
    skip, out = root(level_t.alpha_bar) * data_std**2 / var, data_std * root(level_t.var / var)
    return Preconditioning(skip, out, input=1 / root(var))


def scale_input(x_t: State, level_t: Level, data_std: float) -> State:
    """The network's input: x_t at unit variance."""
    return like(preconditioning(level_t, data_std).input, x_t) * x_t


def denoised(x_t: State, output: State, level_t: Level, data_std: float) -> State:
    """x̂_0 from the noisy state and the network's output F."""
    c = preconditioning(level_t, data_std)
    return like(c.skip, x_t) * x_t + like(c.out, x_t) * output


def remove_noise(x_t: State, noise: State, level_t: Level) -> State:
    """x̂_0 from the noisy state and the predicted noise, (x_t − √(1 − ᾱ_t)·ε̂)/√ᾱ_t; ᾱ_t > 0."""
    return (x_t - like(root(level_t.var), x_t) * noise) / like(root(level_t.alpha_bar), x_t)


def check_smoothing(label_smoothing: float) -> None:
    """0 < k < 1."""
    if not 0 < label_smoothing < 1:
        raise ValueError(f"label_smoothing must lie strictly between 0 and 1, not {label_smoothing}")
