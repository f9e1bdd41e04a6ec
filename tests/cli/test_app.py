"""The program itself: its version, and completion in a shell."""

from __future__ import annotations

import os
import subprocess
import sys

import sketchdnn


def program(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "sketchdnn", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return done.stdout


def test_version_is_that_of_the_package() -> None:
    assert program("--version") == f"sketchdnn {sketchdnn.__version__}\n"


def test_completion_names_the_commands() -> None:
    script = program("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_SKETCHDNN_COMPLETE=complete_bash" in script
    asked = {"_SKETCHDNN_COMPLETE": "complete_bash", "COMP_WORDS": "sketchdnn con", "COMP_CWORD": "1"}
    assert program(**asked).split() == ["constrain", "convert"]
