"""Gaussian transitions: single steps compose to the cumulative one, and the posterior undoes what the forward did."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sketchdnn.diffusion import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion import gaussian as g
from sketchdnn.diffusion.gaussian import Level

RAW = {
    "cosine": cosine,
    "authors": authors_cosine,
    "linear": linear,
    "log-linear": log_linear_snr,
    # 1 − ᾱ_0 and ᾱ_T are 1e-11: a difference taken on the wrong side would keep five digits.
    "sharp": lambda steps: log_linear_snr(steps, 25.0, -25.0),
}
ALL = {
    name if num_categories is None else f"{name}-{num_categories}-{k}-{of_root}": (
        lambda steps, make=make, d=num_categories, k=k, r=of_root: (
            make(steps) if d is None else augment(make(steps), d, k, of_root=r)
        )
    )
    for name, make in RAW.items()
    for num_categories, k, of_root in [
        (None, 0.99, False),
        (2, 0.99, False),
        (5, 0.99, False),
        (5, 0.9999, True),
        (64, 1 - 1e-6, False),
    ]
}


def pairs(num_steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair s < t of 0..num_steps."""
    s, t = torch.triu_indices(num_steps + 1, num_steps + 1, offset=1)
    return s, t


def every_pair_of(schedule: Schedule, count: int = 61) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pair among steps that include both ends and their neighbors, where precision is hardest."""
    last = schedule.num_steps
    some = torch.cat([torch.linspace(0, last, count).long(), torch.tensor([1, 2, 3, last - 3, last - 2, last - 1])])
    some = some.unique()
    s, t = pairs(len(some) - 1)
    return some[s], some[t]


@pytest.mark.parametrize("name", ALL)
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(name: str) -> None:
    """Mean and variance, propagated through the posterior's weights: exact for every s < t."""
    schedule = ALL[name](2000)
    s, t = every_pair_of(schedule)
    at_s, at_t = schedule.at(s), schedule.at(t)
    weights = g.posterior_weights(at_s, at_t)
    # x_t = √ᾱ_t·x_0 + noise of variance 1 − ᾱ_t goes into x_s = of_x_t·x_t + of_x0·x_0 + std·noise.
    mean = weights.x_t * at_t.alpha_bar.sqrt() + weights.x0
    variance = weights.x_t**2 * at_t.var + weights.std**2
    exact = {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(mean, at_s.alpha_bar.sqrt(), **exact)
    torch.testing.assert_close(variance, at_s.var, **exact)
    # Either is a tiny number at one end: right to its own size as well, and so is the noise that a step adds.
    torch.testing.assert_close(mean, at_s.alpha_bar.sqrt(), rtol=1e-9, atol=0)
    torch.testing.assert_close(variance, at_s.var, rtol=1e-9, atol=0)
    var_ts = g.transition(at_s, at_t).var
    torch.testing.assert_close(at_s.alpha_bar * var_ts + at_s.var, at_t.var, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ALL)
def test_steps_compose_to_the_cumulative_transition(name: str) -> None:
    """Coefficients of 0 → s → t equal those of 0 → t, and a chain of all single steps does too."""
    schedule = ALL[name](2000)
    s, t = every_pair_of(schedule)
    at_s, at_t = schedule.at(s), schedule.at(t)
    alpha_ts, var_ts = g.transition(at_s, at_t)
    torch.testing.assert_close(at_s.alpha_bar * alpha_ts, at_t.alpha_bar, rtol=1e-12, atol=0)
    torch.testing.assert_close(alpha_ts * at_s.var + var_ts, at_t.var, rtol=1e-9, atol=1e-12)
    assert (var_ts >= 0).all()
    signal, variance = schedule.alpha_bar[0].sqrt(), schedule.var[0]
    for step in range(1, 2001):
        one = g.transition(schedule.at(step - 1), schedule.at(step))
        signal, variance = signal * one.alpha_bar.sqrt(), variance * one.alpha_bar + one.var
    torch.testing.assert_close(signal, schedule.alpha_bar[-1].sqrt(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(variance, schedule.var[-1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["cosine", "cosine-5-0.99-False", "authors-5-0.9999-True"])
def test_composed_samples_have_the_cumulative_distribution(name: str) -> None:
    schedule = ALL[name](12)
    generator = torch.Generator().manual_seed(1)
    x0 = torch.full((20_000,), 0.7, dtype=torch.float64)
    x = g.diffuse(x0, torch.randn(x0.shape, generator=generator, dtype=torch.float64), schedule.at(1))
    for t in range(2, 9):
        noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        x = g.step_forward(x, noise, schedule.at(t - 1), schedule.at(t))
    level = schedule.at(8)
    normal = stats.norm(0.7 * level.alpha_bar.sqrt().item(), level.var.sqrt().item())
    assert stats.kstest(x.numpy(), normal.cdf).pvalue > 1e-3
    assert x.mean().item() == pytest.approx(normal.mean(), abs=4 * normal.std() / math.sqrt(len(x)))
    assert x.var().item() == pytest.approx(normal.var(), rel=4 * math.sqrt(2 / len(x)))


def test_the_posterior_is_bayes_rule() -> None:
    """q(x_s | x_t, x_0) against the product of the two densities it comes from, on a grid."""
    schedule = cosine(50)
    at_s, at_t = schedule.at(20), schedule.at(33)
    x0, x_t = torch.tensor([0.4], dtype=torch.float64), torch.tensor([-0.9], dtype=torch.float64)
    mean, std = g.posterior(x0, x_t, at_s, at_t)
    x_s = torch.linspace(-6, 6, 4001, dtype=torch.float64)
    alpha_ts, var_ts = g.transition(at_s, at_t)
    density = torch.exp(
        -((x_t - alpha_ts.sqrt() * x_s) ** 2) / (2 * var_ts) - (x_s - at_s.alpha_bar.sqrt() * x0) ** 2 / (2 * at_s.var)
    )
    density = density / torch.trapezoid(density, x_s)
    first = torch.trapezoid(density * x_s, x_s)
    second = torch.trapezoid(density * (x_s - first) ** 2, x_s)
    torch.testing.assert_close(mean[0], first, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(std.square(), second, rtol=1e-9, atol=1e-9)


def test_one_step_for_all_equals_one_a_sample() -> None:
    schedule = cosine(100)
    x0, x_t = torch.randn(4, 3, 2), torch.randn(4, 3, 2)
    t, s = torch.full((4,), 70), torch.full((4,), 30)
    one_mean, one_std = g.posterior(x0, x_t, schedule.at(30), schedule.at(70))
    each_mean, each_std = g.posterior(x0, x_t, schedule.at(s), schedule.at(t))
    assert torch.equal(one_mean, each_mean)
    assert torch.equal(one_std.expand(4), each_std.flatten())
    assert torch.equal(g.diffuse(x0, x_t, schedule.at(70)), g.diffuse(x0, x_t, schedule.at(t)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_state_keeps_its_type(dtype: torch.dtype) -> None:
    x = torch.zeros(2, 3, dtype=dtype)
    schedule = cosine(10)
    assert g.diffuse(x, x, schedule.at(3)).dtype == dtype
    mean, std = g.posterior(x, x, schedule.at(3), schedule.at(torch.tensor([5, 6])))
    assert mean.dtype == std.dtype == dtype


def test_the_last_step_back_lands_on_the_prediction() -> None:
    x0, x_1 = torch.randn(5), torch.randn(5)
    schedule = augment(cosine(2000), 5, 0.99)
    mean, std = g.posterior(x0, x_1, schedule.at(0), schedule.at(1))
    assert torch.equal(mean, x0)
    assert (std == 0).all()


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=64), st.floats(-50, 50))
def test_the_norm_of_the_density_is_blind_to_shifts(values: list[float], shift: float) -> None:
    v = torch.tensor(values, dtype=torch.float64)
    size = len(values)
    written = (v**2).sum() - v.sum() ** 2 / size  # as the paper writes it
    torch.testing.assert_close(g.squared_norm_perp(v), written, rtol=1e-9, atol=1e-8)
    torch.testing.assert_close(g.squared_norm_perp(v + shift), g.squared_norm_perp(v), rtol=1e-9, atol=1e-8)


def target(x0: torch.Tensor, x_t: torch.Tensor, level: Level, data_std: float) -> torch.Tensor:
    """The network output that gives x_0 exactly."""
    c = g.preconditioning(level, data_std)
    return (x0 - g.like(c.skip, x_t) * x_t) / g.like(c.out, x_t)


@pytest.mark.parametrize("make", [cosine, authors_cosine, log_linear_snr])
@pytest.mark.parametrize("data_std", [0.1, 0.5, 1.0, 3.0])
def test_input_and_target_have_unit_variance_at_every_level(make, data_std: float) -> None:
    """For data of that spread; the target is uncorrelated with the input, so skip takes all of a linear estimate."""
    schedule = make(100)
    generator = torch.Generator().manual_seed(0)
    x0 = data_std * torch.randn(20_000, generator=generator, dtype=torch.float64)
    for t in (1, 5, 50, 95, 100):
        level = schedule.at(t)
        x_t = g.diffuse(x0, torch.randn(x0.shape, generator=generator, dtype=torch.float64), level)
        scaled, wanted = g.scale_input(x_t, level, data_std), target(x0, x_t, level, data_std)
        assert scaled.std().item() == pytest.approx(1, abs=0.03)
        assert wanted.std().item() == pytest.approx(1, abs=0.03)
        assert torch.corrcoef(torch.stack([scaled, wanted]))[0, 1].abs() < 0.03
        torch.testing.assert_close(g.denoised(x_t, wanted, level, data_std), x0)


def test_preconditioning_at_the_ends() -> None:
    """A clean state is its own prediction, whatever the output; pure noise leaves all to the network."""
    schedule = cosine(10)
    x, output = torch.randn(5), torch.randn(5)
    torch.testing.assert_close(g.denoised(x, output, schedule.at(0), 0.5), x)
    torch.testing.assert_close(g.denoised(x, output, schedule.at(10), 0.5), 0.5 * output)
    assert torch.equal(g.scale_input(x, schedule.at(10), 0.5), x)


def test_preconditioning_with_a_level_for_each_sample() -> None:
    schedule = cosine(10)
    x, output = torch.randn(2, 3, 4, 5)
    t = torch.tensor([1, 5, 10])
    whole = g.denoised(x, output, schedule.at(t), 0.4)
    for i in range(3):
        torch.testing.assert_close(whole[i], g.denoised(x[i], output[i], schedule.at(int(t[i])), 0.4))


@pytest.mark.parametrize("data_std", [0.0, -1.0, float("nan")])
def test_impossible_data_std_is_refused(data_std: float) -> None:
    with pytest.raises(ValueError, match="data_std"):
        g.preconditioning(cosine(10).at(1), data_std)
