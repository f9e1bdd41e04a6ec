"""Gaussian diffusion of vectors, such as the latents of an autoencoder: sampling, and a bound on the likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion import gaussian
from sketchdnn.diffusion.gaussian import Level, Schedule
from sketchdnn.diffusion.likelihood import kl_of_steps, kl_to_noise
from sketchdnn.diffusion.process import check_steps
from sketchdnn.diffusion.samplers import ddim_weights, posterior_weights, solver_weights
from sketchdnn.diffusion.sampling import WeightRule, Weights
from sketchdnn.diffusion.timesteps import StepDraws

Vectors = Float[Tensor, "batch *shape"]
VectorDenoiser = Callable[[Vectors, Int[Tensor, " batch"]], Vectors]
VectorNoise = Callable[[int], Vectors]
# Receives the number of a step from 1, the number of steps, t, s, the state at s and the prediction at t.
OnVectorStep = Callable[[int, int, int, int, Vectors, Vectors], None]


def _ddim(level_s: Level, level_t: Level, _: Level) -> Weights:
    return ddim_weights(level_s, level_t, 0.0)


VECTOR_SAMPLERS: Mapping[str, WeightRule] = {
    "ancestral": posterior_weights,
    "ddim": _ddim,
    "dpm++": solver_weights,
}


def sample_vectors(
    denoise: VectorDenoiser,
    schedule: Schedule,
    first: Vectors,
    noise: VectorNoise,
    weights: WeightRule,
    *,
    steps: Sequence[int],
    on_step: OnVectorStep | None = None,
) -> Vectors:
    """Sample from the state `first` at the first timestep to t = 0. Step j, from 1, uses the noise of draw j."""
    check_steps(steps, schedule.num_steps)
    transitions = list(pairwise(steps))
    from_t, to_s = torch.tensor(transitions).unbind(dim=1)
    levels = schedule.to("cpu")
    table = torch.stack(weights(levels.at(to_s), levels.at(from_t), levels.at(from_t.roll(1))), dim=-1).to(first)
    state = clean = first
    for number, (t, s) in enumerate(transitions, start=1):
        before, clean = clean, denoise(state, torch.full((len(state),), t, device=state.device)).to(state)
        of_x_t, of_x0, of_before, std = table[number - 1].unbind()
        state = of_x_t * state + of_x0 * clean + of_before * before + std * noise(number)
        if on_step is not None:
            on_step(number, len(transitions), t, s, state, clean)
    return state


def vector_elbo(
    denoise: VectorDenoiser, schedule: Schedule, x0: Vectors, noise: VectorNoise, steps: StepDraws
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """A bound on −log p(x_0) in nats: the prior term, and the sum of all other terms.

    x_0 is reconstructed from x_r with the variance of the noise at r, using the noise of draw 0. Step j uses draw j.
    """
    schedule, truth, batch = schedule.to(x0.device), x0.double(), len(x0)
    dimensions, last = x0[0].numel(), schedule.at(schedule.num_steps)

    def squared_error(t: Tensor, draw: int) -> Tensor:
        x_t = gaussian.diffuse(x0, noise(draw), schedule.at(t))
        return (truth - denoise(x_t, t).double()).square().flatten(1).sum(dim=-1)

    read_at = torch.full((batch,), steps.read_at, device=x0.device)
    variance = float(schedule.var[steps.read_at])
    read_off = squared_error(read_at, 0) / variance / 2 + dimensions * math.log(2 * math.pi * variance) / 2
    terms = []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.device), steps.count, strict=True), start=1):
        terms.append(count.to(truth) * kl_of_steps(squared_error(t, draw), schedule.at(t - 1), schedule.at(t)))
    prior = kl_to_noise(truth.square().flatten(1).sum(dim=-1), last, dimensions)
    return prior, torch.stack(terms).mean(dim=0) + read_off
