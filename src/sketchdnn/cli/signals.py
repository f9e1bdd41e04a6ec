"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that it leaves no temporary files."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from types import FrameType

from sketchdnn.io import STOP_SIGNALS

INTERRUPTED = 128 + signal.SIGINT  # exit code of a shell for a program that Ctrl-C ended
_SIGNALS = tuple(number for number in STOP_SIGNALS if number != signal.SIGINT)


@dataclass(slots=True)
class SignalHandler:
    """Handles SIGTERM and SIGHUP, and remembers which of them ended the command."""

    number: int | None = None

    def exit_code(self, code: object) -> object:
        """The exit code of the command: after a signal, its own in place of that of Ctrl-C."""
        return 128 + self.number if code == INTERRUPTED and self.number is not None else code

    def install(self) -> None:
        """Raise `KeyboardInterrupt` on the first signal, and ignore further ones during the cleanup.

        A signal that is ignored, as under `nohup`, stays ignored.
        """
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._stop)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt
