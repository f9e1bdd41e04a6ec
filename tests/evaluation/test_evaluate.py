"""A whole evaluation: deterministic and complete, with the floor as the score of real against real sketches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.evaluation_data import (
    SMALL,
    SMALL_FAST,
    FakeExtractor,
    procedural_sketches,
    sample_file,
    small_corpus,
    small_model,
)

from sketchdnn.data import Dataset
from sketchdnn.evaluation import EvaluationRequest, Evaluator, load_report
from sketchdnn.evaluation.comparison import comparison_document
from sketchdnn.evaluation.evaluate import select_references
from sketchdnn.evaluation.features import sketch_features
from sketchdnn.evaluation.metrics import frechet_distance
from sketchdnn.evaluation.report import headline, report_document
from sketchdnn.evaluation.samples import normalize_sketches
from sketchdnn.evaluation.scores import OnStage, jitter_ends
from sketchdnn.formats import write
from sketchdnn.representation import decode_compact

FILES = {"report.html", "report.json", "report.md", "sheet.png", "real.png", "samples.jsonl"}
SCORES = {"fid", "fid_infinity", "kid", "precision", "recall", "authors_precision", "authors_recall", "density"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a model, and sketches whose ends nearly meet."""
    folder = tmp_path_factory.mktemp("evaluated")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    jittered = jitter_ends(normalize_sketches(procedural_sketches(24)).compact, 0.002, 0)
    write([decoded.sketch for decoded in decode_compact(jittered)], folder / "jittered.jsonl")
    return folder


def make_evaluator(folder: Path, on_stage: OnStage = lambda name, share: None, **changes: Any) -> Evaluator:
    options: dict[str, Any] = {"settings": SMALL, "steps": 4, "device": "cpu", "cache": folder / "cache", **changes}
    request = EvaluationRequest(folder / "corpus", **options)
    return Evaluator(request, on_stage=on_stage, extractor=lambda device: FakeExtractor())


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return make_evaluator(folder).evaluate(str(folder / "model"), folder / "out", is_model=True).report


@pytest.fixture(scope="module")
def repaired(folder: Path) -> dict[str, Any]:
    evaluator = make_evaluator(folder, settings=replace(SMALL, corruption=False, repaired=True))
    return evaluator.evaluate(str(folder / "jittered.jsonl"), folder / "repaired", is_model=False).report


def test_two_runs_give_the_same_report(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    evaluator = make_evaluator(folder, cache=tmp_path / "cold")
    evaluator.evaluate(str(folder / "model"), tmp_path / "again", is_model=True, label="Latent Diffusion")
    again, first = (json.loads((path / "report.json").read_text()) for path in (tmp_path / "again", folder / "out"))
    assert again.pop("timings")
    assert first.pop("timings")
    assert again["system"].pop("name") == "Latent Diffusion" != first["system"].pop("name")
    assert again == first
    assert "Latent Diffusion" in (tmp_path / "again" / "report.md").read_text()
    assert {path.name for path in (folder / "out").iterdir()} == FILES


def test_report_is_complete(folder: Path, report: dict[str, Any]) -> None:
    for split, size in (("test", 16), ("train", 20)):
        scores = report["scores"][split]
        assert scores["samples"] == scores["references"] == size
        assert set(scores["system"]) == set(scores["floor"]) == SCORES | {"coverage"}
        for estimate in (*scores["system"].values(), *scores["floor"].values()):
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert report["likelihood"]["sketches"] == 4
    assert [step["amount"] for step in report["corruption"]] == [0, 0.005, 0.02, 0.05, 0.1, 0.3]
    within = [step["within_loose"]["value"] for step in report["corruption"]]
    assert within[0] > within[1] > within[2] > within[3]
    assert within[0] > within[4] > within[5]
    assert report["protocol"]["extractor"] == FakeExtractor().sha256
    assert report["system"]["samples"] == 24
    assert {"validity", "novelty", "likelihood", "sampling", "features of the samples"} <= set(report["timings"])
    assert any("2,048" in warning for warning in report["warnings"])
    for side in ("samples", "test"):
        assert sum(report["novelty"]["neighbors"][side].values()) == pytest.approx(1, abs=1e-4)
    assert "bits of the plain diffusion process" in (folder / "out" / "report.md").read_text()


def test_floor_is_the_score_of_real_against_real(folder: Path, report: dict[str, Any]) -> None:
    references, sizes = select_references(Dataset.open(folder / "corpus"), SMALL, 24)
    train = references.selected_train
    halves = train[: sizes.train], train[sizes.train : 2 * sizes.train]
    first, second = ({row.tobytes() for row in half.params} for half in halves)
    assert not first & second
    for split, sets in (("train", halves), ("test", (references.selected_test, train[: sizes.test]))):
        expected = frechet_distance(*(sketch_features(each, FakeExtractor()) for each in sets))
        assert report["scores"][split]["floor"]["fid"]["value"] == pytest.approx(expected, rel=1e-4)
    assert report["corruption"][0]["fid"]["value"] == pytest.approx(expected, rel=1e-4)


def test_references_are_selected_by_the_seed(folder: Path) -> None:
    """Distinct sketches of either split, the same for the same seed, and not simply the first."""
    dataset = Dataset.open(folder / "corpus")
    first, sizes = select_references(dataset, SMALL, 24)
    again, other = (select_references(dataset, replace(SMALL, seed=seed), 24)[0] for seed in (SMALL.seed, 5))
    for split, size in (("test", sizes.test), ("train", 2 * sizes.train)):
        selections = [getattr(references, f"selected_{split}").params for references in (first, again, other)]
        whole = getattr(first, split).params
        assert len(selections[0]) == size
        assert len({row.tobytes() for row in selections[0]} & {row.tobytes() for row in whole}) == size
        assert np.array_equal(selections[0], selections[1])
        assert not np.array_equal(selections[0], selections[2])
        assert not np.array_equal(selections[0], whole[:size])


def test_validity_covers_equal_numbers_and_reports_progress(
    folder: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    assert report["validity"]["samples"]["sketches"] == report["validity"]["test"]["sketches"] == SMALL.validity
    progress: list[float] = []
    evaluator = make_evaluator(folder, lambda name, share: progress.extend([share] if name == "validity" else []))
    cached = sorted(path.name for path in (folder / "cache").iterdir())
    evaluator.evaluate(str(sample_file(tmp_path / "parts.jsonl")), tmp_path / "out", is_model=False)
    assert progress == sorted(progress)
    assert {0, 0.25, 0.5, 0.75, 1} <= set(progress)
    assert sorted(path.name for path in (folder / "cache").iterdir()) == cached  # features of references are kept


def test_estimated_time_follows_the_number_of_images(folder: Path) -> None:
    small, fast = make_evaluator(folder), make_evaluator(folder, settings=SMALL_FAST)
    assert 0 < fast.num_images < small.num_images
    assert 0 < fast.minutes < small.minutes < 5
    with_repair = make_evaluator(folder, settings=replace(SMALL_FAST, repaired=True))
    assert with_repair.num_images == fast.num_images + SMALL_FAST.against_test


def test_saved_samples_have_the_same_scores(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    again = make_evaluator(folder).evaluate(str(folder / "out" / "samples.jsonl"), tmp_path, is_model=False).report
    for name, estimate in report["scores"]["test"]["system"].items():
        assert again["scores"]["test"]["system"][name]["value"] == pytest.approx(estimate["value"], rel=1e-3, abs=1e-5)
    assert again["likelihood"] is None
    assert again["system"]["kind"] == "samples"
    medians = [each["validity"]["samples"]["gaps"]["median"]["value"] for each in (again, report)]
    assert medians[0] == pytest.approx(medians[1], rel=1e-3)


def test_reference_sketches_have_perfect_scores(folder: Path, tmp_path: Path) -> None:
    references, sizes = select_references(Dataset.open(folder / "corpus"), SMALL, 24)
    write([decoded.sketch for decoded in decode_compact(references.selected_test)], tmp_path / "real.jsonl")
    report = make_evaluator(folder).evaluate(str(tmp_path / "real.jsonl"), tmp_path / "out", is_model=False).report
    scores = report["scores"]["test"]["system"]
    assert scores["fid"]["value"] == pytest.approx(0, abs=1e-3)
    assert scores["precision"]["value"] == scores["recall"]["value"] == scores["coverage"]["value"] == 1
    assert report["distributions"]["samples"] == sizes.test


def test_validation_split_replaces_the_test_split(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    evaluator = make_evaluator(folder, settings=replace(SMALL, split="validation", corruption=False))
    selected = evaluator.evaluate(str(folder / "out" / "samples.jsonl"), tmp_path, is_model=False).report
    validation = Dataset.open(folder / "corpus").split("validation")
    assert selected["novelty"]["test"] == len(validation) != report["novelty"]["test"]
    assert selected["protocol"]["data"] != report["protocol"]["data"]
    assert selected["scores"]["test"]["system"] != report["scores"]["test"]["system"]
    text = (tmp_path / "report.md").read_text()
    assert "validation split" in text
    assert "test split" not in text


def test_fast_report_is_marked(folder: Path, tmp_path: Path) -> None:
    path = sample_file(tmp_path / "parts.jsonl")
    evaluator = make_evaluator(folder, settings=SMALL_FAST)
    report = evaluator.evaluate(str(path), tmp_path / "out", is_model=False).report
    assert set(report["scores"]) == {"test"}
    assert report["corruption"] is None
    assert report["system"]["samples"] == 16  # of 24
    assert report["protocol"]["id"].startswith("fast-")
    assert "fast form" in report["warnings"][0]


def test_repair_does_not_change_the_other_sections(folder: Path, repaired: dict[str, Any], tmp_path: Path) -> None:
    evaluator = make_evaluator(folder, settings=replace(SMALL, corruption=False))
    plain = evaluator.evaluate(str(folder / "jittered.jsonl"), tmp_path, is_model=False).report
    assert plain["repaired"] is None
    assert "After repair" not in (tmp_path / "report.md").read_text()
    for name in ("protocol", "scores", "validity", "novelty", "distributions", "system"):
        assert plain[name] == repaired[name]


def test_repair_closes_gaps_and_is_scored_alike(repaired: dict[str, Any]) -> None:
    section = repaired["repaired"]
    assert section["sketches"] == 20  # as many as are compared
    for split in ("test", "train"):
        assert set(section["scores"][split]["system"]) == set(repaired["scores"][split]["system"])
    assert section["validity"]["sketches"] == repaired["validity"]["samples"]["sketches"]
    assert sum(section["actions"].values()) > 0
    assert 0 < section["displacement"]["median"] <= section["displacement"]["max"] < 0.05
    assert section["exact_ends"]["samples"]["value"] < 0.1
    assert section["exact_ends"]["repaired"]["value"] > 0.8
    before, after = (
        side["exact"]["closed"]["value"] for side in (repaired["validity"]["samples"], section["validity"])
    )
    assert before < 0.2 < 0.6 < after


def test_repair_section_has_its_protocol_and_is_read_back(folder: Path, repaired: dict[str, Any]) -> None:
    section = report_document(repaired).to_markdown().split("## After repair")[1].split("\n## ")[0]
    assert section.count(repaired["protocol"]["id"]) == 3  # a caption for each table
    assert "| as drawn | repaired | floor |" in section
    assert "| as drawn | repaired | test split |" in section
    stored = json.loads((folder / "repaired" / "report.json").read_text())
    assert load_report(folder / "repaired")["repaired"] == stored["repaired"]
    assert ", after repair " in headline(repaired)


def test_reports_with_and_without_repair_can_be_compared(repaired: dict[str, Any]) -> None:
    older = {name: value for name, value in repaired.items() if name != "repaired"}
    assert "## After repair" in comparison_document({"new": repaired, "old": older}).to_markdown()
    assert "## After repair" not in comparison_document({"old": older, "older": older}).to_markdown()
    assert "After repair" not in report_document(older).to_markdown()
