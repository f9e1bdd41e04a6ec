"""Being asked to stop: the step in hand is finished and saved first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(slots=True)
class Interrupt:
    """The signal that came, if one did."""

    signal: int | None = None

    @property
    def caught(self) -> bool:
        return self.signal is not None


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Note a first SIGTERM, SIGINT or SIGHUP; a second acts as it would without us. `nohup` keeps SIGHUP ignored."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread hears signals
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _: FrameType | None) -> None:
        interrupt.signal = number
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield interrupt
    finally:
        restore()
