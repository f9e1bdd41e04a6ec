"""Multinomial diffusion of whole sketches: forth and back, drawn and bounded, against what is known exactly."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from support.random_batches import clean_batch, normal_batch
from support.toys import every_step, random_noise

from benchmarks.oracles import entropy, oracle
from sketchdnn.diffusion.gaussian import cosine
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import Denoiser
from sketchdnn.diffusion.sampling import SamplingOptions, condition_on_rows, step_sequence
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems.baselines import multinomial
from sketchdnn.systems.baselines.multinomial import (
    MultinomialProcess,
    expected_posterior,
    multinomial_elbo,
    sample_multinomial,
)

PROCESS = MultinomialProcess(cosine(200), cosine(200), "expected", "expected")
MARGINAL = (0.55, 0.25, 0.12, 0.06, 0.02)


def kinds_of_known_chances(process: MultinomialProcess) -> Denoiser:
    """Bayes' rule for rows whose kinds have the chances of `MARGINAL`, all else known."""
    prior = torch.tensor(MARGINAL)

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        chance = multinomial.cumulative_probs(batch_t.kind, process.labels.at(t))
        flag = torch.tensor([0.0, -math.inf]).expand_as(batch_t.construction)
        return Prediction(flag, (prior * chance).log(), torch.zeros_like(batch_t.params))

    return denoise


def test_labels_are_noised_at_the_pace_of_the_schedule() -> None:
    x0, noise = clean_batch(400), normal_batch(400)
    for t in (1, 60, 120, 200):
        x_t = PROCESS.diffuse(x0, t, noise)
        kept = float((x_t.kind * x0.kind).sum(dim=-1).mean())
        alpha_bar = float(PROCESS.labels.alpha_bar[t])
        assert abs(kept - (alpha_bar + (1 - alpha_bar) / layout.NUM_KINDS)) < 0.02
        assert bool((x_t.kind.sum(dim=-1) == 1).all())


def test_forth_in_two_steps_is_forth_in_one() -> None:
    x0 = clean_batch(600)
    two = PROCESS.step_forward(PROCESS.diffuse(x0, 50, normal_batch(600, seed=1)), 50, 130, normal_batch(600, seed=2))
    one = PROCESS.diffuse(x0, 130, normal_batch(600, seed=3))
    for part in ("construction", "kind"):
        kept = [float((getattr(x, part) * getattr(x0, part)).sum(dim=-1).mean()) for x in (one, two)]
        assert abs(kept[0] - kept[1]) < 0.02
    assert abs(float(one.params.var() / two.params.var()) - 1) < 0.02


def test_the_expected_posterior_is_the_mean_of_posteriors() -> None:
    y_t = torch.eye(5).double()
    chances = torch.tensor(MARGINAL).double().expand(5, 5)
    at_s, at_t = PROCESS.labels.at(40), PROCESS.labels.at(150)
    each = torch.stack([multinomial.posterior_probs(c.expand(5, 5), y_t, at_s, at_t) for c in torch.eye(5).double()])
    mean = (torch.tensor(MARGINAL).double()[:, None, None] * each).sum(dim=0)
    assert torch.allclose(expected_posterior(chances, y_t, at_s, at_t), mean)


@pytest.mark.parametrize("steps", [3, 40])
def test_a_perfect_denoiser_draws_the_right_kinds_however_long_the_steps(steps: int) -> None:
    drawn = sample_multinomial(
        kinds_of_known_chances(PROCESS),
        PROCESS,
        random_noise(0, 1500),
        SamplingOptions(steps=step_sequence(200, steps)),
    )
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
def test_given_rows_stay_as_they_are_and_others_are_drawn(method: str) -> None:
    known, rows = clean_batch(3), torch.zeros(3, 16, dtype=torch.bool)
    rows[:, 4:9] = True
    given = condition_on_rows(known, rows, method=method, resamples=2, jump=3)  # type: ignore[arg-type]
    drawn = sample_multinomial(
        kinds_of_known_chances(PROCESS),
        PROCESS,
        seeded_noise(0, torch.arange(3)),
        SamplingOptions(steps=step_sequence(200, 10), conditioning=given),
    )
    assert torch.equal(drawn.flat()[:, 4:9], known.flat()[:, 4:9])
    assert not torch.equal(drawn.kind[:, 9:], known.kind[:, 9:])


def test_a_blank_flag_is_either_alike() -> None:
    x0 = clean_batch(300)
    blank = replace(x0, construction=torch.zeros_like(x0.construction))
    drawn = PROCESS.diffuse(blank, 5, normal_batch(300)).construction
    assert abs(float(drawn[..., 0].mean()) - 0.5) < 0.03
