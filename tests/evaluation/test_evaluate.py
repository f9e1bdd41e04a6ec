"""A whole evaluation: the same twice, everything in it, its floor the score of real against real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sketchdnn.evaluation.sheets import sketches_of
from support.judging import SMALL, SMALL_FAST, StandIn, sample_file, small_corpus, small_model

from sketchdnn.data import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation import EvaluationRequest, Evaluator
from sketchdnn.evaluation.evaluate import select_references
from sketchdnn.evaluation.features import sketch_features
from sketchdnn.evaluation.metrics import frechet_distance
from sketchdnn.formats import write

FILES = {"report.html", "report.json", "report.md", "sheet.png", "real.png", "samples.jsonl"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    return folder


def run_of(folder: Path, **changes: Any) -> Evaluator:
    options: dict[str, Any] = {"settings": SMALL, "steps": 4, "device": "cpu", "cache": folder / "cache", **changes}
    return Evaluator(EvaluationRequest(folder / "corpus", **options), extractor=lambda device: StandIn())


@pytest.fixture(scope="module")
def report(folder: Path) -> dict[str, Any]:
    return run_of(folder).evaluate(str(folder / "model"), folder / "out", is_model=True).report


def without_timings(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    assert found.pop("timings")
    return found


def test_two_runs_give_the_same_report(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    run_of(folder, cache=tmp_path / "cold").evaluate(str(folder / "model"), tmp_path / "again", is_model=True)
    assert without_timings(folder / "out" / "report.json") == without_timings(tmp_path / "again" / "report.json")
    assert {path.name for path in (folder / "out").iterdir()} == FILES


def test_a_report_bears_the_name_it_is_told(folder: Path, tmp_path: Path) -> None:
    found = run_of(folder).evaluate(str(folder / "model"), tmp_path, is_model=True, label="Latent Diffusion").report
    assert found["system"]["name"] == "Latent Diffusion"
    assert "Latent Diffusion" in (tmp_path / "report.md").read_text()


def test_every_part_is_there(report: dict[str, Any]) -> None:
    for part, size in (("test", 16), ("train", 20)):
        scores = report["scores"][part]
        assert scores["samples"] == scores["references"] == size
        assert (
            set(scores["system"])
            == set(scores["floor"])
            == {
                *("fid", "fid_infinity", "kid", "precision", "recall", "authors_precision", "authors_recall"),
                *("density", "coverage"),
            }
        )
        for estimate in (*scores["system"].values(), *scores["floor"].values()):
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert report["likelihood"]["sketches"] == 4
    assert [step["amount"] for step in report["corruption"]] == [0, 0.005, 0.02, 0.05, 0.1, 0.3]
    assert report["protocol"]["extractor"] == StandIn().sha256
    assert report["system"]["samples"] == 24
    assert {"validity", "novelty", "likelihood", "features of the samples"} <= set(report["timings"])
    assert any("2,048" in words for words in report["warnings"])


def test_the_floor_is_the_score_of_real_against_real(folder: Path, report: dict[str, Any]) -> None:
    references, sizes = select_references(Dataset.open(folder / "corpus"), SMALL, 24)
    halves = references.selected_train[: sizes.train], references.selected_train[sizes.train : 2 * sizes.train]
    shown = [{rows.tobytes() for rows in half.params} for half in halves]
    assert not shown[0] & shown[1]
    wanted = frechet_distance(*(sketch_features(half, StandIn()) for half in halves))
    assert report["scores"]["train"]["floor"]["fid"]["value"] == pytest.approx(wanted, rel=1e-4)
    wanted = frechet_distance(
        sketch_features(references.selected_test, StandIn()),
        sketch_features(references.selected_train[: sizes.test], StandIn()),
    )
    assert report["scores"]["test"]["floor"]["fid"]["value"] == pytest.approx(wanted, rel=1e-4)
    assert report["corruption"][0]["fid"]["value"] == pytest.approx(wanted, rel=1e-4)


def test_references_are_chosen_by_the_seed(folder: Path) -> None:
    """So many of either split, none twice, the same again by the same seed; of the test split the first are not."""
    dataset = Dataset.open(folder / "corpus")
    first, sizes = select_references(dataset, SMALL, 24)
    again, other = (select_references(dataset, replace(SMALL, seed=seed), 24)[0] for seed in (SMALL.seed, 5))
    for split in ("test", "train"):
        chosen = [getattr(references, f"chosen_{split}").params for references in (first, again, other)]
        assert len(chosen[0]) == {"test": sizes.test, "train": 2 * sizes.train}[split]
        whole = {rows.tobytes() for rows in getattr(first, split).params}
        assert len({rows.tobytes() for rows in chosen[0]} & whole) == len(chosen[0])
        assert np.array_equal(chosen[0], chosen[1])
        assert not np.array_equal(chosen[0], chosen[2])
        assert not np.array_equal(chosen[0], getattr(first, split).params[: len(chosen[0])])


def test_validity_looks_at_as_many_real_sketches_as_samples(
    folder: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    """And tells how far it is, from none to all."""
    assert report["validity"]["samples"]["sketches"] == report["validity"]["test"]["sketches"] == SMALL.validity
    heard: list[float] = []
    request = EvaluationRequest(folder / "corpus", settings=SMALL, steps=4, device="cpu", cache=folder / "cache")

    def hear(name: str, share: float) -> None:
        heard.extend([share] if name == "validity" else [])

    Evaluator(request, extractor=lambda device: StandIn(), on_stage=hear).evaluate(
        str(sample_file(tmp_path / "parts.jsonl")), tmp_path / "out", is_model=False
    )
    assert heard == sorted(heard)
    assert {0, 0.25, 0.5, 0.75, 1} <= set(heard)


def test_time_is_foretold_by_the_pictures_to_look_at(folder: Path) -> None:
    small, fast = run_of(folder), run_of(folder, settings=SMALL_FAST)
    assert 0 < fast.pictures < small.pictures
    assert 0 < fast.minutes < small.minutes < 5


def test_distances_are_reported_as_shares(report: dict[str, Any]) -> None:
    for side in ("samples", "test"):
        assert sum(report["novelty"]["neighbours"][side].values()) == pytest.approx(1, abs=1e-4)


def test_damage_opens_gaps(report: dict[str, Any]) -> None:
    within = [step["within_loose"]["value"] for step in report["corruption"]]
    assert within[0] > within[1] > within[2] > within[3]
    assert within[0] > within[4] > within[5]


def test_scores_can_be_had_again_from_the_samples(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    again = run_of(folder).evaluate(str(folder / "out" / "samples.jsonl"), tmp_path, is_model=False).report
    for name, estimate in report["scores"]["test"]["system"].items():
        assert again["scores"]["test"]["system"][name]["value"] == pytest.approx(estimate["value"], rel=1e-3, abs=1e-5)
    assert again["likelihood"] is None
    assert again["system"]["kind"] == "samples"
    assert again["validity"]["samples"]["gaps"]["median"]["value"] == pytest.approx(
        report["validity"]["samples"]["gaps"]["median"]["value"], rel=1e-3
    )


def test_the_test_split_itself_scores_best(folder: Path, tmp_path: Path) -> None:
    references, sizes = select_references(Dataset.open(folder / "corpus"), SMALL, 24)
    real = sketches_of(references.selected_test, np.arange(sizes.test))
    write(real, tmp_path / "real.jsonl")
    found = run_of(folder).evaluate(str(tmp_path / "real.jsonl"), tmp_path / "out", is_model=False).report
    scores = found["scores"]["test"]["system"]
    assert scores["fid"]["value"] == pytest.approx(0, abs=1e-3)
    assert scores["precision"]["value"] == scores["recall"]["value"] == scores["coverage"]["value"] == 1
    assert found["distributions"]["samples"] == sizes.test


def test_models_can_be_chosen_on_the_validation_split(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    """The validation split takes the place of the test split in every number, in the words and in the protocol."""
    settings = replace(SMALL, split="validation", corruption=False)
    drawn = folder / "out" / "samples.jsonl"
    chosen = run_of(folder, settings=settings).evaluate(str(drawn), tmp_path, is_model=False).report
    validation = Dataset.open(folder / "corpus").split("validation")
    assert chosen["novelty"]["test"] == len(validation) != report["novelty"]["test"]
    assert chosen["protocol"]["data"] != report["protocol"]["data"]
    assert chosen["scores"]["test"]["system"] != report["scores"]["test"]["system"]
    words = (tmp_path / "report.md").read_text()
    assert "validation split" in words
    assert "test split" not in words
    with pytest.raises(SketchError, match="'train' cannot be compared with; use test or validation"):
        replace(SMALL, split="train")


def test_the_report_says_that_bits_are_of_the_plain_process(folder: Path, report: dict[str, Any]) -> None:
    assert report["likelihood"]["draws"]
    assert "bits of the plain diffusion process" in (folder / "out" / "report.md").read_text()


def test_the_fast_form_says_so(folder: Path, tmp_path: Path) -> None:
    path = sample_file(tmp_path / "parts.jsonl")
    found = run_of(folder, settings=SMALL_FAST).evaluate(str(path), tmp_path / "out", is_model=False).report
    assert set(found["scores"]) == {"test"}
    assert found["corruption"] is None
    assert found["system"]["samples"] == 16  # as many as it wants, of 24
    assert found["protocol"]["id"].startswith("fast-")
    assert "fast form" in found["warnings"][0]


def test_reference_features_are_taken_once(folder: Path, report: dict[str, Any], tmp_path: Path) -> None:
    kept = sorted(path.name for path in (folder / "cache").iterdir())
    assert kept
    path = sample_file(tmp_path / "parts.jsonl")
    run_of(folder).evaluate(str(path), tmp_path / "out", is_model=False)
    assert sorted(path.name for path in (folder / "cache").iterdir()) == kept
