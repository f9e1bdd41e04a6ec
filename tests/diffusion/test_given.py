from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from support.toys import process_of, random_noise

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion.conditioning import Conditioning, condition_on_rows
from sketchdnn.diffusion.process import JointProcess, authors_process, our_process
from sketchdnn.diffusion.samplers import (
    sample_ancestral,
    sample_authors,
    sample_ddim,
    sample_dpm_solver_pp,
    sample_predictor_corrector,
)
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, moves_of, step_sequence
from sketchdnn.diffusion.schedule import log_linear_snr
from sketchdnn.representation.batch import SketchBatch, from_flat, relevant
from sketchdnn.representation.prediction import Prediction

SAMPLERS = [sample_ancestral, sample_authors, sample_ddim, sample_dpm_solver_pp, sample_predictor_corrector]
TARGET = RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), construction=0.3, std=0.5)


def sketches(batch: int, seed: int = 0) -> SketchBatch:
    return TARGET.sample(batch, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def indifferent(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    return Prediction(batch_t.construction * 0, batch_t.kind * 0, batch_t.params * 0)


def some_rows(batch: int) -> torch.Tensor:
    return torch.rand(batch, 16, generator=torch.Generator().manual_seed(9)) < 0.4


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("method", ["repaint", "conditional"])
@pytest.mark.parametrize("process", [our_process(30), authors_process(30)], ids=["ours", "authors"])
def test_given_rows_stay_to_the_bit(sampler, method, process) -> None:
    x0, rows = sketches(5), some_rows(5)
    known = condition_on_rows(x0, rows, method=method, resamples=2, jump=3)
    result = sampler(
        TARGET.denoiser(process),
        process,
        random_noise(0, 5),
        SamplingOptions(conditioning=known, steps=step_sequence(30, 12)),
    )
    assert torch.equal(result.flat()[rows], x0.flat()[rows])
    assert result.flat().isfinite().all()
    assert not torch.equal(result.params[~rows], x0.params[~rows])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_parts_of_rows_may_be_given(sampler) -> None:
    x0, nothing = sketches(4), torch.zeros(4, 16, dtype=torch.bool)
    params = torch.zeros(4, 16, 14, dtype=torch.bool)
    params[..., ::2] = True
    known = Conditioning(x0, construction=nothing, kind=~nothing, params=params)
    process = our_process(20)
    result = sampler(indifferent, process, random_noise(0, 4), SamplingOptions(conditioning=known))
    assert torch.equal(result.kind, x0.kind)
    assert torch.equal(result.params[params], x0.params[params])
    assert (result.params[~params].abs() < 1e-6).all()  # what the network says of the rest is zero
    assert ((result.construction > 0) & (result.construction < 1)).all()


def test_the_rest_is_drawn_as_if_nothing_were_given() -> None:
    x0, rows = sketches(6), some_rows(6)
    other = sketches(6, seed=1)
    result = sample_ancestral(
        oracle(other), our_process(20), random_noise(0, 6), SamplingOptions(conditioning=condition_on_rows(x0, rows))
    )
    assert torch.equal(result.params[~rows], other.params[~rows])
    assert torch.equal(result.kind.argmax(-1)[~rows], other.kind.argmax(-1)[~rows])


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        (sample_ancestral, {}),
        (sample_authors, {}),
        (sample_ddim, {"eta": 0.5}),
        (sample_ddim, {}),
        (sample_dpm_solver_pp, {}),
        (sample_predictor_corrector, {}),
    ],
)
@pytest.mark.parametrize(
    "process", [our_process(50), process_of(log_linear_snr(50, 10, -1))], ids=lambda p: p.params.name
)
def test_noised_parts_are_as_noisy_as_the_process_says(sampler, options, process: JointProcess) -> None:
    """Whatever the network says, a given part at step s is a draw of q(x_s | x_0): its mean and spread tell."""
    x0 = from_flat(sketches(1).flat().expand(1000, -1, -1))
    known = condition_on_rows(x0, torch.ones(1000, 16, dtype=torch.bool), resamples=2)
    seen: list[Progress] = []
    steps = (50, 40, 25, 10, 0)
    sampler(
        indifferent,
        process,
        random_noise(3, 1000),
        SamplingOptions(conditioning=known, steps=steps, on_step=seen.append),
        **options,
    )
    for progress in seen:
        if progress.s == 0:
            continue
        level = process.params.at(progress.s)
        noise = (progress.batch.params - level.alpha_bar.sqrt().float() * x0.params) / level.var.sqrt().float()
        assert (noise * x0.params).mean().abs() < 0.003  # nothing of the sketch is left in it
        assert noise.mean().abs() < 0.01  # 224,000 numbers
        assert noise.var() == pytest.approx(1.0, abs=0.02)
        level = process.kind.at(progress.s)
        truth = (0.99 * x0.kind + 0.01 / 5).log() * level.alpha_bar.sqrt().float()
        noise = (progress.batch.kind.log() - truth) / level.var.sqrt().float()
        noise = noise - noise.mean(-1, keepdim=True)
        assert (noise * x0.kind).mean().abs() < 0.005
        assert noise.var() == pytest.approx(4 / 5, abs=0.02)


def test_a_given_kind_decides_which_parameters_fade() -> None:
    """The network takes every row for a point; where the kind is given, its own columns count in full and no others."""
    x0, nothing = sketches(3), torch.zeros(3, 16, dtype=torch.bool)

    def sees_points(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        logits = torch.tensor([0.0, 0.0, 0.0, 9.0, 0.0]).expand_as(batch_t.kind)
        return Prediction(batch_t.construction * 0, logits, torch.ones_like(batch_t.params))

    known = Conditioning(x0, nothing, ~nothing, nothing[..., None].expand(-1, -1, 14))
    result = sample_ancestral(sees_points, our_process(20), random_noise(0, 3), SamplingOptions(conditioning=known))
    torch.testing.assert_close(result.params, relevant(x0.kind.argmax(-1)).float(), atol=1e-6, rtol=0)


def test_a_network_for_it_sees_given_parts_clean() -> None:
    x0, rows = sketches(3), some_rows(3)
    steps_seen = []

    def looks(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        assert torch.equal(batch_t.flat()[rows], x0.flat()[rows])
        assert ((batch_t.kind[~rows] > 0) & (batch_t.kind[~rows] < 1)).all()
        steps_seen.append(int(t[0]))
        return indifferent(batch_t, t)

    sample_ancestral(
        looks,
        our_process(10),
        random_noise(0, 3),
        SamplingOptions(conditioning=condition_on_rows(x0, rows, method="conditional")),
    )
    assert steps_seen == list(range(10, 0, -1))


# Two numbers of a row that hang together: each from N(0, 1), with correlation ρ.
RHO = 0.9


def pair_denoiser(process, *, first_is_clean: bool):
    """E[x_0 | x_t] of the pair in the first two parameters, in closed form."""

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        level = process.params.at(int(t[0]))
        a, var = level.alpha_bar.sqrt().float(), level.var.float()
        covariance = torch.tensor([[1, RHO], [RHO, 1]])
        gain = torch.diag(torch.stack([torch.ones(()), a])) if first_is_clean else a * torch.eye(2)
        noise = torch.diag(torch.stack([torch.zeros(()), var])) if first_is_clean else var * torch.eye(2)
        weights = covariance @ gain @ torch.linalg.inv(gain @ covariance @ gain + noise)
        params = torch.zeros_like(batch_t.params)
        params[..., :2] = batch_t.params[..., :2] @ weights.T
        return Prediction(batch_t.construction * 0, batch_t.kind * 0, params)

    return denoise


def completed(method, **options) -> torch.Tensor:
    """The second number, drawn 4,000 times over given that the first is 1.5."""
    process = replace(our_process(100), superposition="none")
    values = SketchBatch(torch.full((4000, 1, 2), 0.5), torch.full((4000, 1, 5), 0.2), torch.full((4000, 1, 14), 1.5))
    mask = torch.zeros(4000, 1, 14, dtype=torch.bool)
    mask[..., 0] = True
    nothing = torch.zeros(4000, 1, dtype=torch.bool)
    known = Conditioning(values, nothing, nothing, mask, method, **options)
    denoise = pair_denoiser(process, first_is_clean=method == "conditional")
    return sample_ancestral(
        denoise, process, random_noise(1, 4000, rows=1), SamplingOptions(conditioning=known)
    ).params[:, 0, 1]


def test_a_network_told_the_truth_draws_from_the_conditional() -> None:
    drawn = completed("conditional")
    assert drawn.mean() == pytest.approx(RHO * 1.5, abs=0.03)
    assert drawn.var() == pytest.approx(1 - RHO**2, rel=0.1)


@pytest.mark.parametrize(
    ("method", "resamples", "mean", "variance"),
    [
        ("repaint", 1, 0.93, 0.34),
        ("repaint", 2, 1.14, 0.25),
        ("repaint", 5, 1.28, 0.19),
        ("repaint", 10, 1.31, 0.165),
        ("conditional", 1, 1.35, 0.1755),
    ],
)
def test_completions_are_as_far_off_as_the_docs_say(method, resamples: int, mean: float, variance: float) -> None:
    drawn = completed(method, resamples=resamples)
    assert drawn.mean() == pytest.approx(mean, abs=0.03)  # three standard errors
    assert drawn.var() == pytest.approx(variance, rel=0.07)


def test_resampling_brings_a_network_that_was_not_told_closer() -> None:
    """Without it the early, noisy look at what is given counts too little: the known flaw that RePaint mends."""
    off = [
        abs(float(completed("repaint", resamples=r, jump=j).mean()) - RHO * 1.5) for r, j in [(1, 1), (5, 1), (10, 2)]
    ]
    assert off[0] > 0.1
    assert off[1] < off[0] / 2
    assert off[2] < 0.05


@pytest.mark.parametrize(("resamples", "jump"), [(1, 1), (2, 1), (3, 2), (2, 7), (4, 100)])
def test_the_way_with_jumps_is_one_way(resamples: int, jump: int) -> None:
    x0 = sketches(1)
    known = condition_on_rows(x0, torch.ones(1, 16, dtype=torch.bool), resamples=resamples, jump=jump)
    steps = step_sequence(100, 20)
    moves = moves_of(steps, known)
    assert moves[0][0] == 100
    assert moves[-1] == (steps[-2], 0)
    assert all(a[1] == b[0] for a, b in pairwise(moves))
    for pair in list(pairwise(steps))[:-1]:
        assert moves.count(pair) == resamples
    assert sum(s > t for t, s in moves) == (resamples - 1) * -(-19 // jump)


def test_given_that_makes_no_sense_is_refused_by_name() -> None:
    x0 = sketches(2)
    rows, params = torch.ones(2, 16, dtype=torch.bool), torch.ones(2, 16, 14, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"given\.kind"):
        Conditioning(x0, rows, rows.float(), params)
    with pytest.raises(ValueError, match=r"given\.construction"):
        Conditioning(x0, rows[:, :8], rows, params)
    with pytest.raises(ValueError, match=r"given\.params"):
        Conditioning(x0, rows, rows, rows)
    with pytest.raises(ValueError, match=r"given\.batch\.kind"):
        Conditioning(SketchBatch(x0.construction, 2 * x0.kind, x0.params), rows, rows, params)
    with pytest.raises(ValueError, match=r"given\.batch\.params"):
        Conditioning(SketchBatch(x0.construction, x0.kind, x0.params / 0), rows, rows, params)
    with pytest.raises(ValueError, match=r"given\.method"):
        Conditioning(x0, rows, rows, params, "guessed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="resamples"):
        Conditioning(x0, rows, rows, params, resamples=0)
    with pytest.raises(ValueError, match=r"given\.batch"):
        sample_ancestral(
            indifferent,
            our_process(5),
            random_noise(0, 3),
            SamplingOptions(conditioning=Conditioning(x0, rows, rows, params)),
        )
