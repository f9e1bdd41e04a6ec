"""What a sketch costs through the Python API beside the command line, alone and beside a busy process.

Every measurement is a process of its own on two cores, with no setting of OpenMP in its environment, and the best of
some rounds counts. Rounds take turns, so that other work on the machine meets all alike. Two times are kept of each:
the whole process, in which PyTorch is imported and the model loaded, and the call alone. The command line also writes
files, which is part of its whole process and not of its call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from rich.table import Table

from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.errors import SketchError
from sketchdnn.generation.engine import CPU_BATCH, Engine, SampleId
from sketchdnn.generation.generate import STEPS
from sketchdnn.geometry import Sketch
from sketchdnn.systems import System

CLI, API, TORCH_FIRST = "command line", "API", "API, torch imported first"
WAYS = (CLI, API, TORCH_FIRST)
IDLE, BUSY = "idle", "beside a busy process"
CORES = 2
# What is allowed: of the command line's time, and one sketch of sixteen.
MOST_OF_CLI, MOST_OF_SIXTEEN = 1.3, 1 / 3
# Sketches are alike if their kinds are equal and their numbers differ by no more, where the larger side is 2.
ALIKE = 1e-3
_COLUMNS = ("sketches", "machine", "way", "process s", "of the CLI", "call s", "of the CLI", "processor s")
_SCRIPT = """
import json, sys, time
from sketchdnn import SketchDNN
model = SketchDNN.from_pretrained(sys.argv[1], device="cpu")
begun = time.perf_counter()
sketches = model.generate(int(sys.argv[2]), steps=int(sys.argv[3]))
print(json.dumps({"drawing": time.perf_counter() - begun, "sketches": len(sketches)}))
"""

OnStage = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ApiTiming:
    """The best seconds of whole processes and of the calls in them, and of processors in whole processes."""

    count: int
    load: str
    way: str
    process: float
    call: float
    processor: float


@dataclass(frozen=True, slots=True)
class ApiBench:
    """All timings of a run, and how many sketches of how many were alike in batches of 1 and 16, if it was tried."""

    timings: tuple[ApiTiming, ...]
    rounds: int
    alike: tuple[int, int] | None = None

    def of(self, count: int, load: str, way: str) -> ApiTiming:
        return next(t for t in self.timings if (t.count, t.load, t.way) == (count, load, way))

    @property
    def worst_of_cli(self) -> float:
        """The largest ratio of a call through the API to that of the command line."""
        return max(t.call / self.of(t.count, t.load, CLI).call for t in self.timings)

    @property
    def worst_of_sixteen(self) -> float:
        """The largest ratio of a call for the fewest sketches to one for the most."""
        counts = [timing.count for timing in self.timings]
        few = (t for t in self.timings if t.count == min(counts))
        return max(t.call / self.of(max(counts), t.load, t.way).call for t in few)

    @property
    def allowed(self) -> bool:
        return self.worst_of_cli <= MOST_OF_CLI and self.worst_of_sixteen <= MOST_OF_SIXTEEN

    def rows(self) -> Iterator[tuple[str, ...]]:
        """As words, one row a timing."""
        for t in self.timings:
            base = self.of(t.count, t.load, CLI)
            process, call = f"{t.process / base.process:.2f}", f"{t.call / base.call:.2f}"
            yield str(t.count), t.load, t.way, f"{t.process:.2f}", process, f"{t.call:.2f}", call, f"{t.processor:.2f}"

    def sentences(self) -> Iterator[str]:
        """What the ratios come to."""
        yield f"A call takes at most {self.worst_of_cli:.2f} of the command line's ({MOST_OF_CLI} allowed)."
        counts = [timing.count for timing in self.timings]
        if len(set(counts)) > 1:
            yield (
                f"A call for {min(counts)} takes at most {self.worst_of_sixteen:.2f} of one for {max(counts)} "
                f"({MOST_OF_SIXTEEN:.2f} allowed)."
            )
        if self.alike is not None:
            same, count = self.alike
            yield (
                f"Of {count:,} sketches that were drawn one by one and in batches of {CPU_BATCH}, "
                f"{same:,} have equal kinds and numbers within {ALIKE}."
            )

    def table(self) -> Table:
        table = Table(*_COLUMNS, title=f"Sketches on {CORES} cores, best of {self.rounds}")
        for row in self.rows():
            table.add_row(*row)
        return table

    def markdown(self, command: str) -> str:
        note = (
            f"on {CORES} cores of a CPU; best of {self.rounds} rounds, each a process of its own. *Process*: all of "
            "it, from the start of Python on, with the import of PyTorch and the loading of the model; the command "
            "line writes its files too. *Call*: drawing and repair alone. *Processor*: the time of all cores that "
            "the process took. The busy process is a loop that never waits, on the same cores."
        )
        lines = ["# The Python API beside the command line\n", f"`{command}` {note}\n", f"| {' | '.join(_COLUMNS)} |"]
        lines += [f"|{'---|' * len(_COLUMNS)}", *(f"| {' | '.join(row)} |" for row in self.rows()), ""]
        return "\n".join([*lines, *self.sentences(), ""])


def time_api(
    model: str = "ours",
    *,
    rounds: int = 5,
    counts: Sequence[int] = (1, CPU_BATCH),
    loads: Sequence[str] = (IDLE, BUSY),
    steps: int = STEPS,
    on_stage: OnStage = lambda _: None,
) -> ApiBench:
    """Time all ways to draw so many sketches, under all loads."""
    if rounds < 1 or not counts or min(counts) < 1:
        raise SketchError("the numbers of rounds and sketches to time are at least 1")
    best: dict[tuple[int, str, str], tuple[float, ...]] = {}
    with _few_cores():
        for number in range(rounds):
            for load in loads:
                with _busy(load == BUSY):
                    for count in counts:
                        for way in WAYS:
                            on_stage(f"round {number + 1} of {rounds}: {count}, {load}, {way}")
                            key, timed = (count, load, way), _timed(way, model, count, steps)
                            best[key] = tuple(map(min, best.get(key, timed), timed))
    keys = [(count, load, way) for count in counts for load in loads for way in WAYS]
    return ApiBench(tuple(ApiTiming(*key, *best[key]) for key in keys), rounds)


def count_alike(system: System, count: int, on_stage: OnStage = lambda _: None) -> int:
    """How many of the first sketches of seed 0 are alike if they are drawn one by one and in full batches."""
    drawn: dict[int, list[Sketch]] = {1: [], CPU_BATCH: []}
    for first in range(0, count, CPU_BATCH):
        on_stage(f"comparing batches: {first:,} of {count:,}")
        asks = [SampleId(number) for number in range(first, min(first + CPU_BATCH, count))]
        for size, sketches in drawn.items():
            engine = Engine(system, 0, SamplingOptions(system.default_sampler, STEPS))
            for begin in range(0, len(asks), size):
                sketches += [decoded.sketch for decoded in engine.draw(asks[begin : begin + size])]
    return sum(are_alike(one, other) for one, other in zip(*drawn.values(), strict=True))


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Whether kinds and construction are equal and numbers nearly so."""
    if [(p.kind, p.construction) for p in one] != [(p.kind, p.construction) for p in other]:
        return False
    pairs = zip(map(_numbers, one), map(_numbers, other), strict=True)
    return all(bool((np.abs(a - b) <= ALIKE).all()) for a, b in pairs)


def _numbers(primitive: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.hstack([np.asarray(value, np.float64) for value in astuple(primitive)])  # type: ignore[call-overload]


def _timed(way: str, model: str, count: int, steps: int) -> tuple[float, ...]:
    """Seconds of a process, of the call in it, and of processors in all of it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "MKL_"))}
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        asked = ["--count", str(count), "--steps", str(steps), "--model", model, "--device", "cpu", "--out", str(out)]
        script = ("import torch\n" if way == TORCH_FIRST else "") + _SCRIPT
        command = (
            ["-m", "sketchdnn", "generate", *asked] if way == CLI else ["-c", script, model, str(count), str(steps)]
        )
        begun, used = perf_counter(), _used()
        done = subprocess.run(  # noqa: S603 - our own commands
            [sys.executable, *command], capture_output=True, text=True, check=False, env=environment
        )
        seconds, processor = perf_counter() - begun, _used() - used
        if done.returncode:
            raise SketchError(f"what was to be timed failed: {done.stderr.strip().splitlines()[-1:]}")
        words = (out / "manifest.json").read_text() if way == CLI else done.stdout
        facts = json.loads(words)
    return seconds, float((facts["seconds"] if way == CLI else facts)["drawing"]), processor


def _used() -> float:
    """Processor time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


@contextmanager
def _few_cores() -> Iterator[None]:
    """Processes that start now have two cores, where a system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:CORES]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _busy(wanted: bool) -> Iterator[None]:
    """A process that never waits, meanwhile."""
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()
