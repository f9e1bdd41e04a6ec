"""Preconditioning: unit variance in, unit variance out, at every noise level."""

from __future__ import annotations

import pytest
import torch

from sketchdnn.diffusion import authors_cosine, cosine, log_linear_snr
from sketchdnn.diffusion import precondition as pre
from sketchdnn.diffusion.gaussian import diffuse


@pytest.mark.parametrize("make", [cosine, authors_cosine, log_linear_snr])
@pytest.mark.parametrize("data_std", [0.1, 0.5, 1.0, 3.0])
def test_input_and_target_have_unit_variance_at_every_level(make, data_std: float) -> None:
    """For data of that spread; the target is uncorrelated with the input, so skip takes all a linear guess can."""
    schedule = make(100)
    generator = torch.Generator().manual_seed(0)
    x0 = data_std * torch.randn(20_000, generator=generator, dtype=torch.float64)
    for t in (1, 5, 50, 95, 100):
        level = schedule.at(t)
        x_t = diffuse(x0, torch.randn(x0.shape, generator=generator, dtype=torch.float64), level)
        shown, target = pre.scale_input(x_t, level, data_std), pre.target(x0, x_t, level, data_std)
        assert shown.std().item() == pytest.approx(1, abs=0.03)
        assert target.std().item() == pytest.approx(1, abs=0.03)
        assert torch.corrcoef(torch.stack([shown, target]))[0, 1].abs() < 0.03
        torch.testing.assert_close(pre.denoised(x_t, target, level, data_std), x0)


def test_ends() -> None:
    """A clean state is its own prediction, whatever the network says; pure noise leaves all to the network."""
    schedule = cosine(10)
    x, output = torch.randn(5), torch.randn(5)
    torch.testing.assert_close(pre.denoised(x, output, schedule.at(0), 0.5), x)
    torch.testing.assert_close(pre.denoised(x, output, schedule.at(10), 0.5), 0.5 * output)
    assert torch.equal(pre.scale_input(x, schedule.at(10), 0.5), x)


def test_a_level_a_sample() -> None:
    schedule = cosine(10)
    x, output = torch.randn(2, 3, 4, 5)
    t = torch.tensor([1, 5, 10])
    whole = pre.denoised(x, output, schedule.at(t), 0.4)
    for i in range(3):
        torch.testing.assert_close(whole[i], pre.denoised(x[i], output[i], schedule.at(int(t[i])), 0.4))


@pytest.mark.parametrize("data_std", [0.0, -1.0, float("nan")])
def test_bad_input_names_the_argument(data_std: float) -> None:
    with pytest.raises(ValueError, match="data_std"):
        pre.coefficients(cosine(10).at(1), data_std)
