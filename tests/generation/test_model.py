"""The model as one object: it saves and loads itself, with no network."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from sketchdnn import SketchDNN
from sketchdnn.geometry import SketchError
from sketchdnn.systems import load_preset


def test_a_saved_model_draws_what_it_drew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.manual_seed(0)
    model = SketchDNN(load_preset("tiny").make())
    for weight in model.system.parameters():
        # What half precision keeps exactly, so that nothing is lost on the way.
        weight.data = torch.randint_like(weight, -8, 9) / 64
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"config.json", "model.safetensors", "README.md"}
    loaded = SketchDNN.from_pretrained(tmp_path)
    assert loaded.generate(2, steps=3) == model.generate(2, steps=3)


def test_a_model_that_is_nowhere_is_refused() -> None:
    with pytest.raises(SketchError, match="no model is there"):
        SketchDNN.from_pretrained("nowhere")
