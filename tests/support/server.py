"""A server in a thread of the test, with a client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from sketchdnn.geometry import Constraint, ConstraintType, Line, Part, Ref, Sketch
from sketchdnn.server.app import create_app
from sketchdnn.server.guard import Access
from sketchdnn.server.limits import Limits
from sketchdnn.server.run import bind
from sketchdnn.server.service import ModelInfo, Service

API = "/api/v1"
CORNERS = ((0.0, 0.0), (60.0, 0.0), (60.0, 40.0), (0.0, 40.0))
# A plate whose upper right corner is open by 0.2, with two constraints of which one has a name.
OPEN_PLATE = Sketch(
    (
        Line(CORNERS[0], CORNERS[1]),
        Line(CORNERS[1], (60.0, 39.8)),
        Line(CORNERS[2], CORNERS[3]),
        Line(CORNERS[3], CORNERS[0]),
    ),
    (
        Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START))),
        Constraint(ConstraintType.LENGTH, (Ref(0),), 60.0, "width"),
    ),
    units="mm",
)


@dataclass(frozen=True)
class RunningServer:
    """A server and a client of it."""

    port: int
    client: httpx.Client
    service: Service | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(f"{API}{path}", **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.client.post(f"{API}{path}", **({} if body is None else {"json": body}), **options)

    def ok(self, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON of an answer that must succeed."""
        response = self.post(path, body, **options)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
        """The status and the sentence of an answer that must be an error."""
        return error_of(self.post(path, body, **options))


def error_of(response: httpx.Response) -> tuple[int, str]:
    """The status and the sentence of an error, which is all that its body holds."""
    content = response.json()
    assert list(content) == ["error"]
    sentence = content["error"]
    assert sentence[0].isupper() or not sentence[0].isalpha()
    assert sentence.endswith((".", "!", "?", "…"))
    assert "Traceback" not in sentence
    return response.status_code, sentence


@contextmanager
def serving(app: ASGIApp, service: Service | None = None) -> Iterator[RunningServer]:
    """The application on a free port."""
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2, ws="none")
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    assert ready.wait(20)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield RunningServer(port, client, service)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def serving_model(
    info: ModelInfo, limits: Limits | None = None, access: Access | None = None
) -> Iterator[RunningServer]:
    """The whole server with a model."""
    service = Service(info, limits or Limits(stop_seconds=0.1, per_client=32))
    with serving(create_app(service, access or Access()), service) as server:
        yield server


def events_of(response: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    """The names and the data of server-sent events."""
    return list(read_events(response.iter_lines()))


def read_events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events, as they arrive."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
