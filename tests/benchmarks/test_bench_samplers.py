"""The table that the default sampler is chosen by."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.commands.app import app
from support.evaluation_data import FakeExtractor, small_corpus, small_model
from typer.testing import CliRunner

from benchmarks.samplers import WAYS, score_samplers
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.generation.generate import STEPS
from sketchdnn.systems import from_pretrained


def test_every_way_is_scored_by_the_same_sketches(tmp_path: Path) -> None:
    dataset = Dataset.open(small_corpus(tmp_path / "corpus"))
    system = from_pretrained(small_model(tmp_path / "model"))
    ways = (("ancestral", 2), ("ddim", 3), ("ancestral", 2))
    bench = score_samplers(system, dataset, FakeExtractor(), ways, count=20)
    first, other, again = bench.scores
    assert (first.fid, first.kid, first.within) == (again.fid, again.kid, again.within)
    assert other.fid != first.fid
    assert 0 < bench.floor < first.fid  # real sketches are nearer to real ones than what an untrained model draws
    page = bench.markdown("python -m benchmarks samplers")
    assert page.count("| ancestral | 2 |") == 2
    assert f"FID {bench.floor:.2f}" in page


def test_the_default_is_among_the_ways_unless_told() -> None:
    system = from_pretrained()
    assert (system.default_sampler, STEPS) in WAYS
    assert {sampler for sampler, _ in WAYS} == set(system.samplers)


def test_a_corpus_too_small_is_refused(tmp_path: Path) -> None:
    dataset = Dataset.open(small_corpus(tmp_path / "corpus"))
    system = from_pretrained(small_model(tmp_path / "model"))
    with pytest.raises(SketchError, match="twice as many"):
        score_samplers(system, dataset, FakeExtractor(), count=10_000)


def test_a_way_that_is_none_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["samplers", "--data", str(tmp_path), "--way", "ddim"])
    assert isinstance(result.exception, SketchError)
    assert "ddim:50" in str(result.exception)
