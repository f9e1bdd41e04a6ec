"""Random timesteps: weights over t in 1..T for training, and the steps at which a likelihood evaluates the network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .process import Process, check_step

# One number for each t in 1..T, not necessarily normalized: entry t − 1 belongs to t.
StepWeights = Float[Tensor, " steps"]


def uniform_weights(num_steps: int) -> StepWeights:
    """Every t in 1..T alike, as in the paper."""
    if num_steps < 1:
        raise ValueError(f"num_steps must be at least 1, not {num_steps}")
    return torch.ones(num_steps, dtype=torch.float64)


def authors_weights(num_steps: int) -> StepWeights:
    """The authors' code: 1..T−1 alike; t = T, where sampling starts, is never trained."""
    weights = uniform_weights(num_steps)
    weights[-1] = 0
    return weights


def steps_at(quantiles: Float[Tensor, " batch"], weights: StepWeights) -> Int[Tensor, " batch"]:
    """The steps t in 1..T at these quantiles of the distribution, by inverting the cumulative sum of its weights."""
    if not bool((quantiles >= 0).all()) or not bool((quantiles < 1).all()):
        raise ValueError("quantiles must hold numbers of [0, 1)")
    if not bool((weights >= 0).all()) or not bool(weights.sum() > 0):
        raise ValueError("weights must hold a number for each step, none negative and not all zero")
    edges = weights.to(device=quantiles.device, dtype=torch.float64).cumsum(dim=0)
    # right=True: a step of weight zero has an empty slice and never occurs.
    below = torch.searchsorted(edges, quantiles.to(torch.float64) * edges[-1], right=True)
    # A product rounded up to the whole lands behind the last slice; it belongs to the last step that has one.
    last = torch.searchsorted(edges, edges[-1])
    return torch.minimum(below, last) + 1


@dataclass(frozen=True, slots=True)
class StepDraws:
    """Steps for an estimate of the bound: the sketch is read from x_r, r = `read_at`, the rest is a sum over r+1..T.

    A draw is a step for each sample and the number of steps it represents: the mean of count·term is the sum.
    """

    t: Int[Tensor, "draws batch"]
    count: Float[Tensor, "draws batch"]
    read_at: int = 1


def draw_steps(process: Process, batch: int, draws: int, generator: torch.Generator, *, read_at: int = 1) -> StepDraws:
    """Evenly spread draws: one random offset, then equal strides through the distribution of t (Kingma et al. 2021).

    Each draw alone has that distribution, so the estimate is unbiased for every sample. Half of the weight is uniform,
    half lies where the bound of a standard normal target changes fastest.
    """
    check_step(read_at, process.num_steps - 1, "read_at", lowest=1)
    if draws < 1 or batch < 1:
        raise ValueError(f"draws and batch must be at least 1, not {draws} and {batch}")
    weights = uniform_weights(process.num_steps)
    weights[:read_at] = 0
    weights /= weights.sum()
    t = torch.arange(read_at + 1, process.num_steps + 1)
    for schedule in (process.construction, process.kind, process.params):
        at_s, at_t = schedule.to("cpu").at(t - 1), schedule.to("cpu").at(t)
        # The term of a standard normal target: (SNR_s − SNR_t) times its error, 1/(1 + SNR_t) = var_t.
        share = (at_s.snr - at_t.snr) * at_t.var
        weights[t - 1] += share / share.sum() / 3
    offset = torch.rand((), generator=generator, dtype=torch.float64)
    quantiles = (offset.to(torch.float64) + torch.arange(draws * batch) / (draws * batch)) % 1
    t = steps_at(quantiles, weights).reshape(draws, batch)
    return StepDraws(t, weights.sum() / weights[t - 1], read_at)


def step_as_noisy_as(process: Process, std: float) -> int:
    """The first step, from 1, whose parameters have noise of at least this standard deviation."""
    less_noisy = int((process.params.var[1:] < std**2).sum())
    return min(less_noisy + 1, process.num_steps - 1)
