"""Tasks on all cores: results as they come, and no worker that outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar, cast

from sketchdnn.errors import SketchError

from .sources import InputError

T = TypeVar("T")
R = TypeVar("R")


def run_all(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Iterator[R]:
    """The result of every task, in the order they finish. One worker or one task runs here, in this process."""
    if min(workers, len(tasks)) <= 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context, initializer=_leave_with_parent) as pool:
        try:
            yield from _completed(pool, function, tasks, 2 * workers)
        except BrokenProcessPool as error:
            raise SketchError(
                "a worker process was ended from outside (out of memory?); run again to resume"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _completed(pool: ProcessPoolExecutor, function: Callable[[T], R], tasks: Sequence[T], ahead: int) -> Iterator[R]:
    # Only a few tasks are handed out at a time: there may be thousands, each with its own arguments to send.
    remaining = iter(tasks)
    running = {pool.submit(_attempt, function, task) for task in islice(remaining, ahead)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        running |= {pool.submit(_attempt, function, task) for task in islice(remaining, len(done))}
        for future in done:
            result, error = future.result()
            if error is not None:
                raise error
            yield cast("R", result)


def _attempt(function: Callable[[T], R], task: T) -> tuple[R | None, SketchError | None]:
    """The result, or why there is none, as an error that survives the way home."""
    try:
        return function(task), None
    except InputError as error:
        return None, error
    except SketchError as error:
        return None, SketchError(str(error))  # others may have arguments of their own, and would not arrive


def _leave_with_parent() -> None:
    """A killed parent cannot stop its workers, so each watches for its end. Signals are the parent's to answer."""
    for number in (signal.SIGINT, signal.SIGHUP):  # SIGTERM is how a pool ends its workers
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
