"""Checks before any route, on a real connection: host, origin, token, size and time of the body."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support.server import RunningServer, error_of, serving

from sketchdnn.errors import SketchError
from sketchdnn.server.guard import Access, Guard, is_loopback
from sketchdnn.server.limits import Limits
from sketchdnn.server.metrics import Metrics
from sketchdnn.server.run import ServerOptions

TOKEN = "a long enough token"
LIMITS = Limits(body_bytes=1000, body_seconds=0.3)


async def size(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


APP = Starlette(routes=[Route("/api/size", size, methods=["GET", "POST"]), Route("/", size)])


def guarded(access: Access) -> Guard:
    return Guard(APP, access, LIMITS, Metrics())


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with serving(guarded(Access(names=("studio.example", "other.example:8080")))) as running:
        yield running


def ask(server: RunningServer, method: str = "GET", **headers: str) -> httpx.Response:
    return server.client.request(method, "/api/size", headers=headers)


def test_only_known_hosts_are_answered(server: RunningServer) -> None:
    for host in (
        "localhost",
        "127.0.0.1",
        "[::1]:99",
        f"LOCALHOST:{server.port}",
        "studio.example",
        "other.example:8080",
    ):
        assert ask(server, host=host).status_code == 200, host
    for host in ("attacker.example", "localhost.attacker.example", "", "127.0.0.2", "[::1", "other.example:81", "a@b"):
        assert error_of(ask(server, host=host))[0] == 403, host


def test_only_the_own_origin_is_answered(server: RunningServer) -> None:
    own = f"127.0.0.1:{server.port}"
    assert ask(server, "POST", origin=f"http://{own}").status_code == 200
    assert ask(server, "POST", host="studio.example", origin="https://studio.example").status_code == 200
    for origin in (
        "http://attacker.example",
        "null",
        f"http://127.0.0.1:{server.port + 1}",
        "http://localhost",
        "",
        "http://[",
        f"file://{own}",
    ):
        assert error_of(ask(server, "POST", origin=origin))[0] == 403, origin


def test_token_is_required_for_the_api_but_not_for_the_page() -> None:
    with serving(guarded(Access(token=TOKEN))) as server:
        assert ask(server, authorization=f"Bearer {TOKEN}").status_code == 200
        assert ask(server, authorization=f"bearer {TOKEN}").status_code == 200
        for value in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
            response = ask(server, authorization=value)
            assert error_of(response)[0] == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert error_of(ask(server))[0] == 401
        headers = {b"authorization": "Bearer é".encode()}
        assert error_of(server.client.get("/api/size", headers=headers))[0] == 401
        assert server.client.get("/").status_code == 200


def test_large_bodies_are_refused_before_they_are_read(server: RunningServer) -> None:
    assert server.client.post("/api/size", content=b"x" * 1000).text == "1000"
    status, sentence = error_of(server.client.post("/api/size", content=b"x" * 1001))
    assert (status, sentence) == (413, "The body is larger than 0.000953674 MiB.")

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 100

    assert error_of(server.client.post("/api/size", content=chunks()))[0] == 413


def raw(server: RunningServer, *parts: bytes) -> bytes:
    """The answer to bytes on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def test_slow_bodies_are_given_up(server: RunningServer) -> None:
    head = b"POST /api/size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n"
    start = time.monotonic()
    answer = raw(server, head, b"x")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within 0.3 seconds" in answer
    assert time.monotonic() - start < 5
    invalid = head.replace(b"500", b"-5")
    assert raw(server, invalid).startswith(b"HTTP/1.1 400 ")


def test_too_many_open_requests_are_refused() -> None:
    limits = Limits(requests=1, body_seconds=5)
    with serving(Guard(APP, Access(), limits, Metrics())) as server:
        head = b"POST /api/size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as waiting:
            waiting.sendall(head)
            status = 200
            while status == 200:  # until the other one has arrived
                response = ask(server)
                status = response.status_code
            assert error_of(response)[0] == 503
            assert response.headers["retry-after"] == "1"
            waiting.sendall(b"xxxxx")
            assert b"200 OK" in waiting.recv(1000)


def test_server_beyond_loopback_needs_a_token() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "host.example")] == [
        *[True] * 3,
        *[False] * 3,
    ]
    for host in ("0.0.0.0", "::", "192.168.0.7"):
        with pytest.raises(SketchError, match="the server needs a token: set SKETCHDNN_TOKEN or --token-file"):
            ServerOptions(host)
        assert ServerOptions(host, token=TOKEN).token == TOKEN
    bad: list[dict[str, Any]] = [{"token": "short"}, {"token": "ä" * 20}, {"port": 70_000}]
    for options in bad:
        with pytest.raises(SketchError):
            ServerOptions(**options)
