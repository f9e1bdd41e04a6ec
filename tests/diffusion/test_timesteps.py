"""Random steps: the right range and the right frequencies."""

import pytest
import torch
from scipy import stats

from sketchdnn.diffusion.timesteps import authors_weights, steps_at, uniform_weights


@pytest.mark.parametrize("weights", [uniform_weights(50), authors_weights(50), torch.linspace(5, 0.1, 50).double()])
def test_steps_have_the_frequencies_of_their_weights(weights: torch.Tensor) -> None:
    t = steps_at(torch.rand(100_000, generator=torch.Generator().manual_seed(0)), weights)
    counts = torch.bincount(t, minlength=51)
    assert counts[0] == 0
    assert (counts[1:] > 0).equal(weights > 0)
    used = weights > 0
    expected = 100_000 * weights[used] / weights.sum()
    assert stats.chisquare(counts[1:][used].numpy(), expected.numpy()).pvalue > 1e-3


def test_first_and_last_step_and_those_of_weight_zero() -> None:
    ends = torch.tensor([0.0, 1 - 2**-24])
    assert steps_at(ends, uniform_weights(2000)).tolist() == [1, 2000]
    assert steps_at(ends, authors_weights(2000)).tolist() == [1, 1999]
    almost = torch.tensor([1 - 2**-53], dtype=torch.float64)
    for num_steps in (1, 1025, 2000, 9999):
        assert steps_at(almost, uniform_weights(num_steps)).item() == num_steps
        if num_steps > 1:
            assert steps_at(almost, authors_weights(num_steps)).item() == num_steps - 1
    weights = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0])
    assert steps_at(torch.tensor([0.0, 0.25, 0.5, 0.75]), weights).tolist() == [2, 2, 4, 4]
    for wrong in ([1.0], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="quantiles"):
            steps_at(torch.tensor(wrong), uniform_weights(10))
    with pytest.raises(ValueError, match="num_steps"):
        uniform_weights(0)
    for wrong in ([-1.0, 2.0], [0.0, 0.0], [float("nan"), 1.0]):
        with pytest.raises(ValueError, match="weights"):
            steps_at(torch.tensor([0.5]), torch.tensor(wrong))
