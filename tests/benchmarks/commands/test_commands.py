"""The command line: help, figures, and refusals."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.benchmarks import refuse, run_benchmark
from support.evaluation_data import sample_file, small_corpus, small_model

from benchmarks.__main__ import app
from sketchdnn.data.procedural import procedural
from sketchdnn.formats import write

FIGURES = ["schedule", "simplex", "bias", "teaser", "pipeline", "comparison", "failures", "turing-test"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    small_corpus(folder / "corpus")
    small_model(folder / "model")
    sample_file(folder / "parts.jsonl")
    return folder


def test_every_command_has_help_with_an_example_and_help_does_not_import_torch() -> None:
    import typer.main

    names = [name for name in typer.main.get_command(app).commands if name != "figures"]  # type: ignore[attr-defined]
    for arguments in [[name] for name in names] + [["figures", name] for name in FIGURES]:
        result = run_benchmark(*arguments, "--help")
        assert result.exit_code == 0
        assert f"python -m benchmarks {' '.join(arguments)}" in " ".join(result.output.split())
    code = "import sys; import benchmarks.__main__; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_figures_are_written(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    sampling = ["--model", folder / "model", "--count", 2, "--steps", 3, "--seed", 1]
    sizes = {"schedule": (50, 1000), "simplex": (50, 20), "bias": (10, 4)}
    options = {name: ["--steps", steps, "--samples", samples] for name, (steps, samples) in sizes.items()}
    options |= dict.fromkeys(("teaser", "pipeline", "failures"), sampling)
    for name, arguments in options.items():
        result = run_benchmark("figures", name, "--out", out, *arguments)
        assert result.exit_code == 0, result.exception
    expected = {f"{name}.{suffix}" for name in options for suffix in ("png", "svg")} | {"bias.csv", "schedule.csv"}
    assert {path.name for path in out.iterdir()} == expected
    # A file beside a model.
    file = tmp_path / "part.jsonl"
    write(procedural(0, 1), file)
    file.write_text(file.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    options = ["--samples", f"a file={file}", "--model", f"a model={folder / 'model'}", "--count", 3, "--steps", 3]
    result = run_benchmark("figures", "comparison", "--out", tmp_path / "new", *options)
    assert result.exit_code == 0, result.output
    assert "a file" in (tmp_path / "new" / "comparison.svg").read_text(encoding="utf-8")
    assert "left out 1 × not JSON" in result.output


@pytest.mark.parametrize("options", [[], ["--samples", "--repair"], ["--repair", "--split", "train"]])
def test_turing_test_names_its_sources_in_the_answer(options: list[str], folder: Path, tmp_path: Path) -> None:
    parts = [folder / "parts.jsonl"] if "--samples" in options else []
    arguments = ["--data", folder / "corpus", "--count", 4, "--model", folder / "model", "--steps", 3]
    result = run_benchmark("figures", "turing-test", *arguments, "--out", tmp_path, *options[:1], *parts, *options[1:])
    assert result.exit_code == 0, result.output
    # The files, always in the same order.
    printed = result.output.replace("\n", " ").replace(str(tmp_path), "").split()
    assert printed == ["/a.png", "/a.svg", "/b.png", "/b.svg", "/answer.txt"]
    lines = sorted(line[3:] for line in (tmp_path / "answer.txt").read_text().splitlines()[-2:])
    assert lines[0].startswith("generated")
    assert lines[1].startswith(f"real, the {'train' if '--split' in options else 'test'} split of ")
    assert ("repaired" in lines[0]) == ("--repair" in options)


def test_bad_options_and_files_are_refused(folder: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for command, words in [
        ("comparison", "two of"), ("comparison --samples no-name.json --model a=ours", "NAME=FILE"),
        ("comparison --samples a=nowhere.json --samples b=nowhere.json", "nowhere.json"),
        ("comparison --data nowhere --model a=nowhere", "nowhere"), ("turing-test --data nowhere", "nowhere"),
        ("teaser --model nowhere", "nowhere"), ("pipeline --steps 3000", "3000"), ("failures --steps 3000", "3000"),
    ]:  # fmt: skip
        assert words in refuse(monkeypatch, capsys, "figures", *command.split(), "--out", "out")
    bad = ["--smoothing 1", "--smoothing nan", "--categories 1", "--samples many"]
    for arguments in (["schedule"], ["teapot"], *(["schedule", *options.split()] for options in bad)):
        result = run_benchmark("figures", *arguments, *(["--out", tmp_path / "out"] if len(arguments) > 1 else []))
        assert result.exit_code == 2
        assert "Traceback" not in result.output
    corpus = ["--data", folder / "corpus", "--model", "nowhere", "--mixed", "--out", tmp_path / "out"]
    refused = run_benchmark("figures", "turing-test", *corpus)
    assert "a sheet of 64 needs more sketches than the 43" in str(refused.exception)
    assert not list(tmp_path.iterdir())
    file = tmp_path / "file"
    file.write_text("in the way")
    assert str(file) in refuse(monkeypatch, capsys, "figures", "simplex", "--out", file, "--samples", 9)
    assert "no.npy" in refuse(monkeypatch, capsys, "prepare", "--data", tmp_path / "no.npy", "--sequences", 10)
    assert "is a folder" in refuse(monkeypatch, capsys, "conditions", "--out", tmp_path)
