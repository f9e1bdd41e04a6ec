"""The Gaussian-Softmax distribution: a density that integrates to one and is the one its samples have."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Normal, StickBreakingTransform, TransformedDistribution, kl_divergence

from sketchdnn.diffusion import GaussianSoftmax
from sketchdnn.diffusion.gaussian import squared_norm_perp

DOUBLE = torch.float64


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=DOUBLE)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("loc", [0.0, 1.5, -4.0])
def test_density_integrates_to_one_over_two_categories(loc: float, scale: float) -> None:
    gs = GaussianSoftmax(double(loc, 0.0), scale)
    # Nodes crowd towards both ends: y = sigmoid(u), dy = y(1 − y)du.
    u = torch.linspace(-35, 35, 20_001, dtype=DOUBLE)
    y = torch.stack([u.sigmoid(), (-u).sigmoid()], dim=-1)
    integral = torch.trapezoid(gs.log_prob(y).exp() * y.prod(dim=-1), u)
    assert integral.item() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("scale", [0.5, 1.0, double(0.4, 1.0, 1.6)])
@pytest.mark.parametrize("loc", [(0.0, 0.0, 0.0), (2.0, -1.0, 0.5)])
def test_density_integrates_to_one_over_three_categories(loc: tuple[float, ...], scale: float | torch.Tensor) -> None:
    gs = GaussianSoftmax(double(*loc), scale)
    u = torch.linspace(-16, 16, 401, dtype=DOUBLE)
    logits = torch.stack([*torch.meshgrid(u, u, indexing="ij"), torch.zeros(401, 401, dtype=DOUBLE)], dim=-1)
    y = logits.softmax(dim=-1)
    # The Jacobian of (u, v) → (y_1, y_2) is y_1·y_2·y_3.
    inner = torch.trapezoid(gs.log_prob(y / y.sum(-1, keepdim=True)).exp() * y.prod(dim=-1), u)
    assert torch.trapezoid(inner, u).item() == pytest.approx(1, abs=1e-8)


def test_density_matches_a_histogram() -> None:
    """Three categories: samples counted in triangles of the simplex against the density in them."""
    torch.manual_seed(0)
    gs = GaussianSoftmax(double(0.5, -0.3, 0.2), 0.8)
    count, cells, fine = 200_000, 10, 40
    samples = gs.sample((count,))
    index = (samples[:, :2] * cells).long().clamp(max=cells - 1)
    counted = torch.bincount(index[:, 0] * cells + index[:, 1], minlength=cells**2).reshape(cells, cells) / count
    middle = (torch.arange(cells * fine, dtype=DOUBLE) + 0.5) / (cells * fine)
    a, b = torch.meshgrid(middle, middle, indexing="ij")
    inside = a + b < 1
    y = torch.stack([a, b, 1 - a - b], dim=-1)
    y = torch.where(inside[..., None], y, torch.full_like(y, 1 / 3))
    mass = torch.where(inside, gs.log_prob(y).exp(), 0.0) / (cells * fine) ** 2
    expected = mass.reshape(cells, fine, cells, fine).sum(dim=(1, 3))
    error = (expected * (1 - expected) / count).sqrt()
    whole = torch.arange(cells)[:, None] + torch.arange(cells) < cells - 1  # squares that the border does not cut
    assert ((counted - expected).abs() <= 4.5 * error + 1e-4)[whole].all()
    assert counted[whole].sum() > 0.8


@given(st.integers(2, 20), st.floats(-30, 30), st.integers(0, 2**20))
def test_log_prob_is_the_formula_of_the_paper(size: int, shift: float, seed: int) -> None:
    """The text's, with everything shifted by the last element; and a constant added to loc changes nothing."""
    generator = torch.Generator().manual_seed(seed)
    loc = torch.randn(size, generator=generator, dtype=DOUBLE)
    y = torch.randn(size, generator=generator, dtype=DOUBLE).softmax(-1)
    sigma = 0.7
    tilde, prime = y.log() - y[-1].log(), loc - loc[-1]
    norm = (tilde - prime).square().sum() - (tilde - prime).sum() ** 2 / size
    z = math.sqrt(size * (2 * math.pi * sigma**2) ** (size - 1))
    expected = -norm / (2 * sigma**2) - math.log(z) - y.log().sum()
    torch.testing.assert_close(GaussianSoftmax(loc, sigma).log_prob(y), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(GaussianSoftmax(loc + shift, sigma).log_prob(y), expected, rtol=1e-9, atol=1e-8)


def test_two_categories_are_a_logistic_normal() -> None:
    """Against a distribution that torch has: the logit of y_1 is N(μ_1 − μ_2, 2σ²)."""
    base = Normal(double(0.9), math.sqrt(2) * 0.6)
    known = TransformedDistribution(base, StickBreakingTransform())
    y = double(0.3, 0.7)
    # Stick breaking of two offsets its logit by log 1 = 0, and its Jacobian is that of the first probability.
    torch.testing.assert_close(GaussianSoftmax(double(1.0, 0.1), 0.6).log_prob(y), known.log_prob(y).squeeze())


def test_gradients() -> None:
    loc = torch.randn(2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)).requires_grad_()
    scale = double(0.5, 1.2)[:, None].requires_grad_()
    logits = torch.randn(2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(1)).requires_grad_()

    def log_prob(loc: torch.Tensor, scale: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        return GaussianSoftmax(loc, scale, validate_args=False).log_prob(logits.softmax(-1))

    assert torch.autograd.gradcheck(log_prob, (loc, scale, logits))
    assert torch.autograd.gradgradcheck(log_prob, (loc, scale, logits))
    assert torch.autograd.gradcheck(
        lambda a, b: GaussianSoftmax(a, b, validate_args=False).argmax_probs(), (loc, scale)
    )
    other = GaussianSoftmax(torch.zeros(4, dtype=DOUBLE), 0.9)
    assert torch.autograd.gradcheck(
        lambda a, b: kl_divergence(GaussianSoftmax(a, b, validate_args=False), other), (loc, scale)
    )


def test_samples_carry_gradients() -> None:
    loc, scale = torch.zeros(5, requires_grad=True), torch.tensor(0.5, requires_grad=True)
    y = GaussianSoftmax(loc, scale).rsample((100,))
    y[:, 0].sum().backward()
    assert loc.grad is not None
    assert scale.grad is not None
    assert loc.grad[0] > 0 > loc.grad[1]
    # A shift of loc moves nothing.
    assert loc.grad.sum().item() == pytest.approx(0, abs=1e-4)
    assert not GaussianSoftmax(loc, scale).sample().requires_grad


@pytest.mark.parametrize("size", [2, 5, 17])
@pytest.mark.parametrize("other_scale", [0.8, 1.7])
def test_kl_matches_monte_carlo(size: int, other_scale: float) -> None:
    torch.manual_seed(size)
    p = GaussianSoftmax(torch.randn(size, dtype=DOUBLE), 0.8)
    q = GaussianSoftmax(torch.randn(size, dtype=DOUBLE), other_scale)
    y = p.sample((40_000,))
    difference = p.log_prob(y) - q.log_prob(y)
    error = difference.std() / math.sqrt(len(y))
    assert abs(difference.mean() - kl_divergence(p, q)) < 3 * error


def test_kl_of_unlike_scales_a_category_matches_monte_carlo() -> None:
    torch.manual_seed(2)
    p = GaussianSoftmax(double(0.3, -1.0, 0.5, 0.0), double(0.5, 1.0, 1.5, 0.7))
    q = GaussianSoftmax(double(0.0, 0.2, 0.5, -0.4), double(1.1, 0.8, 0.9, 1.3))
    y = p.sample((40_000,))
    difference = p.log_prob(y) - q.log_prob(y)
    assert abs(difference.mean() - kl_divergence(p, q)) < 3 * difference.std() / math.sqrt(len(y))


@given(st.integers(2, 64), st.floats(0.01, 10), st.integers(0, 2**20))
def test_kl_of_equal_scales_is_the_norm_of_the_density(size: int, sigma: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.randn(2, 3, size, generator=generator, dtype=DOUBLE)
    p, q = GaussianSoftmax(a, sigma), GaussianSoftmax(b, sigma)
    torch.testing.assert_close(kl_divergence(p, q), squared_norm_perp(a - b) / (2 * sigma**2), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(kl_divergence(p, GaussianSoftmax(a + 3, sigma)), torch.zeros(3, dtype=DOUBLE))


def test_argmax_probabilities() -> None:
    """Quadrature against what is known in closed form, against counting, and it sums to one."""
    # Two categories: P = Φ((μ_1 − μ_2)/(σ√2)).
    two = GaussianSoftmax(double(0.4, -0.5), 0.8).argmax_probs()
    assert two[0].item() == pytest.approx(torch.special.ndtr(double(0.9 / (0.8 * math.sqrt(2)))).item(), abs=1e-14)
    # Equal means: 1/D each.
    even = GaussianSoftmax(torch.zeros(64, dtype=DOUBLE), 3.0).argmax_probs()
    torch.testing.assert_close(even, torch.full((64,), 1 / 64, dtype=DOUBLE), rtol=1e-12, atol=1e-12)
    generator = torch.Generator().manual_seed(0)
    gs = GaussianSoftmax(torch.randn(3, 5, generator=generator, dtype=DOUBLE), double(0.2, 1.0, 5.0)[:, None])
    exact = gs.argmax_probs()
    torch.testing.assert_close(exact.sum(-1), torch.ones(3, dtype=DOUBLE), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gs.argmax_probs(num_nodes=2000), exact, rtol=1e-12, atol=1e-12)
    noise = torch.randn(100_000, 3, 5, generator=generator, dtype=DOUBLE)
    counted = torch.nn.functional.one_hot((gs.loc + gs.scale * noise).argmax(-1), 5).double().mean(0)
    assert ((counted - exact).abs() <= 4.5 * (exact * (1 - exact) / 100_000).sqrt() + 1e-12).all()


def test_argmax_probabilities_in_float32() -> None:
    for spread in (1e-3, 1.0, 100.0):
        gs = GaussianSoftmax(torch.tensor([0.0, 1.0, 2.0]), spread)
        torch.testing.assert_close(gs.argmax_probs().sum(), torch.tensor(1.0), rtol=1e-5, atol=1e-5)


def test_it_is_a_distribution_like_others() -> None:
    gs = GaussianSoftmax(torch.zeros(4, 1, 3), torch.ones(2, 1))
    assert gs.batch_shape == (4, 2)
    assert gs.event_shape == (3,)
    assert gs.has_rsample
    y = gs.sample((7,))
    assert y.shape == (7, 4, 2, 3)
    assert gs.support.check(y).all()
    assert gs.log_prob(y).shape == (7, 4, 2)
    assert gs.argmax_probs().shape == (4, 2, 3)
    wide = gs.expand((5, 4, 2))
    assert wide.batch_shape == (5, 4, 2)
    assert wide.log_prob(y[:5]).shape == (5, 4, 2)
    assert "GaussianSoftmax" in repr(wide)
    assert GaussianSoftmax(torch.zeros(3), 2).sample().shape == (3,)
    assert GaussianSoftmax(torch.zeros(3, dtype=DOUBLE), 2).sample().dtype == DOUBLE


def test_batches_and_vmap_agree_with_one_at_a_time() -> None:
    generator = torch.Generator().manual_seed(0)
    loc, logits = torch.randn(2, 6, 5, generator=generator, dtype=DOUBLE)
    scale = torch.rand(6, 1, generator=generator, dtype=DOUBLE) + 0.5
    y = logits.softmax(-1)
    whole = GaussianSoftmax(loc, scale).log_prob(y)
    one = torch.stack([GaussianSoftmax(loc[i], scale[i]).log_prob(y[i]) for i in range(6)])
    torch.testing.assert_close(whole, one)

    def log_prob(loc: torch.Tensor, scale: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return GaussianSoftmax(loc, scale, validate_args=False).log_prob(y)

    torch.testing.assert_close(torch.vmap(log_prob)(loc, scale, y), whole)
    gradient = torch.vmap(torch.func.grad(log_prob))(loc, scale, y)
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(6, dtype=DOUBLE))


def test_extreme_scales_stay_finite_in_float32() -> None:
    for sigma in (1e-4, 1.0, 6.0):
        gs = GaussianSoftmax(torch.linspace(-1, 1, 64), sigma)
        assert gs.log_prob(gs.sample((10,))).isfinite().all()
        assert kl_divergence(gs, GaussianSoftmax(torch.zeros(64), sigma)).isfinite()


def test_bad_input_names_the_argument() -> None:
    with pytest.raises(ValueError, match="scale"):
        GaussianSoftmax(torch.zeros(3), 0.0, validate_args=True)
    with pytest.raises(ValueError, match="scale"):
        GaussianSoftmax(torch.zeros(3), -1.0, validate_args=True)
    with pytest.raises(ValueError, match="loc"):
        GaussianSoftmax(torch.tensor([0.0, math.nan]), 1.0, validate_args=True)
    for shape in ((), (1,), (4, 1)):
        with pytest.raises(ValueError, match="loc"):
            GaussianSoftmax(torch.zeros(shape), 1.0)
    with pytest.raises(ValueError, match="loc"):
        GaussianSoftmax(torch.zeros(3, dtype=torch.int64), 1.0)
    with pytest.raises(ValueError, match="scale"):
        GaussianSoftmax(torch.zeros(4, 3), torch.ones(4))
    gs = GaussianSoftmax(torch.zeros(3), 1.0, validate_args=True)
    for value in ([0.5, 0.5, 0.5], [1.2, -0.1, -0.1], [0.5, 0.5, 0.0], [math.nan, 0.5, 0.5], [0.5, 0.5]):
        with pytest.raises(ValueError, match=r"value|event_shape"):
            gs.log_prob(torch.tensor(value))
    with pytest.raises(ValueError, match="num_nodes"):
        gs.argmax_probs(num_nodes=1)
    with pytest.raises(ValueError, match="categories"):
        kl_divergence(gs, GaussianSoftmax(torch.zeros(4), 1.0))
