"""Real sketches drawn again from a level: with a denoiser that knows them they come back, with none they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.commands.app import app
from support.evaluation_data import small_corpus, small_model
from typer.testing import CliRunner

from benchmarks.samplers import score_levels
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems import from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.training.corpus import to_device

# A certain label as logits; as many sketches as go into one batch.
CERTAIN, COUNT = 30.0, 12


def test_what_is_known_comes_back_from_any_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a denoiser that says the very sketches which were noised."""
    corpus = small_corpus(tmp_path / "corpus")
    system = from_pretrained(small_model(tmp_path / "model"))
    assert isinstance(system, SketchDNNSystem)
    test = Dataset.open(corpus).split("test").compact
    numbers = torch.from_numpy(np.sort(np.random.default_rng(0).permutation(len(test))[:COUNT]))
    clean = to_device(test, "cpu").batch(numbers, torch.zeros_like(numbers), system.rows)

    def denoise(batch_t: SketchBatch, t: torch.Tensor, given: object = None) -> Prediction:
        return Prediction(CERTAIN * clean.construction, CERTAIN * clean.kind, clean.params)

    monkeypatch.setattr(system, "denoise", denoise)
    bench = score_levels(system, corpus, count=COUNT, steps=10, levels=(0.3, 1.0, float("inf")))
    real, *drawn = bench.scores
    assert real.evaluations == 0
    assert [score.closed.value for score in drawn] == [real.closed.value] * 3
    assert [score.same_count.value for score in drawn] == [1.0] * 3
    assert drawn[0].evaluations < drawn[1].evaluations < drawn[2].evaluations == 10
    assert 0 < drawn[0].sigma <= 0.3 < drawn[1].sigma <= 1.0


def test_what_is_not_known_is_lost_where_there_is_noise(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path / "corpus")
    system = from_pretrained(small_model(tmp_path / "model"))
    bench = score_levels(system, corpus, count=8, steps=40, levels=(0.02, 1.0))
    real, low, high = bench.scores
    assert real.closed.value > high.closed.value
    assert real.within.value > low.within.value  # an untrained network spoils what it touches, at any level
    assert low.sigma < high.sigma
    page = bench.markdown("python -m benchmarks noise-levels")
    assert "| real sketches | 0 |" in page
    assert "points." in page


def test_refusals(tmp_path: Path) -> None:
    corpus = small_corpus(tmp_path / "corpus")
    system = from_pretrained(small_model(tmp_path / "model"))
    with pytest.raises(SketchError, match="test split of as many"):
        score_levels(system, corpus, count=10**6)
    with pytest.raises(SketchError, match="take more steps"):
        score_levels(system, corpus, count=2, steps=2)
    save_pretrained(load_preset("tiny", "sketchdnn-cat").make(), tmp_path / "cat")
    with pytest.raises(SketchError, match="only a sketchdnn"):
        score_levels(from_pretrained(tmp_path / "cat"), corpus, count=2)


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    corpus, model = small_corpus(tmp_path / "corpus"), small_model(tmp_path / "model")
    page = tmp_path / "levels.md"
    told = ["--data", str(corpus), "--model", str(model), "--count", "2", "--steps", "50", "--out", str(page)]
    result = CliRunner().invoke(app, ["noise-levels", *told], catch_exceptions=False)
    assert result.exit_code == 0
    assert "--count 2 --steps 50" in page.read_text()
