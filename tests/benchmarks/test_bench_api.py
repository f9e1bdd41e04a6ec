"""The bench of the API: what it times in processes of their own, and how it says so."""

from __future__ import annotations

from pathlib import Path

from support.evaluation_data import small_model

from benchmarks.api import API, BUSY, CLI, CORES, IDLE, TORCH_FIRST, ApiBench, ApiTiming, count_alike, time_api
from sketchdnn.systems import from_pretrained


def test_all_ways_are_timed_in_processes_of_their_own(tmp_path: Path) -> None:
    model = str(small_model(tmp_path / "model"))
    timed = time_api(model, rounds=1, counts=(1,), loads=(BUSY,), steps=2)
    assert [timing.way for timing in timed.timings] == [CLI, API, TORCH_FIRST]
    assert all(0 < timing.call < timing.process and timing.processor > 0 for timing in timed.timings)
    assert count_alike(from_pretrained(model), 3) == 3


def test_ratios_are_to_the_command_line_and_to_sixteen() -> None:
    seconds = {(1, CLI): 2.0, (1, API): 2.2, (16, CLI): 10.0, (16, API): 11.0}
    timings = tuple(ApiTiming(count, IDLE, way, call + 5, call, 9.0) for (count, way), call in seconds.items())
    bench = ApiBench(timings, 5, alike=(995, 1000))
    assert (round(bench.worst_of_cli, 3), round(bench.worst_of_sixteen, 3), bench.allowed) == (1.1, 0.2, True)
    page = bench.markdown("python -m benchmarks api")
    assert "| 1 | idle | API | 7.20 | 1.03 | 2.20 | 1.10 | 9.00 |" in page
    assert f"on {CORES} cores" in page
    assert "Of 1,000 sketches" in page
