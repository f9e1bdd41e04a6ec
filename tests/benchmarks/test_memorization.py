"""Copies of training sketches are found, with their partners; other sketches are as near as the test split."""

from pathlib import Path

import numpy as np
import pytest
from support.evaluation_data import small_corpus

from benchmarks.memorization import COLUMNS, PLACES, compare_distances, draw_pairs, measure_memorization
from sketchdnn.data.loader import Dataset
from sketchdnn.formats import write
from sketchdnn.representation import decode_compact


def test_shares_are_those_of_the_quantiles() -> None:
    rng = np.random.default_rng(0)
    real = rng.random(400)
    near, below_median, nearer = compare_distances(rng.random(300), real, rng)
    assert near.low < 0.05 < near.high
    assert below_median.low < 0.5 < below_median.high
    assert nearer.low < 0.5 < nearer.high
    near, below_median, nearer = compare_distances(np.zeros(50), real, rng)
    assert near.value == below_median.value == nearer.value == 1
    near, below_median, nearer = compare_distances(np.full(50, 2.0), real, rng)
    assert near.value == below_median.value == nearer.value == 0
    assert compare_distances(real, real, rng)[2].value == pytest.approx(0.5)


def test_copies_are_memorized_and_drawn_beside_their_originals(tmp_path: Path) -> None:
    dataset = Dataset.open(small_corpus(tmp_path / "corpus"))
    copies, fresh = (
        [decoded.sketch for decoded in decode_compact(dataset.split(split).compact[:20])] for split in ("train", "test")
    )
    write(copies, tmp_path / "copies.jsonl")
    write(fresh, tmp_path / "fresh.jsonl")
    files = {"copies": tmp_path / "copies.jsonl", "fresh": tmp_path / "fresh.jsonl"}
    result = measure_memorization(tmp_path / "corpus", files)
    first, second = result.sources
    assert first.near.value == first.repeats[24].value == 1
    assert first.nearest.reference.tolist() == list(range(20))
    assert "more samples than test sketches" in first.verdict
    assert second.near.low <= 0.05
    assert "as many" in second.verdict or "fewer" in second.verdict
    assert result.real.nearer.value == pytest.approx(0.5)
    page = result.markdown("python -m benchmarks memorization")
    assert "| copies | 20 |" in page
    assert len(PLACES) == COLUMNS
    assert {path.name for path in draw_pairs(result, tmp_path, "pairs")} == {"pairs.png", "pairs.svg"}
