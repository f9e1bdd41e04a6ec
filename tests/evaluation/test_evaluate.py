"""A whole evaluation: deterministic and complete, with the floor as the score of real against real sketches."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import evaluation_data as data

from sketchdnn.data import Dataset
from sketchdnn.evaluation import load_report
from sketchdnn.evaluation.comparison import comparison_document
from sketchdnn.evaluation.evaluate import select_references
from sketchdnn.evaluation.features import sketch_features
from sketchdnn.evaluation.metrics import frechet_distance
from sketchdnn.evaluation.report import headline, report_document
from sketchdnn.evaluation.samples import normalize_sketches
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.formats import write
from sketchdnn.representation import decode_compact

FILES = {"report.html", "report.json", "report.md", "sheet.png", "real.png", "samples.jsonl"}
SCORES = {"fid", "fid_infinity", "kid", "precision", "recall", "authors_precision", "authors_recall", "density"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, a model, and sketches whose ends nearly meet."""
    folder = tmp_path_factory.mktemp("evaluated")
    data.small_corpus(folder / "corpus")
    data.small_model(folder / "model")
    jittered = jitter_ends(normalize_sketches(data.procedural_sketches(24)).compact, 0.002, 0)
    write([decoded.sketch for decoded in decode_compact(jittered)], folder / "jittered.jsonl")
    return folder


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return data.make_evaluator(folder).evaluate(str(folder / "model"), folder / "out", is_model=True).report


@pytest.fixture(scope="module")
def repaired(folder: Path) -> dict[str, Any]:
    evaluator = data.make_evaluator(folder, settings=replace(data.SMALL, corruption=False, repaired=True))
    return evaluator.evaluate(str(folder / "jittered.jsonl"), folder / "repaired", is_model=False).report


def test_two_runs_give_the_same_report(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    evaluator = data.make_evaluator(folder, cache=tmp_path / "cold")
    evaluator.evaluate(str(folder / "model"), tmp_path / "again", is_model=True, label="Latent Diffusion")
    again, first = (json.loads((path / "report.json").read_text()) for path in (tmp_path / "again", folder / "out"))
    assert again.pop("timings")
    assert first.pop("timings")
    assert again["system"].pop("name") == "Latent Diffusion" != first["system"].pop("name")
    assert again == first
    assert "Latent Diffusion" in (tmp_path / "again" / "report.md").read_text()
    assert {path.name for path in (folder / "out").iterdir()} == FILES


def test_report_is_complete_and_its_floor_is_of_real_sketches(folder: Path, report: dict[str, Any]) -> None:
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
    assert (report["protocol"]["extractor"], report["system"]["samples"]) == (data.FakeExtractor().sha256, 24)
    assert {"validity", "novelty", "likelihood", "sampling", "features of the samples"} <= set(report["timings"])
    assert any("2,048" in warning for warning in report["warnings"])
    for side in ("samples", "test"):
        assert sum(report["novelty"]["neighbors"][side].values()) == pytest.approx(1, abs=1e-4)
    assert "bits of the plain diffusion process" in (folder / "out" / "report.md").read_text()
    references, sizes = select_references(Dataset.open(folder / "corpus"), data.SMALL, 24)
    train = references.selected_train
    halves = train[: sizes.train], train[sizes.train : 2 * sizes.train]
    first, second = ({row.tobytes() for row in half.params} for half in halves)
    assert not first & second
    for split, sets in (("train", halves), ("test", (references.selected_test, train[: sizes.test]))):
        expected = frechet_distance(*(sketch_features(each, data.FakeExtractor()) for each in sets))
        assert report["scores"][split]["floor"]["fid"]["value"] == pytest.approx(expected, rel=1e-4)
    assert report["corruption"][0]["fid"]["value"] == pytest.approx(expected, rel=1e-4)


def test_references_follow_the_seed_and_time_the_settings(folder: Path) -> None:
    dataset = Dataset.open(folder / "corpus")
    first, sizes = select_references(dataset, data.SMALL, 24)
    again, other = (select_references(dataset, replace(data.SMALL, seed=seed), 24)[0] for seed in (data.SMALL.seed, 5))
    for split, size in (("test", sizes.test), ("train", 2 * sizes.train)):
        selections = [getattr(references, f"selected_{split}").params for references in (first, again, other)]
        whole = getattr(first, split).params
        assert len(selections[0]) == size
        assert len({row.tobytes() for row in selections[0]} & {row.tobytes() for row in whole}) == size
        assert np.array_equal(selections[0], selections[1])
        assert not any((np.array_equal(selections[0], selections[2]), np.array_equal(selections[0], whole[:size])))
    small, fast = data.make_evaluator(folder), data.make_evaluator(folder, settings=data.SMALL_FAST)
    assert 0 < fast.num_images < small.num_images
    assert 0 < fast.minutes < small.minutes < 5
    with_repair = data.make_evaluator(folder, settings=replace(data.SMALL_FAST, repaired=True))
    assert with_repair.num_images == fast.num_images + data.SMALL_FAST.against_test


def test_progress_rises_and_fast_reports_are_marked(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    assert report["validity"]["samples"]["sketches"] == report["validity"]["test"]["sketches"] == data.SMALL.validity
    progress: list[float] = []
    evaluator = data.make_evaluator(folder, lambda name, share: progress.extend([share] if name == "validity" else []))
    cached = sorted(path.name for path in (folder / "cache").iterdir())
    evaluator.evaluate(str(data.sample_file(tmp_path / "parts.jsonl")), tmp_path / "out", is_model=False)
    assert progress == sorted(progress)
    assert {0, 0.25, 0.5, 0.75, 1} <= set(progress)
    assert sorted(path.name for path in (folder / "cache").iterdir()) == cached  # features of references are kept
    path = str(data.sample_file(tmp_path / "parts.jsonl"))
    evaluator = data.make_evaluator(folder, settings=data.SMALL_FAST)
    report = evaluator.evaluate(path, tmp_path / "fast", is_model=False).report
    assert (set(report["scores"]), report["corruption"], report["system"]["samples"]) == ({"test"}, None, 16)  # of 24
    assert report["protocol"]["id"].startswith("fast-")
    assert "fast form" in report["warnings"][0]


def test_saved_samples_have_the_same_scores_on_the_same_split(
    folder: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    samples = str(folder / "out" / "samples.jsonl")
    again = data.make_evaluator(folder).evaluate(samples, tmp_path / "again", is_model=False).report
    for name, estimate in report["scores"]["test"]["system"].items():
        assert again["scores"]["test"]["system"][name]["value"] == pytest.approx(estimate["value"], rel=1e-3, abs=1e-5)
    assert (again["likelihood"], again["system"]["kind"]) == (None, "samples")
    medians = [each["validity"]["samples"]["gaps"]["median"]["value"] for each in (again, report)]
    assert medians[0] == pytest.approx(medians[1], rel=1e-3)
    evaluator = data.make_evaluator(folder, settings=replace(data.SMALL, split="validation", corruption=False))
    selected = evaluator.evaluate(samples, tmp_path, is_model=False).report
    validation = Dataset.open(folder / "corpus").split("validation")
    assert selected["novelty"]["test"] == len(validation) != report["novelty"]["test"]
    assert selected["protocol"]["data"] != report["protocol"]["data"]
    assert selected["scores"]["test"]["system"] != report["scores"]["test"]["system"]
    text = (tmp_path / "report.md").read_text()
    assert "validation split" in text
    assert "test split" not in text


def test_repair_does_not_change_the_other_sections(folder: Path, repaired: dict[str, Any], tmp_path: Path) -> None:
    evaluator = data.make_evaluator(folder, settings=replace(data.SMALL, corruption=False))
    plain = evaluator.evaluate(str(folder / "jittered.jsonl"), tmp_path, is_model=False).report
    assert plain["repaired"] is None
    assert "After repair" not in (tmp_path / "report.md").read_text()
    for name in ("protocol", "scores", "validity", "novelty", "distributions", "system"):
        assert plain[name] == repaired[name]


def test_repair_is_scored_beside_the_samples(repaired: dict[str, Any], folder: Path) -> None:
    section = repaired["repaired"]
    assert section["sketches"] == 20  # as many as are compared
    for split in ("test", "train"):
        assert set(section["scores"][split]["system"]) == set(repaired["scores"][split]["system"])
    assert section["validity"]["sketches"] == repaired["validity"]["samples"]["sketches"]
    assert sum(section["actions"].values()) > 0
    assert 0 < section["displacement"]["median"] <= section["displacement"]["max"] < 0.05
    assert section["exact_ends"]["samples"]["value"] < 0.1
    assert section["exact_ends"]["repaired"]["value"] > 0.8
    before, after = repaired["validity"]["samples"], section["validity"]
    assert before["exact"]["closed"]["value"] < 0.2 < 0.6 < after["exact"]["closed"]["value"]
    section = report_document(repaired).to_markdown().split("## After repair")[1].split("\n## ")[0]
    assert section.count(repaired["protocol"]["id"]) == 3  # a caption for each table
    assert all(each in section for each in ("| as drawn | repaired | floor |", "| as drawn | repaired | test split |"))
    stored = json.loads((folder / "repaired" / "report.json").read_text())
    assert load_report(folder / "repaired")["repaired"] == stored["repaired"]
    assert ", after repair " in headline(repaired)
    older = {name: value for name, value in repaired.items() if name != "repaired"}
    assert "## After repair" in comparison_document({"new": repaired, "old": older}).to_markdown()
    assert "## After repair" not in comparison_document({"old": older, "older": older}).to_markdown()
    assert "After repair" not in report_document(older).to_markdown()
