import io
from pathlib import Path

import pytest
import torch
from rich.console import Console
from support.benchmarks import write_page

from benchmarks import generate
from benchmarks.generate import AS_USED, EAGER, GenerateBenchmark, GenerateTiming, StepTiming, time_generate, time_step
from sketchdnn.errors import SketchError
from sketchdnn.networks import DiTConfig
from sketchdnn.systems import load_preset


def test_both_networks_are_timed_in_both_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network in place of the bundled model and of the paper's."""
    tiny = load_preset("tiny")
    monkeypatch.setattr(generate, "from_pretrained", lambda *_: tiny.make().eval())
    monkeypatch.setattr(generate, "load_preset", lambda name: tiny)
    stages: list[str] = []
    result = time_generate("cpu", 20, steps=4, paper=True, paper_steps=2, batch=5, on_stage=stages.append)
    assert [(timing.mode, timing.count) for timing in result.timings] == [(AS_USED, 20), (EAGER, 20)] * 2
    assert [timing.steps for timing in result.timings] == [4, 4, 2000, 2000]
    scaled = "timed on 5 sketches, 2 steps"
    assert [timing.timed for timing in result.timings] == ["", "timed on 5 sketches", scaled, scaled]
    assert all(timing.seconds > 0 for timing in result.timings)
    assert stages[0] == "loading"
    page = write_page(tmp_path / "page.md", "generate", "--device", "cpu", "--count", 3, "--steps", 2)
    assert "`python -m benchmarks generate --device cpu --count 3 --steps 2`" in page


def test_ratios_are_to_the_eager_loop_of_the_same_network() -> None:
    pairs = (("a", AS_USED, 2.0), ("a", EAGER, 8.0), ("b", AS_USED, 5.0), ("b", EAGER, 5.0))
    timings = (GenerateTiming(what, mode, "ddim", 10, 50, seconds) for what, mode, seconds in pairs)
    result = GenerateBenchmark("here", tuple(timings))
    assert [row[-1] for row in result.rows()] == ["4.0×", "1.0×", "1.0×", "1.0×"]
    assert "| a | as used | ddim | 10 | 50 | 2 | 5 | 4.0× |" in result.markdown("")


def test_step_and_network_are_timed() -> None:
    timing = time_step(batch=8, network_batch=4, repeats=1, config=DiTConfig(width=16, depth=1, heads=2))
    assert min(timing.network, timing.step, timing.noise) > 0
    assert timing.network_scaled == 2 * timing.network
    timing = StepTiming("a device", 4096, 16, 32, network=0.5, step=0.16, noise=0.32)
    assert timing.ratio == pytest.approx(0.0025)
    assert timing.is_allowed
    console = Console(file=io.StringIO(), width=200)
    console.print(timing.table())
    assert "timed on 32 sketches, times 128" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "0.25%" in timing.markdown("")


def test_bad_values_are_refused() -> None:
    for wrong in ({"count": 0}, {"batch": 0}, {"device": "tpu"}):
        with pytest.raises(SketchError):
            time_generate(**wrong)  # type: ignore[arg-type]
    cuda = [] if torch.cuda.is_available() else [({"device": "cuda"}, "CUDA")]
    for values, message in [({"device": "abacus"}, "abacus"), ({"batch": 0}, "at least 1"), *cuda]:
        with pytest.raises(SketchError, match=message):
            time_step(**values)  # type: ignore[arg-type]
