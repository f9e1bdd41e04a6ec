"""Gaussian-Softmax diffusion of labels, seen in centered logits, where it is Gaussian."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.toys import centered
from torch.nn.functional import one_hot

from sketchdnn.diffusion import augment, authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion import gaussian_softmax as labels

SCHEDULES = {
    "cosine": lambda d, k: augment(cosine(200), d, k),
    "cosine, raw": lambda d, k: cosine(200),
    "authors": lambda d, k: augment(authors_cosine(200), d, k, of_root=True),
    "linear": lambda d, k: augment(linear(200), d, k),
    "log-linear": lambda d, k: augment(log_linear_snr(200), d, k),
}
STEPS = [(0, 1), (0, 200), (1, 2), (1, 200), (50, 51), (30, 170), (198, 199), (199, 200)]


def one_hots(num_categories: int) -> torch.Tensor:
    """Every label once: batch, one row, categories."""
    return torch.eye(num_categories, dtype=torch.float64)[:, None]


def smoothed_logits(y0: torch.Tensor, k: float) -> torch.Tensor:
    return centered(labels.smooth(y0, k).log())


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("num_categories", "k"), [(2, 0.99), (3, 0.5), (5, 0.99), (5, 0.9999), (64, 1 - 1e-6)])
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(name: str, num_categories: int, k: float) -> None:
    """Exact in mean and covariance of the centered logits: softmax and log lose nothing but a shift.

    The logits are linear in the noise, so noise of zero gives the mean and unit noises give a root of the covariance.
    """
    schedule = SCHEDULES[name](num_categories, k)
    y0 = one_hots(num_categories)[:1].expand(num_categories, -1, -1)
    logits0 = labels.smooth(y0, k).log()
    zero = torch.zeros_like(y0)
    unit = one_hots(num_categories)
    centering = torch.eye(num_categories, dtype=torch.float64) - 1 / num_categories
    for s, t in STEPS:
        at_s, at_t = schedule.at(s), schedule.at(t)

        def back(
            first: torch.Tensor, second: torch.Tensor, at_s: labels.Level = at_s, at_t: labels.Level = at_t
        ) -> torch.Tensor:
            y_t = labels.diffuse(y0, first, at_t, k)
            return centered(labels.step_back(logits0, y_t, second, at_s, at_t).log())

        mean = back(zero, zero)
        torch.testing.assert_close(mean, at_s.alpha_bar.sqrt() * centered(logits0), rtol=1e-10, atol=1e-10)
        of_first, of_second = (back(unit, zero) - mean)[:, 0], (back(zero, unit) - mean)[:, 0]
        covariance = of_first.T @ of_first + of_second.T @ of_second
        torch.testing.assert_close(covariance, at_s.var * centering, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("num_categories", [2, 5])
def test_composed_steps_have_the_cumulative_distribution(num_categories: int) -> None:
    k = 0.99
    schedule = augment(cosine(20), num_categories, k)
    generator = torch.Generator().manual_seed(3)
    y0 = one_hots(num_categories)[:1].expand(20_000, -1, -1)

    def noise() -> torch.Tensor:
        return torch.randn(y0.shape, generator=generator, dtype=torch.float64)

    y = labels.diffuse(y0, noise(), schedule.at(1), k)
    for t in range(2, 13):
        y = labels.step_forward(y, noise(), schedule.at(t - 1), schedule.at(t))
    level = schedule.at(12)
    # The contrast of the true label with the next: a number that the shift does not touch.
    contrast = (y[:, 0, 0] / y[:, 0, 1]).log()
    gap = math.log(1 + num_categories * k / (1 - k))
    normal = stats.norm(level.alpha_bar.sqrt().item() * gap, math.sqrt(2 * level.var.item()))
    assert stats.kstest(contrast.numpy(), normal.cdf).pvalue > 1e-3
    assert contrast.mean().item() == pytest.approx(normal.mean(), abs=4 * normal.std() / math.sqrt(len(y)))
    assert contrast.var().item() == pytest.approx(normal.var(), rel=4 * math.sqrt(2 / len(y)))
    cumulative = labels.diffuse(y0, noise(), level, k).argmax(dim=-1)
    table = torch.stack([torch.bincount(x.flatten(), minlength=num_categories) for x in (y.argmax(dim=-1), cumulative)])
    assert stats.chi2_contingency(table.numpy()).pvalue > 1e-3


def test_pure_noise_at_the_end_has_a_uniform_label() -> None:
    schedule = augment(cosine(2000), 5, 0.99)
    generator = torch.Generator().manual_seed(0)
    y0 = one_hots(5)[:1].expand(20_000, -1, -1)
    y_t = labels.diffuse(y0, torch.randn(y0.shape, generator=generator, dtype=torch.float64), schedule.at(2000), 0.99)
    counts = torch.bincount(y_t.argmax(dim=-1).flatten(), minlength=5)
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_a_clean_label_is_its_smoothed_self() -> None:
    schedule = augment(cosine(10), 5, 0.99)
    y0 = one_hots(5)
    y_t = labels.diffuse(y0, torch.randn_like(y0), schedule.at(0), 0.99)
    torch.testing.assert_close(y_t, labels.smooth(y0, 0.99))
    torch.testing.assert_close(labels.smooth(y0, 0.99).sum(-1), torch.ones(5, 1, dtype=torch.float64))


@given(st.integers(2, 64), st.floats(0.01, 1 - 1e-6), st.integers(0, 2**20))
def test_the_expected_logit_is_an_expectation(num_categories: int, k: float, seed: int) -> None:
    y0_hat = torch.rand(2, 3, num_categories, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    y0_hat = y0_hat / y0_hat.sum(-1, keepdim=True)
    by_label = labels.smooth(one_hots(num_categories)[:, 0], k).log()
    expected = sum(y0_hat[..., c, None] * by_label[c] for c in range(num_categories))
    torch.testing.assert_close(labels.reverse_logits(y0_hat, k, "expected"), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", labels.REVERSE_LOGITS)
@pytest.mark.parametrize("k", [0.99, 1 - 1e-6])
def test_a_certain_prediction_has_finite_logits(form: labels.ReverseLogits, k: float) -> None:
    certain = one_hot(torch.arange(5), 5)[:, None].float().requires_grad_()
    logits = labels.reverse_logits(certain, k, form)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert certain.grad is not None
    assert certain.grad.isfinite().all()
    twice = 2 if form == "2log" else 1
    wanted = twice * smoothed_logits(one_hots(5), k)
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
    for form in labels.REVERSE_LOGITS:
        y_s = labels.step_back(
            labels.reverse_logits(prediction, k, form),
            y_t,
            torch.randn(shape, generator=generator),
            schedule.at(t - 1),
            schedule.at(t),
        )
        assert y_s.isfinite().all()
        torch.testing.assert_close(y_s.sum(-1), torch.ones(2000, 1))
        (gradient,) = torch.autograd.grad((y_s**2).sum(), logits, retain_graph=True)
        assert gradient.isfinite().all()


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.integers(0, 10))
def test_drawn_labels_have_the_chances_of_the_prediction(weights: list[float], seed: int) -> None:
    chances = torch.tensor(weights, dtype=torch.float64)
    chances = chances / chances.sum()
    noise = torch.randn(20_000, len(weights), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    drawn = labels.draw_label(chances.expand_as(noise), noise)
    assert torch.equal(drawn.sum(-1), torch.ones(20_000, dtype=torch.float64))
    deviation = (drawn.mean(0) - chances) / (chances * (1 - chances) / 20_000).sqrt()
    assert deviation.abs().max() < 5


def test_a_label_of_no_chance_is_never_drawn() -> None:
    noise = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0))
    assert (labels.draw_label(torch.tensor([0.0, 1.0, 0.0]).expand_as(noise), noise)[:, 1] == 1).all()


def test_noise_beyond_all_quantiles_leaves_the_likelier_label() -> None:
    for noise in (-40.0, 40.0):
        drawn = labels.draw_label(torch.tensor([0.2, 0.5, 0.3]), torch.full((3,), noise))
        assert drawn.tolist() == [0, 1, 0]
