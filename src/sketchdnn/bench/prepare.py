"""How fast a corpus is prepared: `prepare --preset authors` on all cores against the same steps written plainly, one
process, timed in the same run.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from sketchdnn.data.report import load_report

from .corpus import write_distinct
from .memory import Run, run_watched
from .reference import prepare_plainly

# The public corpus has about this many; the authors' own code was measured at so many sequences a second on one core.
FULL_CORPUS = 15_000_000
AUTHORS_RATE = 3_481
MOST_MEMORY = 2 * 2**30
WANTED_RATIO = 4.0


@dataclass(frozen=True, slots=True)
class PrepareTiming:
    """What was measured. Rates are sequences in, a second."""

    sequences: int
    kept: int
    workers: int
    processor: str
    ours: Run
    reference_sequences: int
    reference_seconds: float
    reference_processor_seconds: float

    @property
    def rate(self) -> float:
        return self.sequences / self.ours.seconds

    @property
    def reference_rate(self) -> float:
        return self.reference_sequences / self.reference_seconds

    @property
    def ratio(self) -> float:
        return self.rate / self.reference_rate

    @property
    def microseconds(self) -> float:
        """Of processor time a sequence, start of the processes and report included."""
        return 1e6 * self.ours.processor_seconds / self.sequences

    @property
    def reference_microseconds(self) -> float:
        return 1e6 * self.reference_processor_seconds / self.reference_sequences

    @property
    def full_corpus_minutes(self) -> float:
        return FULL_CORPUS / self.rate / 60

    def rows(self) -> list[tuple[str, str]]:
        """What a person wants to know, in order."""
        memory = "not measured on this system"
        if self.ours.peaks is not None and self.ours.together is not None:
            memory = (
                f"{self.ours.peaks / 2**20:,.0f} MiB (sum of each process's peak; "
                f"{self.ours.together / 2**20:,.0f} MiB at any one moment), allowed {MOST_MEMORY / 2**20:,.0f}"
            )
        plain = (
            f"{self.reference_rate:,.0f} sequences/s "
            f"({self.reference_sequences:,} sequences in {self.reference_seconds:,.1f} s)"
        )
        processor = (
            f"{self.microseconds:.0f} µs against {self.reference_microseconds:.0f} µs "
            f"= {self.reference_microseconds / self.microseconds:.1f} × a core"
        )
        return [
            ("machine", f"{self.processor}, {self.workers} worker processes"),
            ("sequences in", f"{self.sequences:,}, all different; {self.kept:,} sketches kept"),
            ("prepare --preset authors", f"{self.ours.seconds:,.1f} s = {self.rate:,.0f} sequences/s"),
            ("plain reference, one process", plain),
            ("ratio", f"{self.ratio:.1f} × (wanted: {WANTED_RATIO:g} ×)"),
            ("processor time a sequence", processor),
            ("authors' own code, as published", f"{AUTHORS_RATE:,} sequences/s a core, measured elsewhere"),
            ("peak memory", memory),
            (f"estimate for {FULL_CORPUS:,}", f"{self.full_corpus_minutes:,.0f} minutes on this machine"),
        ]

    def table(self) -> Table:
        """The rows for a terminal."""
        table = Table("", "", title="Preparing a corpus", show_header=False)
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self, command: str) -> str:
        """The rows as a page."""
        lines = [f"| {name} | {value} |" for name, value in self.rows()]
        return _PAGE.format(command=command, rows="\n".join(lines))


def time_prepare(
    data: Path, sequences: int, reference_sequences: int, on_stage: Callable[[str], None] = lambda stage: None
) -> PrepareTiming:
    """Make a corpus of distinct sequences from a small one, prepare it, and time the reference on its beginning."""
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="sketchdnn-bench-") as name:
        folder = Path(name)
        on_stage(f"writing {sequences:,} distinct sequences")
        files = write_distinct(data, folder / "in", sequences, workers)
        on_stage("preparing them on all cores")
        command = [sys.executable, "-m", "sketchdnn", "prepare", str(folder / "in"), "--preset", "authors"]
        ours = run_watched([*command, "--out", str(folder / "out"), "--workers", str(workers)])
        kept = load_report(folder / "out")["kept"]
        on_stage("preparing some of them plainly")
        start, processor_start = time.perf_counter(), time.process_time()
        _, looked_at = prepare_plainly(files, limit=reference_sequences)
        seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
    return PrepareTiming(sequences, kept, workers, _processor(), ours, looked_at, seconds, processor_seconds)


def _processor() -> str:
    """The name of the processor, as well as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


_PAGE = """# Preparing a corpus: how fast, how much memory

    {command}

| | |
|---|---|
{rows}

**What is timed.** `prepare --preset authors` from start to end as a user runs it: start of the processes, reading,
filtering, normalising, encoding, removing duplicates, splitting, writing Parquet, training arrays and the report.
The input is a SketchGraphs corpus made from a real one (`--data`): after one round of the original sequences, every
further round shifts each entity by up to 5 % of the sketch, stretches it by up to 10 %, turns arcs by up to 0.1 rad
and scales the whole, far more than a step of the 8-bit grid. Making it is not timed.

**The reference** (`sketchdnn/bench/reference.py`) takes the same steps the way one would write them first: one
process, an object for every sketch, entity and constraint, a matrix a sketch, loops over entities, duplicates by a
dictionary at the end. It writes nothing to disk, and runs in the same run on the beginning of the same corpus; its
speed is close to what was measured for the authors' own code. A test holds both to the same survivors.
"""
