"""Speed of generation, training, drawing and the Python interface: their pages, ratios and refusals."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from support.benchmarks import write_page
from support.corpora import prepared_parts
from support.evaluation_data import small_model

from benchmarks import generate
from benchmarks.api import API, BUSY, CLI, CORES, IDLE, TORCH_FIRST, ApiBenchmark, ApiTiming, time_api
from benchmarks.raster import RasterTiming, plot, time_raster
from benchmarks.train import EAGER, OURS, TrainBenchmark, TrainTiming, random_corpus, step_flops, time_train
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Circle, Line, Point, Sketch
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.systems import load_preset
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


def test_both_networks_are_timed_in_both_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small network in place of the bundled model and of the paper's."""
    tiny = load_preset("tiny")
    monkeypatch.setattr(generate, "from_pretrained", lambda *_: tiny.make().eval())
    monkeypatch.setattr(generate, "load_preset", lambda name: tiny)
    stages: list[str] = []
    result = generate.time_generate("cpu", 20, steps=4, paper=True, paper_steps=2, batch=5, on_stage=stages.append)
    modes = (generate.AS_USED, generate.EAGER)
    assert [(timing.mode, timing.count) for timing in result.timings] == [(mode, 20) for mode in modes] * 2
    assert [timing.steps for timing in result.timings] == [4, 4, 2000, 2000]
    scaled = "timed on 5 sketches, 2 steps"
    assert [timing.timed for timing in result.timings] == ["", "timed on 5 sketches", scaled, scaled]
    assert all(timing.seconds > 0 for timing in result.timings)
    assert stages[0] == "loading"
    page = write_page(tmp_path / "page.md", "generate", "--device", "cpu", "--count", 3, "--steps", 2)
    assert "`python -m benchmarks generate --device cpu --count 3 --steps 2`" in page
    # Ratios are to the eager loop of the same network.
    used, eager = generate.AS_USED, generate.EAGER
    pairs = (("a", used, 2.0), ("a", eager, 8.0), ("b", used, 5.0), ("b", eager, 5.0))
    timings = (generate.GenerateTiming(what, mode, "ddim", 10, 50, seconds) for what, mode, seconds in pairs)
    result = generate.GenerateBenchmark("here", tuple(timings))
    assert [row[-1] for row in result.rows()] == ["4.0×", "1.0×", "1.0×", "1.0×"]
    assert "| a | as used | ddim | 10 | 50 | 2 | 5 | 4.0× |" in result.markdown("")


def test_step_and_network_are_timed_and_bad_values_refused() -> None:
    timing = generate.time_step(batch=8, network_batch=4, repeats=1, config=DiTConfig(width=16, depth=1, heads=2))
    assert min(timing.network, timing.step, timing.noise) > 0
    assert timing.network_scaled == 2 * timing.network
    timing = generate.StepTiming("a device", 4096, 16, 32, network=0.5, step=0.16, noise=0.32)
    assert timing.ratio == pytest.approx(0.0025)
    assert timing.is_allowed
    console = Console(file=io.StringIO(), width=200)
    console.print(timing.table())
    assert "timed on 32 sketches, times 128" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "0.25%" in timing.markdown("")
    for wrong in ({"count": 0}, {"batch": 0}, {"device": "tpu"}):
        with pytest.raises(SketchError):
            generate.time_generate(**wrong)  # type: ignore[arg-type]
    cuda = [] if torch.cuda.is_available() else [({"device": "cuda"}, "CUDA")]
    for values, message in [({"device": "abacus"}, "abacus"), ({"batch": 0}, "at least 1"), *cuda]:
        with pytest.raises(SketchError, match=message):
            generate.time_step(**values)  # type: ignore[arg-type]


def test_train_page_has_both_modes_and_flops_are_those_of_the_linear_layers(tmp_path: Path) -> None:
    arguments = ["train", "--device", "cpu", "--preset", "tiny", "--batch", 4, "--repeats", 1]
    page = write_page(tmp_path / "page.md", *arguments)
    assert "`python -m benchmarks train --device cpu --preset tiny --batch 4 --eager-batch 4 --repeats 1`" in page
    assert all(words in page for words in ("× the eager loop", OURS, EAGER))
    # The arithmetic is that of the linear layers.
    width, depth = 16, 2
    network = DiTConfig(width=width, depth=depth, heads=2, num_steps=10)
    system = SketchDNNSystem(SketchDNNConfig(network=network, variant="paper", num_steps=10))
    per_token = depth * 12 * width**2 + 2 * (21 * 4 * width + 4 * width * width)
    per_sketch = (2 * depth + 1) * 2 * width**2  # shift and scale of every norm, once for all tokens
    assert step_flops(system, random_corpus(4, "cpu"), 8) == 6 * 8 * (16 * per_token + per_sketch)
    # The best batch of each mode is compared.
    ours = ((10, 1.0, 1e12), (100, 2.0, 1e13), (1000, None, 1e14))
    timings = (*(TrainTiming("p", OURS, *values) for values in ours), TrainTiming("p", EAGER, 10, 2.0, 1e12))
    (sentence,) = TrainBenchmark("a device", 10.0, timings).sentences()
    assert sentence.startswith("p: 50 sketches/s, 10.0× the eager loop")
    assert "50.0% of the ceiling" in sentence
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_train(["tiny"], [1], [1], "tpu")


def test_raster_page_compares_with_matplotlib(tmp_path: Path) -> None:
    arguments = ["raster", "--device", "cpu", "--count", 30, "--matplotlib-count", 2, "--repeats", 1]
    page = write_page(tmp_path / "page.md", *arguments)
    for words in ("| ratio | **", "30 of the built-in corpus", "python -m benchmarks raster --device cpu --count 30"):
        assert words in page
    timing = time_raster(count=20, matplotlib_count=1, data=prepared_parts(tmp_path), repeats=1)
    assert timing.count == 20
    assert "test split" in timing.data
    assert 8 <= timing.primitives <= 16
    timing = RasterTiming("a device", "cpu", "sketches", 10.0, 1000, 0.5, 10, 0.2)
    assert (timing.rate, timing.ratio) == (2000, pytest.approx(40))
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_raster("tpu", 1, 1)
    # The loop of matplotlib draws the sketch.
    empty, full = plot([Sketch(()), Sketch((Line((0, 0), (1, 0)), Circle((0, 0), 1), Point((0, 1))))])
    assert empty.shape == full.shape == (480, 640, 3)
    assert empty.min() == 255
    assert 1000 < np.count_nonzero(full.min(axis=-1) < 128) < 10_000


def test_every_interface_is_timed_in_a_process(tmp_path: Path) -> None:
    model = str(small_model(tmp_path / "model"))
    result = time_api(model, rounds=1, counts=(1,), loads=(BUSY,), steps=2, compare=3)
    assert [timing.interface for timing in result.timings] == [CLI, API, TORCH_FIRST]
    assert all(0 < timing.call < timing.process and timing.processor > 0 for timing in result.timings)
    assert result.agreement == (3, 3)
    # Ratios are to the command line, and to sixteen sketches.
    seconds = {(1, CLI): 2.0, (1, API): 2.2, (16, CLI): 10.0, (16, API): 11.0}
    timings = tuple(ApiTiming(count, IDLE, name, call + 5, call, 9.0) for (count, name), call in seconds.items())
    result = ApiBenchmark(timings, 5, agreement=(995, 1000))
    assert (round(result.worst_of_cli, 3), round(result.worst_of_sixteen, 3), result.is_allowed) == (1.1, 0.2, True)
    page = result.markdown("python -m benchmarks api")
    row = "| 1 | idle | API | 7.20 | 1.03 | 2.20 | 1.10 | 9.00 |"
    assert all(words in page for words in (row, f"on {CORES} cores", "Of 1,000 sketches"))
