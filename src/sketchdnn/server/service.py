"""What the routes of a server share: the model, its thread, the job queue, the worker pools, and counts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import sketchdnn
from sketchdnn.errors import display_path
from sketchdnn.generation import SketchDNN
from sketchdnn.systems import System
from sketchdnn.systems.devices import usable_cores
from sketchdnn.systems.pretrained import DEFAULT_MODEL, model_hash

from .batching import ModelThread
from .jobs import ENDED, JobQueue
from .limits import Limits
from .metrics import Metrics, describe, gauges, line
from .model_calls import ModelCalls
from .workers import WorkerPool, resident_bytes

_QUICK_MODULES = ("sketchdnn.server.tasks",)
_JOB_MODULES = ("sketchdnn.server.model_calls",)
# Most processes of a pool: each takes up to 0.4 GiB.
_MAX_WORKERS = 4
# Seconds between two checks for running jobs while the server stops.
_POLL_SECONDS = 0.05
# Seconds for stopped jobs to send their last event.
_END_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model, and its name and checksum, which clients can read."""

    system: System
    name: str = "unnamed"
    sha256: str = ""

    @classmethod
    def load(cls, model: str | Path = DEFAULT_MODEL, device: str = "auto") -> ModelInfo:
        """Load a model by name or folder."""
        return cls(SketchDNN.from_pretrained(model, device=device).system, display_path(model), model_hash(model))

    @property
    def parameters(self) -> int:
        """The number of its parameters."""
        return sum(each.numel() for each in self.system.parameters())


class Service:
    """The parts of a running server.

    Attributes:
        info: The model.
        limits: The limits.
        metrics: Counts of answers.
        model: The thread that runs the model.
        jobs: The queue of model calls.
        quick_calls: Quick calls in work, by the address of their client.
        calls: Makes the work of jobs.
        interactive: Processes that drag, solve, and inspect small sketches.
        heavy: Processes that read uploads, trace, constrain, repair, export, and inspect large sketches.
        results: Processes that repair and score results of the model.
    """

    def __init__(self, info: ModelInfo, limits: Limits) -> None:
        self.info, self.limits, self.metrics = info, limits, Metrics()
        memory, size = limits.worker_bytes, max(1, min(_MAX_WORKERS, usable_cores() // 2))
        self.interactive = WorkerPool("interactive", size, limits.drag_seconds, memory, _QUICK_MODULES)
        self.heavy = WorkerPool("heavy", 2, limits.call_seconds, memory, _QUICK_MODULES)
        self.results = WorkerPool("results", size, limits.job_seconds, memory, _JOB_MODULES)
        self.model = ModelThread(info.system)
        self.jobs = JobQueue(limits)
        self.quick_calls: Counter[str] = Counter()
        self.calls = ModelCalls(info.system, self.model, self.results, limits)
        self.stopping = False
        self._stop_lock = threading.Lock()
        self._stopped = False

    @property
    def pools(self) -> tuple[WorkerPool, ...]:
        """The pools of processes."""
        return self.interactive, self.heavy, self.results

    def stop(self) -> None:
        """Refuse new jobs, wait `stop_seconds` for running ones, then end them, the processes and the thread."""
        self.stopping = True
        with self._stop_lock:
            if self._stopped:
                return
            self.jobs.refuse_new()
            self._wait_for_jobs(self.limits.stop_seconds)
            self.jobs.stop_running()
            self._wait_for_jobs(_END_SECONDS)
            self.close_pools()
            self.model.close()
            self._stopped = True

    def close_pools(self) -> None:
        """End all worker processes."""
        for pool in self.pools:
            pool.close()

    def metric_lines(self) -> Iterable[str]:
        """All metrics."""
        running, waiting = self.jobs.numbers
        yield from self.metrics.lines()
        yield from describe("jobs_total", "counter", "Model calls that have ended, by how.")
        for state in sorted(ENDED):
            yield line("jobs_total", self.jobs.ended[state], state=state)
        yield from describe("worker_restarts_total", "counter", "Worker processes that were replaced, by pool.")
        for pool in self.pools:
            yield line("worker_restarts_total", pool.restarts, pool=pool.name)
        counts = self.model.counts
        yield from gauges(
            {
                "jobs_running": ("gauge", "Model calls that are worked on.", running),
                "jobs_waiting": ("gauge", "Model calls that wait.", waiting),
                "job_seconds_total": ("counter", "Time of all model calls.", self.jobs.seconds),
                "batches_total": ("counter", "Batches that the model has drawn.", counts.batches),
                "rows_total": ("counter", "Samples that the model has drawn.", counts.rows),
                "model_seconds_total": ("counter", "Time that the model has drawn.", counts.seconds),
                "resident_bytes": ("gauge", "Memory of the server's main process.", resident_bytes()),
            }
        )
        yield from describe("info", "gauge", "The version and the model.")
        yield line("info", 1, version=sketchdnn.__version__, model=self.info.name, sha256=self.info.sha256)

    def _wait_for_jobs(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.jobs.numbers[0] and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
