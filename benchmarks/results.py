"""Helpers that all benchmarks share: timing, names of devices, tables and pages."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import torch
from rich.table import Table

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.estimates import Estimate
from sketchdnn.io import atomic_write

OnStage = Callable[[str], None]


class BenchmarkResult(Protocol):
    """The result of a benchmark, for a terminal and for a page."""

    def table(self) -> Table:
        """The table for a terminal."""

    def sentences(self) -> Iterable[str]:
        """Sentences below the table: goals, and whether they are met."""

    def markdown(self, command: str) -> str:
        """The page, with the command that produced it."""


def ignore_stage(stage: str) -> None:
    """The default progress callback: no-op."""


def best_seconds(run: Callable[[], object], device: str, repeats: int, inner: int) -> float:
    """The shortest time of one run, in seconds, over `repeats` rounds of `inner` runs after one warm-up round."""
    shortest = float("inf")
    for number in range(repeats + 1):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(inner):
            run()
        synchronize(device)
        if number:
            shortest = min(shortest, (time.perf_counter() - start) / inner)
    return shortest


def synchronize(device: str) -> None:
    """Wait for the queued work of a GPU."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def check_device(device: str) -> None:
    """Raises SketchError unless the device is a CPU or an available GPU."""
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise SketchError(f"the device to measure on is cpu or cuda, not {device}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SketchError("no CUDA device is available here; measure with --device cpu")


def device_name(device: str | torch.device) -> str:
    """The name of a GPU, or the number of CPU threads."""
    if str(device).startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def processor_name() -> str:
    """The model of the processor, or its architecture where the system does not name the model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def percent(estimate: Estimate) -> str:
    """A share with its 95 % interval."""
    return f"{estimate.value:.1%} ({100 * estimate.low:.1f}–{100 * estimate.high:.1f})"


def rich_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, show_header: bool = True) -> Table:
    """A table for a terminal, without intervals and emphasis."""
    table = Table(*header, title=title, show_header=show_header)
    for row in rows:
        table.add_row(*(cell.partition(" (")[0].replace("**", "") for cell in row))
    return table


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a page."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *rows))


def check_output_file(path: Path | None) -> None:
    """Raises SketchError if the file to write is a folder; called before hours of work."""
    if path is not None and path.is_dir():
        raise SketchError(f"{path} is a folder; name a file for the result")


def write_page(path: Path, text: str) -> None:
    """Write a page atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
