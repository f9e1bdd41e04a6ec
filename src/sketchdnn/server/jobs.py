"""Jobs: model calls that wait in a bounded queue, run on threads, report events, and can be canceled."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .limits import Limits
from .responses import ApiError, status_and_sentence
from .workers import WorkerError

logger = logging.getLogger("sketchdnn.server")

# Most jobs that `/jobs/{id}` finds; the oldest that have ended are dropped first.
_KEPT_JOBS = 512
# Shortest time between two reports of progress, in seconds.
_PROGRESS_SECONDS = 0.1


class CanceledError(ApiError):
    """The client has canceled the job."""

    def __init__(self) -> None:
        super().__init__(409, "the job was canceled")


class StoppingError(ApiError):
    """The server is about to end."""

    def __init__(self) -> None:
        super().__init__(503, "the server is stopping; ask again in a moment", 5)


class State(StrEnum):
    """The state of a job."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"


ENDED = frozenset({State.DONE, State.FAILED, State.CANCELED})


@dataclass(frozen=True, slots=True)
class Event:
    """An event for the client: `job`, `progress`, `sketch`, `done` or `error`, with its JSON."""

    name: str
    data: dict[str, Any]


@dataclass(slots=True, eq=False)
class Job:
    """A model call.

    Attributes:
        client: The address of the client.
        kind: The name of the call.
        work: Computes the results, each of which becomes an event `sketch`.
        time_limit: Seconds that it may run.
        id: Its identifier in `/jobs/{id}`.
        state: Its state.
        progress: The share that is done.
        error: Status and sentence, if it failed.
        seconds: How long it ran.
    """

    client: str
    kind: str
    work: Callable[[Job], Iterator[dict[str, Any]]]
    time_limit: float
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    state: State = State.WAITING
    progress: float = 0.0
    error: tuple[int, str] | None = None
    seconds: float = 0.0
    _stop: type[CanceledError | StoppingError] | None = None
    _started: float = 0.0
    _reported: float = 0.0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _events: asyncio.Queue[Event] = field(default_factory=asyncio.Queue)

    async def next_event(self) -> Event:
        """The next event; the last one is `done` or `error`."""
        return await self._events.get()

    def discard_events(self) -> None:
        """Drop the events that have not been sent; the client is gone."""
        while not self._events.empty():
            self._events.get_nowait()

    def emit(self, name: str, data: dict[str, Any]) -> None:
        """Add an event, from any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._events.put_nowait, Event(name, data))

    def report(self, share: float) -> None:
        """Report the share that is done, at most ten times a second."""
        self.progress = max(self.progress, min(1.0, share))
        if (now := time.monotonic()) - self._reported >= _PROGRESS_SECONDS:
            self._reported = now
            self.emit("progress", {"done": round(self.progress, 4)})

    def check(self) -> None:
        """Raise `ApiError` if the job was stopped or has run too long."""
        if self._stop is not None:
            raise self._stop
        if self.seconds_left() <= 0:
            raise ApiError(504, f"this took more than {self.time_limit:g} seconds; ask for fewer sketches or steps")

    def seconds_left(self) -> float:
        """The time that it may still run."""
        return self.time_limit if not self._started else self._started + self.time_limit - time.monotonic()

    def stop(self, reason: type[CanceledError | StoppingError] = CanceledError) -> None:
        """Make the next check raise `reason`."""
        self._stop = self._stop or reason

    def run(self) -> None:
        """Do the work, and end with an event `done` or `error`."""
        self.state, self._started = State.RUNNING, time.monotonic()
        try:
            self.check()
            for result in self.work(self):
                self.check()
                self.emit("sketch", result)
        except Exception as error:  # noqa: BLE001  every error is an event
            self.end(error)
        else:
            self.seconds = time.monotonic() - self._started
            self.state, self.progress = State.DONE, 1.0
            self.emit("done", {"seconds": round(self.seconds, 3)})

    def end(self, error: BaseException) -> None:
        """End with an error."""
        self.seconds = time.monotonic() - self._started if self._started else 0.0
        answer = status_and_sentence(error)
        if answer is None:
            details = str(error) if isinstance(error, WorkerError) else ""
            logger.error("%s failed\n%s", self.kind, details, exc_info=error)
            answer = (500, "Something went wrong in the server; its log says what.")
        self.error, self.state = answer, State.CANCELED if isinstance(error, CanceledError) else State.FAILED
        self.emit("error", {"error": answer[1], "status": answer[0]})


class JobQueue:
    """Runs jobs on threads, the oldest first. It is bounded, for each client too."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ended: Counter[str] = Counter()
        self.seconds = 0.0
        self._waiting: deque[Job] = deque()
        self._running: set[Job] = set()
        self._jobs: dict[str, Job] = {}
        self._changed = threading.Condition()
        self._stopping = False
        for number in range(limits.running):
            threading.Thread(target=self._run, name=f"job {number}", daemon=True).start()

    def submit(self, job: Job) -> Job:
        """Add a job.

        Raises:
            ApiError: If the client has too many jobs (429), the queue is full or the server stops (503).
        """
        with self._changed:
            if self._stopping:
                raise StoppingError
            active = [*self._waiting, *self._running]
            if sum(each.client == job.client for each in active) >= self.limits.per_client:
                most = self.limits.per_client
                raise ApiError(429, f"you have {most} requests in work; wait for one of them", self._retry_after(1))
            if len(self._waiting) >= self.limits.waiting:
                raise ApiError(503, f"{self.limits.waiting} requests wait already; try again", self._retry_after(4))
            free = self.limits.running - len(self._running)
            job.emit("job", {"id": job.id, "position": max(0, len(self._waiting) + 1 - free)})
            self._waiting.append(job)
            self._keep(job)
            self._changed.notify()
        return job

    def find(self, job_id: str) -> Job:
        """The job with that identifier; 404 if there is none."""
        with self._changed:
            job = self._jobs.get(job_id)
        if job is None:
            raise ApiError(404, "there is no such job")
        return job

    def position(self, job: Job) -> int:
        """How many jobs wait before it; 0 if it runs or has ended."""
        with self._changed:
            return self._waiting.index(job) + 1 if job in self._waiting else 0

    def cancel(self, job: Job) -> None:
        """Stop a job; no-op if it has ended."""
        job.stop()
        with self._changed:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        self._end(job, CanceledError())

    @property
    def numbers(self) -> tuple[int, int]:
        """How many jobs run and wait."""
        with self._changed:
            return len(self._running), len(self._waiting)

    def refuse_new(self) -> None:
        """Accept no more jobs, and fail those that wait."""
        with self._changed:
            self._stopping = True
            waiting, self._waiting = list(self._waiting), deque()
        for job in waiting:
            self._end(job, StoppingError())

    def stop_running(self) -> None:
        """Make all running jobs fail at their next check."""
        with self._changed:
            running = list(self._running)
        for job in running:
            job.stop(StoppingError)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                job = self._waiting.popleft()
                self._running.add(job)
            try:
                job.run()
            finally:
                with self._changed:
                    self._running.discard(job)
                    self.ended[job.state] += 1
                    self.seconds += job.seconds

    def _end(self, job: Job, error: ApiError) -> None:
        job.end(error)
        with self._changed:
            self.ended[job.state] += 1

    def _retry_after(self, share: int) -> int:
        """Seconds until one part of `share` of the queue is done, estimated from the mean time of a job."""
        mean = self.seconds / max(1, sum(self.ended.values()))
        rounds = (len(self._waiting) + len(self._running)) / self.limits.running
        return int(min(60, max(1, mean * rounds / share)))

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        for name in list(self._jobs)[: max(0, len(self._jobs) - _KEPT_JOBS)]:
            if self._jobs[name].state in ENDED:
                del self._jobs[name]
