"""Threads that wait for one another sleep instead of spinning, for as long as a call lasts.

Between two matrix products the threads of GNU OpenMP, which PyTorch uses on Linux, wait for the next one in a loop.
Beside another busy process the loop takes the core away from the thread that is waited for: a sketch takes ten times
as long. `OMP_WAIT_POLICY=PASSIVE` turns the loop off, but it is read once, when PyTorch is loaded, and holds for the
whole process.

Without that setting, threads also stop spinning when there are more OpenMP threads than processors (GOMP_SPINCOUNT in
the manual of GNU OpenMP). So a few idle threads are kept meanwhile. They do no work and are gone at the end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Elements of a tensor that PyTorch shares out among all threads: it keeps less than 2^15 to one of them.
_SHARED_OUT = 1 << 18


def usable_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def patient_threads() -> Iterator[None]:
    """Threads of PyTorch sleep while they wait for one another, whatever the rest of the program has set."""
    threads = torch.get_num_threads()
    done = threading.Event()
    # A thread that calls PyTorch has a team of its own, which adds one thread less than it has.
    teams = max(0, (usable_cores() - threads) // (threads - 1) + 1) if threads > 1 else 0
    keepers = [_keep_team(done) for _ in range(teams)]
    try:
        yield
    finally:
        done.set()
        for keeper in keepers:
            keeper.join()


def _keep_team(done: threading.Event) -> threading.Thread:
    """A thread with a team of OpenMP threads that sleep until `done`."""
    begun = threading.Event()

    def keep() -> None:
        try:
            torch.ones(_SHARED_OUT).add_(1)
        finally:
            begun.set()
        done.wait()

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    begun.wait()
    return keeper
