"""Which steps a likelihood looks at: where it reads the sketch off, and a few of the steps above that, without bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .check import check_step
from .process import Process
from .times import TimeWeights, draw_times, low_discrepancy, paper_times

# `uniform` over t; `importance`: half of the draws where the bound of a typical target changes fastest.
Times = Literal["uniform", "importance"]


@dataclass(frozen=True, slots=True)
class StepDraws:
    """The sketch is read off x_r with r = `read_at`; the rest of the bound is a sum over t in r+1..T.

    A draw is a step for each sample and how many steps it stands for: the mean over draws of count·term is the sum.
    """

    t: Int[Tensor, "draws batch"]
    count: Float[Tensor, "draws batch"]
    read_at: int = 1


def every_step(process: Process, batch: int, *, read_at: int = 1) -> StepDraws:
    """All steps for every sample: no estimate in t at all."""
    check_step(read_at, process.num_steps - 1, "read_at", lowest=1)
    t = torch.arange(read_at + 1, process.num_steps + 1)[:, None].expand(-1, batch)
    return StepDraws(t, torch.full(t.shape, float(len(t)), dtype=torch.float64), read_at)


def draw_steps(
    process: Process,
    batch: int,
    draws: int,
    generator: torch.Generator,
    *,
    times: Times = "importance",
    read_at: int = 1,
) -> StepDraws:
    """Evenly spread draws: one random offset, then equal strides through the distribution of t (Kingma et al. 2021).

    Each draw on its own has that distribution, so the estimate is unbiased for every sample.
    """
    check_step(read_at, process.num_steps - 1, "read_at", lowest=1)
    if draws < 1 or batch < 1:
        raise ValueError(f"draws and batch must be at least 1, not {draws} and {batch}")
    if times not in ("uniform", "importance"):
        raise ValueError(f"times must be 'uniform' or 'importance', not {times!r}")
    weights = _weights(process, times, read_at)
    offset = torch.rand((), generator=generator, dtype=torch.float64)
    t = draw_times(low_discrepancy(offset, draws * batch), weights).reshape(draws, batch)
    return StepDraws(t, weights.sum() / weights[t - 1], read_at)


def step_as_noisy_as(process: Process, std: float) -> int:
    """The first step, from 1, whose parameters carry noise of at least this standard deviation."""
    quieter = int((process.params.var[1:] < std**2).sum())
    return min(quieter + 1, process.num_steps - 1)


def _weights(process: Process, times: Times, read_at: int) -> TimeWeights:
    """How often each t in r+1..T is to be drawn; the steps below have no weight."""
    weights = paper_times(process.num_steps)
    weights[:read_at] = 0
    if times == "uniform":
        return weights
    weights /= weights.sum()
    t = torch.arange(read_at + 1, process.num_steps + 1)
    for schedule in (process.construction, process.kind, process.params):
        at_s, at_t = schedule.to("cpu").at(t - 1), schedule.to("cpu").at(t)
        # The term of a standard normal target: (SNR_s − SNR_t) times its error, 1/(1 + SNR_t) = var_t.
        share = (at_s.snr - at_t.snr) * at_t.var
        weights[t - 1] += share / share.sum() / 3
    return weights
