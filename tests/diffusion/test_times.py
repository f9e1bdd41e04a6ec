"""Steps to train on: the right range, the right frequencies, and evenly spread batches."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from sketchdnn.diffusion import times

WEIGHTS = {
    "paper": times.uniform_weights(50),
    "authors": times.authors_weights(50),
    "logit-normal": times.logit_normal_times(50, mean=-0.5),
    "measured": times.measured_times(torch.linspace(5, 0, 50)),
}


def uniforms(count: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", WEIGHTS)
def test_steps_come_as_often_as_their_weights_say(name: str) -> None:
    weights = WEIGHTS[name]
    t = times.draw_times(uniforms(100_000), weights)
    counts = torch.bincount(t, minlength=51)
    assert counts[0] == 0
    assert (counts[1:] > 0).equal(weights > 0)
    drawn = weights > 0
    expected = 100_000 * weights[drawn] / weights.sum()
    assert stats.chisquare(counts[1:][drawn].numpy(), expected.numpy()).pvalue > 1e-3


def test_first_and_last_step_of_each_preset() -> None:
    ends = torch.tensor([0.0, 1 - 2**-24])
    assert times.draw_times(ends, times.uniform_weights(2000)).tolist() == [1, 2000]
    assert times.draw_times(ends, times.authors_weights(2000)).tolist() == [1, 1999]
    almost = torch.tensor([1 - 2**-53], dtype=torch.float64)
    for num_steps in (1, 1025, 2000, 9999):
        assert times.draw_times(almost, times.uniform_weights(num_steps)).item() == num_steps
        if num_steps > 1:
            assert times.draw_times(almost, times.authors_weights(num_steps)).item() == num_steps - 1


def test_a_step_of_weight_zero_is_never_drawn() -> None:
    """Not even by a number on the edge between two slices."""
    weights = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0])
    assert times.draw_times(torch.tensor([0.0, 0.25, 0.5, 0.75]), weights).tolist() == [2, 2, 4, 4]


def test_a_stratified_batch_covers_every_slice() -> None:
    for u in (times.stratified(uniforms(50)), times.low_discrepancy(uniforms(1)[0], 50)):
        assert sorted(times.draw_times(u, times.uniform_weights(50)).tolist()) == list(range(1, 51))


def test_low_discrepancy_is_uniform_at_every_place() -> None:
    starts = uniforms(5000)
    third = torch.stack([times.low_discrepancy(u, 7)[3] for u in starts])
    assert stats.kstest(third.numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", ["logit-normal", "measured"])
def test_importance_makes_a_weighted_draw_unbiased(name: str) -> None:
    """The mean of any function over weighted steps, corrected, is its mean over uniform steps."""
    weights = WEIGHTS[name]
    value = torch.linspace(0, 1, 50, dtype=torch.float64) ** 2
    p = weights / weights.sum()
    t = torch.arange(1, 51)
    assert (p * times.importance(t, weights) * value).sum().item() == pytest.approx(value.mean().item())


def test_measured_weights_keep_a_floor() -> None:
    weights = times.measured_times(torch.tensor([0.0, 1.0, 3.0]), floor=0.3)
    torch.testing.assert_close(weights, torch.tensor([0.4, 1.0, 3.0], dtype=torch.float64))


def test_bad_input_names_the_argument() -> None:
    for wrong in ([1.0], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="uniform"):
            times.draw_times(torch.tensor(wrong), times.uniform_weights(10))
    with pytest.raises(ValueError, match="std"):
        times.logit_normal_times(10, std=0)
    with pytest.raises(ValueError, match="num_steps"):
        times.uniform_weights(0)
    for wrong in ([-1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0]):
        with pytest.raises(ValueError, match="loss_per_step"):
            times.measured_times(torch.tensor(wrong))
    with pytest.raises(ValueError, match="weights"):
        times.draw_times(torch.tensor([0.5]), torch.tensor([-1.0, 2.0]))
    with pytest.raises(ValueError, match="t must"):
        times.importance(torch.tensor([0]), times.uniform_weights(10))
