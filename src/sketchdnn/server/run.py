"""Runs the server: binds the socket, prints where it listens, and stops cleanly on a signal."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

import uvicorn

from sketchdnn.errors import SketchError

from .app import create_app
from .guard import Access, is_loopback
from .limits import Limits
from .service import ModelInfo, Service

# Connections that the system keeps until they are accepted.
_BACKLOG = 1024
# Seconds that an idle connection is kept.
_KEEP_ALIVE = 20
# After this time the process ends, even in the middle of a step of the model. Errors have been sent before.
_STOP_SECONDS = 2.5


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How to serve.

    Attributes:
        host: The address to listen on.
        port: The port; 0 means any that is free.
        model: A folder, the name of a bundled model, or hub:OWNER/NAME.
        device: auto, cpu, cuda or cuda:1.
        token: The token that clients must send; required beyond loopback.
        names: Further host names of the server.
        limits: Limits of requests.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    model: str = "ours"
    device: str = "auto"
    token: str | None = None
    names: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65536:
            raise SketchError(f"a port is a number from 0 to 65535, not {self.port}")
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()):
            raise SketchError("a token has at least 8 letters, digits or signs of ASCII")
        if self.token is None and not is_loopback(self.host):
            needs = "set SKETCHDNN_TOKEN or --token-file"
            raise SketchError(f"other machines can reach {self.host}, so the server needs a token: {needs}")


def serve(options: ServerOptions, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal.

    Args:
        options: How to serve.
        on_ready: Called with the URL when requests are answered.
    """
    listener = bind(options.host, options.port)
    port = listener.getsockname()[1]
    service = Service(ModelInfo.load(options.model, options.device), options.limits)
    app = create_app(service, Access(options.host, options.token, options.names))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        ws="none",
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(options.limits.stop_seconds + 1)),
    )
    server = Server(config, service, lambda: on_ready(url(options.host, port)))
    try:
        server.run(sockets=[listener])
    finally:
        service.stop()
        if server.exit_code is not None:
            server.end_now()


class Server(uvicorn.Server):
    """A server that stops its service as soon as a signal arrives, while connections are still open."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_ready = service, on_ready
        self.exit_code: int | None = None  # set by a signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `on_ready`."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop. A second signal stops at once."""
        self.exit_code = 128 + sig
        threading.Thread(target=self._service.stop, name="stop", daemon=True).start()
        deadline = threading.Timer(_STOP_SECONDS, self.end_now)
        deadline.daemon = True
        deadline.start()
        super().handle_exit(sig, frame)

    def end_now(self) -> None:
        """End the process at once: a regular exit with PyTorch and the model may take seconds."""
        self._service.close_pools()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.exit_code or 0)


def bind(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address.

    Raises:
        SketchError: If the address cannot be used, for example because it is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY); else each takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or os.strerror(error.errno or 0)
        raise SketchError(f"cannot listen on {host} port {port} ({reason}); choose another --port, or 0") from error
    listener.set_inheritable(False)
    return listener


def url(host: str, port: int) -> str:
    """The URL of a server."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def log_to_stderr() -> None:
    """Log what goes wrong to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("sketchdnn").addHandler(handler)
