"""`python -m benchmarks reproduce`: refusals, the plan, and a signal."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.benchmarks import refuse, run_benchmark
from support.evaluation_data import small_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce-command")
    small_corpus(folder / "corpus")
    (folder / "file").write_text("in the way")
    (folder / "other").mkdir()
    (folder / "other" / "reproduction.json").write_text("[]")
    (folder / "inception.pt").write_text("not read before there is something to evaluate")
    return folder


def test_bad_requests_are_refused_and_a_dry_run_prints_the_plan(
    folder: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    paths = {"--data": folder / "corpus", "--out": tmp_path / "out", "--inception": folder / "inception.pt"}
    defaults = {**paths, "--device": "cpu"}
    for options, words in [
        (["--minutes", "1", "--systems", "sketchnet"], "'sketchnet'"), (["--minutes", "nan"], "no budget"),
        (["--minutes", "1", "--preset", "huge"], "'huge'"), ([], "with --minutes or --steps, one of them"),
        (["--minutes", "1", "--preset", "paper"], "system sketchdnn"),
        (["--minutes", "1", "--steps", "1"], "with --minutes or --steps, one of them"),
        (["--minutes", "0"], "a budget of 0 minutes is too small for one step"),
        (["--steps", "-3"], "a budget of -3 steps is too small for one step"),
        (["--steps", "1", "--count", "2"], "at least 6"), (["--steps", "1", "--device", "abacus"], "'abacus'"),
        (["--steps", "1", "--data", "nowhere"], "nowhere"), (["--steps", "1", "--inception", "no.pt"], "no.pt"),
        (["--steps", "1", "--out", folder / "file"], "is not a folder"),
        (["--steps", "1", "--out", folder / "other"], "cannot be read"),
    ]:  # fmt: skip
        others = [item for option, value in defaults.items() if option not in options for item in (option, value)]
        assert words in refuse(monkeypatch, capsys, "reproduce", *options, *others)
    assert not (tmp_path / "out").exists()
    options = ["--data", folder / "corpus", "--out", tmp_path / "out", "--minutes", 8, "--dry-run"]
    options += ["--inception", folder / "inception.pt", "--device", "cpu", "--preset", "tiny"]
    result = run_benchmark("reproduce", *options)
    assert result.exit_code == 0, result.exception
    for words in ("8 minutes of training each", "sketchdnn-cat-tiny", "vitruvion:arcs=sweep", "batches of 64"):
        assert words in result.stdout
    assert int(result.stdout.rpartition("about ")[2].split()[0]) >= 48
    assert not (tmp_path / "out").exists()


def test_signal_saves_and_the_same_command_continues(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "out" / "sketchdnn" / "run"
    command = [sys.executable, "-m", "benchmarks", "reproduce", "--data", str(folder / "corpus")]
    command += ["--steps", "100000", "--preset", "tiny", "--device", "cpu", "--systems", "sketchdnn"]
    command += ["--inception", str(folder / "inception.pt"), "--out", str(tmp_path / "out")]

    def logged_steps() -> list[int]:
        log = run / "log.csv"
        return [int(line.partition(",")[0]) for line in log.read_text().splitlines()[1:]] if log.exists() else []

    def run_until(steps: int, ending: int) -> tuple[int, str]:
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            while max(logged_steps(), default=0) < steps and process.poll() is None:
                time.sleep(0.1)
            process.send_signal(ending)
            return process.wait(), process.communicate()[1]

    code, error = run_until(50, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM, error
    assert ("the same command continues" in error, "Traceback" in error) == (True, False)
    (saved,) = (int(path.name) for path in (run / "checkpoints").iterdir())
    assert logged_steps()[-1] == saved
    code, error = run_until(saved + 1, signal.SIGKILL)
    assert code == -signal.SIGKILL, error
    assert [int(path.name) for path in (run / "checkpoints").iterdir()] == [saved]
    steps = logged_steps()
    assert (steps, steps[steps.index(saved) + 1]) == (sorted(set(steps)), saved - saved % 50 + 50)
