"""Gaussian diffusion: transitions between any two noise levels s < t, and preconditioning of the network.

The transitions apply to coordinates and, on logits, to labels. Everything here is a pure function of its arguments:
noise is passed in, no device is chosen. Coefficients are computed in float64 and cast to the type of the state last.

Preconditioning follows Karras et al. 2022, for a process that keeps the variance. The network gets an input of unit
variance and predicts only what the noisy state does not tell: its target F has unit variance at every noise level, so
an error in F costs the same everywhere.
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
    return like(root(level_t.alpha_bar), x0) * x0 + like(root(level_t.var), x0) * noise


def step_forward(x_s: State, noise: State, level_s: Level, level_t: Level) -> State:
    """x_t from x_s, one step of the forward chain when s = t − 1."""
    alpha_ts, var_ts = transition(level_s, level_t)
    return like(root(alpha_ts), x_s) * x_s + like(root(var_ts), x_s) * noise


def posterior(x0: State, x_t: State, level_s: Level, level_t: Level) -> tuple[State, Tensor]:
    """Mean and std of q(x_s | x_t, x_0), eqn:continous reverse transition; the std broadcasts against the mean.

    On logits it is the Gaussian-Softmax posterior.
    """
    weights = posterior_weights(level_s, level_t)
    mean = like(weights.x_t, x_t) * x_t + like(weights.x0, x_t) * x0
    return mean, like(weights.std, x_t)


class PosteriorWeights(NamedTuple):
    """mean = weights.x_t · x_t + weights.x0 · x_0."""

    x_t: Tensor
    x0: Tensor
    std: Tensor


def posterior_weights(level_s: Level, level_t: Level) -> PosteriorWeights:
    """The numbers of q(x_s | x_t, x_0), in float64."""
    alpha_ts, var_ts = transition(level_s, level_t)
    return PosteriorWeights(
        x_t=root(alpha_ts) * level_s.var / level_t.var,
        x0=root(level_s.alpha_bar) * var_ts / level_t.var,
        std=root(var_ts * level_s.var / level_t.var),
    )


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
    return Preconditioning(
        skip=root(level_t.alpha_bar) * data_std**2 / var,
        out=data_std * root(level_t.var / var),
        input=1 / root(var),
    )


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
