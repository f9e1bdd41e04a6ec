"""The average of the weights, and how far a run is."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch.optim.swa_utils import AveragedModel

from sketchdnn.training.run import _update_average


def share_of_the_start(decay: float, steps: int) -> list[float]:
    """What is left of the first weights after each step, if all later ones are 0."""
    module = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(module.weight)
    average = AveragedModel(module)
    torch.nn.init.zeros_(module.weight)
    left = []
    for _ in range(steps):
        _update_average(average, module, decay)
        left.append(float(average.module.weight.detach()))
    return left


def test_average_is_short_in_the_first_steps() -> None:
    """As TensorFlow's with a number of updates n: the decay is at most (1 + n) / (10 + n)."""
    assert share_of_the_start(0.9999, 4) == pytest.approx([1 / 10, 1 / 55, 1 / 220, 1 / 715], rel=1e-5)


def test_average_forgets_at_its_own_pace_later() -> None:
    left = share_of_the_start(0.5, 20)
    assert [after / before for before, after in pairwise(left[8:])] == pytest.approx([0.5] * 11)
