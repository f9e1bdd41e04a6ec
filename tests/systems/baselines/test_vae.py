"""The autoencoder and the denoiser of its latents."""

from __future__ import annotations

import pytest
import torch
from support.random_batches import clean_batch

from sketchdnn.diffusion.loss import paper_loss
from sketchdnn.systems.baselines.latent.networks import VAE, LatentDenoiser, LatentDenoiserConfig, VAEConfig

SMALL = VAEConfig(width=64, depth=2, heads=2, tokens=4, channels=12)


def made() -> VAE:
    torch.manual_seed(0)
    return VAE(SMALL)


def test_latents_have_unit_size_whatever_the_weights() -> None:
    vae = made()
    for weight in vae.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    posterior = vae.encode(clean_batch(5))
    assert posterior.mean.shape == (5, 4, 12)
    assert torch.allclose(posterior.mean.square().mean(dim=-1), torch.ones(5, 4), atol=1e-3)
    assert bool((posterior.log_std <= 0).all())


def test_a_posterior_knows_how_far_it_is_from_the_prior() -> None:
    posterior = made().encode(clean_batch(5))
    exact = torch.distributions.kl_divergence(
        torch.distributions.Normal(posterior.mean, posterior.log_std.exp()), torch.distributions.Normal(0.0, 1.0)
    )
    assert torch.allclose(posterior.kl(), exact, atol=1e-5)


def test_no_deviation_is_stuck_at_a_bound() -> None:
    """Far beyond either of them a posterior still hears what would be better."""
    vae = made()
    for push in (-8.0, 8.0):
        with torch.no_grad():
            vae.to_latent.bias[SMALL.channels :] = push
        log_std = vae.encode(clean_batch(3)).log_std
        (heard,) = torch.autograd.grad(log_std.sum(), vae.to_latent.bias)
        assert bool((heard[SMALL.channels :] > 0).all())


def test_tokens_share_the_rows_alike() -> None:
    with pytest.raises(ValueError, match="tokens must share 16 rows alike"):
        VAEConfig(tokens=6)


def test_the_order_of_rows_is_told() -> None:
    vae, x0 = made(), clean_batch(2)
    order = torch.arange(15, -1, -1).expand(2, 16)
    assert not torch.allclose(vae.encode(x0).mean, vae.encode(x0.permuted(order)).mean, atol=1e-3)


def test_it_learns_to_give_back_what_it_was_given() -> None:
    """A few sketches by heart: from parameters that say nothing to ones within a few hundredths."""
    vae, x0, t = made(), clean_batch(4, seed=3), torch.ones(4, dtype=torch.long)
    optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
    losses = []
    for _ in range(200):
        loss = paper_loss(vae.decode(vae.encode(x0).mean), x0, t, mse_boost=16.0)
        optimizer.zero_grad()
        torch.autograd.backward(loss.total)
        optimizer.step()
        losses.append((float(loss.params.detach()) / 16, float(loss.kind.detach())))
    assert losses[-1][0] < 0.1 * losses[0][0]
    assert losses[-1][1] < 0.1


def test_it_learns_from_sketches_that_it_sees_once() -> None:
    """Not by heart: the numbers of a row must find their way through the latent, and soon."""
    vae, t = made(), torch.ones(32, dtype=torch.long)
    optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
    errors = []
    for step in range(160):
        x0 = clean_batch(32, seed=step)
        loss = paper_loss(vae.decode(vae.encode(x0).mean), x0, t, mse_boost=16.0)
        optimizer.zero_grad()
        torch.autograd.backward(loss.total)
        optimizer.step()
        errors.append(float(loss.params.detach()))
    assert sum(errors[-10:]) < 0.5 * sum(errors[:10])


def test_the_denoiser_says_nothing_before_it_has_learned() -> None:
    network = LatentDenoiser(LatentDenoiserConfig(width=32, depth=1, heads=2), 6, 12)
    assert torch.equal(network(torch.randn(3, 6, 12), torch.zeros(3)), torch.zeros(3, 6, 12))


def test_half_precision_comes_out_whole() -> None:
    vae = made()
    with torch.autocast("cpu", torch.bfloat16):
        posterior = vae.encode(clean_batch(2))
        said = vae.decode(posterior.mean)
    assert posterior.mean.dtype == said.params.dtype == torch.float32
