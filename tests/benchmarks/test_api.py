from pathlib import Path

from support.evaluation_data import small_model

from benchmarks.api import API, BUSY, CLI, CORES, IDLE, TORCH_FIRST, ApiBenchmark, ApiTiming, time_api


def test_every_interface_is_timed_in_a_process(tmp_path: Path) -> None:
    model = str(small_model(tmp_path / "model"))
    result = time_api(model, rounds=1, counts=(1,), loads=(BUSY,), steps=2, compare=3)
    assert [timing.interface for timing in result.timings] == [CLI, API, TORCH_FIRST]
    assert all(0 < timing.call < timing.process and timing.processor > 0 for timing in result.timings)
    assert result.agreement == (3, 3)


def test_ratios_are_to_the_command_line_and_to_sixteen() -> None:
    seconds = {(1, CLI): 2.0, (1, API): 2.2, (16, CLI): 10.0, (16, API): 11.0}
    timings = tuple(ApiTiming(count, IDLE, name, call + 5, call, 9.0) for (count, name), call in seconds.items())
    result = ApiBenchmark(timings, 5, agreement=(995, 1000))
    assert (round(result.worst_of_cli, 3), round(result.worst_of_sixteen, 3), result.is_allowed) == (1.1, 0.2, True)
    page = result.markdown("python -m benchmarks api")
    row = "| 1 | idle | API | 7.20 | 1.03 | 2.20 | 1.10 | 9.00 |"
    assert all(words in page for words in (row, f"on {CORES} cores", "Of 1,000 sketches"))
