"""Steps that are corrected where they arrive: exact for predictions that move in a line, and of the right spread."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from support.toys import ONLY_ARCS, process_of, random_noise

from benchmarks.oracles import RowTarget, oracle
from sketchdnn.diffusion.process import our_process
from sketchdnn.diffusion.samplers import (
    Order,
    corrector_weight,
    ddim_weights,
    predictor_weights,
    sample_ancestral,
    sample_predictor_corrector,
)
from sketchdnn.diffusion.sampling import SamplingOptions, step_sequence
from sketchdnn.diffusion.schedule import Schedule, cosine, log_linear_snr
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

FINE = log_linear_snr(4000, 6.0, -6.0)


def sketches(batch: int) -> SketchBatch:
    target = RowTarget((0.3, 0.2, 0.2, 0.1, 0.2), construction=0.3, std=0.5)
    return target.sample(batch, generator=torch.Generator().manual_seed(0), dtype=torch.float32)


def half_log_snr(schedule: Schedule, t: int) -> float:
    level = schedule.at(t)
    return float((level.alpha_bar / level.var).log()) / 2


@pytest.mark.parametrize("eta", [0.0, 1.0])  # between them, eta means another walk for every length of step
@pytest.mark.parametrize("order", [1, 2])
def test_a_prediction_that_moves_in_a_line_is_walked_without_error(eta: float, order: Order) -> None:
    """One long step, corrected, arrives where thousands of plain ones do, their noise being left out."""
    t, s = 3000, 1000

    def says(step: int) -> float:
        return 0.3 + 0.7 * half_log_snr(FINE, step)

    x = torch.tensor(1.0, dtype=torch.float64)
    fine = x
    for high, low in pairwise(range(t, s - 1, -1)):
        weights = ddim_weights(FINE.at(low), FINE.at(high), eta)
        fine = weights.x_t * fine + weights.x0 * says(high)
    weights = predictor_weights(FINE.at(s), FINE.at(t), FINE.at(3500), eta, order)
    predicted = weights.x_t * x + weights.x0 * says(t) + weights.previous * says(3500)
    correction = corrector_weight(FINE.at(s), FINE.at(t), eta) * (says(s) - says(t))
    long = predicted + correction + weights.previous * (says(t) - says(3500))
    torch.testing.assert_close(long, fine, atol=2e-3, rtol=0)
    if order == 2:  # the line through the last two was the right one already
        torch.testing.assert_close(predicted, long, atol=1e-9, rtol=0)


def test_in_a_short_step_the_end_counts_as_much_as_the_beginning() -> None:
    level_s, level_t = FINE.at(1999), FINE.at(2000)
    whole = ddim_weights(level_s, level_t, 1.0).x0
    torch.testing.assert_close(
        corrector_weight(level_s, level_t, 1.0) / whole, torch.tensor(0.5).double(), rtol=2e-3, atol=0
    )


def test_steps_from_pure_noise_and_to_the_clean_end_are_not_corrected() -> None:
    schedule = cosine(100)
    levels = [schedule.at(t) for t in (0, 30, 60, 100)]
    assert corrector_weight(levels[0], levels[1], 1.0) == 0
    assert corrector_weight(levels[2], levels[3], 1.0) == 0
    assert corrector_weight(levels[1], levels[2], 1.0) > 0
    assert corrector_weight(levels[1], levels[1], 1.0) == 0  # a flat stretch


def spread(sampler, count: int, **settings) -> float:
    """The standard deviation of coordinates, which is 0.5 in the data, drawn with a perfect denoiser."""
    target, process = RowTarget(ONLY_ARCS, std=0.5), our_process(2000)
    steps = step_sequence(2000, count, power=2)
    drawn = sampler(
        target.denoiser(process),
        process,
        random_noise(0, 800, dtype=torch.float64),
        SamplingOptions(steps=steps),
        **settings,
    )
    return float(drawn.params[..., 7:12].std())


@pytest.mark.parametrize(("count", "order"), [(12, 1), (25, 1), (25, 2), (50, 2)])  # lines overshoot in long steps
def test_corrected_coordinates_vary_more_nearly_as_they_should(count: int, order: Order) -> None:
    plain, better = 0.5 - spread(sample_ancestral, count), 0.5 - spread(sample_predictor_corrector, count, order=order)
    assert plain > 0.015  # too narrow, even in 50 steps
    assert abs(better) < 0.75 * plain


def test_drawn_labels_keep_their_shares_in_few_steps() -> None:
    target = RowTarget((0.55, 0.25, 0.12, 0.06, 0.02), construction=0.1, std=0.4)
    process = process_of(cosine(500), superposition="expected")
    noise = random_noise(0, 1500, dtype=torch.float64)
    drawn = sample_predictor_corrector(
        target.denoiser(process), process, noise, SamplingOptions(steps=step_sequence(500, 12)), labels="drawn"
    )
    kind = torch.bincount(drawn.kind.argmax(-1).flatten(), minlength=5) / drawn.kind[..., 0].numel()
    assert (kind - torch.tensor(target.kind)).abs().sum() / 2 < 0.012


@pytest.mark.parametrize("labels", ["drawn", "mean"])
@pytest.mark.parametrize("order", [1, 2])
def test_the_network_is_asked_once_a_step(labels, order: Order) -> None:
    x0 = sketches(3)
    asked: list[int] = []

    def denoise(batch_t: SketchBatch, t: torch.Tensor) -> Prediction:
        asked.append(int(t[0]))
        return oracle(x0)(batch_t, t)

    steps = step_sequence(200, 20, power=2)
    drawn = sample_predictor_corrector(
        denoise, our_process(200), random_noise(0, 3), SamplingOptions(steps=steps), labels=labels, order=order
    )
    assert tuple(asked) == steps[:-1]
    torch.testing.assert_close(drawn.params, x0.params)


@pytest.mark.parametrize("arguments", [{"eta": 1.5}, {"eta": float("nan")}, {"order": 3}])
def test_what_makes_no_sense_is_refused_by_name_here_too(arguments) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        sample_predictor_corrector(
            oracle(sketches(2)), our_process(10), random_noise(0, 2), SamplingOptions(), **arguments
        )
