"""Speed and memory of `prepare --preset authors` on all cores, against one-process versions of the same steps.

The input is a SketchGraphs corpus of any size, made from a small one: every sequence is perturbed, so that all differ.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from sketchdnn.data.prepare import run_all
from sketchdnn.data.report import load_report
from sketchdnn.errors import FormatError, SketchError
from sketchdnn.formats.sketchgraphs.container import open_sequences, sequence_writer
from sketchdnn.formats.sketchgraphs.pickles import EntityType, Op, dump_ops, load_ops

from .prepare_reference import prepare_from_fields, prepare_from_objects
from .results import OnStage, ignore_stage, markdown_table, processor_name, rich_table

# Sequences of the public corpus, about; and sequences per second of the authors' own code on one core.
FULL_CORPUS = 15_000_000
AUTHORS_RATE = 3_481
MAX_MEMORY = 2 * 2**30
GOAL_RATIO = 4.0


@dataclass(frozen=True, slots=True)
class Reference:
    """The timing of a one-process version of the same steps on the first sequences of the same corpus."""

    name: str
    sequences: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return self.sequences / self.seconds

    @property
    def microseconds(self) -> float:
        """Processor time per sequence."""
        return 1e6 * self.processor_seconds / self.sequences


@dataclass(frozen=True, slots=True)
class PrepareTiming:
    """All timings of a run. Rates are input sequences per second; `load` is the load average before the run."""

    sequences: int
    kept: int
    workers: int
    processor: str
    load: float
    ours: MeasuredRun
    references: tuple[Reference, ...]

    @property
    def rate(self) -> float:
        return self.sequences / self.ours.seconds

    @property
    def microseconds(self) -> float:
        """Processor time per sequence, with the start of the processes and the report."""
        return 1e6 * self.ours.processor_seconds / self.sequences

    def ratio(self, reference: Reference) -> float:
        return self.rate / reference.rate

    def rows(self) -> list[tuple[str, str]]:
        """The names and values of the table."""
        ours = (
            f"{self.ours.seconds:,.1f} s = {self.rate:,.0f} sequences/s; {self.microseconds:.0f} µs of processor each"
        )
        rows = [
            ("machine", f"{self.processor}, {self.workers} worker processes; load {self.load:.1f} before timing"),
            ("sequences in", f"{self.sequences:,}; {self.kept:,} sketches kept"),
            ("prepare --preset authors", ours),
        ]
        for reference in self.references:
            speed = f"{reference.rate:,.0f} sequences/s; {reference.sequences:,} in {reference.seconds:,.1f} s"
            rows.append(
                (f"{reference.name}, one process", f"{speed}; {reference.microseconds:.0f} µs of processor each")
            )
            per_core = reference.microseconds / self.microseconds
            rows.append(
                (
                    f"ratio to the {reference.name}",
                    f"**{self.ratio(reference):.1f} ×** by the clock, {per_core:.1f} × per core",
                )
            )
        minutes = FULL_CORPUS / self.rate / 60
        return [
            *rows,
            ("authors' own code", f"{AUTHORS_RATE:,} sequences/s per core, measured elsewhere"),
            ("peak memory", self._memory()),
            (f"estimate for {FULL_CORPUS:,}", f"{minutes:,.0f} minutes on this machine, in proportion"),
        ]

    def _memory(self) -> str:
        if self.ours.peak_sum is None or self.ours.peak is None:
            return "not measured on this system"
        peak_sum, peak = (f"{memory / 2**20:,.0f} MiB" for memory in (self.ours.peak_sum, self.ours.peak))
        return f"{peak_sum}, the sum of each process's peak; {peak} at any one moment; allowed {MAX_MEMORY >> 20:,}"

    def table(self) -> Table:
        return rich_table("Preparing a corpus", ("", ""), self.rows(), show_header=False)

    def sentences(self) -> Iterator[str]:
        return iter(())

    def markdown(self, command: str) -> str:
        return _PAGE.format(command=command, table=markdown_table(("", ""), self.rows()), goal=GOAL_RATIO)


def time_prepare(
    data: Path, sequences: int, reference_sequences: int, on_stage: OnStage = ignore_stage
) -> PrepareTiming:
    """Make a corpus of distinct sequences from a small one, prepare it, and time both references on its first part."""
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="sketchdnn-bench-") as temporary:
        folder = Path(temporary)
        on_stage(f"writing {sequences:,} distinct sequences")
        files = write_distinct_sequences(data, folder / "in", sequences, workers)
        on_stage("preparing them on all cores")
        load = max(0.0, os.getloadavg()[0] - workers)  # less what writing them took
        command = [sys.executable, "-m", "sketchdnn", "prepare", str(folder / "in"), "--preset", "authors"]
        ours = run_measured([*command, "--out", str(folder / "out"), "--workers", str(workers)])
        kept = load_report(folder / "out")["kept"]
        references = []
        for name, run in (
            ("plain reference", prepare_from_objects),
            ("lean reference", prepare_from_fields),
        ):
            on_stage(f"preparing some of them with the {name}")
            start, processor_start = time.perf_counter(), time.process_time()
            _, num_sequences = run(files, limit=reference_sequences)
            seconds, processor_seconds = time.perf_counter() - start, time.process_time() - processor_start
            references.append(Reference(name, num_sequences, seconds, processor_seconds))
    processor = f"{processor_name()}, {os.cpu_count()} cores"
    return PrepareTiming(sequences, kept, workers, processor, load, ours, tuple(references))


# Seconds between two looks at the memory of the processes.
MEMORY_INTERVAL = 0.05


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """The cost of a command and its child processes: seconds of the clock and of all processors, and bytes.

    `peak` is the largest memory of all processes at one moment; `peak_sum`, the sum of the peak of each process, is at
    least as large. Both are None where the system does not report them.
    """

    seconds: float
    processor_seconds: float
    peak: int | None
    peak_sum: int | None


def run_measured(command: Sequence[str], cwd: Path | None = None) -> MeasuredRun:
    """Run a command, in a folder, and measure the memory of its processes at short intervals."""
    start, before = time.perf_counter(), _children_seconds()
    with subprocess.Popen(  # noqa: S603  the command is ours
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        peaks: dict[int, int] = {}
        peak = [0]
        stop = threading.Event()
        watcher = threading.Thread(target=_watch_memory, args=(process.pid, peaks, peak, stop))
        watcher.start()
        try:
            _, errors = process.communicate()
        finally:
            stop.set()
            watcher.join()
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SketchError(f"{' '.join(command)} failed: {errors.strip()}")
    return MeasuredRun(seconds, _children_seconds() - before, peak[0] or None, sum(peaks.values()) or None)


def _children_seconds() -> float:
    """Processor time of all ended child processes and their descendants."""
    used = os.times()
    return used.children_user + used.children_system


def _watch_memory(root: int, peaks: dict[int, int], peak: list[int], stop: threading.Event) -> None:
    while not stop.wait(MEMORY_INTERVAL):
        total = 0
        for pid in _process_tree(root):
            now, process_peak = _process_memory(pid)
            total += now
            peaks[pid] = max(peaks.get(pid, 0), process_peak)
        peak[0] = max(peak[0], total)


def _process_tree(root: int) -> list[int]:
    """A process and its descendants."""
    pids = [root]
    for pid in pids:
        try:
            pids += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            continue
    return pids


def _process_memory(pid: int) -> tuple[int, int]:
    """The resident memory of a process and its peak, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines)
    now, peak = (int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


SEQUENCES_PER_FILE = 62_500

# Fields of an entity that are shifted and scaled, scaled, or scaled or turned.
_COORDINATES = ("x", "y", "pntX", "pntY", "xCenter", "yCenter")
_LENGTHS = ("radius",)
_CURVE_PARAMETERS = ("startParam", "endParam")
# Large beside a step of the 8-bit grid, small beside a sketch.
_SHIFT, _STRETCH, _TURN = 0.05, 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences start … stop − 1 of the large corpus, and their file."""

    path: Path
    start: int
    stop: int


def write_distinct_sequences(base: Path, folder: Path, count: int, workers: int) -> list[Path]:
    """Write `count` distinct sequences to SketchGraphs files, made from those of `base`."""
    batches = [
        Batch(folder / f"sequences-{number:03d}.npy", start, min(start + SEQUENCES_PER_FILE, count))
        for number, start in enumerate(range(0, count, SEQUENCES_PER_FILE))
    ]
    return sorted(run_all(partial(_write_batch, base), batches, workers))


def perturb(ops: Sequence[Op], rng: random.Random) -> list[Op]:
    """The same entities and constraints with other numbers."""
    # A sketch whose coordinates are all zero has no size, and must change too.
    fields = (item for op in ops if op.step is None for item in op.stop.items())
    size = max((abs(value) for name, value in fields if name in _COORDINATES), default=0) or 1.0
    scale = rng.uniform(0.5, 2.0)
    return [slice(op.start, _perturb_fields(op, size, scale, rng)) if op.step is None and op.stop else op for op in ops]


def _perturb_fields(op: Op, size: float, scale: float, rng: random.Random) -> dict[str, Any]:
    fields = dict(op.stop)
    stretch = scale * (1 + rng.uniform(-_STRETCH, _STRETCH))
    turn = rng.uniform(-_TURN, _TURN)
    for name in fields:
        if name in _COORDINATES:
            fields[name] = scale * (fields[name] + size * rng.uniform(-_SHIFT, _SHIFT))
        elif name in _LENGTHS:
            fields[name] = stretch * fields[name]
        elif name in _CURVE_PARAMETERS:
            # Lengths along a line, angles around an arc.
            fields[name] = fields[name] + turn if op.start == EntityType.ARC else stretch * fields[name]
    return fields


def _write_batch(base: Path, batch: Batch) -> Path:
    sequences = open_sequences(base)
    originals = [load_ops(data) for data in sequences.pickles(0, len(sequences)) if isinstance(data, bytes)]
    if not originals:
        raise FormatError(base, "holds no sequence that can be read")
    with sequence_writer(batch.path) as add:
        for index in range(batch.start, batch.stop):
            # The first round is the corpus itself.
            ops = list(originals[index % len(originals)])
            if index >= len(originals):
                ops = perturb(ops, random.Random(index))
            add(dump_ops(ops), len(ops))
    return batch.path


_PAGE = """# Speed and memory of preparing a corpus

    {command}

{table}

**Measured.** `prepare --preset authors` from start to end as a user runs it: start of the processes, reading,
filtering, normalizing, encoding, removing duplicates, splitting, writing Parquet, training arrays and the report.
The input is a SketchGraphs corpus made from a real one (`--data`): after one round of the original sequences, every
further round shifts each entity by up to 5 % of the sketch, stretches it by up to 10 %, turns arcs by up to 0.1 rad
and scales the whole. Making it is not timed.

**Two references**, both in one process, without writing to disk, on the first part of the same corpus in the same run
(`benchmarks/prepare_reference.py`). Tests compare all three results. The goal is {goal:g} × the plain reference.

- *plain*: an object for every sketch, entity and constraint, then a matrix per sketch by loops over entities, like the
  authors' code.
- *lean*: the same matrices straight from the unpickled dictionaries, without objects. It uses this project's fast
  reader of sequences, on which both it and `prepare` spend most of their time.

**On a busy machine** clock times grow, not equally for both sides; processor times vary by about a fifth.

**Memory** does not grow with the corpus, except for the keys that find duplicates and their sorting: about 60 bytes per
sketch that passes the filter, by calculation.
"""
