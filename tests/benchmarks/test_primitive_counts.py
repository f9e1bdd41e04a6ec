"""Scores of sketches by number of primitives."""

from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import run_benchmark
from support.evaluation_data import FakeExtractor, small_corpus, small_model

from benchmarks import primitive_counts
from benchmarks.primitive_counts import choose_task, sample_primitive_counts, score_primitive_counts
from sketchdnn.data.config import SPLITS
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.systems import from_pretrained


def test_each_number_is_scored_beside_as_many_real_sketches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Dataset.open(small_corpus(tmp_path / "corpus"))
    system = from_pretrained(small_model(tmp_path / "model"))
    train, validation, test = (np.bincount(dataset.split(name).compact.counts, minlength=17) for name in SPLITS)
    sizes = np.minimum(train, validation + test)
    low, high = sorted(np.argsort(sizes)[-2:].tolist())
    monkeypatch.setattr(primitive_counts, "_MIN_SKETCHES", 3)
    task = choose_task(dataset, (low, high), steps=2)
    samples = sample_primitive_counts(system, task, tmp_path / "samples.safetensors")
    result = score_primitive_counts(samples, task, FakeExtractor())
    assert [(each.primitives, each.sketches) for each in result.scores] == [(low, sizes[low]), (high, sizes[high])]
    for each in result.scores:
        assert each.real.closed.value == 1
        assert each.real.ends.value > 0.9
        assert each.generated.kid > each.real.kid
        assert each.generated.closed.value < 0.5
    page = result.markdown("python -m benchmarks primitive-counts")
    assert f"| {low} | {sizes[low]} | {result.scores[0].generated.fid.value:.1f} (" in page
    again = sample_primitive_counts(system, task, tmp_path / "samples.safetensors")
    for number, size in task.sizes.items():
        assert len(samples[number]) == len(task.reference[number]) == size
        assert np.array_equal(samples[number].params, again[number].params)
    with pytest.raises(SketchError, match="other settings"):
        sample_primitive_counts(system, choose_task(dataset, (low, high), steps=3), tmp_path / "samples.safetensors")
    arguments = ["primitive-counts", "--data", tmp_path / "corpus", "--model", tmp_path / "model", "--steps", 2]
    arguments += ["--primitives", f"{low},{high}", "--sample-only"]
    assert "--cache" in str(run_benchmark(*arguments).exception)
    stored = run_benchmark(*arguments, "--cache", tmp_path / "other.safetensors")
    assert (stored.exit_code, stored.stdout) == (0, "")
    assert (tmp_path / "other.safetensors").is_file()
    monkeypatch.undo()
    with pytest.raises(SketchError, match="to compare with"):
        choose_task(dataset, (low,), steps=2)
    refused = run_benchmark("primitive-counts", "--data", tmp_path / "corpus", "--primitives", "few")
    assert "3..16" in str(refused.exception)
