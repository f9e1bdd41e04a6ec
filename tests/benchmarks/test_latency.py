"""The benchmark of latency."""

from dataclasses import replace

import pytest
from support.students import small_teacher

from benchmarks.latency import FINISHED, GOALS, ONE, Latency, LatencyTiming, time_latency
from sketchdnn.errors import SketchError
from sketchdnn.systems import load_preset


def test_paths_are_timed() -> None:
    system = small_teacher()
    stages: list[str] = []
    result = time_latency(system, rounds=1, tasks=[ONE], on_stage=stages.append)
    assert stages[:-1] == [f"{timing.path}: {timing.task}" for timing in result.timings]
    names = [each.computed_by for each in result.evaluations]
    assert names[:1] == ["float32"]
    assert len(set(names)) == len(names)
    assert all(each.error < 0.05 and min(each.milliseconds) > 0 for each in result.evaluations)
    assert len({timing.path for timing in result.timings}) == len(result.timings) == 6
    assert all(timing.sampling > 0 and timing.rest > 0 for timing in result.timings)
    assert (system.student, system.precision) == (None, "auto")
    fewest = next(timing for timing in result.timings if timing.path == "student, 4 steps")
    fast = next(timing for timing in result.timings if timing.path == "fast, without a student")
    assert fewest.rest == fast.rest  # an untrained student draws nothing to time repair on
    assert fewest.sampling < result.timings[0].sampling
    assert "has the weights of its teacher" in result.markdown("python -m benchmarks latency")
    assert "has the weights" not in replace(result, untrained=False).markdown("python -m benchmarks latency")


def test_goals_and_shares_are_stated() -> None:
    best = LatencyTiming("best", "float32", FINISHED, 4.0, 2.0)
    student = LatencyTiming("student, 4 steps", "float32", FINISHED, 0.5, 1.5)
    result = Latency(5, 2, True, (best, student))
    assert [result.speedup(each) for each in result.timings] == [1.0, 3.0]
    assert list(result.rows())[1] == (
        "student, 4 steps",
        "float32",
        FINISHED,
        "0.500",
        "1.500",
        "2.000",
        "75%",
        "3.00×",
    )
    (sentence,) = result.sentences()
    assert f"2.00 s, goal {GOALS[FINISHED]:g} s missed; 75% of it is not sampling" in sentence


def test_other_systems_are_refused() -> None:
    with pytest.raises(SketchError, match="system sketchdnn"):
        time_latency(load_preset("tiny", "vitruvion").make())
