"""Devices by name, and the waiting policy of CPU threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sketchdnn.errors import SketchError

AUTO = "auto"
# Elements of a tensor that PyTorch distributes over all threads: it keeps fewer than 2^15 on one of them.
_PARALLEL_SIZE = 1 << 18


def find_device(name: str = AUTO, local: int | None = None) -> str:
    """The device to work on: `cpu`, `cuda` or `cuda:N`.

    Args:
        name: `auto` is a GPU where there is one. `cuda` without a number is the current GPU.
        local: The number of the GPU where `name` has none, as for one of several processes.

    Raises:
        SketchError: There is no such device here.

    >>> find_device("cpu")
    'cpu'
    """
    kind, _, number = name.partition(":")
    if kind not in (AUTO, "cpu", "cuda") or (":" in name and not (kind == "cuda" and number.isdecimal())):
        raise SketchError(f"'{name}' is no device; use auto, cpu, cuda or cuda:1")
    if kind == "cpu" or (kind == AUTO and not torch.cuda.is_available()):
        return "cpu"
    if not torch.cuda.is_available():
        raise SketchError(f"there is no '{name}' here: no CUDA device that PyTorch can use; use cpu or auto")
    index = int(number) if number else local
    if (index or 0) >= (count := torch.cuda.device_count()):
        raise SketchError(f"there is no 'cuda:{index}' here, only {count} such devices from cuda:0 on")
    return "cuda" if index is None else f"cuda:{index}"


def usable_cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def passive_threads() -> Iterator[None]:
    """Threads of PyTorch sleep, not spin, while they wait for one another.

    Between two matrix products the threads of GNU OpenMP, which PyTorch uses on Linux, wait in a loop. Beside another
    busy process the loop takes the core from the thread that is waited for, which makes sampling ten times slower.
    `OMP_WAIT_POLICY=PASSIVE` turns the loop off, but is read once, when PyTorch is loaded, for the whole process.

    Without it, threads also stop spinning when there are more OpenMP threads than processors (GOMP_SPINCOUNT in the
    manual of GNU OpenMP). So a few idle threads are held for the duration of the context. They do no work.
    """
    threads = torch.get_num_threads()
    done = threading.Event()
    # A thread that calls PyTorch gets a team of its own, which adds one thread less than the team has.
    teams = max(0, (usable_cores() - threads) // (threads - 1) + 1) if threads > 1 else 0
    holders = [_hold_team(done) for _ in range(teams)]
    try:
        yield
    finally:
        done.set()
        for holder in holders:
            holder.join()


def _hold_team(done: threading.Event) -> threading.Thread:
    """A thread with a team of OpenMP threads that sleep until `done`."""
    started = threading.Event()

    def hold() -> None:
        try:
            torch.ones(_PARALLEL_SIZE).add_(1)
        finally:
            started.set()
        done.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    started.wait()
    return thread
