"""Validation looks at a system as it is used, and leaves it as it was."""

from typing import Any

import pytest
import torch
from support.generation import randomized
from support.training import part_corpus

from sketchdnn.systems import System, load_preset
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.validation import validate


def with_dropout() -> System:
    """Loses half of what its network says, while it is trained."""
    system = randomized(load_preset("tiny").make(), std=0.05)

    def lose(module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(output, 0.5, training=module.training)

    for module in system.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lose)
    return system


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_and_the_mode_comes_back(training: bool) -> None:
    system, corpus = with_dropout().train(training), part_corpus(20)
    config = TrainConfig(steps=1, batch_size=8)
    first, again = validate(system, corpus, config), validate(system, corpus, config)
    assert first == again
    assert system.training is training


def test_mean_does_not_depend_on_the_batch_size() -> None:
    system, corpus = with_dropout(), part_corpus(20)
    few, many = (validate(system, corpus, TrainConfig(steps=1, batch_size=size)) for size in (8, 64))
    assert (few, list(few)) == (pytest.approx(many, rel=1e-4), sorted(few))
    assert 1 <= min(few) < max(few) <= (system.max_steps or 1)
