"""Speed of completion: stages, the ratio to one suggestion, and the page."""

import pytest
import torch
from support.generation import randomized

from benchmarks.completion_speed import PARTS, STAGES, CompletionSpeed, CompletionTiming, open_plate, time_completion
from sketchdnn.generation.goals import open_ends
from sketchdnn.systems import load_preset


def test_one_and_eight_suggestions_are_timed_by_stage() -> None:
    torch.manual_seed(0)
    stages: list[str] = []
    system = randomized(load_preset("tiny").make(), std=0.05)
    result = time_completion(system, [*PARTS][:1], steps=2, rounds=1, on_stage=stages.append)
    assert [(each.count, each.candidates) for each in result.timings] == [(1, 8), (8, 24)]
    assert len(stages) == 2
    assert all(len(each.seconds) == len(STAGES) and min(each.seconds) > 0 for each in result.timings)
    assert len(open_ends(open_plate())) == 2


def test_ratio_is_to_one_suggestion_for_the_same_part() -> None:
    timings = [("a", 1, 1.0), ("a", 8, 2.5), ("b", 1, 4.0), ("b", 8, 10.0)]
    rows = tuple(
        CompletionTiming(part, count, 8 * count, (0.0, 0.75 * s, 0.2 * s, 0.05 * s)) for part, count, s in timings
    )
    result = CompletionSpeed("2 cores", 50, 5, rows)
    assert result.is_allowed
    assert [row[-1] for row in result.rows()] == ["1.00", "2.50", "1.00", "2.50"]
    assert "at most 2.50 times as long as one (3 allowed)" in result.markdown("command")
    slow = CompletionSpeed("2 cores", 50, 5, (rows[0], CompletionTiming("a", 8, 24, (3.5,))))
    assert not slow.is_allowed
    assert slow.of_one(slow.timings[1]) == pytest.approx(3.5)
