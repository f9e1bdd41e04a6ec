"""Progress of long work: a bar on a terminal, elsewhere a line every minute.

>>> import io
>>> times = iter([0.0, 60.0, 120.0, 130.0])
>>> out = io.StringIO()
>>> with progress(Console(file=out), "drawing", total=8, clock=lambda: next(times)) as bar:
...     for done in (1, 2, 3):
...         bar.update(done)
>>> print(out.getvalue(), end="")
drawing: 1 of 8, 12 %, 1 min so far
drawing: 2 of 8, 25 %, 2 min so far, about 6 min left
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

# Seconds between two lines without a terminal. Shorter work prints none.
INTERVAL = 60.0


class Progress(Protocol):
    """Receives the progress of long work."""

    def update(self, done: float | None = None, total: float | None = None, doing: str | None = None) -> None:
        """Set the amount done, the total, and the description. With a total of 1 only percents are shown."""

    def advance(self) -> None:
        """Add one to the amount done."""

    def note(self, words: str) -> None:
        """Print a line at once, such as an intermediate result."""


@contextmanager
def progress(
    console: Console, doing: str, total: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show the progress of some work.

    Args:
        console: Where to print, usually stderr.
        doing: Description of the work.
        total: The amount of work, if known; 1 if fractions are reported.
        clock: Current time in seconds.
    """
    if not console.is_terminal:
        yield _Lines(console, doing, total, clock)
        return
    words = TextColumn("{task.description:.60}", markup=False)  # at most 60 characters
    columns = (words, BarColumn(), _Amount(), TimeElapsedColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, doing, total)


@contextmanager
def stages(doing: str = "starting") -> Iterator[Callable[[str], None]]:
    """Show the stages of work whose amount is unknown. Yields a function to call with each description."""
    with progress(Console(stderr=True), doing) as bar:
        yield lambda stage: bar.update(doing=stage)


class _Bar:
    def __init__(self, bar: RichProgress, doing: str, total: float | None) -> None:
        self._bar = bar
        self._task = bar.add_task(doing, total=total)

    def update(self, done: float | None = None, total: float | None = None, doing: str | None = None) -> None:
        self._bar.update(self._task, completed=done, total=total, description=doing)

    def advance(self) -> None:
        self._bar.advance(self._task)

    def note(self, words: str) -> None:
        self._bar.console.print(words)


class _Lines:
    def __init__(self, console: Console, doing: str, total: float | None, clock: Callable[[], float]) -> None:
        self._console, self._doing, self._total, self._clock = console, doing, total, clock
        self._done = 0.0
        self._start = self._last = clock()
        self._rate_start: tuple[float, float] | None = None  # time and amount that the rate is measured from

    def update(self, done: float | None = None, total: float | None = None, doing: str | None = None) -> None:
        now = self._clock()
        if done is not None:
            # Resumed work starts above 0, and a new stage starts again.
            if self._rate_start is None or done < self._done:
                self._rate_start = (now, done)
            self._done = done
        self._total = self._total if total is None else total
        self._doing = self._doing if doing is None else doing
        if now - self._last >= INTERVAL:
            self._last = now
            self.note(self._line(now))

    def advance(self) -> None:
        self.update(self._done + 1)

    def note(self, words: str) -> None:
        self._console.print(words, soft_wrap=True, markup=False, highlight=False)

    def _line(self, now: float) -> str:
        amount = _amount(self._done, self._total)
        parts = [amount] if amount else []
        parts.append(f"{_minutes(now - self._start)} so far")
        since, before = self._rate_start or (now, self._done)
        if self._total and self._done > before:
            left = (now - since) * (self._total - self._done) / (self._done - before)
            parts.append(f"about {_minutes(left)} left")
        return f"{self._doing}: {', '.join(parts)}"


class _Amount(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(_amount(task.completed, task.total))


def _amount(done: float, total: float | None) -> str:
    """
    >>> _amount(1200, None), _amount(3, 8), _amount(0.25, 1)
    ('1,200', '3 of 8, 38 %', '25 %')
    """
    if not total:
        return f"{done:,.0f}" if done else ""
    share = f"{100 * done / total:.0f} %"
    return share if total == 1 else f"{done:,.0f} of {total:,.0f}, {share}"


def _minutes(seconds: float) -> str:
    """
    >>> _minutes(70), _minutes(3 * 3600 + 125)
    ('1 min', '3 h 2 min')
    """
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
