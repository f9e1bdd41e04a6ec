from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given as with_any
from hypothesis import strategies as st
from support.toys import process_of, random_noise

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.process import JointProcess, authors_process, our_process, paper_process
from sketchdnn.diffusion.samplers import (
    ddim_weights,
    extrapolation,
    posterior_weights,
    sample_ancestral,
    sample_authors,
    sample_ddim,
    sample_dpm_solver_pp,
    sample_predictor_corrector,
)
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, step_sequence
from sketchdnn.diffusion.schedule import cosine, linear, log_linear_snr
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

SAMPLERS = [sample_ancestral, sample_authors, sample_ddim, sample_dpm_solver_pp, sample_predictor_corrector]
TARGET = RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), construction=0.3, std=0.5)


def sketches(batch: int, seed: int = 0) -> SketchBatch:
    return TARGET.sample(batch, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def wobbly(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
    """A denoiser of no sense that looks at every number of a row, and at nothing else."""
    level = (t / 100).cos()[:, None, None]
    mixed = batch_t.params * 0.8 + batch_t.kind.sum(-1, keepdim=True) * level
    return Prediction(2 * batch_t.construction + level, 3 * batch_t.kind - level, mixed)


def same(a: SketchBatch, b: SketchBatch) -> bool:
    return torch.equal(a.flat(), b.flat())


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    "process", [paper_process(100), our_process(100), authors_process(100)], ids=lambda p: p.params.name
)
@pytest.mark.parametrize("count", [1, 2, 10, 100])
def test_an_oracle_gets_its_sketch_back(sampler, process: JointProcess, count: int) -> None:
    x0 = sketches(5)
    result = sampler(oracle(x0), process, random_noise(1, 5), SamplingOptions(steps=step_sequence(100, count)))
    assert torch.equal(result.kind.argmax(-1), x0.kind.argmax(-1))
    assert torch.equal(result.construction.argmax(-1), x0.construction.argmax(-1))
    # The authors' schedule ends at ᾱ = 0.9999, not at 1: only their last-step rule makes up for that.
    tolerance = 0.06 if process.params.var[0] > 0 and sampler is not sample_authors else 0.0
    torch.testing.assert_close(result.params, x0.params, atol=tolerance, rtol=0)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sample_does_not_depend_on_its_batch(sampler) -> None:
    process = our_process(40)
    together = sampler(wobbly, process, seeded_noise(7, torch.arange(7)), SamplingOptions())
    for i in range(7):
        assert same(
            sampler(wobbly, process, seeded_noise(7, torch.tensor([i])), SamplingOptions()), together[i : i + 1]
        )


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_rows_may_come_in_any_order(sampler) -> None:
    process, source = our_process(30), seeded_noise(3, torch.arange(4))
    order = torch.stack([torch.randperm(16, generator=torch.Generator().manual_seed(i)) for i in range(4)])
    straight = sampler(wobbly, process, source, SamplingOptions())
    assert same(
        sampler(wobbly, process, lambda draw: source(draw).permuted(order), SamplingOptions()), straight.permuted(order)
    )


def test_ddim_with_all_its_noise_is_ancestral() -> None:
    process, steps = our_process(50), step_sequence(50, 20)
    noises = [random_noise(2, 6, dtype=torch.float64) for _ in range(2)]
    a = sample_ancestral(wobbly, process, noises[0], SamplingOptions(steps=steps))
    b = sample_ddim(wobbly, process, noises[1], SamplingOptions(steps=steps), eta=1.0)
    torch.testing.assert_close(a.flat(), b.flat(), atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("schedule", [cosine(50), linear(50), log_linear_snr(50)], ids=lambda s: s.name)
def test_full_noise_weights_are_the_posterior(schedule) -> None:
    for s, t in [(0, 1), (0, 50), (49, 50), (10, 40)]:
        for ours, theirs in zip(
            ddim_weights(schedule.at(s), schedule.at(t), 1.0),
            posterior_weights(schedule.at(s), schedule.at(t), schedule.at(t)),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, atol=1e-14, rtol=1e-9)


def test_ancestral_takes_the_steps_of_the_process() -> None:
    """The walk is in logits; the process, on the simplex, arrives at the same places."""
    process, steps = paper_process(40), step_sequence(40, 10)
    seen: list[Progress] = []
    sample_ancestral(
        wobbly, process, random_noise(5, 3, dtype=torch.float64), SamplingOptions(steps=steps, on_step=seen.append)
    )
    fresh = random_noise(5, 3, dtype=torch.float64)
    start = fresh(0)
    batch = SketchBatch(start.construction.softmax(-1), start.kind.softmax(-1), start.params)
    for progress in seen:
        clean = process.clean(wobbly(batch, torch.full((3,), progress.t)))
        batch = process.step_back(clean, batch, progress.s, progress.t, fresh(progress.number))
        torch.testing.assert_close(progress.batch.flat(), batch.flat(), atol=1e-9, rtol=1e-9)


def test_the_second_order_falls_back_to_the_first_at_infinite_log_snr() -> None:
    process = our_process(60)
    first_and_last = (60, 30, 0)  # one step from λ = −∞, one to λ = ∞
    a = sample_dpm_solver_pp(wobbly, process, random_noise(4, 3), SamplingOptions(steps=first_and_last))
    assert same(a, sample_ddim(wobbly, process, random_noise(4, 3), SamplingOptions(steps=first_and_last)))
    schedule = process.params
    assert extrapolation(schedule.at(0), schedule.at(20), schedule.at(40)) == 0
    assert extrapolation(schedule.at(20), schedule.at(40), schedule.at(60)) == 0
    assert extrapolation(schedule.at(20), schedule.at(40), schedule.at(50)) > 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_flat_stretches_of_a_schedule_do_no_harm(sampler) -> None:
    result = sampler(wobbly, authors_process(300), random_noise(0, 3), SamplingOptions())
    assert result.flat().isfinite().all()


def test_a_prediction_weight_of_one_is_the_papers_mean() -> None:
    process = paper_process(30)
    seen: list[list[Progress]] = [[], []]
    sample_ancestral(wobbly, process, random_noise(0, 3), SamplingOptions(on_step=seen[0].append))
    weighted = sample_authors(
        wobbly, our_process(30), random_noise(0, 3), SamplingOptions(on_step=seen[1].append), prediction_weight=1.0
    )
    for a, b in zip(seen[0][:-1], seen[1][:-1], strict=True):
        assert same(a.batch, b.batch)
    last = seen[1][-1].prediction
    torch.testing.assert_close(weighted.kind, last.kind)
    torch.testing.assert_close(weighted.construction, last.construction)


def test_more_weight_on_the_prediction_makes_majorities_larger() -> None:
    target = RowTarget((0.55, 0.25, 0.12, 0.06, 0.02))
    process = our_process(2000)
    shares = []
    for weight in (1.0, 1.5, 2.0):
        drawn = sample_authors(
            target.denoiser(process),
            process,
            random_noise(0, 120),
            SamplingOptions(steps=step_sequence(2000, 200)),
            prediction_weight=weight,
        )
        shares.append(float((drawn.kind.argmax(-1) == 0).float().mean()))
    assert shares[0] < shares[1] < shares[2]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_step_is_reported(sampler) -> None:
    seen: list[Progress] = []
    steps = (25, 17, 8, 3, 0)
    result = sampler(wobbly, our_process(25), random_noise(0, 2), SamplingOptions(steps=steps, on_step=seen.append))
    assert [(p.t, p.s) for p in seen] == list(pairwise(steps))
    assert [(p.number, p.total) for p in seen] == [(i, 4) for i in (1, 2, 3, 4)]
    assert same(seen[-1].batch, result)
    assert all(p.batch.flat().isfinite().all() for p in seen)


def test_labels_end_on_the_simplex_and_nothing_asks_for_gradients() -> None:
    weight = torch.ones((), requires_grad=True)

    def network(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        said = wobbly(batch_t, t)
        return Prediction(said.construction_logits * weight, said.kind_logits * weight, said.params * weight)

    result = sample_ancestral(network, our_process(10), random_noise(0, 2), SamplingOptions())
    assert not result.params.requires_grad
    for label in (result.kind, result.construction):
        assert (label > 0).all()
        torch.testing.assert_close(label.sum(-1), torch.ones(2, 16))


def test_a_network_of_low_precision_does_not_lower_that_of_the_walk() -> None:
    def coarse(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        said = wobbly(batch_t, t)
        return Prediction(said.construction_logits.bfloat16(), said.kind_logits.bfloat16(), said.params.bfloat16())

    seen: list[Progress] = []
    process = replace(our_process(10), superposition="none")
    result = sample_ancestral(coarse, process, random_noise(0, 2), SamplingOptions(on_step=seen.append))
    assert result.params.dtype == torch.float32
    assert torch.equal(result.params.bfloat16().float(), result.params)  # the last step is the prediction
    assert not torch.equal(seen[-2].batch.params.bfloat16().float(), seen[-2].batch.params)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_noise_says_on_which_device_to_walk(sampler) -> None:
    """The device of no numbers stands in for any other: mixing it with the CPU is an error too."""
    source = random_noise(0, 2)
    result = sampler(wobbly, our_process(10), lambda draw: source(draw).to("meta"), SamplingOptions())
    assert result.params.device.type == "meta"
    assert result.kind.shape == (2, 16, 5)


@with_any(st.integers(1, 3000), st.data(), st.sampled_from(["uniform", "quadratic"]))
def test_step_sequences_fall_from_the_top_to_zero(num_steps: int, data: st.DataObject, spacing) -> None:
    count = data.draw(st.integers(1, num_steps))
    steps = step_sequence(num_steps, count, spacing)
    assert len(steps) == count + 1
    assert steps[0] == num_steps
    assert steps[-1] == 0
    assert all(a > b for a, b in pairwise(steps))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"steps": (11, 5, 0)}, "steps"),
        ({"steps": (10, 5, 5, 0)}, "steps"),
        ({"steps": (10, 5, 7, 0)}, "steps"),
        ({"steps": (10, 5, -1)}, "steps"),
        ({"steps": (9, 0)}, "steps"),
        ({"steps": (10, 1)}, "steps"),
        ({"steps": ()}, "steps"),
        ({"eta": 1.5}, "eta"),
        ({"eta": float("nan")}, "eta"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        sample_ddim(wobbly, our_process(10), random_noise(0, 2), SamplingOptions(), **arguments)


def test_wrong_shapes_and_counts_are_refused_by_name() -> None:
    def narrow(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        said = wobbly(batch_t, t)
        return Prediction(said.construction_logits, said.kind_logits, said.params[..., :13])

    process = our_process(10)
    with pytest.raises(ValueError, match="denoise"):
        sample_ancestral(narrow, process, random_noise(0, 2), SamplingOptions())
    noise = random_noise(0, 2)(0)
    with pytest.raises(ValueError, match="noise"):
        sample_ancestral(
            wobbly, process, lambda _: SketchBatch(noise.kind, noise.kind, noise.params), SamplingOptions()
        )
    for weight in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="prediction_weight"):
            sample_authors(wobbly, process, random_noise(0, 2), SamplingOptions(), prediction_weight=weight)
    for count in (0, 11):
        with pytest.raises(ValueError, match="count"):
            step_sequence(10, count)
    with pytest.raises(ValueError, match="spacing"):
        step_sequence(10, 5, "cubic")  # type: ignore[arg-type]


def test_the_weights_of_a_step_need_no_look_at_a_tensor() -> None:
    """Traced whole, with steps as tensors: any branch on a value would break the graph."""
    process = process_of(cosine(20))

    def weights(s: torch.Tensor, t: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        levels = [process.params.at(step) for step in (s, t, before)]
        return extrapolation(*levels) + ddim_weights(levels[0], levels[1], 0.5).x_t

    steps = [torch.tensor(i) for i in (3, 7, 12)]
    traced = torch.compile(weights, backend="eager", fullgraph=True)
    torch.testing.assert_close(traced(*steps), weights(*steps))
