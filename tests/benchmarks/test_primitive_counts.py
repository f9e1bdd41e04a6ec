"""Scores of sketches by number of primitives."""

from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import run_benchmark
from support.evaluation_data import FakeExtractor, small_corpus, small_model

from benchmarks import primitive_counts
from benchmarks.primitive_counts import score_primitive_counts
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
    result = score_primitive_counts(system, dataset, FakeExtractor(), (low, high), steps=2)
    assert [(each.primitives, each.sketches) for each in result.scores] == [(low, sizes[low]), (high, sizes[high])]
    for each in result.scores:
        assert each.real.closed.value == 1
        assert each.real.ends.value > 0.9
        assert each.generated.kid > each.real.kid
        assert each.generated.closed.value < 0.5
    page = result.markdown("python -m benchmarks primitive-counts")
    assert f"| {low} | {sizes[low]} | {result.scores[0].generated.fid.value:.1f} (" in page
    monkeypatch.undo()
    with pytest.raises(SketchError, match="to compare with"):
        score_primitive_counts(system, dataset, FakeExtractor(), (low,), steps=2)
    refused = run_benchmark("primitive-counts", "--data", tmp_path / "corpus", "--primitives", "few")
    assert "3..16" in str(refused.exception)
