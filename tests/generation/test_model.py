"""The model class: it saves and loads itself without a network, and takes the options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.generation import randomized

from sketchdnn import SketchDNN
from sketchdnn.errors import SketchError
from sketchdnn.generation import GenerateRequest, OutputOptions
from sketchdnn.geometry import Kind, Line, Sketch, bounds
from sketchdnn.systems import load_preset


@pytest.fixture(scope="module")
def model() -> SketchDNN:
    return SketchDNN(randomized(load_preset("tiny").make()))


def test_saved_model_generates_the_same_and_a_missing_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    torch.manual_seed(0)
    model = SketchDNN(load_preset("tiny").make())
    for weight in model.system.parameters():
        weight.data = torch.randint_like(weight, -8, 9) / 64  # exact in half precision
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"config.json", "model.safetensors", "README.md"}
    loaded = SketchDNN.from_pretrained(tmp_path)
    assert loaded.generate(2, steps=3, repair=False) == model.generate(2, steps=3, repair=False)
    with pytest.raises(SketchError, match="no model is there"):
        SketchDNN.from_pretrained("nowhere")
    with pytest.raises(SketchError, match="cpu, cuda"):
        SketchDNN.from_pretrained(device="abacus")
    with pytest.raises(SketchError, match="cpu, cuda"):
        model.to("abacus")
    assert model.to("cpu") is model


def test_words_of_the_command_line_and_streams_give_the_same_sketches(model: SketchDNN) -> None:
    options: dict[str, Any] = {"kinds": "line=6,circle=0,arc=0", "primitives": "9..10", "size": "4in"}
    words = model.generate(2, seed=1, steps=5, **options)
    assert words[1:] == model.generate(1, seed=1, steps=5, start_index=1, **options)
    options = {"kinds": {"lines": 6, Kind.CIRCLE: 0, Kind.ARC: 0}, "primitives": (9, 10), "size": 4, "units": "in"}
    assert words == model.generate(2, seed=1, steps=5, **options)
    assert {len(sketch) for sketch in words} <= {9, 10}
    assert (words[0].units, round(bounds(words[0]).size, 9)) == ("in", 4.0)
    for options in ({"size": "four inches"}, {"size": "-1mm"}, {"kinds": "line"}):
        with pytest.raises(SketchError, match=r"size is a length|kinds is such as"):
            model.generate(1, **options)  # type: ignore[arg-type]
    each = next(model.stream(GenerateRequest(count=1_000_000, seed=1, steps=5, repair=False)))
    assert (each.index, each.attempts, each.repair) == (0, 1, None)
    assert [each.sketch] == model.generate(1, seed=1, steps=5, repair=False)


def test_variations_completions_and_galleries_are_made(model: SketchDNN, tmp_path: Path) -> None:
    sketch = model.generate(1, steps=5, primitives=9)[0]
    reports: list[float] = []
    varied = model.generate(2, init_sketch=sketch, strength=0.2, steps=10, callback=reports.append)
    assert len(varied) == reports.pop() == 2
    assert sketch not in varied
    part = Sketch((Line((0, 30), (0, 0)), Line((0, 0), (50, 0)), Line((50, 0), (50, 30))), units="mm")
    for whole in model.complete(part, 2, steps=5, callback=reports.append):
        assert whole.primitives[:3] == part.primitives
        assert len(whole) > 3
    assert reports[-1] == 2
    request = GenerateRequest(count=2, steps=3, repair=False)
    assert model.write_gallery(request, OutputOptions(tmp_path, ["json"])).sketches == 2
    assert "2 sketches" in (tmp_path / "gallery.html").read_text()
