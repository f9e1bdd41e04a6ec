"""The benchmark of the design score: AUC by kind of corruption, and the fit of the weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.benchmarks import run_benchmark
from support.corpora import prepared_parts

from benchmarks import design_score
from benchmarks.design_score import KINDS, Measured, fit_weights, measure_features, whole_pairs, write_weights
from sketchdnn.design.score import load_weights
from sketchdnn.geometry import Circle, Line, Sketch


def test_auc_counts_pairs_in_which_the_real_sketch_scores_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features of two values: real ones have none or one defect, corrupted ones always one."""
    real, corrupted = np.zeros((20, len(KINDS))), np.zeros((20, len(KINDS)))
    crossing = KINDS.index("crossing")
    real[:5, crossing] = corrupted[:, crossing] = 1.0
    found = design_score._separate([Measured(real, corrupted)])
    assert found is not None
    assert (found.pairs, found.auc.value, found.paired) == (20, 0.875, 0.875)
    assert found.auc.low < 0.875 < found.auc.high <= 1
    assert design_score._separate([Measured(real[:5], corrupted[:5])]) is None


def test_pairs_differ_in_one_defect() -> None:
    plate = [Line((0, 0), (8, 0)), Line((8, 0), (8, 6)), Line((8, 6), (0, 6)), Line((0, 6), (0, 0))]
    sketch = Sketch((*plate, Circle((2, 3), 0.5), Circle((6, 3), 0.5)))
    pairs = whole_pairs([sketch] * 3, per_kind=2)
    assert {kind: len(some) for kind, some in pairs.items() if some}["moved hole"] == 2
    for kind, measured in measure_features(pairs).items():
        assert (measured.corrupted.sum(axis=1) > measured.real.sum(axis=1)).all(), kind


def test_command_reports_and_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = prepared_parts(tmp_path)
    before = load_weights()
    monkeypatch.setattr(design_score, "LEAST", 2)
    result = run_benchmark("design-score", "--data", corpus, "--per-kind", 4, "--out", tmp_path / "page.md")
    assert result.exit_code == 0, result.exception
    page = (tmp_path / "page.md").read_text()
    assert "| corruption |" in page
    assert "| all |" in page
    fitted = fit_weights(corpus, per_kind=20)
    assert fitted.weights
    assert min(fitted.weights.values()) > 0
    monkeypatch.setattr("sketchdnn.design.__path__", [str(tmp_path)])
    written = json.loads(write_weights(fitted).read_text())
    assert written == {"intercept": fitted.intercept, "weights": dict(fitted.weights)}
    assert load_weights() == before
