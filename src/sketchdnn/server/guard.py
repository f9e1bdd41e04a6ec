"""Checks of every request before its route: host, origin, token, number of open requests, size and time of the body.

A page of another site can have the browser send requests to this machine under a host name of that site (DNS
rebinding). So the names in `Host` and `Origin` must be the server's own.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits
from .metrics import Metrics
from .responses import ApiError, error_response

API = "/api/"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use the server.

    Attributes:
        host: The address that it listens on.
        token: The token that clients must send; None if none is needed.
        names: Further host names of the server, with or without a port.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    names: tuple[str, ...] = ()
    _host_names: frozenset[str] = field(init=False, default=frozenset())

    def __post_init__(self) -> None:
        names = {self.host, *self.names, *(_LOOPBACK if is_loopback(self.host) else ())}
        object.__setattr__(self, "_host_names", frozenset(name.strip("[]").lower() for name in names))

    def check(self, scope: Scope, headers: Headers) -> None:
        """Raise `ApiError` for a foreign host or origin, or a wrong token."""
        host = headers.get("host", "")
        if not self._is_own_host(host):
            raise ApiError(403, "this server is not known under that name; start it with --allow-host for others")
        origin = headers.get("origin")
        if origin is not None and not _is_origin_of(origin, host):
            raise ApiError(403, "requests from pages of other origins are refused")
        if self.token is not None and scope["path"].startswith(API):
            kind, _, token = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
                raise ApiError(401, "this server needs its token, sent as 'Authorization: Bearer TOKEN'")

    def _is_own_host(self, netloc: str) -> bool:
        try:
            name = urlsplit(f"//{netloc}").hostname or ""
        except ValueError:
            return False
        return name in self._host_names or netloc.lower() in self._host_names


def _is_origin_of(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class Guard:
    """An ASGI application around another one: checks each request, reads its body, and adds headers to answers."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics) -> None:
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        self._requests += 1
        try:
            await self._pass_on(scope, receive, send_with_headers)
        finally:
            self._requests -= 1
            route = getattr(scope.get("route"), "path", None) or "other"
            self.metrics.count(scope["method"], route, status, time.monotonic() - start)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            if self._requests > self.limits.requests:
                raise ApiError(503, "the server has too many open requests; try again", 1)
            self.access.check(scope, headers)
            receive = await self._read_body(headers, receive)
        except ApiError as error:
            # The rest of the body is not read, so the connection cannot be used again.
            extra = error.headers | {"Connection": "close"}
            if error.status == 401:
                extra["WWW-Authenticate"] = "Bearer"
            await error_response(error.status, error.sentence, extra)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _read_body(self, headers: Headers, receive: Receive) -> Receive:
        """Read the body within the limits; the application then receives it at once."""
        most, seconds = self.limits.body_bytes, self.limits.body_seconds
        too_large = ApiError(413, f"the body is larger than {most / 2**20:g} MiB")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        until = time.monotonic() + seconds
        more = True
        while more:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, until - time.monotonic()))
            except TimeoutError as error:
                raise ApiError(408, f"the body did not arrive within {seconds:g} seconds") from error
            if message["type"] != "http.request":
                return _replay(message, receive)
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > most:
                raise too_large
            chunks.append(chunk)
            more = message.get("more_body", False)
        return _replay({"type": "http.request", "body": b"".join(chunks), "more_body": False}, receive)


def _replay(message: Message, receive: Receive) -> Receive:
    pending: list[Message] = [message]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed
