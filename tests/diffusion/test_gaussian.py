"""Schedules, Gaussian transitions and preconditioning: exactness, composition, precision, refusals."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.diffusion import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion import gaussian as g
from sketchdnn.diffusion.gaussian import Level, posterior_weights, preconditioning, root, transition
from sketchdnn.diffusion.samplers import ddim_weights, solver_weights

SCHEDULES = {"cosine": cosine, "authors": authors_cosine, "linear": linear, "log-linear": log_linear_snr}
# 1 − ᾱ_0 and ᾱ_T are 1e-11: a difference taken on the wrong side would keep five digits.
RAW = {**SCHEDULES, "sharp": lambda steps: log_linear_snr(steps, 25.0, -25.0)}
AUGMENTED = [(None, 0.99, False), (2, 0.99, False), (5, 0.99, False), (5, 0.9999, True), (64, 1 - 1e-6, False)]
ALL = {
    name if num_categories is None else f"{name}-{num_categories}-{k}-{of_root}": (
        lambda steps, make=make, d=num_categories, k=k, r=of_root: (
            make(steps) if d is None else augment(make(steps), d, k, of_root=r)
        )
    )
    for name, make in RAW.items()
    for num_categories, k, of_root in AUGMENTED
}


def every_pair_of(schedule: Schedule, count: int = 61) -> tuple[torch.Tensor, torch.Tensor]:
    last = schedule.num_steps
    some = torch.cat([torch.linspace(0, last, count).long(), torch.tensor([1, 2, 3, last - 3, last - 2, last - 1])])
    some = some.unique()
    s, t = torch.triu_indices(len(some), len(some), offset=1)
    return some[s], some[t]


@pytest.mark.parametrize("name", ALL)
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(name: str) -> None:
    """Mean and variance, propagated through the posterior's weights: exact for every s < t."""
    schedule = ALL[name](2000)
    s, t = every_pair_of(schedule)
    at_s, at_t = schedule.at(s), schedule.at(t)
    of_x_t, of_x0, std = g.posterior_weights(at_s, at_t)
    # x_t = √ᾱ_t·x_0 + noise of variance 1 − ᾱ_t goes into x_s = of_x_t·x_t + of_x0·x_0 + std·noise.
    mean = of_x_t * at_t.alpha_bar.sqrt() + of_x0
    variance = of_x_t**2 * at_t.var + std**2
    # Either is a tiny number at one end: right to its own size as well, and so is the noise that a step adds.
    for found, wanted in ((mean, at_s.alpha_bar.sqrt()), (variance, at_s.var)):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=0)
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


def test_posterior_is_bayes_rule() -> None:
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


def test_scalar_step_equals_one_for_each_sample_and_keeps_the_type() -> None:
    schedule = cosine(100)
    x0, x_t = torch.randn(4, 3, 2), torch.randn(4, 3, 2)
    t, s = torch.full((4,), 70), torch.full((4,), 30)
    one_mean, one_std = g.posterior(x0, x_t, schedule.at(30), schedule.at(70))
    each_mean, each_std = g.posterior(x0, x_t, schedule.at(s), schedule.at(t))
    one, each = (g.diffuse(x0, x_t, schedule.at(step)) for step in (70, t))
    assert all(map(torch.equal, (one_mean, one_std.expand(4), one), (each_mean, each_std.flatten(), each)))
    t = torch.tensor([1, 50, 70, 100])
    whole = g.denoised(x_t, x0, schedule.at(t), 0.4)
    for i in range(4):
        torch.testing.assert_close(whole[i], g.denoised(x_t[i], x0[i], schedule.at(int(t[i])), 0.4))
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.zeros(2, 3, dtype=dtype)
        mean, std = g.posterior(x, x, schedule.at(3), schedule.at(torch.tensor([5, 6])))
        assert g.diffuse(x, x, schedule.at(3)).dtype == mean.dtype == std.dtype == dtype


def target(x0: torch.Tensor, x_t: torch.Tensor, level: Level, data_std: float) -> torch.Tensor:
    c = g.preconditioning(level, data_std)
    return (x0 - g.like(c.skip, x_t) * x_t) / g.like(c.out, x_t)


@pytest.mark.parametrize("make", [cosine, authors_cosine, log_linear_snr])
@pytest.mark.parametrize("data_std", [0.1, 0.5, 1.0, 3.0])
def test_preconditioned_input_and_target_have_unit_variance(make, data_std: float) -> None:
    """For data of that spread; the target is uncorrelated with the input, so skip takes all of a linear estimate."""
    schedule = make(100)
    generator = torch.Generator().manual_seed(0)
    x0 = data_std * torch.randn(20_000, generator=generator, dtype=torch.float64)
    for t in (1, 5, 50, 95, 100):
        level = schedule.at(t)
        x_t = g.diffuse(x0, torch.randn(x0.shape, generator=generator, dtype=torch.float64), level)
        scaled, wanted = g.scale_input(x_t, level, data_std), target(x0, x_t, level, data_std)
        assert (scaled.std().item(), wanted.std().item()) == (pytest.approx(1, abs=0.03), pytest.approx(1, abs=0.03))
        assert torch.corrcoef(torch.stack([scaled, wanted]))[0, 1].abs() < 0.03
        torch.testing.assert_close(g.denoised(x_t, wanted, level, data_std), x0)


def test_last_step_and_pure_noise_return_the_prediction() -> None:
    """A clean state is its own prediction, whatever the output; pure noise leaves all to the network."""
    x, output, schedule = torch.randn(5), torch.randn(5), cosine(10)
    labels = augment(cosine(2000), 5, 0.99)
    mean, std = g.posterior(x, output, labels.at(0), labels.at(1))
    assert torch.equal(mean, x)
    assert (std == 0).all()
    torch.testing.assert_close(g.denoised(x, output, schedule.at(0), 0.5), x)
    torch.testing.assert_close(g.denoised(x, output, schedule.at(10), 0.5), 0.5 * output)
    assert torch.equal(g.scale_input(x, schedule.at(10), 0.5), x)


@pytest.mark.parametrize("num_steps", [1, 2, 100, 2000])
@pytest.mark.parametrize("make", [cosine, linear])
@pytest.mark.parametrize("of_root", [False, True])
def test_ends_are_exact_raw_and_augmented(make, num_steps: int, of_root: bool) -> None:
    raw = make(num_steps)
    for schedule in (raw, augment(raw, 5, 0.99, of_root=of_root), augment(raw, 64, 1 - 1e-6, of_root=of_root)):
        assert (schedule.num_steps, (schedule.alpha_bar[0], schedule.var[0])) == (num_steps, (1, 0))
        assert (schedule.alpha_bar[-1], schedule.var[-1]) == (0, 1)


def test_augmented_schedule_starts_with_a_fall() -> None:
    b_bar = augment(cosine(2000), 5, 0.99).alpha_bar
    assert (b_bar[1].item(), b_bar[0]) == (pytest.approx(0.80, abs=0.005), 1)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("num_categories", [None, 2, 5, 64])
@pytest.mark.parametrize("of_root", [False, True])
def test_alpha_bar_and_var_keep_their_digits(name: str, num_categories: int | None, of_root: bool) -> None:
    """ᾱ and 1 − ᾱ against 50-digit arithmetic, where either is tiny too."""
    from mpmath import mp, mpf

    mp.dps, k, num_steps = 50, mpf(0.99), 2000
    schedule = SCHEDULES[name](num_steps)
    if num_categories is not None:
        schedule = augment(schedule, num_categories, 0.99, of_root=of_root)

    def exact(t: int) -> mpf:
        if name == "cosine":
            s = mpf(0.008)
            value = (mp.cos(mp.pi / 2 * (mpf(t) / num_steps + s) / (1 + s)) / mp.cos(mp.pi / 2 * s / (1 + s))) ** 2
        elif name == "authors":
            value = min(max(mp.cos(mp.pi / 2 * t / num_steps) ** 2, mpf(1e-4)), mpf(0.9999))
        elif name == "linear":
            value = 1 - mpf(t) / num_steps
        else:
            value = 1 / (1 + mp.exp(-(10 - mpf(20) * t / num_steps)))
        if num_categories is None:
            return value
        value = mp.sqrt(value) if of_root else value
        f = [mp.log((1 - x) / ((num_categories - 1) * x + 1)) for x in (value, k)]
        return f[0] ** 2 / (f[0] ** 2 + f[1] ** 2)

    for t in (1, 2, 13, 500, 1000, 1500, 1987, 1998, 1999):
        assert abs(mpf(schedule.alpha_bar[t].item()) / exact(t) - 1) < 1e-11, t
        assert abs(mpf(schedule.var[t].item()) / (1 - exact(t)) - 1) < 2e-13, t


@given(st.sampled_from([*SCHEDULES]), st.integers(1, 300), st.integers(2, 64), st.floats(1e-3, 1 - 1e-6), st.booleans())
def test_schedules_are_valid(name: str, num_steps: int, num_categories: int, k: float, of_root: bool) -> None:
    """They fall and sum to one, else `Schedule` refuses them."""
    schedule = augment(SCHEDULES[name](num_steps), num_categories, k, of_root=of_root)
    assert schedule.alpha_bar.dtype == torch.float64


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    ("num_categories", "k"), [(None, 0.5), (2, 0.5), (2, 1 - 1e-6), (5, 0.99), (5, 0.9999), (64, 0.99), (64, 1 - 1e-6)]
)
def test_coefficients_and_gradients_are_finite_in_float32(name: str, num_categories: int | None, k: float) -> None:
    raw = SCHEDULES[name](2000)
    free = Schedule(raw.name, raw.alpha_bar.clone().requires_grad_(), raw.var.clone().requires_grad_())
    for of_root in (False, True):
        schedule = free if num_categories is None else augment(free, num_categories, k, of_root=of_root)
        t = torch.arange(1, 2001)
        s = torch.cat([t - 1, torch.zeros_like(t), t // 2])
        late = torch.cat([t, t, t])
        at_s, at_t, at_before = schedule.at(s), schedule.at(late), schedule.at((late + 1).clamp(max=2000))
        everywhere = schedule.at(torch.arange(2001))
        numbers = [
            root(everywhere.alpha_bar),
            root(everywhere.var),
            *transition(at_s, at_t),
            *(root(x) for x in transition(at_s, at_t)),
            *posterior_weights(at_s, at_t),
            *preconditioning(everywhere, 0.4),
            *(x for w in (ddim_weights(at_s, at_t, eta) for eta in (0.0, 0.5, 1.0)) for x in (w.x_t, w.x0, w.std)),
            *solver_weights(at_s, at_t, at_before),
        ]
        for number in numbers:
            assert number.dtype == torch.float64
            assert number.float().isfinite().all()
            for gradient in torch.autograd.grad(
                number.float().sum(), [free.alpha_bar, free.var], retain_graph=True, allow_unused=True
            ):
                assert gradient is None or gradient.float().isfinite().all()


def test_bad_input_names_the_argument() -> None:
    calls = [("offset", cosine, 10, -1), ("first", log_linear_snr, 10, -1, 1)]
    calls += [("num_categories", augment, cosine(10), 1, 0.99)]
    calls += [("num_steps", make, 0) for make in SCHEDULES.values()]
    calls += [("label_smoothing", augment, cosine(10), 5, k) for k in (0.0, 1.0, -1.0, 2.0, math.nan)]
    calls += [("data_std", preconditioning, cosine(10).at(1), std) for std in (0.0, -1.0, math.nan)]
    for sentence, alpha_bar, var in (
        (r"vectors of T \+ 1 numbers", [1.0], [0.0]),
        (r"vectors of T \+ 1 numbers", [1.0, 0.5], [0.0, 0.5, 1.0]),
        ("must fall and var rise", [1.0, 0.5, 0.6], [0.0, 0.5, 0.5]),
        ("must fall and var rise", [1.0, 0.5, 0.5], [0.0, 0.5, 0.4]),
        ("must lie in", [1.0, 0.5, -0.1], [0.0, 0.5, 1.1]),
        ("must lie in", [1.1, 0.5, 0.0], [-0.1, 0.5, 1.0]),
        ("parts of one", [1.0, 0.5, 0.1], [0.0, 0.5, 0.8]),
    ):
        calls.append((sentence, Schedule, "mine", torch.tensor(alpha_bar), torch.tensor(var)))
    for name, function, *arguments in calls:
        with pytest.raises(ValueError, match=name):
            function(*arguments)
    Schedule("level", torch.tensor([1.0, 0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 0.5, 1.0]))
