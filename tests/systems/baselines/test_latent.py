"""Latent diffusion: the autoencoder, diffusion of vectors, stages that learn apart from each other, and the bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch
from support.toys import every_step
from torch import Tensor

from sketchdnn.diffusion.gaussian import like, root
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.sampling import step_sequence
from sketchdnn.systems.baselines import latent
from sketchdnn.systems.system import sample_condition_mask

CONFIG = latent.LatentConfig(
    network=latent.LatentDenoiserConfig(width=32, depth=1, heads=2),
    vae=latent.VAEConfig(width=32, depth=1, heads=2, tokens=4, channels=6),
    num_steps=200,
)


def made(stage: latent.Stage = "both", std: float | None = None) -> latent.LatentDiffusion:
    torch.manual_seed(0)
    system = latent.LatentDiffusion(replace(CONFIG, stage=stage))
    for weight in system.parameters():
        if std is not None:
            torch.nn.init.normal_(weight, std=std)
    return system


def loss_of(system: latent.LatentDiffusion, count: int = 6) -> Loss:
    nothing = sample_condition_mask(torch.ones(count, 19), torch.zeros(count, 16, dtype=torch.long), 0.0)
    return system.loss(clean_batch(count), torch.arange(1, 200, 200 // count)[:count], normal_batch(count), nothing)


def test_stages_add_up_and_the_denoiser_sends_no_gradient_to_the_autoencoder() -> None:
    both, autoencoder, denoiser = (loss_of(made(stage, std=0.1)) for stage in ("both", "vae", "diffusion"))
    assert torch.allclose(both.per_sample, autoencoder.per_sample + denoiser.per_sample)
    assert bool((denoiser.per_sample > 0).all())
    assert torch.equal(both.kind_per_sample, autoencoder.kind_per_sample)
    both, alone = made("both", std=0.1), made("vae", std=0.1)
    for system in (both, alone):
        loss_of(system).per_sample.sum().backward()
    for (name, one), other in zip(both.vae.named_parameters(), alone.vae.parameters(), strict=True):
        assert one.grad is not None, name
        assert torch.equal(one.grad, other.grad), name


def test_bound_of_a_fresh_model_costs_the_kl_of_its_posterior() -> None:
    """A fresh denoiser is exact for latents of N(0, 1): coding a latent costs the KL of its posterior to that prior."""
    torch.manual_seed(0)
    system, count = latent.LatentDiffusion(replace(CONFIG, num_steps=800)).requires_grad_(False), 48
    x0 = clean_batch(count)
    steps = every_step(system.process, count, read_at=12)
    found = system.likelihood(x0, seeded_noise(0, torch.arange(count)), steps)
    exact = system.vae.encode(x0).kl().flatten(1).sum(dim=-1).mean()
    costs = found.prior.params + found.diffusion.params
    assert costs.shape == (count,)
    assert -1 < float(costs.mean()) - float(exact) < 2  # steps of some length cost a little more
    assert float(exact) > 40
    # At the last step hardly anything of a latent is left.
    assert float(found.prior.params.abs().max()) < 1e-3
    assert float(found.prior.total.sum() + found.diffusion.total.sum()) == float(costs.sum())


SMALL = latent.VAEConfig(width=64, depth=2, heads=2, tokens=4, channels=12)


def autoencoder() -> latent.VAE:
    torch.manual_seed(0)
    return latent.VAE(SMALL)


def test_autoencoder_has_latents_of_unit_size_and_no_stuck_deviation() -> None:
    vae = autoencoder()
    for weight in vae.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    posterior = vae.encode(clean_batch(5))
    assert posterior.mean.shape == (5, 4, 12)
    assert torch.allclose(posterior.mean.square().mean(dim=-1), torch.ones(5, 4), atol=1e-3)
    assert bool((posterior.log_std <= 0).all())
    for one in (posterior, autoencoder().encode(clean_batch(5))):
        normal = torch.distributions.Normal(one.mean, one.log_std.exp())
        exact = torch.distributions.kl_divergence(normal, torch.distributions.Normal(0.0, 1.0))
        assert torch.allclose(one.kl(), exact, atol=1e-5)
    # Far beyond either bound there is a gradient.
    vae = autoencoder()
    for push in (-8.0, 8.0):
        with torch.no_grad():
            vae.to_latent.bias[SMALL.channels :] = push
        log_std = vae.encode(clean_batch(3)).log_std
        (gradient,) = torch.autograd.grad(log_std.sum(), vae.to_latent.bias)
        assert bool((gradient[SMALL.channels :] > 0).all())


def test_rows_have_an_order_and_outputs_full_precision() -> None:
    vae, x0 = autoencoder(), clean_batch(2)
    order = torch.arange(15, -1, -1).expand(2, 16)
    assert not torch.allclose(vae.encode(x0).mean, vae.encode(x0.permuted(order)).mean, atol=1e-3)
    with pytest.raises(ValueError, match="tokens must share 16 rows alike"):
        latent.VAEConfig(tokens=6)
    network = latent.LatentDenoiser(latent.LatentDenoiserConfig(width=32, depth=1, heads=2), 6, 12)
    assert torch.equal(network(torch.randn(3, 6, 12), torch.zeros(3)), torch.zeros(3, 6, 12))
    vae, z = autoencoder(), torch.randn(2, 4, 12)
    torch.nn.init.normal_(vae.head.weight)
    before = vae.decode(z)
    with torch.no_grad():  # the position of a row is added to what comes of its latent
        vae.row_out += 1
        vae.from_latent.bias -= 1
    assert torch.allclose(vae.decode(z).params, before.params, atol=1e-4)
    vae = autoencoder()
    with torch.autocast("cpu", torch.bfloat16):
        posterior = vae.encode(clean_batch(2))
        decoded = vae.decode(posterior.mean)
    assert posterior.mean.dtype == decoded.params.dtype == torch.float32


PROCESS = our_process(400)
MEAN, STD = 0.7, 0.3


def denoise(x_t: Tensor, t: Tensor) -> Tensor:
    """E[x_0 | x_t] for x_0 ~ N(MEAN, STD²)."""
    level = PROCESS.params.at(t)
    var = level.alpha_bar * STD**2 + level.var
    gain = root(level.alpha_bar) * STD**2 / var
    return MEAN + like(gain, x_t) * (x_t - like(root(level.alpha_bar), x_t) * MEAN)


def normals(seed: int, count: int) -> Callable[[int], Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda number: torch.randn(count, 4, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("sampler", latent.VECTOR_SAMPLERS)
def test_every_sampler_draws_the_target_and_reports_its_steps(sampler: str) -> None:
    noise, steps = normals(0, 3000), step_sequence(400, 100, power=2)
    *_, (_, drawn, _) = latent.sample_vectors(
        denoise, PROCESS.params, noise(0), noise, latent.VECTOR_SAMPLERS[sampler], steps
    )
    assert abs(float(drawn.mean()) - MEAN) < 0.02
    assert abs(float(drawn.std()) - STD) < 0.02
    two = latent.sample_vectors(denoise, PROCESS.params, noise(0), noise, latent.VECTOR_SAMPLERS[sampler], (400, 90, 0))
    assert [step for step, *_ in two] == [(1, 2, 400, 90), (2, 2, 90, 0)]


def test_bound_of_a_perfect_denoiser_is_close_to_the_density() -> None:
    x0 = MEAN + STD * torch.randn(400, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    prior, rest = latent.vector_elbo(denoise, PROCESS.params, x0, normals(2, 400), every_step(PROCESS, 400, read_at=8))
    exact = (((x0 - MEAN) / STD) ** 2 / 2 + math.log(STD * math.sqrt(2 * math.pi))).sum(dim=-1)
    found = prior + rest
    assert float(exact.mean()) - 0.05 < float(found.mean()) < float(exact.mean()) + 0.15
    assert float(prior.abs().max()) < 1e-9
