"""Systems side by side: one table, and none that was measured otherwise."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.judging import SMALL_FAST, StandIn, sample_file, small_corpus, small_model

from sketchdnn.errors import SketchError
from sketchdnn.evaluation import EvaluationRequest, Evaluator
from sketchdnn.evaluation.comparison import compare_systems, system_kind, write_tables
from sketchdnn.systems import load_preset, save_pretrained


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    sample_file(folder / "parts.jsonl")
    run_of(folder).evaluate(str(sample_file(folder / "other.jsonl", seed=12)), folder / "report", is_model=False)
    return folder


def run_of(folder: Path, against: int = 12, **changes: Any) -> Evaluator:
    settings = replace(SMALL_FAST, against_test=against)
    request = EvaluationRequest(folder / "corpus", settings=settings, steps=4, device="cpu", cache=folder / "cache")
    return Evaluator(replace(request, **changes), extractor=lambda device: StandIn())


def test_a_model_a_file_and_a_report_in_one_table(folder: Path, tmp_path: Path) -> None:
    names = [str(folder / name) for name in ("model", "parts.jsonl", "report")]
    assert [system_kind(name) for name in (*names, "ours")] == ["model", "samples", "report", "model"]
    compared = compare_systems(run_of(folder), names, tmp_path)
    assert list(compared) == ["model", "parts.jsonl", "other.jsonl"]
    assert [len(one.sketches) > 0 for one in compared.values()] == [True, True, False]  # it kept no samples
    assert (tmp_path / "1-model" / "report.html").is_file()
    write_tables(tmp_path, {name: one.report for name, one in compared.items()})
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == list(compared)
    for row, one in zip(rows, compared.values(), strict=True):
        assert float(row["scores.test.system.fid"]) == one.report["scores"]["test"]["system"]["fid"]["value"]
        assert row["protocol"] == one.report["protocol"]["id"]
    assert [(row["sampler"], row["steps"]) for row in rows] == [("restart", "4"), ("", "0"), ("", "0")]
    assert json.loads((tmp_path / "comparison.json").read_text())[1]["system"] == "parts.jsonl"
    words = (tmp_path / "comparison.md").read_text()
    assert all(name.replace("_", "\\_") in words for name in (*compared, "real sketches", "FID, test"))
    assert "model: drawn with 4 closing steps, seed 0; parts.jsonl: read from a file;" in words


def test_what_was_measured_otherwise_is_refused_and_named(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, against=8)
    with pytest.raises(SketchError, match=r"how many sketches are compared with held-out ones \(12 and 8\)"):
        compare_systems(run, [str(folder / "parts.jsonl"), str(folder / "report")], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("report.json"))  # refused before it was measured
    run.evaluate(str(folder / "parts.jsonl"), tmp_path / "eight", is_model=False)
    with pytest.raises(SketchError, match="cannot be compared"):
        compare_systems(run, [str(folder / "report"), str(tmp_path / "eight")], tmp_path / "out")


def test_a_model_that_could_not_be_compared_is_not_even_asked(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, against=8)
    with pytest.raises(SketchError, match="cannot be compared"):
        compare_systems(run, [str(folder / "model"), str(folder / "report")], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("samples.jsonl"))


@pytest.mark.parametrize(
    ("second", "changes", "words"),
    [
        ("tokens", {"sampler": "ddim"}, "a 'vitruvion' cannot draw with ddim; use ancestral"),
        ("latent", {"steps": 999}, "draws in 1 to .* steps, not 999"),
        ("nowhere", {}, "no model is there"),
        ("few.jsonl", {}, "holds only 2 sketches that can be judged"),
    ],
)
def test_what_the_last_one_lacks_is_said_before_the_first_is_measured(
    folder: Path, tmp_path: Path, second: str, changes: dict[str, Any], words: str
) -> None:
    small_model(tmp_path / "tokens", "vitruvion")
    preset = load_preset("tiny", "latent")
    save_pretrained(replace(preset, config=replace(preset.config, num_steps=100)).make(), tmp_path / "latent")
    sample_file(tmp_path / "few.jsonl", count=2)
    with pytest.raises(SketchError, match=words):
        compare_systems(
            run_of(folder, **changes), [str(folder / "parts.jsonl"), str(tmp_path / second)], tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_what_has_no_noise_to_take_away_tells_of_no_steps(folder: Path, tmp_path: Path) -> None:
    names = [str(small_model(tmp_path / "tokens", "vitruvion")), str(folder / "model")]
    compared = compare_systems(run_of(folder), names, tmp_path)
    write_tables(tmp_path, {name: one.report for name, one in compared.items()})
    words = (tmp_path / "comparison.md").read_text()
    assert "tokens: drawn token by token, seed 0; model: drawn with 4 closing steps, seed 0." in words
    for name in ("report.md", "report.html"):
        words = (tmp_path / "1-tokens" / name).read_text()
        assert words.count("token by token") == 2  # in the lead, and in the table of the protocol
        assert not any(of_steps in words for of_steps in ("ancestral", "its steps"))
        assert "its steps" in (tmp_path / "2-model" / name).read_text()
    # What programs compare by stays what it was.
    told = compared["tokens"].report["protocol"]
    assert (told["sampler"], told["steps"]) == ("ancestral", 4)


def test_two_of_one_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    paths = [str(folder / "parts.jsonl"), str(sample_file(tmp_path / "a" / "parts.jsonl", seed=13))]
    compared = compare_systems(run_of(folder), paths, tmp_path / "out")
    assert list(compared) == [f"parts.jsonl ({path})" for path in paths]


def test_one_system_is_no_comparison(folder: Path, tmp_path: Path) -> None:
    compared = compare_systems(run_of(folder), [str(folder / "report")], tmp_path)
    with pytest.raises(SketchError, match="two systems at least"):
        write_tables(tmp_path, {name: one.report for name, one in compared.items()})
