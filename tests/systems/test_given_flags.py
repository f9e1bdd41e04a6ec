"""What is given in training: every sketch of the share gets one of three tasks, and the others nothing."""

from __future__ import annotations

import torch

from sketchdnn.representation import layout
from sketchdnn.systems.system import ConditionMask, sample_condition_mask


def given_for(task: float, *, chance: float = 0.0, share: float = 0.5) -> ConditionMask:
    """For one sketch of ten lines and six empty rows, whose numbers ask for every row if rows are given."""
    kind = torch.tensor([[0] * 10 + [layout.NONE] * 6])
    uniform = torch.cat([torch.tensor([[chance, task, 1.0]]), torch.full((1, 16), 0.5)], dim=1).double()
    uniform[0, 1] = task
    return sample_condition_mask(uniform, kind, share)


def test_tasks_share_all_draws_between_them() -> None:
    """From 0 to 0.4 rows are given, from there to 0.7 all kinds, and from there on which rows are empty."""
    every = torch.ones(1, 16, dtype=torch.bool)
    none, empty = ~every, torch.arange(16)[None] >= 10
    for task, (kind, rest) in {
        **dict.fromkeys((0.0, 0.2, 0.399), (every, every)),
        **dict.fromkeys((0.4, 0.5, 0.699), (every, none)),
        **dict.fromkeys((0.7, 0.9, 0.999), (empty, empty)),
    }.items():
        found = given_for(task)
        assert torch.equal(found.kind, kind), task
        assert torch.equal(found.construction, rest), task
        assert torch.equal(found.params, rest), task


def test_nothing_is_given_beyond_the_share() -> None:
    for task in (0.1, 0.5, 0.9):
        for chance, share in ((0.5, 0.5), (0.9, 0.5), (0.0, 0.0)):
            found = given_for(task, chance=chance, share=share)
            assert not (found.kind | found.construction | found.params).any()
