"""The program itself: its version, and completion in a shell."""

from __future__ import annotations

from support.commands import program

import sketchdnn


def test_version_is_that_of_the_package() -> None:
    assert program("--version").stdout == f"sketchdnn {sketchdnn.__version__}\n"


def test_completion_names_the_commands() -> None:
    script = program("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    assert "_SKETCHDNN_COMPLETE=complete_bash" in script
    asked = {"_SKETCHDNN_COMPLETE": "complete_bash", "COMP_WORDS": "sketchdnn con", "COMP_CWORD": "1"}
    assert program(**asked).stdout.split() == ["constrain", "convert"]
