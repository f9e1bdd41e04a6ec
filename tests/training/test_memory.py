"""Memory that runs out is said in a sentence, whoever runs out of it."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from support.corpora import prepared_parts
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.training.run import Run


def test_memory_that_runs_out_in_a_step_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real one: the process may have 6 GB, its rows alone would take several times that."""
    where = ("--data", str(prepared_parts(tmp_path, 30)), "--out", str(tmp_path / "run"), "--device", "cpu")
    arguments = ["train", "--preset", "tiny", *where, "--steps", "1", "--batch-size"]
    limited = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "limited", sys.executable, "-m", "sketchdnn"]
    result = subprocess.run([*limited, *arguments, str(10**8)], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert result.stderr.strip() == f"sketchdnn: a batch of {10**8} does not fit in memory; lower --batch-size"
    for error, message in (
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), "a batch of 8 does not fit"),
        (RuntimeError("shapes do not match"), "shapes do not match"),
    ):
        monkeypatch.setattr(Run, "advance", Mock(side_effect=error))
        assert message in str(CliRunner().invoke(app, [*arguments, "8"]).exception)
