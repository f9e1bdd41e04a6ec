"""Models, sample files and reports are compared under one protocol; others are refused before any work."""

import csv
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support import evaluation_data
from support.evaluation_data import SMALL_FAST, procedural_sketches, sample_file, small_corpus, small_model

from sketchdnn.errors import SketchError
from sketchdnn.evaluation import Evaluator, comparison
from sketchdnn.systems import load_preset, save_pretrained

make_evaluator = partial(evaluation_data.make_evaluator, settings=SMALL_FAST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    small_model(folder / "tokens", "vitruvion")
    sample_file(folder / "parts.jsonl")
    sample_file(folder / "other.jsonl", seed=12)
    make_evaluator(folder).evaluate(str(folder / "other.jsonl"), folder / "report", is_model=False)
    return folder


def compare(evaluator: Evaluator, out: Path, *paths: Path) -> dict[str, comparison.ComparedSystem]:
    return comparison.compare_systems(evaluator, [str(path) for path in paths], out)


def test_model_file_and_report_in_one_table(folder: Path, tmp_path: Path) -> None:
    paths = [folder / name for name in ("model", "parts.jsonl", "report")]
    kinds = [comparison.system_kind(name) for name in (*map(str, paths), "ours")]
    assert kinds == ["model", "samples", "report", "model"]
    systems = compare(make_evaluator(folder), tmp_path, *paths)
    assert list(systems) == ["model", "parts.jsonl", "other.jsonl"]
    assert [len(system.sketches) > 0 for system in systems.values()] == [True, True, False]  # no samples were saved
    assert (tmp_path / "1-model" / "report.html").is_file()
    comparison.write_tables(tmp_path, {name: system.report for name, system in systems.items()})
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == list(systems)
    for row, system in zip(rows, systems.values(), strict=True):
        assert float(row["scores.test.system.fid"]) == system.report["scores"]["test"]["system"]["fid"]["value"]
        assert row["protocol"] == system.report["protocol"]["id"]
    assert [(row["sampler"], row["steps"]) for row in rows] == [("restart", "4"), ("", "0"), ("", "0")]
    assert json.loads((tmp_path / "comparison.json").read_text())[1]["system"] == "parts.jsonl"
    text = (tmp_path / "comparison.md").read_text()
    assert all(name in text for name in (*systems, "real sketches", "FID, test", "KID × 1000, test"))
    assert re.search(r"\| parts\.jsonl \| 0 \| \d+\.\d % \(", text)  # the validity of sketches in percent
    assert "model: drawn with 4 restart steps, seed 0; parts.jsonl: read from a file;" in text


def test_figure_and_equal_names(folder: Path, tmp_path: Path) -> None:
    names = [str(folder / name) for name in ("parts.jsonl", "report")]
    written = comparison.compare_and_write(make_evaluator(folder), names, tmp_path)
    assert {path.suffix for path in written} == {".md", ".csv", ".json", ".png", ".svg"}
    assert all(path.is_file() for path in written)
    (tmp_path / "a").mkdir()
    paths = [folder / "parts.jsonl", sample_file(tmp_path / "a" / "parts.jsonl", seed=13)]
    systems = compare(make_evaluator(folder), tmp_path / "out", *paths)
    assert list(systems) == [f"parts.jsonl ({path})" for path in paths]


def test_other_protocol_is_refused_before_evaluation(folder: Path, tmp_path: Path) -> None:
    evaluator, out = make_evaluator(folder, settings=replace(SMALL_FAST, against_test=8)), tmp_path / "out"
    for name in ("parts.jsonl", "model"):
        with pytest.raises(SketchError, match=r"how many sketches are compared with held-out ones \(12 and 8\)"):
            compare(evaluator, out, folder / name, folder / "report")
        assert not any((list(out.rglob("report.json")), list(out.rglob("samples.jsonl"))))
    evaluator.evaluate(str(folder / "parts.jsonl"), tmp_path / "eight", is_model=False)
    with pytest.raises(SketchError, match="cannot be compared"):
        compare(evaluator, out, folder / "report", tmp_path / "eight")


def test_last_system_is_checked_before_the_first_is_evaluated(folder: Path, tmp_path: Path) -> None:
    preset, out = load_preset("tiny", "latent"), tmp_path / "out"
    save_pretrained(replace(preset, config=replace(preset.config, num_steps=100)).make(), tmp_path / "latent")
    sample_file(tmp_path / "few.jsonl", count=2)
    for second, changes, message in (
        (folder / "tokens", {"sampler": "ddim"}, "'vitruvion'.* ddim; use ancestral"),
        (tmp_path / "latent", {"steps": 999}, "in 1 to .* steps, not 999"),
        (tmp_path / "nowhere", {}, "no model is there"),
        (tmp_path / "few.jsonl", {}, "holds only 2 sketches that can be scored"),
    ):
        with pytest.raises(SketchError, match=message):
            compare(make_evaluator(folder, **changes), out, folder / "parts.jsonl", second)
        assert not out.exists()


def test_token_models_have_no_steps(folder: Path, tmp_path: Path) -> None:
    systems = compare(make_evaluator(folder), tmp_path, folder / "tokens", folder / "model")
    comparison.write_tables(tmp_path, {name: system.report for name, system in systems.items()})
    text = (tmp_path / "comparison.md").read_text()
    assert "tokens: drawn token by token, seed 0; model: drawn with 4 restart steps, seed 0." in text
    for name in ("report.md", "report.html"):
        text = (tmp_path / "1-tokens" / name).read_text()
        assert text.count("token by token") == 2  # in the lead, and in the table of the protocol
        assert not any(each in text for each in ("ancestral", "its steps"))
        assert "its steps" in (tmp_path / "2-model" / name).read_text()
    protocol = systems["tokens"].report["protocol"]
    assert (protocol["sampler"], protocol["steps"]) == ("ancestral", 4)


def test_few_systems_are_refused_and_samples_are_seeded(tmp_path: Path) -> None:
    with pytest.raises(SketchError, match="two systems at least"):
        comparison.write_tables(tmp_path, {"one": {}})
    data = comparison.Source("data", procedural_sketches(2))
    for sources, message in (
        ([data], "two sources"),
        ([data, comparison.Source("none", [])], "'none' has no sketches"),
    ):
        with pytest.raises(SketchError, match=message):
            comparison.write_comparison_figure(tmp_path, sources)
    assert not list(tmp_path.iterdir())
    sample = comparison.random_sample(range(100), 16, seed=0)
    assert len(set(sample)) == 16
    assert (
        sample == comparison.random_sample(range(100), 16, seed=0) != comparison.random_sample(range(100), 16, seed=1)
    )
    assert comparison.random_sample(range(3), 16, seed=0) == [0, 1, 2]
