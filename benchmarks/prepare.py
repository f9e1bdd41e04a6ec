"""How fast a corpus is prepared: `prepare --preset authors` on all cores against the same steps written plainly, one
process, timed in the same run.
"""

from __future__ import annotations

import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
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

from .prepare_reference import prepare_leanly, prepare_plainly

# The public corpus has about this many; the authors' own code was measured at so many sequences a second on one core.
FULL_CORPUS = 15_000_000
AUTHORS_RATE = 3_481
MOST_MEMORY = 2 * 2**30
WANTED_RATIO = 4.0


@dataclass(frozen=True, slots=True)
class Reference:
    """A one-process version of the same steps, timed on the first sequences of the same corpus."""

    name: str
    sequences: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return self.sequences / self.seconds

    @property
    def microseconds(self) -> float:
        """Of processor time a sequence."""
        return 1e6 * self.processor_seconds / self.sequences


@dataclass(frozen=True, slots=True)
class PrepareTiming:
    """What was measured. Rates are sequences in, a second; `load` is what the machine was busy with before."""

    sequences: int
    kept: int
    workers: int
    processor: str
    load: float
    ours: Run
    references: tuple[Reference, ...]

    @property
    def rate(self) -> float:
        return self.sequences / self.ours.seconds

    @property
    def microseconds(self) -> float:
        """Of processor time a sequence, start of the processes and report included."""
        return 1e6 * self.ours.processor_seconds / self.sequences

    def ratio(self, reference: Reference) -> float:
        return self.rate / reference.rate

    def rows(self) -> list[tuple[str, str]]:
        """What a person wants to know, in order."""
        ours = (
            f"{self.ours.seconds:,.1f} s = {self.rate:,.0f} sequences/s; {self.microseconds:.0f} µs of processor each"
        )
        rows = [
            ("machine", f"{self.processor}, {self.workers} worker processes; load {self.load:.1f} before timing"),
            ("sequences in", f"{self.sequences:,}; {self.kept:,} sketches kept"),
            ("prepare --preset authors", ours),
        ]
        for one in self.references:
            speed = f"{one.rate:,.0f} sequences/s ({one.sequences:,} in {one.seconds:,.1f} s)"
            rows.append((f"{one.name}, one process", f"{speed}; {one.microseconds:.0f} µs of processor each"))
            a_core = one.microseconds / self.microseconds
            rows.append(
                (f"ratio to the {one.name}", f"**{self.ratio(one):.1f} ×** by the clock, {a_core:.1f} × a core")
            )
        minutes = FULL_CORPUS / self.rate / 60
        return [
            *rows,
            ("authors' own code", f"{AUTHORS_RATE:,} sequences/s a core, measured elsewhere"),
            ("peak memory", self._memory()),
            (f"estimate for {FULL_CORPUS:,}", f"{minutes:,.0f} minutes on this machine, in proportion"),
        ]

    def _memory(self) -> str:
        if self.ours.peaks is None or self.ours.together is None:
            return "not measured on this system"
        peaks, together = (f"{held / 2**20:,.0f} MiB" for held in (self.ours.peaks, self.ours.together))
        return f"{peaks} (sum of each process's peak), {together} at any one moment; allowed {MOST_MEMORY >> 20:,}"

    def table(self) -> Table:
        """The rows for a terminal."""
        table = Table("", "", title="Preparing a corpus", show_header=False)
        for name, value in self.rows():
            table.add_row(name, value.replace("**", ""))
        return table

    def markdown(self, command: str) -> str:
        """The rows as a page."""
        lines = [f"| {name} | {value} |" for name, value in self.rows()]
        return _PAGE.format(command=command, rows="\n".join(lines), wanted=WANTED_RATIO)


def time_prepare(
    data: Path, sequences: int, reference_sequences: int, on_stage: Callable[[str], None] = lambda stage: None
) -> PrepareTiming:
    """Make a corpus of distinct sequences from a small one, prepare it, and time both references on its beginning."""
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="sketchdnn-bench-") as name:
        folder = Path(name)
        on_stage(f"writing {sequences:,} distinct sequences")
        files = write_distinct(data, folder / "in", sequences, workers)
        on_stage("preparing them on all cores")
        load = max(0.0, os.getloadavg()[0] - workers)  # less what writing them took
        command = [sys.executable, "-m", "sketchdnn", "prepare", str(folder / "in"), "--preset", "authors"]
        ours = run_watched([*command, "--out", str(folder / "out"), "--workers", str(workers)])
        kept = load_report(folder / "out")["kept"]
        references = []
        for what, run in (("plain reference", prepare_plainly), ("lean reference", prepare_leanly)):
            on_stage(f"preparing some of them with the {what}")
            start, processor_start = time.perf_counter(), time.process_time()
            _, looked_at = run(files, limit=reference_sequences)
            seconds, processor = time.perf_counter() - start, time.process_time() - processor_start
            references.append(Reference(what, looked_at, seconds, processor))
    return PrepareTiming(sequences, kept, workers, _processor(), load, ours, tuple(references))


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
filtering, normalizing, encoding, removing duplicates, splitting, writing Parquet, training arrays and the report.
The input is a SketchGraphs corpus made from a real one (`--data`): after one round of the original sequences, every
further round shifts each entity by up to 5 % of the sketch, stretches it by up to 10 %, turns arcs by up to 0.1 rad
and scales the whole. Making it is not timed.

**Two references**, both one process, writing nothing to disk, on the beginning of the same corpus in the same run.
Tests hold all three to the same result. The wanted {wanted:g} × is against a plain reference; which is meant decides.

- *plain* (`sketchdnn/bench/reference.py`): an object for every sketch, entity and constraint, then a matrix a sketch by
  loops over entities. This is how the authors' code works.
- *lean* (`sketchdnn/bench/lean.py`): the same matrices straight from the unpickled dictionaries, no objects. It uses
  this project's fast reader of sequences, on which both it and `prepare` spend most of their time.

**On a busy machine** clock times suffer, and the two sides not alike; processor times vary less, by about a fifth.

**Memory** does not grow with the corpus, but for the keys by which duplicates are found and what sorting them takes:
reckoned, not measured, at about 60 bytes a sketch that passes the filter.
"""


EVERY = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds by the clock and of all processors together; and bytes: `together` is the most that all processes held at
    one moment, `peaks` the sum of the most that each ever held, which can only be larger; None if not to be had.
    """

    seconds: float
    processor_seconds: float
    together: int | None
    peaks: int | None


def run_watched(command: Sequence[str]) -> Run:
    """Run a command to its end, looking at the memory of its processes many times a second."""
    start, before = time.perf_counter(), _children_seconds()
    with subprocess.Popen(  # noqa: S603  the command is ours
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        seen: dict[int, int] = {}
        most = [0]
        stop = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, seen, most, stop))
        watcher.start()
        try:
            _, errors = process.communicate()
        finally:
            stop.set()
            watcher.join()
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SketchError(f"{' '.join(command)} failed: {errors.strip()}")
    return Run(seconds, _children_seconds() - before, most[0] or None, sum(seen.values()) or None)


def _children_seconds() -> float:
    """Processor time of all processes started from here that have ended, and of those that they started."""
    used = os.times()
    return used.children_user + used.children_system


def _watch(root: int, seen: dict[int, int], most: list[int], stop: threading.Event) -> None:
    while not stop.wait(EVERY):
        together = 0
        for pid in _family(root):
            now, peak = _memory(pid)
            together += now
            seen[pid] = max(seen.get(pid, 0), peak)
        most[0] = max(most[0], together)


def _family(root: int) -> list[int]:
    """A process and all below it."""
    found = [root]
    for pid in found:
        try:
            found += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            continue
    return found


def _memory(pid: int) -> tuple[int, int]:
    """What a process holds now and held at most, in bytes; mapped files count as far as they were looked at."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    fields = dict(line.split(":", 1) for line in lines)
    now, peak = (int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


SEQUENCES_A_FILE = 62_500

# How the fields of an entity change: by a shift as well as a factor, by a factor, or by an angle.
_PLACES = ("x", "y", "pntX", "pntY", "xCenter", "yCenter")
_LENGTHS = ("radius",)
_ALONG = ("startParam", "endParam")
# Far more than a step of the 8-bit grid, and little enough that sketches stay sketches.
_SHIFT, _STRETCH, _TURN = 0.05, 0.1, 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences start … stop − 1 of the large corpus, and where they go."""

    path: Path
    start: int
    stop: int


def write_distinct(base: Path, folder: Path, count: int, workers: int) -> list[Path]:
    """`count` sequences, no two alike, in SketchGraphs files made from those of `base`."""
    batches = [
        Batch(folder / f"sequences-{number:03d}.npy", start, min(start + SEQUENCES_A_FILE, count))
        for number, start in enumerate(range(0, count, SEQUENCES_A_FILE))
    ]
    return sorted(run_all(partial(_write, base), batches, workers))


def perturbed(ops: Sequence[Op], dice: random.Random) -> list[Op]:
    """The same entities and constraints with other numbers."""
    # A sketch that lies at the origin alone has no size to go by, and must change all the same.
    size = max((abs(v) for op in ops if op.step is None for k, v in op.stop.items() if k in _PLACES), default=0) or 1.0
    scale = dice.uniform(0.5, 2.0)
    return [slice(op.start, _changed(op, size, scale, dice)) if op.step is None and op.stop else op for op in ops]


def _changed(op: Op, size: float, scale: float, dice: random.Random) -> dict[str, Any]:
    fields = dict(op.stop)
    stretch = scale * (1 + dice.uniform(-_STRETCH, _STRETCH))
    turn = dice.uniform(-_TURN, _TURN)
    for name in fields:
        if name in _PLACES:
            fields[name] = scale * (fields[name] + size * dice.uniform(-_SHIFT, _SHIFT))
        elif name in _LENGTHS:
            fields[name] = stretch * fields[name]
        elif name in _ALONG:
            # Along a line these are lengths, around an arc angles.
            fields[name] = fields[name] + turn if op.start == EntityType.ARC else stretch * fields[name]
    return fields


def _write(base: Path, batch: Batch) -> Path:
    sequences = open_sequences(base)
    known = [load_ops(data) for data in sequences.pickles(0, len(sequences)) if isinstance(data, bytes)]
    if not known:
        raise FormatError(base, "holds no sequence that can be read")
    with sequence_writer(batch.path) as add:
        for index in range(batch.start, batch.stop):
            # The first round is the corpus itself.
            ops = known[index % len(known)]
            changed = perturbed(ops, random.Random(index)) if index >= len(known) else list(ops)
            add(dump_ops(changed), len(changed))
    return batch.path
