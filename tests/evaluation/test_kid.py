"""KID agrees with torchmetrics, is unbiased, and its standard error is one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchmetrics.image.kernel_distance import KernelInceptionDistance

from sketchdnn.evaluation import kernel_distance as room
from sketchdnn.evaluation.metrics import kernel_distance


def draw(count: int, seed: int, shift: float = 0.0, dimensions: int = 16) -> Tensor:
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed)) + shift


@pytest.mark.filterwarnings("ignore:Metric `Kernel Inception Distance` will save all:UserWarning")
def test_it_agrees_with_torchmetrics() -> None:
    a, b = draw(150, 0).abs(), draw(150, 1, 0.3).abs()

    class Pass(torch.nn.Module):
        num_features = 16

        def forward(self, x: Tensor) -> Tensor:
            return x

    # A subset as large as the sets is the whole: one is enough.
    metric = KernelInceptionDistance(feature=Pass(), subsets=1, subset_size=150, normalize=True)
    metric.used_custom_model = True
    metric.update(a, real=True)
    metric.update(b, real=False)
    assert kernel_distance(a, b).value == pytest.approx(float(metric.compute()[0]), rel=1e-3)


@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 2**20))
def test_it_is_the_same_both_ways_in_any_order_and_in_any_chunks(n: int, m: int, seed: int) -> None:
    a, b = draw(n, seed), draw(m, seed + 1, 0.5)
    found = kernel_distance(a, b)
    for other in (kernel_distance(b, a), kernel_distance(a.flip(0), b.roll(1, 0))):
        assert other.value == pytest.approx(found.value, rel=1e-9, abs=1e-9)
        assert other.standard_error == pytest.approx(found.standard_error, rel=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_ROWS", 7)
        assert kernel_distance(a, b).value == pytest.approx(found.value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_it_does_not_depend_on_the_sizes_and_its_error_is_right(shift: float) -> None:
    means, deviations = [], []
    for count in (30, 120):
        found = [kernel_distance(draw(count, 2 * i), draw(count, 2 * i + 1, shift)) for i in range(150)]
        values = np.array([f.value for f in found])
        claimed = float(np.mean([f.standard_error for f in found]))
        means.append(values.mean())
        deviations.append(values.std() / np.sqrt(len(values)))
        assert 0.8 * values.std() < claimed < 2 * values.std()
        assert np.mean([f.low <= values.mean() <= f.high for f in found]) > 0.9
    assert abs(means[0] - means[1]) < 3.5 * np.hypot(*deviations)


def test_alike_is_about_nothing_and_apart_is_something() -> None:
    alike, apart = kernel_distance(draw(300, 0), draw(300, 1)), kernel_distance(draw(300, 0), draw(300, 1, 0.5))
    assert alike.low < 0 < alike.high
    assert apart.low > 0
