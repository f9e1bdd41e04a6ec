"""The model as one object: it saves and loads itself, with no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sketchdnn import SketchDNN
from sketchdnn.errors import SketchError
from sketchdnn.geometry import Kind, Sketch, bounds
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
    assert loaded.generate(2, steps=3, repair=False) == model.generate(2, steps=3, repair=False)


def test_a_model_that_is_nowhere_is_refused() -> None:
    with pytest.raises(SketchError, match="no model is there"):
        SketchDNN.from_pretrained("nowhere")


@pytest.fixture(scope="module")
def model() -> SketchDNN:
    torch.manual_seed(0)
    system = load_preset("tiny").make().eval()
    for weight in system.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return SketchDNN(system)


def test_conditions_are_arguments(model: SketchDNN) -> None:
    """Lines and points, since what the untrained model draws of the others may be none."""
    both: dict[str, Any] = {"seed": 1, "steps": 5, "count_construction": True}  # it draws construction by chance
    exact = model.generate(3, kinds={"line": 10, "point": 2}, **both)
    for sketch in exact:
        kinds = [primitive.kind.label for primitive in sketch]
        assert (len(kinds), kinds.count("line"), kinds.count("point")) == (12, 10, 2)
    assert model.generate(1, kinds={"line": 10, "point": 2}, start_index=2, **both) == exact[2:]
    ranges = {"line": 6, "circle": 0, "arc": 0}
    counts = {len(sketch) for sketch in model.generate(12, primitives=(9, 10), kinds=ranges, **both)}
    assert counts == {9, 10}


def test_the_words_of_the_command_line_are_understood(model: SketchDNN) -> None:
    words = model.generate(2, seed=1, steps=5, kinds="line=6,circle=0,arc=0", primitives="9..10", size="4in")
    values = model.generate(
        2, seed=1, steps=5, kinds={"lines": 6, Kind.CIRCLE: 0, Kind.ARC: 0}, primitives=(9, 10), size=4, units="in"
    )
    assert words == values
    assert (words[0].units, round(bounds(words[0]).size, 9)) == ("in", 4.0)
    for wrong in ({"size": "four inches"}, {"size": "-1mm"}, {"units": "furlong"}, {"kinds": "line"}):
        with pytest.raises(SketchError, match=r"size is a length|no unit|kinds is such as"):
            model.generate(1, **wrong)  # type: ignore[arg-type]


def test_drawings_come_one_by_one_with_an_account(model: SketchDNN) -> None:
    drawing = next(model.draw(1_000_000, seed=1, steps=5, repair=False))
    assert (drawing.index, drawing.attempts, drawing.repair) == (0, 1, None)
    assert [drawing.sketch] == model.generate(1, seed=1, steps=5, repair=False)


def test_what_it_gives_is_repaired_unless_told(model: SketchDNN) -> None:
    (repaired,), (raw,) = (model.generate(1, seed=1, steps=5, repair=repair) for repair in (True, False))
    assert repaired.constraints
    assert not raw.constraints
    drawing = next(model.draw(1, seed=1, steps=5))
    assert drawing.sketch == repaired
    assert drawing.repair is not None
    assert model.generate(1, seed=1, steps=5) == [repaired]


def test_variations_and_completions_are_sketches(model: SketchDNN) -> None:
    sketch = model.generate(1, steps=5, primitives=9)[0]
    varied = model.vary(sketch, 2, strength=0.2, steps=10)
    assert len(varied) == 2
    assert sketch not in varied
    part = Sketch(sketch.primitives[:4], units="mm")
    for whole in model.complete(part, 2, 0, steps=5):
        assert whole.primitives[:4] == part.primitives
        assert len(whole) > 4


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(SketchError, match="cpu, cuda"):
        SketchDNN.from_pretrained(device="abacus")
