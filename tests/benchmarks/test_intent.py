"""The benchmark of design intent: shares of raw and repaired samples, and the truth about symmetry."""

from dataclasses import replace
from pathlib import Path

from support.benchmarks import write_page
from support.noisy_sketches import add_noise
from support.outlines import polygon, rectangle

from benchmarks.intent import measure_intent
from sketchdnn.formats import write
from sketchdnn.geometry import Circle, Sketch

PLATE = Sketch((*rectangle(-50.0, -30.0, 100.0, 60.0), *(Circle((x, y), 5) for x in (-30, 30) for y in (-10, 10))))
STEP = Sketch(tuple(polygon((0, 0), (60, 0), (60, 20), (40, 20), (40, 30), (25, 30), (25, 45), (0, 45))))


def test_shares_and_truth(tmp_path: Path) -> None:
    real = [replace(sketch, extra={"source": source}) for source in ("hpsketch", "freecad") for sketch in (PLATE, STEP)]
    write(real, tmp_path / "real.jsonl")
    raw = [add_noise(sketch, 0.08, seed) for seed in range(2) for sketch in (PLATE, STEP)]
    result = measure_intent(raw, tmp_path / "real.jsonl", count=5, noise=0.0007)
    assert (result.features["repaired"].symmetric.value, result.features["repaired"].extrudable.value) == (0.5, 1.0)
    for truth in result.truth.values():
        assert (truth.count, truth.meant, truth.found, truth.right, truth.unchanged) == (2, 1, 1, 1, 2)
    write(raw, tmp_path / "raw.jsonl")
    data = ["--data", tmp_path / "real.jsonl", "--samples", tmp_path / "raw.jsonl"]
    page = write_page(tmp_path / "page.md", "intent", "--count", 4, "--real-count", 2, *data)
    assert "| mirror symmetric | " in page
    assert "| on a grid | 2 | 100.0%" in page
