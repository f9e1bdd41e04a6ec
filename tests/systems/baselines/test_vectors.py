"""Diffusion of plain vectors, against a Gaussian target whose denoiser and density are known."""

from __future__ import annotations

import math

import pytest
import torch
from support.toys import every_step
from torch import Tensor

from sketchdnn.diffusion.gaussian import like, root
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.sampling import step_sequence
from sketchdnn.systems.baselines.latent.system import VECTOR_SAMPLERS, sample_vectors, vector_elbo

PROCESS = our_process(400)
SCHEDULE = PROCESS.params
MEAN, STD = 0.7, 0.3


def denoise(x_t: Tensor, t: Tensor) -> Tensor:
    """E[x_0 | x_t] for x_0 ~ N(MEAN, STD²)."""
    level = SCHEDULE.at(t)
    var = level.alpha_bar * STD**2 + level.var
    gain = root(level.alpha_bar) * STD**2 / var
    return MEAN + like(gain, x_t) * (x_t - like(root(level.alpha_bar), x_t) * MEAN)


def normals(seed: int, count: int) -> object:
    generator = torch.Generator().manual_seed(seed)
    return lambda number: torch.randn(count, 4, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("sampler", VECTOR_SAMPLERS)
def test_every_sampler_draws_the_target(sampler: str) -> None:
    noise = normals(0, 3000)
    drawn = sample_vectors(
        denoise, SCHEDULE, noise(0), noise, VECTOR_SAMPLERS[sampler], steps=step_sequence(400, 100, power=2)
    )
    assert abs(float(drawn.mean()) - MEAN) < 0.02
    assert abs(float(drawn.std()) - STD) < 0.02


def test_a_step_is_told_of_in_its_turn() -> None:
    noise, heard = normals(0, 2), []
    sample_vectors(
        denoise,
        SCHEDULE,
        noise(0),
        noise,
        VECTOR_SAMPLERS["ancestral"],
        steps=(400, 90, 0),
        on_step=lambda number, total, t, s, *_: heard.append((number, total, t, s)),
    )
    assert heard == [(1, 2, 400, 90), (2, 2, 90, 0)]


def test_the_bound_of_a_perfect_denoiser_comes_close_to_the_density() -> None:
    x0 = MEAN + STD * torch.randn(400, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    prior, rest = vector_elbo(denoise, SCHEDULE, x0, normals(2, 400), every_step(PROCESS, 400, read_at=8))
    exact = (((x0 - MEAN) / STD) ** 2 / 2 + math.log(STD * math.sqrt(2 * math.pi))).sum(dim=-1)
    found = prior + rest
    assert float(exact.mean()) - 0.05 < float(found.mean()) < float(exact.mean()) + 0.15
    assert float(prior.abs().max()) < 1e-9
