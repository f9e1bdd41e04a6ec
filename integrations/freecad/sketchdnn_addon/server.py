"""The server's process: used if one answers on the port, else started, and stopped as FreeCAD ends."""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

from . import texts
from .client import CanceledError, Client, ServerError, TokenError, missing
from .settings import Settings

_POLL_SECONDS = 0.2
_HEALTH_SECONDS = 5.0  # until a server answers /health
_STOP_SECONDS = 5.0  # from the signal to end until the process is killed
_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows only
# Not passed on: FreeCAD's bundles set paths for their own Python, and the add-on sends no token.
_REMOVED_VARIABLES = (
    "PYTHONHOME",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "QT_PLUGIN_PATH",
    "SKETCHDNN_TOKEN",
)


class Server:
    """The one server of this FreeCAD. A server that another program has started is used, and never stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.log = Path(tempfile.gettempdir()) / f"sketchdnn-freecad-{os.getpid()}.log"

    def ensure(self, settings: Settings, is_canceled: Callable[[], bool], on_status: Callable[[str], None]) -> None:
        """Return once a server answers.

        Raises:
            ServerError: If none answers and none can be started.
            CanceledError: If the user cancels the wait.
        """
        with self._lock:
            if self._answers(settings.port):
                return
            if not settings.start:
                raise ServerError(missing(settings.port))
            on_status(texts.tr("Starting the SketchDNN server…"))
            self._stop()
            self._process = self._start(settings)
            self._wait(settings, is_canceled)

    def stop(self) -> None:
        """End the server if this FreeCAD has started it."""
        with self._lock:
            self._stop()

    @property
    def pid(self) -> int | None:
        """The number of the process, if this FreeCAD has started it and it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def _answers(self, port: int) -> bool:
        try:
            answer = Client(port, _HEALTH_SECONDS).health()
        except TokenError:
            raise
        except ServerError as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                return False
            raise ServerError(taken(port)) from error
        if "model" not in answer:
            raise ServerError(taken(port))
        return True

    def _start(self, settings: Settings) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if key not in _REMOVED_VARIABLES}
        try:
            arguments = settings.arguments
            with self._open_log() as log:
                return subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    creationflags=_NO_WINDOW,
                )
        except (OSError, ValueError, IndexError) as error:
            raise ServerError(not_found(settings.command)) from error

    def _open_log(self) -> BinaryIO:
        """The log, empty, for this user alone. A link that another user has put in its place is refused."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        return os.fdopen(os.open(self.log, flags, 0o600), "wb")

    def _wait(self, settings: Settings, is_canceled: Callable[[], bool]) -> None:
        deadline = monotonic() + settings.patience
        while monotonic() < deadline:
            process = self._process
            if is_canceled():
                raise CanceledError
            if process is None or process.poll() is not None:
                raise ServerError(
                    texts.tr(
                        "The SketchDNN server ends as it starts ({0}): check its command in the preferences."
                    ).format(self._last_line() or texts.tr("without a message"))
                )
            if self._is_up(settings.port):
                return
            sleep(_POLL_SECONDS)
        self._stop()
        raise ServerError(
            texts.tr("The SketchDNN server did not start within {0} s: see {1}.").format(settings.patience, self.log)
        )

    def _is_up(self, port: int) -> bool:
        try:
            return self._answers(port)
        except ServerError:  # it listens, and is not ready
            return False

    def _last_line(self) -> str:
        try:
            lines = self.log.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].strip()[:200] if lines else ""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_SECONDS)


def not_found(command: str) -> str:
    """What to do when the configured command cannot be run."""
    return texts.tr(
        "“{0}” cannot be run: install SketchDNN with “pip install sketchdnn[studio]” and set its command in "
        "Edit → Preferences → SketchDNN."
    ).format(command)


def taken(port: int) -> str:
    """What to do when something else listens on the port."""
    return texts.tr("Another program answers on port {0}: set another port in Edit → Preferences → SketchDNN.").format(
        port
    )


SERVER = Server()
atexit.register(SERVER.stop)
