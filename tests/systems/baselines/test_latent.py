"""Latent diffusion: its two stages learn apart from each other, and its bound is that of an autoencoder."""

from __future__ import annotations

from dataclasses import replace

import torch
from support.random_batches import clean_batch, normal_batch
from support.toys import every_step

from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.systems.baselines.latent.networks import LatentDenoiserConfig, VAEConfig
from sketchdnn.systems.baselines.latent.system import LatentConfig, LatentDiffusion, Stage
from sketchdnn.systems.system import sample_condition_mask

CONFIG = LatentConfig(
    network=LatentDenoiserConfig(width=32, depth=1, heads=2),
    vae=VAEConfig(width=32, depth=1, heads=2, tokens=4, channels=6),
    num_steps=200,
)


def made(stage: Stage = "both", std: float | None = None) -> LatentDiffusion:
    torch.manual_seed(0)
    system = LatentDiffusion(replace(CONFIG, stage=stage))
    for weight in system.parameters():
        if std is not None:
            torch.nn.init.normal_(weight, std=std)
    return system


def loss_of(system: LatentDiffusion, count: int = 6) -> Loss:
    nothing = sample_condition_mask(torch.ones(count, 19), torch.zeros(count, 16, dtype=torch.long), 0.0)
    return system.loss(clean_batch(count), torch.arange(1, 200, 200 // count)[:count], normal_batch(count), nothing)


def test_loss_of_both_stages_is_the_sum_of_each() -> None:
    both, autoencoder, denoiser = (loss_of(made(stage, std=0.1)) for stage in ("both", "vae", "diffusion"))
    assert torch.allclose(both.per_sample, autoencoder.per_sample + denoiser.per_sample)
    assert bool((denoiser.per_sample > 0).all())
    assert torch.equal(both.kind_per_sample, autoencoder.kind_per_sample)


def test_no_gradient_of_the_denoiser_reaches_the_autoencoder() -> None:
    both, alone = made("both", std=0.1), made("vae", std=0.1)
    for system in (both, alone):
        loss_of(system).per_sample.sum().backward()
    for (name, one), other in zip(both.vae.named_parameters(), alone.vae.parameters(), strict=True):
        assert one.grad is not None, name
        assert torch.equal(one.grad, other.grad), name


def test_bound_of_a_fresh_model_costs_the_kl_of_its_posterior() -> None:
    """A fresh denoiser is exact for latents of N(0, 1): coding a latent costs the KL of its posterior to that prior."""
    torch.manual_seed(0)
    system, count = LatentDiffusion(replace(CONFIG, num_steps=800)).requires_grad_(False), 48
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
