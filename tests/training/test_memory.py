"""Memory that runs out is said in a sentence, whoever runs out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.corpora import prepared_parts
from typer.testing import CliRunner

from sketchdnn.cli.app import app
from sketchdnn.training.run import Run


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    where = ("--data", str(prepared_parts(tmp_path, 30)), "--out", str(tmp_path / "run"), "--device", "cpu")
    return ["train", "--preset", "tiny", *where, "--steps", "1", "--batch-size"]


def test_a_batch_that_does_not_fit_ends_with_exit_code_2(arguments: list[str]) -> None:
    """A real one: the process may have 6 GB, its rows alone would take several times that."""
    limited = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "limited", sys.executable, "-m", "sketchdnn"]
    result = subprocess.run([*limited, *arguments, str(10**8)], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert result.stderr.strip() == f"sketchdnn: a batch of {10**8} does not fit in memory; lower --batch-size"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"), "a batch of 8 does not fit"),
        (RuntimeError("shapes do not match"), "shapes do not match"),
    ],
)
def test_only_memory_that_runs_out_in_a_step_is_explained(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, error: RuntimeError, message: str
) -> None:
    def fails(run: Run) -> None:
        raise error

    monkeypatch.setattr(Run, "advance", fails)
    assert message in str(CliRunner().invoke(app, [*arguments, "8"]).exception)
