"""Preconditioning of the coordinates (Karras et al. 2022), for a process that keeps the variance.

The network sees an input of unit variance and says only what the noisy state does not: its target F has unit variance
at every noise level, so an error in F costs the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from .gaussian import State, like, root
from .schedule import Level


class Coefficients(NamedTuple):
    """x̂_0 = skip·x_t + out·F(into·x_t), float64."""

    skip: Float[Tensor, "*batch"]
    out: Float[Tensor, "*batch"]
    into: Float[Tensor, "*batch"]


def coefficients(level_t: Level, data_std: float) -> Coefficients:
    """c_skip, c_out and c_in for data of this standard deviation σ_d.

    c_skip·x_t is the best linear guess of x_0, and c_out the standard deviation of what it misses.
    """
    if not data_std > 0:
        raise ValueError(f"data_std must be positive, not {data_std}")
    var = level_t.alpha_bar * data_std**2 + level_t.var  # of x_t
    return Coefficients(
        skip=root(level_t.alpha_bar) * data_std**2 / var,
        out=data_std * root(level_t.var / var),
        into=1 / root(var),
    )


def scale_input(x_t: State, level_t: Level, data_std: float) -> State:
    """What the network is shown: x_t at unit variance."""
    return like(coefficients(level_t, data_std).into, x_t) * x_t


def denoised(x_t: State, output: State, level_t: Level, data_std: float) -> State:
    """x̂_0 from the noisy state and the network's output F."""
    c = coefficients(level_t, data_std)
    return like(c.skip, x_t) * x_t + like(c.out, x_t) * output


def target(x0: State, x_t: State, level_t: Level, data_std: float) -> State:
    """The F that would be right, (x_0 − c_skip·x_t)/c_out; t ≥ 1."""
    c = coefficients(level_t, data_std)
    return (x0 - like(c.skip, x_t) * x_t) / like(c.out, x_t)


def without_noise(x_t: State, noise: State, level_t: Level) -> State:
    """x̂_0 from the noisy state and what the network takes for its noise, (x_t − √(1 − ᾱ_t)·ε̂)/√ᾱ_t; ᾱ_t > 0."""
    return (x_t - like(root(level_t.var), x_t) * noise) / like(root(level_t.alpha_bar), x_t)
