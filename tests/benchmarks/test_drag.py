"""The benchmark of drags and alternatives: its page and its goals."""

from pathlib import Path

import pytest
from support.benchmarks import refuse, write_page

from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Sketch


def test_real_sketches_are_dragged_and_constrained(real_data: Path, tmp_path: Path) -> None:
    data = real_data / "sketchgraphs" / "sg_subset.npy"
    command = ("drag", "--data", data, "--count", 1, "--alternatives", 2, "--no-freecad")
    page = write_page(tmp_path / "page.md", *command)
    assert "python -m benchmarks drag --data sg_subset.npy --count 1 --alternatives 2 --no-freecad --seed 0\n" in page
    assert "| of the designers | 1 |" in page
    assert "| Lengths | 2 | 2 |" in page
    assert "after every update: met." in page
    assert "- A fully constrained alternative: 100.0 % of 2 of real sketches." in page
    assert str(tmp_path) not in page


def test_a_file_without_sketches_of_16_primitives_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write([Sketch((Circle((0, 0), 1),))], tmp_path / "few.npy")
    sentence = refuse(monkeypatch, capsys, "drag", "--data", tmp_path / "few.npy", "--no-freecad")
    assert "few.npy has no sketches of 16 primitives to drag" in sentence
