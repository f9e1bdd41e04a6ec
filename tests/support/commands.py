"""Runs of the command line in tests."""

import os
import subprocess
import sys
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
