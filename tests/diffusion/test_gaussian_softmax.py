"""Gaussian-Softmax diffusion of labels, in centered logits where it is Gaussian, and its distribution."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.toys import centered
from torch.distributions import kl_divergence
from torch.nn.functional import one_hot

from sketchdnn.diffusion import GaussianSoftmax
from sketchdnn.diffusion import gaussian_softmax as labels
from sketchdnn.diffusion.gaussian import augment, authors_cosine, cosine, linear, log_linear_snr, squared_norm_perp

SCHEDULES = {
    "cosine": lambda d, k: augment(cosine(200), d, k),
    "cosine, raw": lambda d, k: cosine(200),
    "authors": lambda d, k: augment(authors_cosine(200), d, k, of_root=True),
    "linear": lambda d, k: augment(linear(200), d, k),
    "log-linear": lambda d, k: augment(log_linear_snr(200), d, k),
}
DOUBLE = torch.float64
STEPS = [(0, 1), (0, 200), (1, 2), (1, 200), (50, 51), (30, 170), (198, 199), (199, 200)]


def one_hots(num_categories: int) -> torch.Tensor:
    return torch.eye(num_categories, dtype=torch.float64)[:, None]


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=DOUBLE)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("num_categories", "k"), [(2, 0.99), (3, 0.5), (5, 0.99), (5, 0.9999), (64, 1 - 1e-6)])
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(name: str, num_categories: int, k: float) -> None:
    """The logits are linear in the noise, so noise of zero gives the mean and unit noises a root of the covariance."""
    schedule = SCHEDULES[name](num_categories, k)
    y0 = one_hots(num_categories)[:1].expand(num_categories, -1, -1)
    logits0, zero, unit = labels.smooth(y0, k).log(), torch.zeros_like(y0), one_hots(num_categories)
    centering = unit[:, 0] - 1 / num_categories
    for s, t in STEPS:
        at_s, at_t = schedule.at(s), schedule.at(t)
        mean, first, second = (
            centered(labels.step_back(logits0, labels.diffuse(y0, there, at_t, k), back, at_s, at_t).log())
            for there, back in ((zero, zero), (unit, zero), (zero, unit))
        )
        torch.testing.assert_close(mean, at_s.alpha_bar.sqrt() * centered(logits0), rtol=1e-10, atol=1e-10)
        of_first, of_second = (first - mean)[:, 0], (second - mean)[:, 0]
        covariance = of_first.T @ of_first + of_second.T @ of_second
        torch.testing.assert_close(covariance, at_s.var * centering, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("num_categories", [2, 5])
def test_composed_steps_have_the_cumulative_distribution(num_categories: int) -> None:
    k = 0.99
    schedule = augment(cosine(20), num_categories, k)
    y0 = one_hots(num_categories)[:1].expand(20_000, -1, -1)
    noise = torch.randn(13, *y0.shape, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
    y = labels.diffuse(y0, noise[0], schedule.at(1), k)
    for t in range(2, 13):
        y = labels.step_forward(y, noise[t - 1], schedule.at(t - 1), schedule.at(t))
    level = schedule.at(12)
    # The contrast of the true label with the next: a number that the shift does not touch.
    contrast = (y[:, 0, 0] / y[:, 0, 1]).log()
    gap = math.log(1 + num_categories * k / (1 - k))
    normal = stats.norm(level.alpha_bar.sqrt().item() * gap, math.sqrt(2 * level.var.item()))
    assert stats.kstest(contrast.numpy(), normal.cdf).pvalue > 1e-3
    assert contrast.mean().item() == pytest.approx(normal.mean(), abs=4 * normal.std() / math.sqrt(len(y)))
    assert contrast.var().item() == pytest.approx(normal.var(), rel=4 * math.sqrt(2 / len(y)))
    cumulative = labels.diffuse(y0, noise[12], level, k).argmax(dim=-1)
    table = torch.stack([torch.bincount(x.flatten(), minlength=num_categories) for x in (y.argmax(dim=-1), cumulative)])
    assert stats.chi2_contingency(table.numpy()).pvalue > 1e-3


def test_pure_noise_has_a_uniform_label() -> None:
    schedule = augment(cosine(2000), 5, 0.99)
    generator = torch.Generator().manual_seed(0)
    y0 = one_hots(5)[:1].expand(20_000, -1, -1)
    y_t = labels.diffuse(y0, torch.randn(y0.shape, generator=generator, dtype=torch.float64), schedule.at(2000), 0.99)
    counts = torch.bincount(y_t.argmax(dim=-1).flatten(), minlength=5)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_clean_labels_are_smoothed_and_extreme_noise_draws_the_likeliest() -> None:
    schedule = augment(cosine(10), 5, 0.99)
    y0 = one_hots(5)
    y_t = labels.diffuse(y0, torch.randn_like(y0), schedule.at(0), 0.99)
    torch.testing.assert_close(y_t, labels.smooth(y0, 0.99))
    torch.testing.assert_close(labels.smooth(y0, 0.99).sum(-1), torch.ones(5, 1, dtype=torch.float64))
    for extreme in (-40.0, 40.0):
        drawn = labels.draw_label(torch.tensor([0.2, 0.5, 0.3]), torch.full((3,), extreme))
        assert drawn.tolist() == [0, 1, 0]
    noise = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    assert (labels.draw_label(torch.tensor([0.0, 1.0, 0.0]).expand_as(noise), noise)[:, 1] == 1).all()


@given(st.integers(2, 64), st.floats(0.01, 1 - 1e-6), st.integers(0, 2**20))
def test_expected_logit_is_an_expectation(num_categories: int, k: float, seed: int) -> None:
    y0_hat = torch.rand(2, 3, num_categories, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    y0_hat = y0_hat / y0_hat.sum(-1, keepdim=True)
    by_label = labels.smooth(one_hots(num_categories)[:, 0], k).log()
    expected = sum(y0_hat[..., c, None] * by_label[c] for c in range(num_categories))
    torch.testing.assert_close(labels.reverse_logits(y0_hat, k, "expected"), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", labels.REVERSE_LOGITS_METHODS)
@pytest.mark.parametrize("k", [0.99, 1 - 1e-6])
def test_certain_prediction_has_finite_logits(form: labels.ReverseLogitsMethod, k: float) -> None:
    certain = one_hot(torch.arange(5), 5)[:, None].float().requires_grad_()
    logits = labels.reverse_logits(certain, k, form)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert certain.grad is not None
    assert certain.grad.isfinite().all()
    wanted = (2 if form == "2log" else 1) * centered(labels.smooth(one_hots(5), k).log())
    torch.testing.assert_close(centered(logits.detach()), wanted.float(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("k", [0.99, 0.9999, 1 - 1e-6])
@pytest.mark.parametrize("num_categories", [2, 5, 64])
def test_no_nan_in_float32_states_or_their_gradients(num_categories: int, k: float) -> None:
    schedule = augment(cosine(2000), num_categories, k)
    generator = torch.Generator().manual_seed(0)
    t = torch.arange(1, 2001)
    shape = (2000, 1, num_categories)
    logits = torch.randn(shape, generator=generator).requires_grad_()
    prediction = logits.softmax(-1)
    clean = one_hot(torch.zeros(2000, 1, dtype=torch.int64), num_categories).float()
    y_t = labels.diffuse(clean, torch.randn(shape, generator=generator), schedule.at(t), k)
    assert (y_t > 0).all()
    for form in labels.REVERSE_LOGITS_METHODS:
        noise, clean_logits = torch.randn(shape, generator=generator), labels.reverse_logits(prediction, k, form)
        y_s = labels.step_back(clean_logits, y_t, noise, schedule.at(t - 1), schedule.at(t))
        assert y_s.isfinite().all()
        torch.testing.assert_close(y_s.sum(-1), torch.ones(2000, 1))
        (gradient,) = torch.autograd.grad((y_s**2).sum(), logits, retain_graph=True)
        assert gradient.isfinite().all()


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.integers(0, 10))
def test_drawn_labels_have_the_predicted_frequencies(weights: list[float], seed: int) -> None:
    chances = torch.tensor(weights, dtype=torch.float64)
    chances = chances / chances.sum()
    noise = torch.randn(20_000, len(weights), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    drawn = labels.draw_label(chances.expand_as(noise), noise)
    assert torch.equal(drawn.sum(-1), torch.ones(20_000, dtype=torch.float64))
    deviation = (drawn.mean(0) - chances) / (chances * (1 - chances) / 20_000).sqrt()
    assert deviation.abs().max() < 5


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


def log_prob(loc: torch.Tensor, scale: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return GaussianSoftmax(loc, scale, validate_args=False).log_prob(y)


def test_gradients_of_densities_and_of_samples() -> None:
    loc = torch.randn(2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)).requires_grad_()
    scale = double(0.5, 1.2)[:, None].requires_grad_()
    logits = torch.randn(2, 4, dtype=DOUBLE, generator=torch.Generator().manual_seed(1)).requires_grad_()
    other = GaussianSoftmax(torch.zeros(4, dtype=DOUBLE), 0.9)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda loc, scale, logits: log_prob(loc, scale, logits.softmax(-1)), (loc, scale, logits))
    for function in (GaussianSoftmax.argmax_probs, lambda gs: kl_divergence(gs, other)):
        assert torch.autograd.gradcheck(
            lambda a, b, f=function: f(GaussianSoftmax(a, b, validate_args=False)), (loc, scale)
        )
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
@pytest.mark.parametrize("other_scale", [0.8, 1.7, None])
def test_kl_matches_monte_carlo(size: int, other_scale: float | None) -> None:
    """Scales of None differ by category."""
    torch.manual_seed(size)
    scales = (0.8, other_scale) if other_scale else (torch.linspace(0.5, 1.5, size), torch.linspace(1.3, 0.8, size))
    p, q = (GaussianSoftmax(torch.randn(size, dtype=DOUBLE), scale) for scale in scales)
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


def test_interface_batches_and_extreme_scales() -> None:
    gs = GaussianSoftmax(torch.zeros(4, 1, 3), torch.ones(2, 1))
    assert (gs.batch_shape, gs.event_shape, gs.has_rsample) == ((4, 2), (3,), True)
    y = gs.sample((7,))
    assert y.shape == (7, 4, 2, 3)
    assert gs.support.check(y).all()
    assert (gs.log_prob(y).shape, gs.argmax_probs().shape) == ((7, 4, 2), (4, 2, 3))
    wide = gs.expand((5, 4, 2))
    assert (wide.batch_shape, wide.log_prob(y[:5]).shape) == ((5, 4, 2), (5, 4, 2))
    assert "GaussianSoftmax" in repr(wide)
    assert GaussianSoftmax(torch.zeros(3), 2).sample().shape == (3,)
    assert GaussianSoftmax(torch.zeros(3, dtype=DOUBLE), 2).sample().dtype == DOUBLE
    generator = torch.Generator().manual_seed(0)
    loc, logits = torch.randn(2, 6, 5, generator=generator, dtype=DOUBLE)
    scale = torch.rand(6, 1, generator=generator, dtype=DOUBLE) + 0.5
    y = logits.softmax(-1)
    whole = GaussianSoftmax(loc, scale).log_prob(y)
    one = torch.stack([GaussianSoftmax(loc[i], scale[i]).log_prob(y[i]) for i in range(6)])
    torch.testing.assert_close(whole, one)
    torch.testing.assert_close(torch.vmap(log_prob)(loc, scale, y), whole)
    gradient = torch.vmap(torch.func.grad(log_prob))(loc, scale, y)
    torch.testing.assert_close(gradient.sum(-1), torch.zeros(6, dtype=DOUBLE))
    for sigma in (1e-4, 1.0, 6.0):
        gs = GaussianSoftmax(torch.linspace(-1, 1, 64), sigma)
        assert gs.log_prob(gs.sample((10,))).isfinite().all()
        assert kl_divergence(gs, GaussianSoftmax(torch.zeros(64), sigma)).isfinite()
    for sigma in (1e-3, 1.0, 100.0):
        total = GaussianSoftmax(torch.tensor([0.0, 1.0, 2.0]), sigma).argmax_probs().sum()
        torch.testing.assert_close(total, torch.tensor(1.0), rtol=1e-5, atol=1e-5)


def test_bad_input_names_the_argument() -> None:
    three = torch.zeros(3)
    bad_locs = [torch.zeros(shape) for shape in ((), (1,), (4, 1))] + [three.long(), torch.tensor([0.0, math.nan])]
    for name, loc, scale in [
        *(("scale", loc, scale) for loc, scale in ((three, 0.0), (three, -1.0), (torch.zeros(4, 3), torch.ones(4)))),
        *(("loc", loc, 1.0) for loc in bad_locs),
    ]:
        with pytest.raises(ValueError, match=name):
            GaussianSoftmax(loc, scale, validate_args=True)
    gs = GaussianSoftmax(three, 1.0, validate_args=True)
    for value in ([0.5, 0.5, 0.5], [1.2, -0.1, -0.1], [0.5, 0.5, 0.0], [math.nan, 0.5, 0.5], [0.5, 0.5]):
        with pytest.raises(ValueError, match=r"value|event_shape"):
            gs.log_prob(torch.tensor(value))
    with pytest.raises(ValueError, match="num_nodes"):
        gs.argmax_probs(num_nodes=1)
    with pytest.raises(ValueError, match="categories"):
        kl_divergence(gs, GaussianSoftmax(torch.zeros(4), 1.0))
