"""Runs of the command line in tests."""

from __future__ import annotations

import sys

import pytest

from sketchdnn.cli.app import main


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """A function that runs a command which must fail: exit code 2 and one sentence on stderr, which it returns."""

    def run(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["sketchdnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        assert exit_info.value.code == 2
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert len(error.strip().splitlines()) == 1
        return error

    return run
