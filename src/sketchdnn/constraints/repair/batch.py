"""Many sketches on several cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from typing import TypeVar

from sketchdnn.errors import SketchError
from sketchdnn.geometry import Sketch
from sketchdnn.io import exit_with_parent

from .pipeline import REPAIR_TOLERANCE, RepairedSketch, repair

R = TypeVar("R")
# Sketches in a chunk, and chunks that wait for each process.
_CHUNK = 32
_WAITING = 3
# The environment variables that set the threads of numerical libraries.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def repair_all(
    sketches: Iterable[Sketch],
    tolerance: float = REPAIR_TOLERANCE,
    *,
    keep: Collection[int] = (),
    workers: int | None = None,
    close: bool = True,
) -> Iterator[RepairedSketch]:
    """Repair a stream of sketches, in order.

    Args:
        sketches: The sketches; taken as they are needed, so a stream of any length fits.
        tolerance: The largest move, as a share of the size.
        keep: Indices of primitives that stay as they are, the same for all sketches.
        workers: The number of processes; by default one for each core. More than one needs a script with
            `if __name__ == "__main__"`, since each process imports the main module.
        close: As in `repair`.

    Returns:
        The results, as they are computed.

    >>> from sketchdnn.geometry import Line
    >>> [done.dof for done in repair_all([Sketch((Line((0, 0), (10, 0.01)),))], workers=1)]
    [3]
    """
    count = workers or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return map_sketches(partial(repair, tolerance=tolerance, keep=keep, close=close), sketches, count)


def map_sketches(function: Callable[[Sketch], R], sketches: Iterable[Sketch], workers: int) -> Iterator[R]:
    """The result of a function for each sketch, in order, from several processes; one worker runs in this process.

    Raises:
        SketchError: If a process was killed.
    """
    if workers == 1:
        yield from map(function, sketches)
        return
    rest = iter(sketches)
    waiting: deque[Future[list[R]]] = deque()
    with single_threaded(), ProcessPoolExecutor(workers, get_context("spawn"), exit_with_parent) as pool:
        try:
            while chunk := list(islice(rest, _CHUNK)):
                waiting.append(pool.submit(_map, function, chunk))
                if len(waiting) >= _WAITING * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BrokenProcessPool as error:
            raise SketchError("a worker process was killed (out of memory?); use fewer workers") from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _map(function: Callable[[Sketch], R], sketches: Sequence[Sketch]) -> list[R]:
    return [function(sketch) for sketch in sketches]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Give processes that start now one thread each: matrices this small gain nothing from more."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)
