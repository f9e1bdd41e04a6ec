"""Memory of the commands: each runs as a user would run it, on files made for it, and its processes are watched."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

import sketchdnn
from sketchdnn import Circle, Line, Sketch

from .prepare import MEMORY_INTERVAL, MeasuredRun, run_measured
from .results import OnStage, ignore_stage, markdown_table, processor_name, rich_table

_MIB = 2**20
_PROGRAM = (sys.executable, "-m", "sketchdnn")
# The commands in order, as a page shows them; later ones use the files of earlier ones.
COMMANDS = (
    "constrain plate.dxf --out plate.FCStd",
    "convert plate.FCStd plate.svg",
    "generate --count 16 --out generated",
    "complete part.dxf --count 8 --out completed",
    "prepare --source procedural --count 2000 --out corpus",
    "train --preset tiny --data corpus --out run --steps 20",
    "evaluate --model ours --data corpus --count 64 --fast --out report",
    "serve --port 0",
)
# The server is measured when it is ready and has generated once.
_SERVED = """
import json, subprocess, sys
from urllib.request import Request, urlopen
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as server:
    url = server.stdout.readline().split()[-1]
    body = json.dumps({"count": 1, "seed": 0, "steps": 10}).encode()
    urlopen(Request(url + "api/v1/generate", body, {"Content-Type": "application/json"})).read()
    server.terminate()
"""


@dataclass(frozen=True, slots=True)
class CommandMemory:
    """A command, the most memory that all its processes held at one moment, and the peak of the largest one."""

    command: str
    run: MeasuredRun


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """All commands."""

    commands: tuple[CommandMemory, ...]

    def _rows(self) -> Iterable[tuple[str, str, str]]:
        for each in self.commands:
            memory = "not measured" if each.run.peak is None else f"{each.run.peak / _MIB:,.0f} MiB"
            yield f"`{each.command}`", memory, f"{each.run.seconds:.0f} s"

    def table(self) -> Table:
        return rich_table("memory", ("command", "memory", "time"), [(c.strip("`"), m, s) for c, m, s in self._rows()])

    def sentences(self) -> Iterable[str]:
        return ("memory: resident, of all processes of the command together, at its highest",)

    def markdown(self, command: str) -> str:
        threads = os.environ.get("OMP_NUM_THREADS", os.cpu_count())
        return f"""# Memory of the commands

    {command}

{processor_name()}, threads: {threads}. Each command runs once, as a user runs it, in processes of its own.

{markdown_table(("command", "memory", "time"), self._rows())}

- **memory**: resident memory of all processes of the command together, at its highest, sampled every
  {1000 * MEMORY_INTERVAL:.0f} ms. Memory that processes share counts for each of them.
- **time**: by the clock, beside whatever else the machine does.
- `complete` finishes three sides of a rectangle. `evaluate` includes the Inception network. `serve` is
  measured until it has answered one request.
"""


def measure_memory(commands: Iterable[str] = COMMANDS, on_stage: OnStage = ignore_stage) -> MemoryResult:
    """Run each command in one temporary folder.

    Raises:
        SketchError: A command fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_inputs(folder)
        return MemoryResult(tuple(_measure(folder, command, on_stage) for command in commands))


def _measure(folder: Path, command: str, on_stage: OnStage) -> CommandMemory:
    on_stage(command)
    arguments = [*_PROGRAM, *command.split()]
    if command.startswith("serve"):
        arguments = [sys.executable, "-c", _SERVED, *arguments]
    return CommandMemory(command, run_measured(arguments, cwd=folder))


def _write_inputs(folder: Path) -> None:
    corners = ((0.2, 0.1), (60.0, -0.1), (60.1, 40.0), (0.0, 39.8))
    sides = [Line(start, end) for start, end in zip(corners, (*corners[1:], corners[0]), strict=True)]
    sketchdnn.write(Sketch((*sides, Circle((30, 20), 8)), units="mm"), folder / "plate.dxf")
    sketchdnn.write(Sketch(tuple(sides[:3]), units="mm"), folder / "part.dxf")
