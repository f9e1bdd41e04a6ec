"""Worker processes that parse what clients send and compute with it, within limits of time and memory.

Whatever a call does, it stops neither the server nor the calls of other pools: a process that exceeds its time is
killed, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sketchdnn.constraints.repair.batch import single_threaded
from sketchdnn.errors import SketchError
from sketchdnn.io import exit_with_parent

from .responses import ApiError

try:
    import resource
except ImportError:  # not a POSIX system: only the time of a call is limited
    resource = None  # type: ignore[assignment]

# A worker whose memory has grown by this much is replaced after the call.
_RETIRE_BYTES = 200 * 2**20
# Most seconds that a process takes to start on a busy machine.
_START_SECONDS = 60.0
# Calls that may wait for a worker, for each worker.
_WAITING = 32
_BUSY = "the server is busy with other requests of this kind; try again"


class WorkerError(Exception):
    """An unexpected error in a worker, with its traceback."""


@dataclass(slots=True)
class _Worker:
    """A process and the connection to it."""

    process: BaseProcess
    connection: Connection
    is_ready: bool = False

    def wait_until_ready(self) -> None:
        """Wait until its modules are imported; this does not count as time of a call."""
        if not self.is_ready and self.connection.poll(_START_SECONDS):
            self.connection.recv()
            self.is_ready = True

    def kill(self) -> None:
        """End the process and those that it started."""
        if self.process.pid is not None:
            with suppress(OSError, AttributeError):  # it has no group of its own yet, or the system has none
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()


class WorkerPool:
    """A few processes that call functions. Functions, arguments and results are pickled.

    Args:
        name: What the pool is for, as metrics name it.
        size: Number of processes.
        seconds: Time limit of a call.
        memory: Bytes that a process may take beyond those of its start.
        preload: Modules that are imported before the first call.
    """

    def __init__(self, name: str, size: int, seconds: float, memory: int, preload: Sequence[str] = ()) -> None:
        self.name, self.size, self.seconds = name, size, seconds
        self._memory, self._preload = memory, tuple(preload)
        self._idle: queue.Queue[_Worker] = queue.Queue()
        self._workers: dict[int, _Worker] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._pending = 0
        self.restarts = 0
        for _ in range(size):
            self._idle.put(self._start())

    async def run(self, function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> Any:
        """Call the function from the event loop.

        Raises:
            ApiError: If too many calls wait, or the call takes too long or too much memory.
            SketchError: As the function raises it.
        """
        if self._pending >= _WAITING * self.size:
            raise ApiError(503, _BUSY, 1)
        self._pending += 1
        try:
            call = partial(self.call, function, *arguments, seconds=seconds)
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self._pending -= 1

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> Any:
        """Call the function from a thread; see `run`."""
        limit = self.seconds if seconds is None else seconds
        worker = self._take(limit)
        keep = False
        try:
            worker.wait_until_ready()
            # Not `send`: it would move the memory of tensors into files that both processes share.
            worker.connection.send_bytes(pickle.dumps((function, arguments)))
            if not worker.connection.poll(limit):
                raise ApiError(504, f"this took more than {limit:g} seconds and was given up; try less at a time")
            kind, value, keep = worker.connection.recv()
        except (EOFError, OSError) as error:
            raise self._stopping() or ApiError(400, "this takes more memory or time than it may") from error
        finally:
            self._give_back(worker, keep)
        if kind == "result":
            return value
        if kind == "refused":
            raise SketchError(value)
        if kind == "memory":
            raise ApiError(413, "this needs more memory than a request may take; try less at a time")
        raise WorkerError(value)

    def close(self) -> None:
        """End all processes; calls that run fail."""
        with self._lock:
            self._closed = True
            workers = list(self._workers.values())
        for worker in workers:
            worker.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _take(self, limit: float) -> _Worker:
        until = time.monotonic() + limit
        while True:
            if error := self._stopping():
                raise error
            with suppress(queue.Empty):
                return self._idle.get(timeout=0.1)
            if time.monotonic() > until:
                raise ApiError(503, _BUSY, 1)

    def _give_back(self, worker: _Worker, keep: bool) -> None:
        if not keep or not worker.process.is_alive():
            with self._lock:
                self._workers.pop(id(worker), None)
            worker.kill()
            worker.process.join()
            worker.connection.close()
            if self._closed:
                return
            self.restarts += 1
            worker = self._start()
        self._idle.put(worker)

    def _start(self) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        with single_threaded():
            process = context.Process(target=_work, args=(theirs, self._memory, self._preload), daemon=True)
            process.start()
        theirs.close()
        worker = _Worker(process, ours)
        with self._lock:
            self._workers[id(worker)] = worker
        return worker

    def _stopping(self) -> ApiError | None:
        return ApiError(503, "the server is stopping", 5) if self._closed else None


def _work(connection: Connection, memory: int, preload: Sequence[str]) -> None:
    """The loop of a worker process."""
    with suppress(OSError, AttributeError):
        os.setsid()  # so that the programs it starts can be ended with it
    exit_with_parent()
    for module in preload:
        import_module(module)
    _limit_memory(memory)
    at_start = resident_bytes()
    connection.send_bytes(pickle.dumps("ready"))
    while True:
        try:
            function, arguments = connection.recv()
        except (EOFError, OSError):
            return
        kind, value = _call(function, arguments)
        keep = kind != "memory" and resident_bytes() - at_start < _RETIRE_BYTES
        connection.send_bytes(pickle.dumps((kind, value, keep)))


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[str, Any]:
    try:
        return "result", function(*arguments)
    except SketchError as error:
        return ("memory", "") if isinstance(error.__cause__, MemoryError) else ("refused", str(error))
    except MemoryError:
        return "memory", ""
    except RecursionError:
        return "refused", "this is nested too deeply"
    except Exception:  # noqa: BLE001  the process stays up; the server reports it
        return "failed", traceback.format_exc()


def _limit_memory(memory: int) -> None:
    """Limit the data of this process to what it has now and so much more, where the system can."""
    used = _status_bytes("VmData")
    if used and resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, hard))


def resident_bytes() -> int:
    """The resident memory of this process; 0 where it cannot be read."""
    return _status_bytes("VmRSS")


def _status_bytes(name: str) -> int:
    """A field of /proc/self/status in bytes; 0 where it cannot be read."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0
