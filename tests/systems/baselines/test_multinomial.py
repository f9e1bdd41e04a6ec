"""Multinomial diffusion against matrices: its transitions are a Markov chain, its posterior is Bayes' rule."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.diffusion.gaussian import authors_cosine, cosine, linear, log_linear_snr
from sketchdnn.systems.baselines import multinomial as m

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


def test_one_step_a_sample() -> None:
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
