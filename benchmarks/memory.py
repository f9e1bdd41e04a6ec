"""How long a command and all processes it starts take, of the clock, of the processors and of memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sketchdnn.errors import SketchError

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
