"""Schedules: exact ends, precision where ᾱ or 1 − ᾱ is tiny, finite coefficients and gradients, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.diffusion import Schedule, augment, authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion.gaussian import Level, posterior_weights, preconditioning, root, transition
from sketchdnn.diffusion.samplers import ddim_weights, solver_weights

SCHEDULES = {"cosine": cosine, "authors": authors_cosine, "linear": linear, "log-linear": log_linear_snr}


@pytest.mark.parametrize("num_steps", [1, 2, 100, 2000])
@pytest.mark.parametrize("make", [cosine, linear])
@pytest.mark.parametrize("of_root", [False, True])
def test_ends_are_exact_raw_and_augmented(make, num_steps: int, of_root: bool) -> None:
    raw = make(num_steps)
    for schedule in (raw, augment(raw, 5, 0.99, of_root=of_root), augment(raw, 64, 1 - 1e-6, of_root=of_root)):
        assert schedule.num_steps == num_steps
        assert schedule.alpha_bar[0] == 1
        assert schedule.var[0] == 0
        assert schedule.alpha_bar[-1] == 0
        assert schedule.var[-1] == 1


def test_other_schedules_state_their_ends() -> None:
    authors = authors_cosine(2000)
    assert authors.alpha_bar[0] == 0.9999
    assert authors.alpha_bar[-1] == 1e-4
    assert (authors.alpha_bar[:13] == 0.9999).all()
    assert (authors.alpha_bar[-13:] == 1e-4).all()
    # Nowhere else is it flat.
    assert (authors.alpha_bar[13:-12].diff() < 0).all()
    log_snr = log_linear_snr(100, first=10, last=-10).at(torch.arange(101)).snr.log()
    torch.testing.assert_close(log_snr, torch.linspace(10, -10, 101, dtype=torch.float64))


def test_cosine_is_the_published_one() -> None:
    """f(t)/f(0) of Nichol & Dhariwal with s = 0.008, at a few steps, in exact arithmetic elsewhere."""
    schedule = cosine(2000)
    for t in (1, 10, 500, 1000, 1999):
        angle = math.pi / 2 * (t / 2000 + 0.008) / 1.008
        expected = math.cos(angle) ** 2 / math.cos(math.pi / 2 * 0.008 / 1.008) ** 2
        assert schedule.alpha_bar[t].item() == pytest.approx(expected, rel=1e-12)


def test_the_augmented_schedule_of_the_paper_starts_with_a_fall() -> None:
    b_bar = augment(cosine(2000), 5, 0.99).alpha_bar
    assert b_bar[1].item() == pytest.approx(0.80, abs=0.005)
    assert b_bar[0] == 1


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("num_categories", [None, 2, 5, 64])
@pytest.mark.parametrize("of_root", [False, True])
def test_both_numbers_keep_their_digits(name: str, num_categories: int | None, of_root: bool) -> None:
    """ᾱ and 1 − ᾱ against 50-digit arithmetic, where either is tiny too."""
    from mpmath import mp, mpf

    mp.dps = 50
    k = mpf(0.99)
    num_steps = 2000
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


@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    num_steps=st.integers(1, 300),
    num_categories=st.integers(2, 64),
    k=st.floats(1e-3, 1 - 1e-6),
    of_root=st.booleans(),
)
def test_a_schedule_falls_and_its_parts_sum_to_one(
    name: str, num_steps: int, num_categories: int, k: float, of_root: bool
) -> None:
    schedule = augment(SCHEDULES[name](num_steps), num_categories, k, of_root=of_root)
    assert schedule.alpha_bar.dtype == torch.float64
    assert (schedule.alpha_bar.diff() <= 0).all()
    assert (schedule.var.diff() >= 0).all()
    torch.testing.assert_close(schedule.alpha_bar + schedule.var, torch.ones(num_steps + 1, dtype=torch.float64))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    ("num_categories", "k"), [(None, 0.5), (2, 0.5), (2, 1 - 1e-6), (5, 0.99), (5, 0.9999), (64, 0.99), (64, 1 - 1e-6)]
)
def test_no_coefficient_and_no_gradient_is_nan_or_infinite_in_float32(
    name: str, num_categories: int | None, k: float
) -> None:
    """For every t in 0..T, and pairs s < t: next neighbors, from the first, from the last."""
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


@pytest.mark.parametrize("name", SCHEDULES)
def test_coefficients_are_finite_for_every_number_of_categories(name: str) -> None:
    raw = SCHEDULES[name](2000)
    t = torch.arange(1, 2001)
    for num_categories in range(2, 65):
        schedule = augment(raw, num_categories, 1 - 1e-6)
        for number in posterior_weights(schedule.at(t - 1), schedule.at(t)):
            assert number.float().isfinite().all()


def test_bad_input_names_the_argument() -> None:
    for make in (cosine, authors_cosine, linear, log_linear_snr):
        with pytest.raises(ValueError, match="num_steps"):
            make(0)
    with pytest.raises(ValueError, match="offset"):
        cosine(10, offset=-1)
    with pytest.raises(ValueError, match="first"):
        log_linear_snr(10, first=-1, last=1)
    for k in (0.0, 1.0, -1.0, 2.0, math.nan):
        with pytest.raises(ValueError, match="label_smoothing"):
            augment(cosine(10), 5, k)
    with pytest.raises(ValueError, match="num_categories"):
        augment(cosine(10), 1, 0.99)
    with pytest.raises(ValueError, match="alpha_bar"):
        replace(cosine(10), alpha_bar=torch.linspace(0, 1, 11, dtype=torch.float64))
    with pytest.raises(ValueError, match="alpha_bar"):
        replace(cosine(10), alpha_bar=torch.zeros(5))
    with pytest.raises(ValueError, match="var"):
        replace(cosine(10), var=torch.zeros(11, dtype=torch.float64))


def test_a_clean_state_has_infinite_snr() -> None:
    assert cosine(10).at(0).snr == math.inf
    assert Level(torch.tensor(0.5), torch.tensor(0.5)).snr == 1


@pytest.mark.parametrize(
    ("alpha_bar", "var", "sentence"),
    [
        ([1.0], [0.0], "vectors of T \\+ 1 numbers"),
        ([1.0, 0.5], [0.0, 0.5, 1.0], "vectors of T \\+ 1 numbers"),
        ([1.0, 0.5, 0.6], [0.0, 0.5, 0.5], "must fall and var rise"),
        ([1.0, 0.5, 0.5], [0.0, 0.5, 0.4], "must fall and var rise"),
        ([1.0, 0.5, -0.1], [0.0, 0.5, 1.1], "must lie in"),
        ([1.1, 0.5, 0.0], [-0.1, 0.5, 1.0], "must lie in"),
        ([1.0, 0.5, 0.1], [0.0, 0.5, 0.8], "parts of one"),
    ],
)
def test_what_is_no_schedule_is_refused_by_name(alpha_bar: list[float], var: list[float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Schedule("mine", torch.tensor(alpha_bar), torch.tensor(var))
    Schedule("level", torch.tensor([1.0, 0.5, 0.5, 0.0]), torch.tensor([0.0, 0.5, 0.5, 1.0]))
