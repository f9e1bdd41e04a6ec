"""A value is chosen by a number of [0, 1]: as often as its chance says, and only from the nucleus."""

from __future__ import annotations

import pytest
import torch

from sketchdnn.diffusion.noise import uniform
from sketchdnn.systems.baselines.tokens.system import sample_token
from sketchdnn.systems.baselines.tokens.tokens import NUM_VALUES, STOP


def test_values_are_chosen_as_often_as_their_chances_say() -> None:
    chances = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05])
    many = 20_000
    logits = chances.log().expand(many, -1)
    legal = torch.tensor([True, True, True, True, False]).expand(many, -1)
    where = uniform(3, torch.arange(many), 0, ())
    free = torch.bincount(sample_token(logits, legal, where), minlength=5) / many
    assert torch.allclose(free, torch.tensor([0.5, 0.2, 0.15, 0.1, 0.0]) / 0.95, atol=0.01)
    # The likeliest two hold 0.737 of what is legal: the third is needed for 0.8.
    nucleus = torch.bincount(sample_token(logits, legal, where, top_p=0.8), minlength=5) / many
    assert torch.allclose(nucleus, torch.tensor([0.5, 0.2, 0.15, 0.0, 0.0]) / 0.85, atol=0.01)
    cold = torch.bincount(sample_token(logits, legal, where, temperature=0.5), minlength=5) / many
    squared = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.0]) ** 2
    assert torch.allclose(cold, squared / squared.sum(), atol=0.01)


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_both_ends_of_the_unit_interval_choose_something_legal(where: float) -> None:
    legal = torch.zeros(1, NUM_VALUES, dtype=torch.bool)
    legal[0, [3, STOP]] = True
    logits = torch.zeros(1, NUM_VALUES)
    logits[0, 3] = 40.0
    chosen = sample_token(logits, legal, torch.tensor([where]), top_p=0.9)
    assert int(chosen) == 3
