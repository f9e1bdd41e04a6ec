"""Multinomial diffusion: transitions against matrices and Bayes' rule; whole sketches drawn and bounded."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.random_batches import clean_batch, normal_batch
from support.toys import every_step, random_noise

from benchmarks.oracles import entropy, oracle
from sketchdnn.diffusion.gaussian import authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import Denoiser
from sketchdnn.diffusion.sampling import SamplingOptions, condition_on_rows, step_sequence
from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems.baselines import multinomial as m
from sketchdnn.systems.baselines.multinomial import (
    MultinomialProcess,
    expected_posterior,
    multinomial_elbo,
    sample_multinomial,
)

PROCESS = MultinomialProcess(cosine(200), "expected", "expected")
MARGINAL = (0.55, 0.25, 0.12, 0.06, 0.02)


def kinds_of_known_chances(process: MultinomialProcess) -> Denoiser:
    """Bayes' rule for rows whose kinds have the chances of `MARGINAL`, all else known."""
    prior = torch.tensor(MARGINAL)

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        chance = m.cumulative_probs(batch_t.kind, process.schedule.at(t))
        flag = torch.tensor([0.0, -math.inf]).expand_as(batch_t.construction)
        return Prediction(flag, (prior * chance).log(), torch.zeros_like(batch_t.params))

    return denoise


def test_labels_are_noised_at_the_pace_of_the_schedule() -> None:
    x0, noise = clean_batch(400), normal_batch(400)
    for t in (1, 60, 120, 200):
        x_t = PROCESS.diffuse(x0, t, noise)
        kept = float((x_t.kind * x0.kind).sum(dim=-1).mean())
        alpha_bar = float(PROCESS.schedule.alpha_bar[t])
        assert abs(kept - (alpha_bar + (1 - alpha_bar) / layout.NUM_KINDS)) < 0.02
        assert bool((x_t.kind.sum(dim=-1) == 1).all())
    x0 = clean_batch(600)
    two = PROCESS.step_forward(PROCESS.diffuse(x0, 50, normal_batch(600, seed=1)), 50, 130, normal_batch(600, seed=2))
    one = PROCESS.diffuse(x0, 130, normal_batch(600, seed=3))
    for part in ("construction", "kind"):
        kept = [float((getattr(x, part) * getattr(x0, part)).sum(dim=-1).mean()) for x in (one, two)]
        assert abs(kept[0] - kept[1]) < 0.02
    assert abs(float(one.params.var() / two.params.var()) - 1) < 0.02
    x0 = clean_batch(300)
    blank = replace(x0, construction=torch.zeros_like(x0.construction))
    drawn = PROCESS.diffuse(blank, 5, normal_batch(300)).construction
    assert abs(float(drawn[..., 0].mean()) - 0.5) < 0.03


def test_the_expected_posterior_is_the_mean_of_posteriors() -> None:
    y_t = torch.eye(5).double()
    chances = torch.tensor(MARGINAL).double().expand(5, 5)
    at_s, at_t = PROCESS.schedule.at(40), PROCESS.schedule.at(150)
    each = torch.stack([m.posterior_probs(c.expand(5, 5), y_t, at_s, at_t) for c in torch.eye(5).double()])
    mean = (torch.tensor(MARGINAL).double()[:, None, None] * each).sum(dim=0)
    assert torch.allclose(expected_posterior(chances, y_t, at_s, at_t), mean)
    # Without noise the label is certain, however unlikely it was.
    label, chances = torch.eye(5)[:1], torch.tensor([[1e-9, 0.25, 0.25, 0.25, 0.25]])
    assert torch.equal(expected_posterior(chances, label, PROCESS.schedule.at(0), PROCESS.schedule.at(0)), label)


def test_the_reverse_step_of_a_prediction_alone() -> None:
    """[α_ts·y_t + (1 − α_ts)/K] ⊙ [ᾱ_s·ŷ_0 + (1 − ᾱ_s)/K], normalized (Hoogeboom et al. 2021, eq. 15).

    It is the expected posterior in short steps, and not in long ones.
    """
    predicted = replace(PROCESS, reverse="predicted")
    y0_hat, y_t = torch.tensor(MARGINAL).double().expand(5, 5), torch.eye(5).double()
    for s, t in ((40, 150), (0, 1), (199, 200)):
        alpha_bar = PROCESS.schedule.alpha_bar.double()
        alpha_ts = alpha_bar[t] / alpha_bar[s]
        product = (alpha_ts * y_t + (1 - alpha_ts) / 5) * (alpha_bar[s] * y0_hat + (1 - alpha_bar[s]) / 5)
        expected = product / product.sum(dim=-1, keepdim=True)
        torch.testing.assert_close(predicted.reverse_probs(y0_hat, y_t, s, t), expected, atol=1e-6, rtol=1e-5)
    near, far = (
        float((predicted.reverse_probs(y0_hat, y_t, s, t) - PROCESS.reverse_probs(y0_hat, y_t, s, t)).abs().max())
        for s, t in ((149, 150), (40, 150))
    )
    assert near < 0.02 < 0.05 < far


def test_parameters_of_the_most_likely_kind_are_not_mixed() -> None:
    """Without superposition a reverse step takes x̂_0 from one kind: those of the others are zero in it."""
    logits = torch.tensor([0.2, 0.0, 0.1, -1.0, -2.0]).expand(1, 1, 5)
    prediction = Prediction(torch.zeros(1, 1, 2), logits, torch.ones(1, 1, layout.NUM_PARAMS))
    mixed, single = (replace(PROCESS, superposition=by).clean_params(prediction)[0, 0] for by in ("max", "most_likely"))
    line = torch.zeros(layout.NUM_PARAMS, dtype=torch.bool)
    line[layout.PARAMS_OF_KIND[Kind.LINE]] = True
    assert bool((mixed[~line] > 0).all())
    assert bool((single[line] == 1).all())
    assert not single[~line].any()


@pytest.mark.parametrize("steps", [3, 40])
def test_a_perfect_denoiser_draws_the_right_kinds_however_long_the_steps(steps: int) -> None:
    options = SamplingOptions(steps=step_sequence(200, steps))
    drawn = sample_multinomial(kinds_of_known_chances(PROCESS), PROCESS, random_noise(0, 1500), options)
    shares = drawn.kind.mean(dim=(0, 1))
    assert torch.allclose(shares, torch.tensor(MARGINAL), atol=0.012)


def test_the_bound_of_a_perfect_denoiser_comes_close_to_the_entropy() -> None:
    """And the plain prediction in the reverse step costs no less than the expectation."""
    generator = torch.Generator().manual_seed(0)
    kind = torch.multinomial(torch.tensor(MARGINAL), 64 * 16, replacement=True, generator=generator)
    one_hot = torch.eye(5)[kind.reshape(64, 16)]
    flag = torch.tensor([1.0, 0.0]).expand(64, 16, 2)
    x0 = SketchBatch(flag, one_hot, torch.zeros(64, 16, layout.NUM_PARAMS))
    bits = {}
    for reverse in ("expected", "predicted"):
        process = replace(PROCESS, reverse=reverse)
        found = multinomial_elbo(
            kinds_of_known_chances(process), process, x0, random_noise(1, 64), every_step(process, 64)
        )
        of_kind = found.prior.kind + found.diffusion.kind + found.reconstruction.kind
        bits[reverse] = float(of_kind.mean()) / 16
        assert float(found.diffusion.construction.abs().max()) < 1e-6
    own = -sum(float((kind == c).double().mean()) * math.log(p) for c, p in enumerate(MARGINAL))
    assert own - 0.05 < bits["expected"] < own + 0.08
    assert abs(own - entropy(MARGINAL)) < 0.1
    assert bits["predicted"] > bits["expected"] - 0.01


def test_at_the_truth_a_bound_costs_the_reading_off_alone() -> None:
    x0 = clean_batch(3)
    x0 = replace(x0, construction=torch.tensor([1.0, 0.0]).expand_as(x0.construction))
    found = multinomial_elbo(oracle(x0), PROCESS, x0, seeded_noise(0, torch.arange(3)), every_step(PROCESS, 3))
    assert float(found.prior.total.abs().max()) < 1e-9
    assert float(found.diffusion.total.abs().max()) < 1e-6
    assert float(found.reconstruction.kind.abs().max()) < 1e-6


@pytest.mark.parametrize("method", ["repaint", "conditional"])
def test_known_rows_stay_and_others_are_drawn(method: str) -> None:
    known, rows = clean_batch(3), torch.zeros(3, 16, dtype=torch.bool)
    rows[:, 4:9] = True
    conditioning = condition_on_rows(known, rows, method=method, resamples=2, jump=3)  # type: ignore[arg-type]
    options, noise = SamplingOptions(None, step_sequence(200, 10), conditioning), seeded_noise(0, torch.arange(3))
    drawn = sample_multinomial(kinds_of_known_chances(PROCESS), PROCESS, noise, options)
    assert torch.equal(drawn.flat()[:, 4:9], known.flat()[:, 4:9])
    assert not torch.equal(drawn.kind[:, 9:], known.kind[:, 9:])


SCHEDULES = [cosine, authors_cosine, linear, log_linear_snr]
DOUBLE = torch.float64


def labels(num_categories: int) -> torch.Tensor:
    return torch.eye(num_categories, dtype=DOUBLE)


@pytest.mark.parametrize("make", SCHEDULES)
@pytest.mark.parametrize("num_categories", [2, 5, 64])
def test_steps_compose_to_the_cumulative_transition(make, num_categories: int) -> None:
    """Row c of a matrix is the distribution that label c goes to; the chain is their product."""
    schedule = make(100)
    every = labels(num_categories)
    for s, t in ((0, 1), (1, 2), (10, 90), (50, 51), (98, 99), (1, 100), (99, 100)):
        single = m.forward_probs(every, schedule.at(s), schedule.at(t))
        torch.testing.assert_close(
            m.cumulative_probs(every, schedule.at(s)) @ single, m.cumulative_probs(every, schedule.at(t))
        )
        torch.testing.assert_close(single.sum(-1), torch.ones(num_categories, dtype=DOUBLE))


@pytest.mark.parametrize("make", SCHEDULES)
@pytest.mark.parametrize("num_categories", [2, 5])
def test_diffuse_to_t_and_step_back_to_s_is_diffuse_to_s(make, num_categories: int) -> None:
    """Σ over y_t of q(y_t | y_0)·q(y_s | y_t, y_0) = q(y_s | y_0), for every label and pair."""
    schedule = make(100)
    y0, y_t = labels(num_categories)[:, None], labels(num_categories)[None]
    for s, t in ((0, 1), (0, 100), (1, 2), (30, 70), (98, 99), (99, 100)):
        posterior = m.posterior_probs(
            y0.expand(-1, num_categories, -1), y_t.expand(num_categories, -1, -1), schedule.at(s), schedule.at(t)
        )
        assert posterior.isfinite().all()
        there = m.cumulative_probs(y0, schedule.at(t))  # label, one, y_t
        torch.testing.assert_close((there @ posterior)[:, 0], m.cumulative_probs(y0, schedule.at(s))[:, 0])


def test_posterior_is_bayes_rule() -> None:
    schedule = cosine(50)
    at_s, at_t = schedule.at(17), schedule.at(29)
    every = labels(4)
    prior = m.cumulative_probs(every[1], at_s)
    likelihood = m.forward_probs(every, at_s, at_t)[:, 2]  # of y_t = 2, for each y_s
    expected = prior * likelihood / (prior * likelihood).sum()
    torch.testing.assert_close(m.posterior_probs(every[1], every[2], at_s, at_t), expected)
    schedule = linear(10)
    y0, y_t = torch.rand(2, 3, 4, 5, dtype=DOUBLE).softmax(-1)
    s, t = torch.tensor([0, 3, 9]), torch.tensor([1, 7, 10])
    whole = m.posterior_probs(y0, y_t, schedule.at(s), schedule.at(t))
    for i in range(3):
        one = m.posterior_probs(y0[i], y_t[i], schedule.at(int(s[i])), schedule.at(int(t[i])))
        torch.testing.assert_close(whole[i], one)


@given(st.integers(2, 20), st.integers(0, 2**20))
def test_kl(num_categories: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, p = torch.randn(2, 3, num_categories, generator=generator, dtype=DOUBLE).softmax(-1)
    known = torch.distributions.kl_divergence(
        torch.distributions.Categorical(probs=q), torch.distributions.Categorical(probs=p)
    )
    torch.testing.assert_close(m.kl(q, p), known)
    torch.testing.assert_close(m.kl(q, q), torch.zeros(3, dtype=DOUBLE))


def test_kl_of_a_certain_label_is_its_negative_log_likelihood() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0], dtype=DOUBLE, requires_grad=True)
    p = logits.softmax(-1)
    loss = m.kl(labels(3)[0], p)
    torch.testing.assert_close(loss, -p[0].log())
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert m.kl(labels(2)[0], labels(2)[1]) == math.inf
