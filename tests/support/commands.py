"""Runs of the command line in tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

from sketchdnn.cli.app import app, main


def run(*arguments: object) -> Result:
    """A command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output or result.exception
    return result


def invoke(*arguments: object) -> Result:
    """A command in this process, however it ends."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def program(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, however it ends."""
    command = [sys.executable, "-m", "sketchdnn", *map(str, arguments)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def refused(*arguments: object, after_notes: bool = False) -> str:
    """The sentence on stderr of a command that must fail with exit code 2, alone or after notes."""
    error, command = StringIO(), ["sketchdnn", *map(str, arguments)]
    with patch.object(sys, "argv", command), redirect_stderr(error), pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "Traceback" not in error.getvalue()
    *notes, sentence = error.getvalue().splitlines()
    assert after_notes or not notes
    assert sentence.startswith("sketchdnn: ")
    return sentence


def start(*arguments: object, ignored: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    """A command with default signals, those ignored aside: whoever runs the tests may ignore some."""

    def set_signals() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

    command = [sys.executable, "-m", "sketchdnn", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=set_signals)


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until the condition holds, as long as the process runs, at most two minutes."""
    until = time.monotonic() + 120
    while not condition() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()
