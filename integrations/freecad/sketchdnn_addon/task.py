"""Work in a thread of its own, which reports to the GUI by signals."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import FreeCAD

from . import texts
from .client import BusyError, CanceledError, Client, ServerError
from .qt import QtCore, QtWidgets
from .server import SERVER
from .settings import Settings

_ATTEMPTS = 5
_PAUSE_SECONDS = 1.0
_RUNNING: set[Task] = set()


class Task(QtCore.QThread):
    """One piece of work with the server: `work(task)` runs in the thread and returns the result.

    The signals are `progressed` (0 to 1), `received` (a part of the result), `status` (a sentence), and one of
    `succeeded` (the result), `failed` (a sentence) and `canceled`.
    """

    progressed = QtCore.Signal(float)
    received = QtCore.Signal(object)
    status = QtCore.Signal(str)
    succeeded = QtCore.Signal(object)
    failed = QtCore.Signal(str)
    canceled = QtCore.Signal()

    def __init__(self, work: Callable[[Task], Any]) -> None:
        super().__init__()
        self.settings = Settings.load()
        self._work = work
        self._client: Client | None = None
        self._is_canceled = False
        self.finished.connect(self._forget)

    def begin(self) -> None:
        """Run; the task is kept until it ends."""
        _RUNNING.add(self)
        self.start()

    def cancel(self) -> None:
        """Ask the work to end; the signal `canceled` follows."""
        self._is_canceled = True
        client = self._client
        if client is not None:
            client.cancel()

    def run(self) -> None:
        """What the thread does; called by Qt."""
        try:
            SERVER.ensure(self.settings, lambda: self._is_canceled, self.status.emit)
            result = self._work(self)
        except CanceledError:
            self.canceled.emit()
        except ServerError as error:
            self.failed.emit(str(error))
        except Exception as error:  # noqa: BLE001  a thread has nobody to raise to
            FreeCAD.Console.PrintError(traceback.format_exc())
            self.failed.emit(texts.tr("This did not work ({0}); the report view has details.").format(error))
        else:
            self.succeeded.emit(result)

    def call(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Post to the server and wait for the answer."""
        return self._with_retries(lambda client: client.call(path, payload))

    def read(self, content: bytes, suffix: str, units: str | None) -> dict[str, Any]:
        """The sketches of a file."""
        return self._with_retries(lambda client: client.read(content, suffix, units))

    def sample(self, path: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """Post to the model and pass its progress on; the results."""
        results: list[dict[str, Any]] = []

        def on_event(name: str, data: dict[str, Any]) -> None:
            if name == "progress":
                self.progressed.emit(float(data["done"]))
            elif name == "sketch":
                results.append(data)
                self.received.emit(data)

        self._with_retries(lambda client: client.stream(path, payload | self.settings.sampling, on_event))
        return results

    def _with_retries(self, call: Callable[[Client], dict[str, Any]]) -> dict[str, Any]:
        """Call again after a pause while the server is busy."""
        for attempt in range(_ATTEMPTS):
            if self._is_canceled:
                raise CanceledError
            self._client = Client(self.settings.port)
            try:
                return call(self._client)
            except BusyError:
                if attempt == _ATTEMPTS - 1:
                    raise
                self.status.emit(texts.tr("The server is busy; waiting…"))
                time.sleep(_PAUSE_SECONDS)
        raise CanceledError

    def _forget(self) -> None:
        _RUNNING.discard(self)


def end_all() -> None:
    """Cancel what runs and stop the server, as FreeCAD ends."""
    for task in list(_RUNNING):
        task.cancel()
    for task in list(_RUNNING):
        task.wait(2000)
    SERVER.stop()


def connect_exit() -> None:
    """Have `end_all` called as the application quits."""
    app = QtWidgets.QApplication.instance()
    if app is not None:
        app.aboutToQuit.connect(end_all)
