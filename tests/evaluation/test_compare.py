"""Systems side by side: one table, and none that was measured otherwise."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from judging import SMALL_FAST, StandIn, sample_file, small_corpus, small_model

from sketchdnn.evaluation import Request, Run
from sketchdnn.evaluation.compare import compare_systems, kind_of, write_tables
from sketchdnn.geometry import SketchError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    sample_file(folder / "parts.jsonl")
    run_of(folder).measure(str(sample_file(folder / "other.jsonl", seed=12)), folder / "report", is_model=False)
    return folder


def run_of(folder: Path, against: int = 12) -> Run:
    settings = replace(SMALL_FAST, against_test=against)
    request = Request(folder / "corpus", settings=settings, steps=4, device="cpu", cache=folder / "cache")
    return Run(request, extractor=lambda device: StandIn())


def test_a_model_a_file_and_a_report_in_one_table(folder: Path, tmp_path: Path) -> None:
    names = [str(folder / name) for name in ("model", "parts.jsonl", "report")]
    assert [kind_of(name) for name in (*names, "ours")] == ["model", "samples", "report", "model"]
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
    assert [(row["sampler"], row["steps"]) for row in rows] == [("corrected", "4"), ("", "0"), ("", "0")]
    assert json.loads((tmp_path / "comparison.json").read_text())[1]["system"] == "parts.jsonl"
    words = (tmp_path / "comparison.md").read_text()
    assert all(name.replace("_", "\\_") in words for name in (*compared, "real sketches", "FID, test"))
    assert "model: drawn with 4 corrected steps, seed 0; parts.jsonl: read from a file;" in words


def test_what_was_measured_otherwise_is_refused_and_named(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, against=8)
    with pytest.raises(SketchError, match=r"how many sketches are compared with the test split \(12 and 8\)"):
        compare_systems(run, [str(folder / "parts.jsonl"), str(folder / "report")], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("report.json"))  # refused before it was measured
    run.measure(str(folder / "parts.jsonl"), tmp_path / "eight", is_model=False)
    with pytest.raises(SketchError, match="cannot be compared"):
        compare_systems(run, [str(folder / "report"), str(tmp_path / "eight")], tmp_path / "out")


def test_a_model_that_could_not_be_compared_is_not_even_asked(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, against=8)
    with pytest.raises(SketchError, match="cannot be compared"):
        compare_systems(run, [str(folder / "model"), str(folder / "report")], tmp_path / "out")
    assert not list((tmp_path / "out").rglob("samples.jsonl"))


def test_two_of_one_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    paths = [str(folder / "parts.jsonl"), str(sample_file(tmp_path / "a" / "parts.jsonl", seed=13))]
    compared = compare_systems(run_of(folder), paths, tmp_path / "out")
    assert list(compared) == [f"parts.jsonl ({path})" for path in paths]


def test_one_system_is_no_comparison(folder: Path, tmp_path: Path) -> None:
    compared = compare_systems(run_of(folder), [str(folder / "report")], tmp_path)
    with pytest.raises(SketchError, match="two systems at least"):
        write_tables(tmp_path, {name: one.report for name, one in compared.items()})
