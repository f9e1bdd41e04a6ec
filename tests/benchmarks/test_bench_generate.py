"""The bench of drawing: what it times, and how it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.commands.app import app
from typer.testing import CliRunner

from benchmarks import generate as room
from benchmarks.generate import AS_USED, EAGER, GenerateBench, GenerateTiming, time_generate
from sketchdnn.errors import SketchError
from sketchdnn.systems import System, load_preset


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network stands in for both."""

    def tiny(*_: object) -> System:
        return load_preset("tiny").make().eval()

    class Tiny:
        make = staticmethod(tiny)

    monkeypatch.setattr(room, "from_pretrained", tiny)
    monkeypatch.setattr(room, "load_preset", lambda name: Tiny)


def test_both_networks_are_timed_both_ways() -> None:
    stages: list[str] = []
    timed = time_generate("cpu", 20, steps=4, paper=True, paper_steps=2, batch=5, on_stage=stages.append)
    assert [(timing.way, timing.count) for timing in timed.timings] == [(AS_USED, 20), (EAGER, 20)] * 2
    assert [timing.steps for timing in timed.timings] == [4, 4, 2000, 2000]
    assert [timing.timed for timing in timed.timings] == [
        "",
        "timed on 5 sketches",
        "timed on 5 sketches, 2 steps",
        "timed on 5 sketches, 2 steps",
    ]
    assert all(timing.seconds > 0 for timing in timed.timings)
    assert stages[0] == "loading"


def test_ratios_are_to_the_eager_loop_of_the_same_network() -> None:
    pairs = (("a", AS_USED, 2.0), ("a", EAGER, 8.0), ("b", AS_USED, 5.0), ("b", EAGER, 5.0))
    bench = GenerateBench(
        "here", tuple(GenerateTiming(what, way, "ddim", 10, 50, seconds) for what, way, seconds in pairs)
    )
    assert [row[-1] for row in bench.rows()] == ["4.0×", "1.0×", "1.0×", "1.0×"]
    assert "| a | as used | ddim | 10 | 50 | 2 | 5 | 4.0× |" in bench.markdown("python -m benchmarks generate")


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    out = tmp_path / "speed.md"
    result = CliRunner().invoke(app, ["generate", "--count", "3", "--steps", "2", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "python -m benchmarks generate --device cpu --count 3 --steps 2" in out.read_text()


@pytest.mark.parametrize("wrong", [{"count": 0}, {"batch": 0}, {"device": "tpu"}])
def test_what_cannot_be_timed_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SketchError):
        time_generate(**wrong)  # type: ignore[arg-type]
