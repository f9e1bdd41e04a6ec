"""The example of an own system runs, and generation accepts its model."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.systems import SYSTEMS, from_pretrained

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_system.py"


def test_own_system_trains_saves_loads_and_generates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        runpy.run_path(str(EXAMPLE))["main"](tmp_path)
        assert capsys.readouterr().out.count("primitives") == 4
        system = from_pretrained(tmp_path / "model", "cpu")
        assert system.name == "plain"
        assert system.to_device("cpu") is system
        noise = seeded_noise(0, torch.arange(2))
        one, two = (system.sample(noise, SamplingOptions(steps=5)) for _ in range(2))
        assert torch.equal(one.flat(), two.flat())
        assert len(list(stream(system, GenerateRequest(count=2, steps=5, repair=False)))) == 2
    finally:
        SYSTEMS.pop("plain", None)
