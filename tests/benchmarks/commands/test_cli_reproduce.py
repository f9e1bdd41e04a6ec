"""`python -m benchmarks reproduce`: refuses in one sentence, plans without running, stops on a signal."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.commands.app import main
from support.evaluation_data import small_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce-command")
    small_corpus(folder / "corpus")
    (folder / "file").write_text("in the way")
    (folder / "other").mkdir()
    (folder / "other" / "reproduction.json").write_text("[]")
    (folder / "inception.pt").write_text("none, but it is not read before there is something to judge")
    return folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--minutes", "1", "--systems", "sketchnet"], "'sketchnet' is no system; use one of sketchdnn"),
        (["--minutes", "1", "--systems", ""], "no system is named"),
        (["--minutes", "1", "--systems", "sketchdnn:predict=all"], "predict must be one of x0, noise"),
        (["--minutes", "1", "--preset", "huge"], "'huge' is no preset"),
        (["--minutes", "1", "--preset", "paper"], "is of the system sketchdnn"),
        ([], "with --minutes or --steps, one of them"),
        (["--minutes", "1", "--steps", "1"], "with --minutes or --steps, one of them"),
        (["--minutes", "0"], "a budget of 0 minutes is too small for one step"),
        (["--steps", "-3"], "a budget of -3 steps is too small for one step"),
        (["--minutes", "nan"], "no budget"),
        (["--steps", "1", "--count", "2"], "at least 6"),
        (["--steps", "1", "--device", "abacus"], "'abacus' is no device"),
        (["--steps", "1", "--data", "nowhere"], "is no prepared corpus"),
        (["--steps", "1", "--inception", "nowhere.pt"], "there is no such file"),
        (["--steps", "1", "--out", "FILE"], "is no folder"),
        (["--steps", "1", "--out", "OTHER"], "cannot be read"),
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
    named = {"FILE": "file", "OTHER": "other"}
    chosen = [str(folder / named[option]) if option in named else option for option in options]
    defaults = {
        "--data": str(folder / "corpus"),
        "--out": str(tmp_path / "out"),
        "--inception": str(folder / "inception.pt"),
        "--device": "cpu",
    }
    for option, value in defaults.items():
        chosen += [] if option in options else [option, value]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "reproduce", *chosen])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert words in said[0]
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_the_plan_and_does_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--data", str(folder / "corpus"), "--out", str(tmp_path / "out"), "--minutes", "8", "--dry-run"]
    options += ["--inception", str(folder / "inception.pt"), "--device", "cpu", "--preset", "tiny"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", "reproduce", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    said = capsys.readouterr().out
    for words in ("8 minutes of training each", "sketchdnn-cat-tiny", "vitruvion:arcs=sweep", "224,085 parameters"):
        assert words in said
    assert "batches of 64" in said
    minutes = int(said.rpartition("about ")[2].split()[0])
    assert minutes >= 48
    assert not (tmp_path / "out").exists()


def test_a_signal_saves_and_the_same_command_goes_on(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "out" / "sketchdnn" / "run"
    command = [sys.executable, "-m", "benchmarks", "reproduce", "--data", str(folder / "corpus")]
    command += ["--steps", "100000", "--preset", "tiny", "--device", "cpu", "--systems", "sketchdnn"]
    command += ["--inception", str(folder / "inception.pt"), "--out", str(tmp_path / "out")]

    def logged() -> list[int]:
        """The steps that were reported."""
        log = run / "log.csv"
        return [int(line.partition(",")[0]) for line in log.read_text().splitlines()[1:]] if log.exists() else []

    def run_until(steps: int, ending: int) -> tuple[int, str]:
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            ends = time.monotonic() + 60
            while max(logged(), default=0) < steps and time.monotonic() < ends:
                time.sleep(0.1)
            process.send_signal(ending)
            return process.wait(timeout=60), process.communicate()[1]

    code, said = run_until(50, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert "the same command goes on" in said
    assert "Traceback" not in said
    (saved,) = (int(path.name) for path in (run / "checkpoints").iterdir())
    assert logged()[-1] == saved
    code, said = run_until(saved + 1, signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    assert [int(path.name) for path in (run / "checkpoints").iterdir()] == [saved]
    steps = logged()
    assert steps == sorted(set(steps))
    assert steps[steps.index(saved) + 1] == saved - saved % 50 + 50
