"""SIGTERM and SIGHUP end a command as Ctrl-C does, so that it leaves no temporary files."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT  # what a shell says of a program that Ctrl-C ended
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Ending:
    """Which signal ended the command, if one of them did."""

    number: int | None = None

    def exit_code(self, code: object) -> object:
        """The command's exit code: that of Ctrl-C becomes the signal's own."""
        return 128 + self.number if code == INTERRUPTED and self.number is not None else code

    def heed(self) -> None:
        """Raise `KeyboardInterrupt` on the first such signal; more of them do not disturb the cleaning up.

        One that is ignored stays so: `nohup` asks for that.
        """
        for number in _SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self._stop)

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt
