"""`python -m benchmarks memory`: the memory of commands in processes of their own."""

import sys
from pathlib import Path

from support.benchmarks import write_page

from benchmarks.prepare import run_measured


def test_memory_of_a_command_is_that_of_its_processes(tmp_path: Path) -> None:
    hold = "import time; data = bytearray(150 * 2**20); time.sleep(0.5)"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    alone, both = (run_measured([sys.executable, "-c", program], tmp_path).peak for program in (hold, child))
    assert alone is not None
    assert both is not None
    assert 150 < alone / 2**20 < 250
    assert alone < both < 2 * alone


def test_page_has_a_row_for_each_command(tmp_path: Path) -> None:
    page = write_page(
        tmp_path / "page.md", "memory", "--command", "convert plate.dxf plate.svg", "--command", "presets"
    )
    assert "| `convert plate.dxf plate.svg` | " in page
    assert " MiB | " in page
