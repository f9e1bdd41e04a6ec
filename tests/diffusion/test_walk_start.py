"""A walk may begin at a sketch, not in noise: from a little noise it comes back, from all of it nothing is left."""

from __future__ import annotations

import pytest
import torch
from support.random_batches import clean_batch
from support.toys import random_noise

from benchmarks.oracles import oracle
from sketchdnn.diffusion.conditioning import condition_on_rows
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import (
    sample_ancestral,
    sample_authors,
    sample_ddim,
    sample_dpm_solver_pp,
    sample_predictor_corrector,
)
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start, step_sequence
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

SAMPLERS = [sample_ancestral, sample_authors, sample_ddim, sample_dpm_solver_pp, sample_predictor_corrector]
PROCESS = our_process(100)


def stubborn(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    """Believes what it sees."""
    return Prediction(8 * batch_t.construction, 8 * batch_t.kind, batch_t.params)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_from_the_last_step_it_is_an_ordinary_draw(sampler) -> None:
    start = Start(100, clean_batch(4, seed=5))
    plain, started = (
        sampler(stubborn, PROCESS, seeded_noise(3, torch.arange(4)), SamplingOptions(start=each))
        for each in (None, start)
    )
    assert torch.equal(plain.flat(), started.flat())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_from_a_little_noise_a_sketch_comes_back(sampler) -> None:
    x0 = clean_batch(4, seed=5)
    near = sampler(stubborn, PROCESS, random_noise(0, 4), SamplingOptions(start=Start(1, x0)))
    assert torch.equal(near.kind.argmax(-1), x0.kind.argmax(-1))
    assert torch.equal(near.construction.argmax(-1), x0.construction.argmax(-1))
    assert (near.params - x0.params).abs().mean() < 0.05
    far = sampler(stubborn, PROCESS, random_noise(0, 4), SamplingOptions(start=Start(60, x0)))
    assert (far.params - x0.params).abs().mean() > 0.1


def test_it_visits_only_the_steps_below_its_start() -> None:
    seen: list[Progress] = []
    start = Start(30, clean_batch(2))
    sample_ancestral(
        oracle(clean_batch(2)), PROCESS, random_noise(0, 2), SamplingOptions(start=start, on_step=seen.append)
    )
    assert [progress.t for progress in seen] == list(range(30, 0, -1))


def test_a_sample_does_not_depend_on_its_batch() -> None:
    x0 = clean_batch(5, seed=2)
    together = sample_ancestral(
        stubborn, PROCESS, seeded_noise(7, torch.arange(5)), SamplingOptions(start=Start(40, x0))
    )
    for i in range(5):
        alone = sample_ancestral(
            stubborn, PROCESS, seeded_noise(7, torch.tensor([i])), SamplingOptions(start=Start(40, x0[i : i + 1]))
        )
        assert torch.equal(alone.flat(), together[i : i + 1].flat())


def test_given_parts_outrank_the_start() -> None:
    rows = torch.zeros(3, 16, dtype=torch.bool)
    rows[:, :4] = True
    known = clean_batch(3, seed=1)
    drawn = sample_ancestral(
        stubborn,
        PROCESS,
        random_noise(0, 3),
        SamplingOptions(conditioning=condition_on_rows(known, rows), start=Start(50, clean_batch(3, seed=8))),
    )
    assert torch.equal(drawn.flat()[:, :4], known.flat()[:, :4])


def test_what_does_not_fit_is_refused() -> None:
    noise = random_noise(0, 2)
    for t in (0, 101):
        with pytest.raises(ValueError, match=r"start\.t"):
            sample_ancestral(stubborn, PROCESS, noise, SamplingOptions(start=Start(t, clean_batch(2))))
    with pytest.raises(ValueError, match=r"start\.batch"):
        sample_ancestral(stubborn, PROCESS, noise, SamplingOptions(start=Start(5, clean_batch(3))))
    with pytest.raises(ValueError, match="from 50 to 0"):
        sample_ancestral(
            stubborn, PROCESS, noise, SamplingOptions(steps=step_sequence(100, 5), start=Start(50, clean_batch(2)))
        )
