"""Timing of training: what is counted, and that every way is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.commands.app import app
from typer.testing import CliRunner

from benchmarks.train import EAGER, OURS, TrainBench, TrainTiming, step_flops, time_train
from benchmarks.train import _corpus as random_corpus
from sketchdnn.errors import SketchError
from sketchdnn.networks.dit import DiTConfig
from sketchdnn.systems.sketchdnn import SketchDNNConfig, SketchDNNSystem


def test_both_ways_are_timed_and_written(tmp_path: Path) -> None:
    out = tmp_path / "speed.md"
    arguments = ["train", "--preset", "tiny", "--batch", "4", "--repeats", "1", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.exception
    assert "× the eager loop" in result.output
    assert OURS in out.read_text()
    assert EAGER in out.read_text()


def test_the_arithmetic_is_that_of_the_layers() -> None:
    width, depth = 16, 2
    network = DiTConfig(width=width, depth=depth, heads=2, num_steps=10)
    system = SketchDNNSystem(SketchDNNConfig(network=network, form="paper", num_steps=10))
    per_token = depth * 12 * width**2 + 2 * (21 * 4 * width + 4 * width * width)
    per_sketch = (2 * depth + 1) * 2 * width**2  # shift and scale of every norm, once for all tokens
    assert step_flops(system, random_corpus(4, "cpu"), 8) == 6 * 8 * (16 * per_token + per_sketch)


def test_the_best_batch_of_each_way_is_compared() -> None:
    timings = (
        TrainTiming("p", OURS, 10, 1.0, 1e12),
        TrainTiming("p", OURS, 100, 2.0, 1e13),
        TrainTiming("p", OURS, 1000, None, 1e14),
        TrainTiming("p", EAGER, 10, 2.0, 1e12),
    )
    (sentence,) = TrainBench("a device", 10.0, timings).summary()
    assert sentence.startswith("p: 50 sketches/s, 10.0× the eager loop")
    assert "50.0% of the ceiling" in sentence


def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(SketchError, match="cpu or cuda"):
        time_train(["tiny"], [1], [1], "tpu")
