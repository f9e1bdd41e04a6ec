"""Gaussian diffusion between any two levels s < t. The same functions serve coordinates and, on logits, labels.

Everything here is a pure function of its arguments: noise comes in, no device is picked. Coefficients are made in
float64 and cast to the state's type last.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .schedule import Level

State = Float[Tensor, "batch *shape"]


def diffuse(x0: State, noise: State, level_t: Level) -> State:
    """x_t from x_0 in one shot, eqn:continous cumulative transition."""
    return _like(level_t.alpha_bar.sqrt(), x0) * x0 + _like(level_t.var.sqrt(), x0) * noise


def step_forward(x_s: State, noise: State, level_s: Level, level_t: Level) -> State:
    """x_t from x_s, one step of the forward chain when s = t − 1."""
    alpha_ts, var_ts = transition(level_s, level_t)
    return _like(alpha_ts.sqrt(), x_s) * x_s + _like(var_ts.sqrt(), x_s) * noise


def posterior(x0: State, x_t: State, level_s: Level, level_t: Level) -> tuple[State, State]:
    """Mean and std of q(x_s | x_t, x_0), eqn:continous reverse transition.

    On logits it is the Gaussian-Softmax posterior.
    """
    weights = posterior_weights(level_s, level_t)
    mean = _like(weights.of_x_t, x_t) * x_t + _like(weights.of_x0, x_t) * x0
    return mean, _like(weights.std, x_t)


class PosteriorWeights(NamedTuple):
    """mean = of_x_t · x_t + of_x0 · x_0."""

    of_x_t: Tensor
    of_x0: Tensor
    std: Tensor


def posterior_weights(level_s: Level, level_t: Level) -> PosteriorWeights:
    """The numbers of q(x_s | x_t, x_0), in float64."""
    alpha_ts, var_ts = transition(level_s, level_t)
    return PosteriorWeights(
        of_x_t=alpha_ts.sqrt() * level_s.var / level_t.var,
        of_x0=level_s.alpha_bar.sqrt() * var_ts / level_t.var,
        std=(var_ts * level_s.var / level_t.var).sqrt(),
    )


def transition(level_s: Level, level_t: Level) -> Level:
    """α_ts = ᾱ_t/ᾱ_s and 1 − α_ts, written as a difference of variances so that it does not cancel near t = 0."""
    return Level(level_t.alpha_bar / level_s.alpha_bar, (level_t.var - level_s.var) / level_s.alpha_bar)


def _like(coefficient: Tensor, state: Tensor) -> Tensor:
    """Cast to the state's type and device and give it trailing axes, so that one number a sample scales all of it."""
    cast = coefficient.to(device=state.device, dtype=state.dtype)
    return cast.reshape(cast.shape + (1,) * (state.ndim - cast.ndim)) if cast.ndim else cast


def centred(logits: Float[Tensor, "*batch cat"]) -> Float[Tensor, "*batch cat"]:
    """Logits with mean zero: the softmax does not see the rest."""
    return logits - logits.mean(dim=-1, keepdim=True)


def squared_norm_perp(v: Float[Tensor, "*batch cat"]) -> Float[Tensor, "*batch"]:
    """‖v‖²_⊥ = ‖v‖² − (1ᵀv)²/D, the norm of the Gaussian-Softmax density: blind to shifts."""
    return torch.sum(centred(v) ** 2, dim=-1)
