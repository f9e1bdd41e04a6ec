"""Scores of samplers and of noise levels."""

from pathlib import Path

import numpy as np
import pytest
import torch
from support.benchmarks import run_benchmark, write_page
from support.evaluation_data import FakeExtractor, small_corpus, small_model
from support.students import small_teacher

from benchmarks.samplers import FEW_STEP_SETTINGS, SETTINGS, score_noise_levels, score_samplers
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.generation.quality import STEPS
from sketchdnn.representation.batch import Prediction
from sketchdnn.systems import System, from_pretrained, load_preset, save_pretrained
from sketchdnn.systems.students import make_student
from sketchdnn.training.corpus import to_device

# A certain label as a logit, and sketches that fit into one batch.
CERTAIN, COUNT = 30.0, 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samplers")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    return folder


@pytest.fixture
def system(folder: Path) -> System:
    return from_pretrained(folder / "model")


def test_samplers_are_scored_against_the_same_sketches(folder: Path, system: System) -> None:
    dataset = Dataset.open(folder / "corpus")
    settings = (("ancestral", 2), ("ddim", 3), ("ancestral", 2))
    result = score_samplers(system, dataset, FakeExtractor(), settings, count=20, max_repaired=1)
    first, other, again = result.scores
    assert (first.fid, first.kid, first.within) == (again.fid, again.kid, again.within)
    assert other.fid != first.fid
    assert 0 < result.floor < first.fid
    page = result.markdown("python -m benchmarks samplers")
    assert page.count("| ancestral | 2 |") == 2
    assert f"FID {result.floor:.2f}" in page
    with pytest.raises(SketchError, match="twice as many"):
        score_samplers(system, dataset, FakeExtractor(), count=10_000)
    refused = run_benchmark("samplers", "--data", folder, "--sampler", "ddim")
    assert "ddim:50" in str(refused.exception)
    # The defaults are among the settings.
    system = from_pretrained()
    assert (system.default_sampler, STEPS) in SETTINGS
    assert {sampler for sampler, _ in SETTINGS} == set(system.samplers) - {"few_step"}


def test_a_student_is_scored_beside_its_teacher(folder: Path) -> None:
    teacher = small_teacher()
    teacher.attach_student(make_student(teacher, "moment_matching"))
    settings = [(sampler, steps) for sampler, steps in FEW_STEP_SETTINGS if steps == 4]
    result = score_samplers(teacher, Dataset.open(folder / "corpus"), None, settings, count=20, max_repaired=0)
    assert [score.sampler for score in result.scores] == ["few_step", "restart", "ancestral", "ddim", "dpm++"]
    assert all(0 <= share <= 1 for score in result.scores for share in (score.closed, score.all_met))
    assert "| – |" in result.markdown("python -m benchmarks samplers --no-fid")


def test_perfect_denoiser_restores_sketches_from_any_level(folder: Path, system: System, monkeypatch) -> None:
    test = Dataset.open(folder / "corpus").split("test").compact
    numbers = torch.from_numpy(np.sort(np.random.default_rng(0).permutation(len(test))[:COUNT]))
    clean = to_device(test, "cpu").batch(numbers, torch.zeros_like(numbers), system.rows)
    prediction = Prediction(CERTAIN * clean.construction, CERTAIN * clean.kind, clean.params)
    monkeypatch.setattr(system, "denoise", lambda *_, **__: prediction)
    levels = (0.3, 1.0, float("inf"))
    real, *scores = score_noise_levels(system, folder / "corpus", count=COUNT, steps=10, levels=levels).scores
    assert real.evaluations == 0
    assert [(score.closed.value, score.same_count.value) for score in scores] == [(real.closed.value, 1.0)] * 3
    assert scores[0].evaluations < scores[1].evaluations < scores[2].evaluations == 10
    assert 0 < scores[0].sigma <= 0.3 < scores[1].sigma <= 1.0


def test_untrained_denoiser_spoils_sketches_and_bad_values_are_refused(
    folder: Path, system: System, tmp_path: Path
) -> None:
    result = score_noise_levels(system, folder / "corpus", count=8, steps=40, levels=(0.02, 1.0))
    real, low, high = result.scores
    assert real.closed.value > high.closed.value
    assert real.within.value > low.within.value
    assert low.sigma < high.sigma
    page = result.markdown("python -m benchmarks noise-levels")
    assert all(text in page for text in ("| real sketches | 0 |", "points."))
    save_pretrained(load_preset("tiny", "sketchdnn-cat").make(), tmp_path / "cat")
    for model, values, message in (
        (system, {"count": 10**6}, "test split of as many"),
        (system, {"count": 2, "steps": 2}, "more steps"),
        (from_pretrained(tmp_path / "cat"), {"count": 2}, "system sketchdnn"),
    ):
        with pytest.raises(SketchError, match=message):
            score_noise_levels(model, folder / "corpus", **values)
    options = ["--data", folder / "corpus", "--model", folder / "model", "--count", 2, "--steps", 50]
    assert "--count 2 --steps 50" in write_page(tmp_path / "page.md", "noise-levels", *options)
