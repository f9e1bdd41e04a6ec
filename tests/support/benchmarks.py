"""Runs of the benchmarks in tests."""

import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from benchmarks.__main__ import app, main


def run_benchmark(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_page(out: Path, *arguments: object) -> str:
    result = run_benchmark(*arguments, "--out", out)
    assert result.exit_code == 0, result.exception
    return out.read_text()


def refuse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one sentence on stderr of a command that must fail with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    return error
