"""What samplers draw when the denoiser is exact: variances without any randomness, and shares of labels."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from support.toys import ONLY_ARCS, impulses, process_of, random_noise

from benchmarks.oracles import RowTarget
from sketchdnn.diffusion.process import Denoiser, JointProcess, our_process, paper_process
from sketchdnn.diffusion.samplers import sample_ancestral, sample_ddim, sample_dpm_solver_pp
from sketchdnn.diffusion.sampling import SamplingOptions, step_sequence
from sketchdnn.diffusion.schedule import cosine, log_linear_snr
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

SHARES = (0.55, 0.25, 0.12, 0.06, 0.02)


def relative_errors(sampler, process: JointProcess, stds: tuple[float, ...], steps, **options) -> list[float]:
    """(drawn variance)/(true variance at level 0) − 1 for Gaussian targets, exactly: see `impulses`."""
    denoisers = [RowTarget(ONLY_ARCS, std=std).denoiser(process) for std in stds]
    source = impulses(len(steps))

    def repeated(draw: int) -> SketchBatch:
        one = source(draw)
        return SketchBatch(*(part.repeat(len(stds), 1, 1) for part in (one.construction, one.kind, one.params)))

    drawn = sampler(side_by_side(denoisers), process, repeated, SamplingOptions(steps=steps), **options)
    level = process.params.at(0)
    true = [float(level.alpha_bar * std**2 + level.var) for std in stds]
    return [float((part**2).sum()) / var - 1 for part, var in zip(drawn.params.chunk(len(stds)), true, strict=True)]


def side_by_side(denoisers: list[Denoiser]) -> Denoiser:
    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        size = len(batch_t) // len(denoisers)
        said = [d(batch_t[i * size : (i + 1) * size], t[:size]) for i, d in enumerate(denoisers)]
        return Prediction(
            torch.cat([p.construction_logits for p in said]),
            torch.cat([p.kind_logits for p in said]),
            torch.cat([p.params for p in said]),
        )

    return denoise


@pytest.mark.parametrize(
    ("sampler", "said"),
    [(sample_ancestral, (-0.247, -0.409)), (sample_ddim, (-0.125, -0.163)), (sample_dpm_solver_pp, (-0.0017, -0.0053))],
)
def test_all_steps_give_the_variance_of_a_gaussian(sampler, said: tuple[float, float]) -> None:
    """To what docs/equations.md says, in per cent."""
    errors = relative_errors(sampler, paper_process(2000), (1.0, 0.5), range(2000, -1, -1))
    assert [100 * e for e in errors] == pytest.approx(said, rel=0.02)


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        (sample_ancestral, {160: (-2.9, -4.5), 40: (-10.5, -15.0), 10: (-32, -39.6)}),
        (sample_ddim, {160: (-1.54, -1.98), 40: (-6.0, -7.6), 10: (-22, -27.1)}),
        (sample_dpm_solver_pp, {160: (-0.028, 0.0079), 40: (-0.186, 0.332), 10: (-4.72, -9.63)}),
    ],
)
def test_fewer_steps_lose_as_much_variance_as_the_docs_say(sampler, said: dict[int, tuple[float, float]]) -> None:
    for count, per_cent in said.items():
        errors = relative_errors(sampler, paper_process(2000), (1.0, 0.5), step_sequence(2000, count))
        assert [100 * e for e in errors] == pytest.approx(per_cent, rel=0.02)


def test_a_hundred_steps_lose_some_of_the_variance_of_a_completion() -> None:
    """That of the second of two numbers of correlation 0.9, given the first: the 7.6 % of docs/equations.md."""
    (error,) = relative_errors(sample_ancestral, our_process(100), (math.sqrt(1 - 0.9**2),), range(100, -1, -1))
    assert 100 * error == pytest.approx(-7.6, abs=0.05)


@pytest.mark.parametrize(
    ("sampler", "options", "order"),
    [(sample_ancestral, {}, 1), (sample_ddim, {}, 1), (sample_ddim, {"eta": 0.5}, 1), (sample_dpm_solver_pp, {}, 2)],
)
def test_more_steps_converge_at_the_order_of_the_sampler(sampler, options, order: int) -> None:
    process = process_of(log_linear_snr(640))  # log SNR is finite at both ends, so that no step is of first order alone
    counts = (40, 80, 160)
    errors = [relative_errors(sampler, process, (1.0, 0.5), step_sequence(640, n), **options) for n in counts]
    for coarse, fine in pairwise(errors):
        for a, b in zip(coarse, fine, strict=True):
            assert math.log2(abs(a / b)) == pytest.approx(order, abs=0.12)


@pytest.mark.parametrize("count", [10, 20, 50, 100])
def test_the_second_order_pays_off_on_the_papers_schedule_too(count: int) -> None:
    process, steps = process_of(cosine(2000)), step_sequence(2000, count)
    second = relative_errors(sample_dpm_solver_pp, process, (1.0, 0.5), steps)
    first = relative_errors(sample_ddim, process, (1.0, 0.5), steps)
    for a, b in zip(second, first, strict=True):
        assert abs(a) < abs(b) / 2.5


def drawn_shares(process: JointProcess, batch: int, count: int) -> torch.Tensor:
    denoise, steps = RowTarget(SHARES).denoiser(process), step_sequence(process.num_steps, count)
    drawn = sample_ancestral(denoise, process, random_noise(11, batch), SamplingOptions(steps=steps))
    return torch.bincount(drawn.kind.argmax(-1).flatten(), minlength=5) / (16 * batch)


def test_expected_logits_draw_the_labels_of_the_target() -> None:
    assert (drawn_shares(our_process(2000), 1000, 400) - torch.tensor(SHARES)).abs().max() < 0.02


def test_the_logit_of_the_expectation_draws_labels_with_a_bias() -> None:
    process = our_process(2000)
    flat = drawn_shares(replace(process, reverse_logits="log"), 300, 200)
    sharp = drawn_shares(replace(process, reverse_logits="2log"), 300, 200)
    assert flat[0] < 0.55 - 0.05  # towards uniform
    assert flat[2] > 0.12 + 0.02
    assert sharp[4] < 0.02 / 2  # the rare label all but goes
