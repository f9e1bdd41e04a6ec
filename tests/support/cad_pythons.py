"""Python interpreters with CadQuery or build123d: this one, or those that SKETCHDNN_CAD_PYTHONS names.

The two ask for different versions of one library and rarely live together, so the variable lists several, separated
as in PATH.
"""

import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest


@cache
def _python_with(module: str) -> str | None:
    if find_spec(module) is not None:
        return sys.executable
    for python in filter(None, os.environ.get("SKETCHDNN_CAD_PYTHONS", "").split(os.pathsep)):
        question = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if subprocess.run([python, "-c", question], check=False).returncode == 0:
            return python
    return None


def python_with(module: str) -> str:
    """The interpreter to run a script with; skips, saying why, where there is none."""
    found = _python_with(module)
    if found is None:
        reason = f"{module} is not installed here, nor in any Python that SKETCHDNN_CAD_PYTHONS names"
        if module in os.environ.get("SKETCHDNN_REQUIRE", "").split(","):
            pytest.fail(f"{module} is required here: {reason}")
        pytest.skip(reason)
    return found
