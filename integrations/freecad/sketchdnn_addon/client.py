"""HTTP calls of the server's API, with one answer or a stream of events. They block: use a thread beside the GUI's."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlencode

from . import texts

HOST = "127.0.0.1"
_BASE = "/api/v1"
_BUSY = (429, 503)
_NEEDS_TOKEN = 401
Event = tuple[str, dict[str, Any]]


class ServerError(Exception):
    """Why there is no answer, in one sentence that says what to do."""


class TokenError(ServerError):
    """The server needs a token, and the add-on sends none."""


class BusyError(ServerError):
    """The server refuses the call for now, with status 429 or 503."""


class CanceledError(Exception):
    """The user has canceled the call."""


class Client:
    """Calls to the server on one port; `cancel` ends a running one from another thread."""

    def __init__(self, port: int, timeout: float = 180.0) -> None:
        self.port, self.timeout = port, timeout
        self._connection: http.client.HTTPConnection | None = None
        self._canceled = False

    def cancel(self) -> None:
        """End the running call. The server cancels its job when the connection closes."""
        self._canceled = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def health(self) -> dict[str, Any]:
        """The answer of `/health`: state, version, model and queue."""
        return self._json("GET", "/health", None, "application/json")

    def call(self, path: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Post JSON and return the answer."""
        return self._json("POST", path, json.dumps(payload).encode(), "application/json")

    def read(self, content: bytes, suffix: str, units: str | None) -> dict[str, Any]:
        """The sketches of a file."""
        query = urlencode({"format": suffix} | ({"units": units} if units else {}))
        return self._json("POST", f"/read?{query}", content, "application/octet-stream")

    def stream(
        self, path: str, payload: dict[str, Any], on_event: Callable[[str, dict[str, Any]], None]
    ) -> dict[str, Any]:
        """Post JSON and pass on events as they come; the last one, `done`, is returned."""
        with self._sentences():
            response = self._send("POST", path, json.dumps(payload).encode(), "application/json", "text/event-stream")
            for name, data in _events(response):
                if name == "error":
                    raise ServerError(str(data.get("error")))
                if name == "done":
                    return data
                on_event(name, data)
        raise ServerError(stopped())

    def _json(self, method: str, path: str, body: bytes | None, kind: str) -> dict[str, Any]:
        with self._sentences():
            answer: dict[str, Any] = json.loads(self._send(method, path, body, kind, "application/json").read())
            return answer

    def _send(self, method: str, path: str, body: bytes | None, kind: str, accept: str) -> http.client.HTTPResponse:
        connection = self._connection = http.client.HTTPConnection(HOST, self.port, timeout=self.timeout)
        connection.connect()
        if self._canceled:
            raise CanceledError
        connection.request(method, _BASE + path, body, {"Content-Type": kind, "Accept": accept})
        response = connection.getresponse()
        if response.status == _NEEDS_TOKEN:
            raise TokenError(needs_token(self.port))
        if response.status >= 400:
            kind_of = BusyError if response.status in _BUSY else ServerError
            raise kind_of(_error_sentence(response))
        return response

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what can go wrong with a connection into a sentence, and close it."""
        if self._canceled:
            raise CanceledError
        try:
            yield
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            if not self._canceled:
                raise ServerError(_connection_sentence(error, self.port)) from error
        except ServerError:
            if not self._canceled:
                raise
        finally:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
        if self._canceled:
            raise CanceledError


def _connection_sentence(error: Exception, port: int) -> str:
    if isinstance(error, ConnectionRefusedError):
        return missing(port)
    if isinstance(error, TimeoutError):
        return texts.tr("The SketchDNN server takes too long to answer; try again.")
    return stopped()


def missing(port: int) -> str:
    """What to do when no server answers."""
    return texts.tr(
        "No SketchDNN server answers on port {0}: start it with “sketchdnn serve”, or set its command in "
        "Edit → Preferences → SketchDNN."
    ).format(port)


def needs_token(port: int) -> str:
    """What to do when the server was started with a token."""
    return texts.tr(
        "The server on port {0} needs a token: start one without SKETCHDNN_TOKEN, or set another port in "
        "Edit → Preferences → SketchDNN."
    ).format(port)


def stopped() -> str:
    """What to do when the server ends during a call."""
    return texts.tr("The SketchDNN server has stopped before it answered: try again, which starts it anew.")


def _error_sentence(response: http.client.HTTPResponse) -> str:
    try:
        return str(json.loads(response.read())["error"])
    except (ValueError, KeyError, TypeError):
        return texts.tr("The SketchDNN server answers with error {0}: check its version.").format(response.status)


def _events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """The events of a stream, as the server sends them."""
    name, data = "message", []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield name, json.loads("\n".join(data))
            name, data = "message", []
