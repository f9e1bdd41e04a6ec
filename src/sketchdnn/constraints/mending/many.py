"""Repair many sketches on several cores."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process

from sketchdnn.geometry import Sketch

from .repair import REPAIR_TOLERANCE, Repaired, repair

# Sketches that a process is handed at a time, and handfuls that wait for each process.
_HANDFUL = 32
_WAITING = 3
# What numerical libraries ask how many threads to start: so many processes need one each.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def repair_all(
    sketches: Iterable[Sketch],
    tolerance: float = REPAIR_TOLERANCE,
    *,
    keep: Collection[int] = (),
    workers: int | None = None,
    close: bool = True,
) -> Iterator[Repaired]:
    """Repair sketches in the order they come, in so many processes: by default one for each core.

    Sketches are taken as they are needed, so a stream of any length fits. `keep` is the same for all of them.

    More than one process is for programs, not for a script without `if __name__ == "__main__"`: each of them imports
    what was started.

    >>> from sketchdnn.geometry import Line
    >>> [done.dof for done in repair_all([Sketch((Line((0, 0), (10, 0.01)),))], workers=1)]
    [3]
    """
    handfuls = _handfuls(sketches)
    count = workers or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    if count == 1:
        for some in handfuls:
            yield from _repair(some, tolerance, keep, close)
        return
    waiting: deque[Future[list[Repaired]]] = deque()
    with one_thread_each(), ProcessPoolExecutor(count, get_context("spawn"), _leave_with_parent) as pool:
        try:
            for some in handfuls:
                waiting.append(pool.submit(_repair, some, tolerance, keep, close))
                if len(waiting) >= _WAITING * count:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _repair(sketches: Sequence[Sketch], tolerance: float, keep: Collection[int], close: bool) -> list[Repaired]:
    return [repair(sketch, tolerance, keep=keep, close=close) for sketch in sketches]


def _leave_with_parent() -> None:
    """A killed parent cannot stop its workers, so each watches for its end. Signals are the parent's to answer."""
    for number in (signal.SIGINT, signal.SIGHUP):  # SIGTERM is how a pool ends its workers
        signal.signal(number, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _handfuls(sketches: Iterable[Sketch]) -> Iterator[list[Sketch]]:
    rest = iter(sketches)
    while some := list(islice(rest, _HANDFUL)):
        yield some


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that start now have one thread each: matrices this small gain nothing by more."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
