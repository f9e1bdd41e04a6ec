"""The benchmark of a step runs, and reports what it timed."""

from __future__ import annotations

import io

import pytest
import torch
from rich.console import Console

from benchmarks.generate import StepTiming, time_step
from sketchdnn.errors import SketchError
from sketchdnn.networks import DiTConfig


def test_a_small_run() -> None:
    timing = time_step(batch=8, network_batch=4, repeats=1, config=DiTConfig(width=16, depth=1, heads=2))
    assert min(timing.network, timing.step, timing.noise) > 0
    assert timing.network_scaled == 2 * timing.network


def test_what_was_scaled_is_said() -> None:
    timing = StepTiming("a device", 4096, 16, 32, network=0.5, step=0.16, noise=0.32)
    assert timing.ratio == pytest.approx(0.0025)
    console = Console(file=io.StringIO(), width=200)
    console.print(timing.table())
    text = console.file.getvalue()
    assert "timed on 32 sketches, times 128" in text
    assert "0.25%" in text


def test_a_missing_device_is_one_sentence() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(SketchError, match="CUDA"):
        time_step("cuda")
    with pytest.raises(SketchError, match="abacus"):
        time_step("abacus")
    with pytest.raises(SketchError, match="at least 1"):
        time_step(batch=0)
