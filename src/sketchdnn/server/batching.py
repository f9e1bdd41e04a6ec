"""One thread that runs the model. It fills each batch with rows of several requests.

Samples of a batch do not depend on each other (`generation.engine`), so a request gets the sketches that it would get
alone. Before every step, canceled requests are dropped; a batch without any other request ends.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace

from sketchdnn.diffusion.sampling import Progress
from sketchdnn.generation.engine import BatchPart, SampleId, device_of, max_batch_size, sample_together
from sketchdnn.representation import SketchBatch
from sketchdnn.systems import System
from sketchdnn.systems.row_denoiser import RowDenoiser

# Raises if the request was canceled or has run out of time.
Check = Callable[[], None]
# Seconds between two checks of a request that waits for the model.
_CHECK_SECONDS = 0.05
# Most seconds that `close` waits for the current step.
_CLOSE_SECONDS = 5.0


class _AbandonedError(Exception):
    """All requests of a batch were canceled."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A part that waits for the model or is in its batch."""

    part: BatchPart
    check: Check
    rows: Future[SketchBatch] = field(default_factory=Future)

    def is_dropped(self) -> bool:
        """Whether its result is no longer needed. An error of its check becomes its result."""
        if not self.rows.done():
            try:
                self.check()
            except Exception as error:  # noqa: BLE001  it is raised in the thread of the request
                self.fail(error)
        return self.rows.done()

    def fail(self, error: BaseException) -> None:
        if not self.rows.done():
            self.rows.set_exception(error)


@dataclass(slots=True)
class BatchCounts:
    """What the model has drawn: batches, rows, and the seconds that they took."""

    batches: int = 0
    rows: int = 0
    seconds: float = 0.0


class ModelThread:
    """Draws the parts of all requests: a batch is the oldest part and others that fit beside it."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.counts = BatchCounts()
        self.max_rows = max_batch_size(device_of(system))
        # Other systems, which have latents or tokens, report steps in forms that cannot be divided among requests.
        self._can_share = isinstance(system, RowDenoiser)
        self._waiting: deque[_Entry] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    def sample(self, part: BatchPart, check: Check) -> SketchBatch:
        """Draw a part. Called from the thread of a request, which waits.

        Args:
            part: What to draw.
            check: Called often, in this thread and in that of the model.

        Raises:
            Exception: What `check` raises, or the model.
        """
        entry = _Entry(part, check)
        with self._changed:
            self._waiting.append(entry)
            self._changed.notify()
        try:
            while not wait_for([entry.rows], timeout=_CHECK_SECONDS).done:
                check()
        except BaseException as error:
            entry.fail(error)
            raise
        return entry.rows.result()

    def close(self) -> None:
        """Stop after the current step, and wait for that; requests that wait fail by their own checks."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                entries = self._take_batch()
            if entries:
                self._draw(entries)

    def _take_batch(self) -> list[_Entry]:
        """The oldest part and later ones of the same key, as many as fit."""
        entries: list[_Entry] = []
        left: deque[_Entry] = deque()
        free = self.max_rows
        for entry in self._waiting:
            if entry.is_dropped():
                continue
            size = len(entry.part.samples)
            alike = not entries or (self._can_share and entry.part.key == entries[0].part.key)
            if alike and (size <= free or not entries):
                entries.append(entry)
                free -= size
            else:
                left.append(entry)
        self._waiting = left
        return entries

    def _draw(self, entries: Sequence[_Entry]) -> None:
        """Draw a batch. If it fails, each part is drawn alone, so that one cannot fail the others."""
        start = time.monotonic()
        try:
            batches = sample_together(self.system, [self._reporting(entry, entries) for entry in entries])
        except _AbandonedError:
            return
        except Exception as error:  # noqa: BLE001  it is raised in the thread of the request
            if len(entries) == 1:
                entries[0].fail(error)
            else:
                for entry in entries:
                    if not entry.is_dropped():
                        self._draw([entry])
            return
        self.counts.seconds += time.monotonic() - start
        self.counts.batches += 1
        self.counts.rows += sum(len(entry.part.samples) for entry in entries)
        for entry, rows in zip(entries, batches, strict=True):
            if not entry.rows.done():
                entry.rows.set_result(rows)

    def _reporting(self, entry: _Entry, entries: Sequence[_Entry]) -> BatchPart:
        """The part, whose steps are reported until it is dropped."""

        def on_step(samples: Sequence[SampleId], progress: Progress) -> None:
            if self._closed or (entry is entries[0] and all(each.is_dropped() for each in entries)):
                raise _AbandonedError
            if not entry.rows.done() and entry.part.on_step is not None:
                entry.part.on_step(samples, progress)

        return replace(entry.part, on_step=on_step)
