"""Samplers: exactness with oracles, invariances, variance and label frequencies at few steps, restart."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from support.denoisers import SAMPLERS, run, same, sketches, wobbly
from support.random_batches import clean_batch, random_prediction
from support.toys import ONLY_ARCS, impulses, process_of, random_noise

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion import sample_ancestral, sample_authors, sample_ddim, sample_dpm_solver_pp, samplers
from sketchdnn.diffusion.gaussian import cosine, linear, log_linear_snr
from sketchdnn.diffusion.noise import NoiseSource, seeded_noise
from sketchdnn.diffusion.process import Denoiser, JointProcess, authors_process, our_process, paper_process, parts
from sketchdnn.diffusion.samplers import corrector_weight, ddim_weights, extrapolation, posterior_weights
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, Start, step_sequence
from sketchdnn.diffusion.timesteps import step_as_noisy_as
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import Prediction, SketchBatch

FREQUENCIES = RowTarget((0.55, 0.25, 0.12, 0.06, 0.02), construction=0.1, std=0.4)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("make_process", [paper_process, our_process, authors_process])
def test_oracle_returns_its_sketch(sampler, make_process) -> None:
    x0, process = sketches(5), make_process(100)
    # The authors' schedule ends at ᾱ = 0.9999, not at 1: only their last-step rule makes up for that.
    tolerance = 0.06 if process.params.var[0] > 0 and sampler is not sample_authors else 0.0
    for count in (1, 2, 10, 100):
        result = run(sampler, oracle(x0), process, random_noise(1, 5), steps=step_sequence(100, count))
        assert torch.equal(result.kind.argmax(-1), x0.kind.argmax(-1))
        assert torch.equal(result.construction.argmax(-1), x0.construction.argmax(-1))
        torch.testing.assert_close(result.params, x0.params, atol=tolerance, rtol=0)


@pytest.mark.parametrize("sampler", [*SAMPLERS, samplers.sample_restart])
def test_sample_is_independent_of_its_batch_and_equivariant_in_rows(sampler) -> None:
    process, source = our_process(30), seeded_noise(7, torch.arange(4))
    together = run(sampler, wobbly, process, source)
    for i in range(4):
        assert same(run(sampler, wobbly, process, seeded_noise(7, torch.tensor([i]))), together[i : i + 1])
    order = torch.stack([torch.randperm(16, generator=torch.Generator().manual_seed(i)) for i in range(4)])
    permuted = run(sampler, wobbly, process, lambda draw: source(draw).permuted(order))
    assert same(permuted, together.permuted(order))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_steps_are_reported_and_no_draw_is_used_twice(sampler) -> None:
    steps: list[Progress] = []
    result = run(sampler, wobbly, our_process(25), random_noise(0, 2), steps=(25, 17, 8, 3, 0), on_step=steps.append)
    assert [(p.number, p.total, p.t, p.s) for p in steps] == [(1, 4, 25, 17), (2, 4, 17, 8), (3, 4, 8, 3), (4, 4, 3, 0)]
    assert same(steps[-1].batch, result)
    # Also on the flat stretches of the authors' schedule.
    run(sampler, wobbly, authors_process(100), random_noise(0, 2), on_step=steps.append)
    assert all(p.batch.flat().isfinite().all() for p in steps)
    draws, source = list[int](), random_noise(0, 2)

    def noise(number: int) -> SketchBatch:
        draws.append(number)
        return source(number).to("meta")

    result = run(sampler, wobbly, our_process(10), noise)
    assert (result.params.device.type, draws[0], len(draws)) == ("meta", 0, len(set(draws)))


def test_ddim_with_full_noise_is_ancestral() -> None:
    process, steps = our_process(50), step_sequence(50, 20)
    noise = [random_noise(2, 6, dtype=torch.float64) for _ in range(2)]
    a = run(sample_ancestral, wobbly, process, noise[0], steps=steps, labels="logit")
    b = run(sample_ddim, wobbly, process, noise[1], steps=steps, eta=1.0)
    torch.testing.assert_close(a.flat(), b.flat(), atol=1e-10, rtol=1e-10)
    for schedule in (cosine(50), linear(50), log_linear_snr(50)):
        for s, t in [(0, 1), (0, 50), (49, 50), (10, 40)]:
            levels = schedule.at(s), schedule.at(t)
            full, posterior = ddim_weights(*levels, 1.0), posterior_weights(*levels, schedule.at(t))
            for ours, theirs in zip(full, posterior, strict=True):
                torch.testing.assert_close(ours, theirs, atol=1e-14, rtol=1e-9)


def test_ancestral_takes_the_steps_of_the_process() -> None:
    """The state is in logits; the process, on the simplex, arrives at the same values."""
    process = paper_process(40)
    steps: list[Progress] = []
    noise, fresh = (random_noise(5, 3, dtype=torch.float64) for _ in range(2))
    run(sample_ancestral, wobbly, process, noise, steps=step_sequence(40, 10), on_step=steps.append)
    start = fresh(0)
    batch = parts(start).batch()
    for step in steps:
        clean = process.x0_logits(wobbly(batch, torch.full((3,), step.t)))
        batch = process.step_back(clean, batch, step.s, step.t, fresh(step.number))
        torch.testing.assert_close(step.batch.flat(), batch.flat(), atol=1e-9, rtol=1e-9)


def test_solver_is_first_order_at_infinite_log_snr() -> None:
    process, steps = our_process(60), (60, 30, 0)  # one step from λ = −∞, one to λ = ∞
    a, b = (run(f, wobbly, process, random_noise(4, 3), steps=steps) for f in (sample_dpm_solver_pp, sample_ddim))
    assert same(a, b)
    at = process.params.at
    assert (extrapolation(at(0), at(20), at(40)), extrapolation(at(20), at(40), at(60))) == (0, 0)
    assert extrapolation(at(20), at(40), at(50)) > 0


def test_larger_authors_weight_makes_majorities_larger() -> None:
    seen: list[list[Progress]] = [[], []]
    run(sample_ancestral, wobbly, paper_process(30), random_noise(0, 3), on_step=seen[0].append)
    noise = random_noise(0, 3)
    result = run(sample_authors, wobbly, our_process(30), noise, on_step=seen[1].append, prediction_weight=1.0)
    assert all(same(a.batch, b.batch) for a, b in zip(seen[0][:-1], seen[1][:-1], strict=True))
    torch.testing.assert_close(result.kind, seen[1][-1].prediction.kind)
    torch.testing.assert_close(result.construction, seen[1][-1].prediction.construction)
    process = our_process(2000)
    denoise, steps = RowTarget(FREQUENCIES.kind).denoiser(process), step_sequence(2000, 200)
    shares = []
    for weight in (1.0, 1.5, 2.0):
        batch = run(sample_authors, denoise, process, random_noise(0, 120), steps=steps, prediction_weight=weight)
        shares.append(float((batch.kind.argmax(-1) == 0).float().mean()))
    assert shares[0] < shares[1] < shares[2]


def test_result_is_on_the_simplex_without_gradients_in_the_precision_of_the_noise() -> None:
    weight = torch.ones((), requires_grad=True)

    def coarse(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        return Prediction(*((part * weight).bfloat16() for part in parts(wobbly(batch_t, t))))

    steps: list[Progress] = []
    process = replace(our_process(10), superposition="none")
    result = run(sample_ancestral, coarse, process, random_noise(0, 2), on_step=steps.append)
    assert (result.params.requires_grad, result.params.dtype) == (False, torch.float32)
    assert torch.equal(result.params.bfloat16().float(), result.params)  # the last step is the prediction
    assert not torch.equal(steps[-2].batch.params.bfloat16().float(), steps[-2].batch.params)
    for label in (result.kind, result.construction):
        assert (label > 0).all()
        torch.testing.assert_close(label.sum(-1), torch.ones(2, 16))


def test_impossible_options_and_shapes_are_refused_by_name() -> None:
    wrong = [(sampler, "eta", 1.5) for sampler in (sample_ddim, samplers.sample_predictor_corrector)]
    wrong += [(sample_ddim, "eta", math.nan), *((sample_authors, "prediction_weight", x) for x in (0.0, math.nan))]
    for sampler, option, value in wrong:
        with pytest.raises(ValueError, match=option):
            run(sampler, wobbly, our_process(10), random_noise(0, 2), **{option: value})
    narrow = Prediction(torch.zeros(2, 16, 2), torch.zeros(2, 16, 5), torch.zeros(2, 16, 13))
    with pytest.raises(ValueError, match="denoise"):
        run(sample_ancestral, lambda *_: narrow, our_process(10), random_noise(0, 2))
    noise = random_noise(0, 2)(0)
    with pytest.raises(ValueError, match="noise"):
        run(sample_ddim, wobbly, our_process(10), lambda _: replace(noise, construction=noise.kind))
    with pytest.raises(SketchError, match="pass a number of steps"):
        run(samplers.sample_restart, wobbly, PROCESS, random_noise(0, 2), steps=[100, 50, 0])


def relative_errors(sampler, process: JointProcess, stds: tuple[float, ...], steps, **options) -> list[float]:
    """(sampled variance)/(true variance at level 0) − 1 for Gaussian targets, exactly: see `impulses`."""
    denoisers = [RowTarget(ONLY_ARCS, std=std).denoiser(process) for std in stds]
    source = impulses(len(steps))

    def repeated(draw: int) -> SketchBatch:
        return SketchBatch(*(part.repeat(len(stds), 1, 1) for part in parts(source(draw))))

    batch = run(sampler, concatenated(denoisers), process, repeated, steps=steps, **options)
    level = process.params.at(0)
    true = [float(level.alpha_bar * std**2 + level.var) for std in stds]
    return [float((part**2).sum()) / var - 1 for part, var in zip(batch.params.chunk(len(stds)), true, strict=True)]


def concatenated(denoisers: list[Denoiser]) -> Denoiser:
    """Each denoiser for its share of the batch."""

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        size = len(batch_t) // len(denoisers)
        outputs = [d(batch_t[i * size : (i + 1) * size], t[:size]) for i, d in enumerate(denoisers)]
        return Prediction(*map(torch.cat, zip(*map(parts, outputs), strict=True)))

    return denoise


@pytest.mark.parametrize(
    ("sampler", "documented"),
    [
        (sample_ancestral, {2000: (-0.247, -0.409), 160: (-2.9, -4.5), 40: (-10.5, -15.0), 10: (-32, -39.6)}),
        (sample_ddim, {2000: (-0.125, -0.163), 160: (-1.54, -1.98), 40: (-6.0, -7.6), 10: (-22, -27.1)}),
        (
            sample_dpm_solver_pp,
            {2000: (-0.0017, -0.0053), 160: (-0.028, 0.0079), 40: (-0.186, 0.332), 10: (-4.72, -9.63)},
        ),
    ],
)
def test_variance_lost_by_few_steps_is_as_documented(sampler, documented: dict[int, tuple[float, float]]) -> None:
    """The percentages of docs/equations.md."""
    for count, percent in documented.items():
        errors = relative_errors(sampler, paper_process(2000), (1.0, 0.5), step_sequence(2000, count))
        assert [100 * e for e in errors] == pytest.approx(percent, rel=0.02)


def test_variance_of_a_completion_in_a_hundred_steps_is_as_documented() -> None:
    """That of the second of two numbers of correlation 0.9, given the first: the 7.6 % of docs/equations.md."""
    std, steps = math.sqrt(1 - 0.9**2), range(100, -1, -1)
    (error,) = relative_errors(sample_ancestral, our_process(100), (std,), steps, labels="logit")
    assert 100 * error == pytest.approx(-7.6, abs=0.05)


@pytest.mark.parametrize(
    ("sampler", "options", "order"),
    [
        (sample_ancestral, {"labels": "logit"}, 1),
        (sample_ddim, {}, 1),
        (sample_ddim, {"eta": 0.5}, 1),
        (sample_dpm_solver_pp, {}, 2),
    ],
)
def test_convergence_has_the_order_of_the_sampler(sampler, options, order: int) -> None:
    process = process_of(log_linear_snr(640))  # log SNR is finite at both ends, so no step is of first order alone
    errors = [relative_errors(sampler, process, (1.0, 0.5), step_sequence(640, n), **options) for n in (40, 80, 160)]
    for coarse, fine in pairwise(errors):
        for a, b in zip(coarse, fine, strict=True):
            assert math.log2(abs(a / b)) == pytest.approx(order, abs=0.12)


def kind_frequencies(sampler, process: JointProcess, target: RowTarget, batch: int, count: int, **options):
    noise = random_noise(11, batch, dtype=torch.float64)
    steps = step_sequence(process.num_steps, count)
    kind = run(sampler, target.denoiser(process), process, noise, steps=steps, **options).kind.argmax(-1).flatten()
    return torch.bincount(kind, minlength=5) / kind.numel()


def test_expected_logits_are_unbiased_and_the_logit_of_the_expectation_is_not() -> None:
    target, process = RowTarget(FREQUENCIES.kind), our_process(2000)
    unbiased = kind_frequencies(sample_ancestral, process, target, 1000, 400, labels="logit")
    assert (unbiased - torch.tensor(target.kind)).abs().max() < 0.02
    biased = [replace(process, reverse_logits=form) for form in ("log", "2log")]
    flat, sharp = (kind_frequencies(sample_ancestral, each, target, 300, 200) for each in biased)
    assert flat[0] < 0.55 - 0.05  # towards uniform
    assert flat[2] > 0.12 + 0.02
    assert sharp[4] < 0.02 / 2  # the rare label nearly disappears


def test_drawn_labels_keep_their_frequencies_in_few_steps() -> None:
    process, expected = process_of(cosine(500), superposition="expected"), torch.tensor(FREQUENCIES.kind)

    def off(sampler, count: int, **options) -> float:
        frequencies = kind_frequencies(sampler, process, FREQUENCIES, 1500, count, **options)
        return float((frequencies - expected).abs().sum()) / 2

    for count in (5, 12):
        drawn = off(sample_ancestral, count, labels="sampled")
        assert drawn < 0.012
        assert off(sample_ancestral, count, labels="logit") > 2 * drawn
    assert off(samplers.sample_predictor_corrector, 12, labels="sampled") < 0.012
    prediction, noise = random_prediction(4), seeded_noise(0, torch.arange(4))
    for form, default in (("expected", "sampled"), ("log", "logit")):
        process = replace(our_process(50), reverse_logits=form)
        choices = ({}, {"labels": "sampled"}, {"labels": "logit"})
        results = (run(sample_ancestral, lambda *_: prediction, process, noise, **options) for options in choices)
        plain, sampled, logit = results
        assert same(plain, sampled if default == "sampled" else logit)
        assert not same(sampled, logit)


FINE = log_linear_snr(4000, 6.0, -6.0)


@pytest.mark.parametrize("eta", [0.0, 1.0])  # between them, eta is another process for every step length
def test_linear_prediction_is_integrated_exactly(eta: float) -> None:
    """One long corrected step arrives where thousands of plain ones do, without their noise."""
    t, s = 3000, 1000

    def predict(step: int) -> float:
        return 0.3 + 0.35 * float(FINE.at(step).snr.log())

    x = fine = torch.tensor(1.0, dtype=torch.float64)
    for high, low in pairwise(range(t, s - 1, -1)):
        weights = ddim_weights(FINE.at(low), FINE.at(high), eta)
        fine = weights.x_t * fine + weights.x0 * predict(high)
    weights = samplers.predictor_weights(FINE.at(s), FINE.at(t), FINE.at(3500), eta)
    predicted = weights.x_t * x + weights.x0 * predict(t) + weights.previous * predict(3500)
    correction = corrector_weight(FINE.at(s), FINE.at(t), eta) * (predict(s) - predict(t))
    corrected = predicted + correction + weights.previous * (predict(t) - predict(3500))
    torch.testing.assert_close(corrected, fine, atol=2e-3, rtol=0)
    # The line through the last two was exact already.
    torch.testing.assert_close(predicted, corrected, atol=1e-9, rtol=0)


def test_corrector_weight_is_half_in_short_steps_and_zero_at_the_ends() -> None:
    levels = FINE.at(1999), FINE.at(2000)
    half = corrector_weight(*levels, 1.0) / ddim_weights(*levels, 1.0).x0
    torch.testing.assert_close(half, torch.tensor(0.5).double(), rtol=2e-3, atol=0)
    at = cosine(100).at
    assert (corrector_weight(at(0), at(30), 1.0), corrector_weight(at(60), at(100), 1.0)) == (0, 0)
    assert corrector_weight(at(30), at(60), 1.0) > 0
    assert corrector_weight(at(30), at(30), 1.0) == 0  # a flat stretch


def test_corrected_coordinates_have_more_of_the_true_variance() -> None:
    target, process = RowTarget(ONLY_ARCS, std=0.5), our_process(2000)

    def missing(sampler, count: int, **options) -> float:
        noise = random_noise(0, 800, dtype=torch.float64)
        batch = run(sampler, target.denoiser(process), process, noise, steps=count, **options)
        return 0.5 - float(batch.params[..., 7:12].std())

    for count in (25, 50):
        plain = missing(sample_ancestral, count, labels="logit")
        assert plain > 0.015  # too narrow, even in 50 steps
        assert abs(missing(samplers.sample_predictor_corrector, count)) < 0.75 * plain


@pytest.mark.parametrize("labels", ["sampled", "logit"])
def test_predictor_corrector_evaluates_once_a_step(labels: str) -> None:
    x0, evaluated = sketches(3), list[int]()

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        evaluated.append(int(t[0]))
        return oracle(x0)(batch_t, t)

    steps = step_sequence(200, 20, power=2)
    batch = run(
        samplers.sample_predictor_corrector, denoise, our_process(200), random_noise(0, 3), steps=steps, labels=labels
    )
    assert tuple(evaluated) == steps[:-1]
    torch.testing.assert_close(batch.params, x0.params)


PROCESS = our_process(100)
RESTART_AT = step_as_noisy_as(PROCESS, 0.6)
CLOSED, LOOSE, OTHER = 0, 1, 2


def scripted_rows(*names: int) -> SketchBatch:
    """A circle, a line with loose ends, or another circle, in the first row of a sketch."""
    kind, params = torch.eye(5)[torch.full((len(names), 16), 4)], torch.zeros(len(names), 16, 14)
    for i, name in enumerate(names):
        kind[i, 0] = torch.eye(5)[0 if name == LOOSE else 1]
        if name == LOOSE:
            params[i, 0, :4] = torch.tensor([-1.0, 0.0, 1.0, 0.0])
        else:
            params[i, 0, 6] = 1.0 if name == CLOSED else 0.5
    return SketchBatch(torch.eye(2)[torch.zeros(len(names), 16, dtype=torch.long)], kind, params)


class Passes:
    """Stands in for `sample_predictor_corrector`: returns given results and records its arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *results: SketchBatch) -> None:
        self.results, self.options, self.noise = list(results), list[SamplingOptions](), list[torch.Tensor]()
        monkeypatch.setattr("sketchdnn.diffusion.samplers.sample_predictor_corrector", self)

    def __call__(self, _: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions) -> SketchBatch:
        result = self.results[len(self.options)]
        self.options.append(options)
        count = options.steps
        assert isinstance(count, int)
        self.noise += [noise(number).params for number in range(count + 1)]
        top = options.first_step(process.num_steps)
        for number in range(1, count + 1):
            s, batch = (0, result) if number == count else (top - number, clean_batch(2, seed=number))
            if options.on_step is not None:
                options.on_step(Progress(number, count, top - number + 1, s, batch, random_prediction(2)))
        return result

    def run(self, **options: Any) -> SketchBatch:
        return run(
            samplers.sample_restart, wobbly, PROCESS, seeded_noise(0, torch.arange(2)), **{"steps": 50, **options}
        )


def test_restart_replaces_only_sketches_with_a_loose_end(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes(monkeypatch, scripted_rows(CLOSED, LOOSE), scripted_rows(OTHER, OTHER))
    assert same(passes.run(), scripted_rows(CLOSED, OTHER))
    first, second = passes.options
    assert (first.steps, second.steps, first.start, second.start.t) == (36, 14, None, RESTART_AT)
    assert same(second.start.batch, passes.results[0].most_likely())
    assert all(not torch.equal(one, other) for i, one in enumerate(passes.noise) for other in passes.noise[:i])
    for steps, expected in ((1, [1]), (12, [12]), (14, [10, 4]), (None, [72, 28])):
        passes = Passes(monkeypatch, scripted_rows(CLOSED, CLOSED), scripted_rows(OTHER, OTHER))
        assert same(passes.run(steps=steps), passes.results[0])
        assert [options.steps for options in passes.options] == expected
    passes, steps = Passes(monkeypatch, scripted_rows(CLOSED, LOOSE), scripted_rows(OTHER, OTHER)), list[Progress]()
    end = passes.run(on_step=steps.append)
    assert [(step.number, step.total) for step in steps] == [(number, 50) for number in range(1, 51)]
    assert all(step.active is None for step in steps[:36])
    for step in steps[36:]:
        assert step.active.tolist() == [False, True]
        assert torch.equal(step.batch.flat()[0], end.flat()[0])
    assert same(steps[-1].batch, end)


@pytest.mark.parametrize("t", [20, RESTART_AT, RESTART_AT + 1, 90])
def test_restart_is_no_noisier_than_the_start(monkeypatch: pytest.MonkeyPatch, t: int) -> None:
    passes = Passes(monkeypatch, scripted_rows(CLOSED, LOOSE), scripted_rows(OTHER, OTHER))
    start = Start(t, clean_batch(2))
    passes.run(steps=15, start=start)
    first, second = (options.start for options in passes.options)
    assert first is start
    assert second is start if t <= RESTART_AT else second.t == RESTART_AT
