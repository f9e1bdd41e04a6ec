"""The cost of sketches through the Python API and through the command line, alone and beside a busy process.

Every measurement is a process of its own on two cores, without OpenMP settings in its environment. The fastest of
several rounds counts, and rounds alternate, so that other work on the machine affects all alike. Each has two times:
the whole process, which imports PyTorch and loads the model, and the call alone. The command line also writes files,
which is part of its process and not of its call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
from sketchdnn.generation.quality import STEPS
from sketchdnn.geometry import Sketch
from sketchdnn.systems import System, from_pretrained

from .results import OnStage, ignore_stage, markdown_table, rich_table

CLI, API, TORCH_FIRST = "command line", "API", "API, torch imported first"
INTERFACES = (CLI, API, TORCH_FIRST)
IDLE, BUSY = "idle", "beside a busy process"
CORES = 2
# The largest allowed ratios: API to command line, and one sketch to sixteen.
MAX_OF_CLI, MAX_OF_SIXTEEN = 1.3, 1 / 3
# Sketches agree if their kinds are equal and their parameters differ by at most this, where the larger side is 2.
TOLERANCE = 1e-3
_COLUMNS = ("sketches", "machine", "interface", "process s", "of the CLI", "call s", "of the CLI", "processor s")
_SCRIPT = """
import json, sys, time
from sketchdnn import SketchDNN
model = SketchDNN.from_pretrained(sys.argv[1], device="cpu")
start = time.perf_counter()
sketches = model.generate(int(sys.argv[2]), steps=int(sys.argv[3]))
print(json.dumps({"drawing": time.perf_counter() - start, "sketches": len(sketches)}))
"""


@dataclass(frozen=True, slots=True)
class ApiTiming:
    """The shortest times in seconds: of the process, of the call in it, and of all processors together."""

    count: int
    load: str
    interface: str
    process: float
    call: float
    processor: float


@dataclass(frozen=True, slots=True)
class ApiBenchmark:
    """All timings of a run.

    `agreement` counts the sketches that agree in batches of 1 and 16, and the sketches compared; None if not compared.
    """

    timings: tuple[ApiTiming, ...]
    rounds: int
    agreement: tuple[int, int] | None = None

    def find(self, count: int, load: str, interface: str) -> ApiTiming:
        """The timing of one combination."""
        return next(t for t in self.timings if (t.count, t.load, t.interface) == (count, load, interface))

    @property
    def worst_of_cli(self) -> float:
        """The largest ratio of a call through the API to that of the command line."""
        return max(t.call / self.find(t.count, t.load, CLI).call for t in self.timings)

    @property
    def worst_of_sixteen(self) -> float:
        """The largest ratio of a call for the fewest sketches to one for the most."""
        counts = [timing.count for timing in self.timings]
        fewest = (t for t in self.timings if t.count == min(counts))
        return max(t.call / self.find(max(counts), t.load, t.interface).call for t in fewest)

    @property
    def is_allowed(self) -> bool:
        return self.worst_of_cli <= MAX_OF_CLI and self.worst_of_sixteen <= MAX_OF_SIXTEEN

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One row of cells per timing."""
        for t in self.timings:
            base = self.find(t.count, t.load, CLI)
            process, call = f"{t.process / base.process:.2f}", f"{t.call / base.call:.2f}"
            names = (str(t.count), t.load, t.interface)
            yield (*names, f"{t.process:.2f}", process, f"{t.call:.2f}", call, f"{t.processor:.2f}")

    def sentences(self) -> Iterator[str]:
        """The largest ratios, and what is allowed."""
        yield f"A call takes at most {self.worst_of_cli:.2f} of the command line's ({MAX_OF_CLI} allowed)."
        counts = [timing.count for timing in self.timings]
        if len(set(counts)) > 1:
            yield (
                f"A call for {min(counts)} takes at most {self.worst_of_sixteen:.2f} of one for {max(counts)} "
                f"({MAX_OF_SIXTEEN:.2f} allowed)."
            )
        if self.agreement is not None:
            agreeing, count = self.agreement
            yield (
                f"Of {count:,} sketches generated one by one and in batches of {CPU_BATCH}, "
                f"{agreeing:,} have equal kinds and parameters within {TOLERANCE}."
            )

    def table(self) -> Table:
        return rich_table(f"Sketches on {CORES} cores, best of {self.rounds}", _COLUMNS, self.rows())

    def markdown(self, command: str) -> str:
        note = (
            f"on {CORES} cores of a CPU; the best of {self.rounds} rounds, each a process of its own. *Process*: from "
            "the start of Python to its end, with the import of PyTorch and the loading of the model; the command "
            "line writes its files too. *Call*: sampling and repair alone. *Processor*: the time of all cores. "
            "The busy process is an endless loop on the same cores."
        )
        title = "# The Python API beside the command line"
        table = markdown_table(_COLUMNS, self.rows())
        return "\n\n".join([title, f"`{command}` {note}", table, "\n".join(self.sentences())]) + "\n"


def time_api(
    model: str = "ours",
    *,
    rounds: int = 5,
    counts: Sequence[int] = (1, CPU_BATCH),
    loads: Sequence[str] = (IDLE, BUSY),
    steps: int = STEPS,
    compare: int = 0,
    on_stage: OnStage = ignore_stage,
) -> ApiBenchmark:
    """Time every interface for every number of sketches under every load.

    Args:
        model: A pretrained model.
        rounds: Rounds, of which the fastest counts.
        counts: Numbers of sketches.
        loads: `IDLE`, `BUSY` or both.
        steps: Denoising steps.
        compare: Sketches to compare between batches of 1 and 16; 0 for none.
        on_stage: Called with the name of each stage.
    """
    if rounds < 1 or not counts or min(counts) < 1:
        raise SketchError("the numbers of rounds and sketches to time must be at least 1")
    best: dict[tuple[int, str, str], tuple[float, ...]] = {}
    with _limit_cores():
        for number in range(rounds):
            for load in loads:
                with _busy_process(load == BUSY):
                    for count in counts:
                        for interface in INTERFACES:
                            on_stage(f"round {number + 1} of {rounds}: {count}, {load}, {interface}")
                            key, seconds = (count, load, interface), _time_process(interface, model, count, steps)
                            best[key] = tuple(map(min, best.get(key, seconds), seconds))
    keys = [(count, load, interface) for count in counts for load in loads for interface in INTERFACES]
    agreement = (count_agreeing(from_pretrained(model), compare, on_stage), compare) if compare else None
    return ApiBenchmark(tuple(ApiTiming(*key, *best[key]) for key in keys), rounds, agreement)


def count_agreeing(system: System, count: int, on_stage: OnStage = ignore_stage) -> int:
    """How many of the first sketches of seed 0 agree between batches of 1 and of 16."""
    sketches_by_size: dict[int, list[Sketch]] = {1: [], CPU_BATCH: []}
    for first in range(0, count, CPU_BATCH):
        on_stage(f"comparing batches: {first:,} of {count:,}")
        samples = [SampleId(number) for number in range(first, min(first + CPU_BATCH, count))]
        for size, sketches in sketches_by_size.items():
            engine = Engine(system, 0, SamplingOptions(system.default_sampler, STEPS))
            for begin in range(0, len(samples), size):
                sketches += [decoded.sketch for decoded in engine.draw(samples[begin : begin + size])]
    return sum(agree(first, second) for first, second in zip(*sketches_by_size.values(), strict=True))


def agree(first: Sketch, second: Sketch) -> bool:
    """Whether kinds and construction are equal and parameters nearly so."""
    if [(p.kind, p.construction) for p in first] != [(p.kind, p.construction) for p in second]:
        return False
    pairs = zip(map(_parameters, first), map(_parameters, second), strict=True)
    return all(bool((np.abs(a - b) <= TOLERANCE).all()) for a, b in pairs)


def _parameters(primitive: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.hstack([np.asarray(value, np.float64) for value in astuple(primitive)])  # type: ignore[call-overload]


def _time_process(interface: str, model: str, count: int, steps: int) -> tuple[float, ...]:
    """Seconds of a process, of the call in it, and of all processors together."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "MKL_"))}
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = ["--count", str(count), "--steps", str(steps), "--model", model, "--device", "cpu", "--out", str(out)]
        script = ("import torch\n" if interface == TORCH_FIRST else "") + _SCRIPT
        is_cli = interface == CLI
        command = ["-m", "sketchdnn", "generate", *options] if is_cli else ["-c", script, model, str(count), str(steps)]
        start, processor_start = perf_counter(), _children_processor_seconds()
        process = subprocess.run(  # noqa: S603 - our own commands
            [sys.executable, *command], capture_output=True, text=True, check=False, env=environment
        )
        seconds, processor = perf_counter() - start, _children_processor_seconds() - processor_start
        if process.returncode:
            raise SketchError(f"the timed process failed: {process.stderr.strip().splitlines()[-1:]}")
        output = json.loads((out / "manifest.json").read_text() if is_cli else process.stdout)
    return seconds, float((output["seconds"] if is_cli else output)["drawing"]), processor


def _children_processor_seconds() -> float:
    """Processor time of all ended child processes."""
    times = os.times()
    return times.children_user + times.children_system


@contextmanager
def _limit_cores() -> Iterator[None]:
    """Child processes get two cores, where the system supports it."""
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
def _busy_process(wanted: bool) -> Iterator[None]:
    """Runs an endless loop in another process meanwhile, if wanted."""
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()
