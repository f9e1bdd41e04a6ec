"""`sketchdnn serve`: starts the server with the HTTP API and the studio's page."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from sketchdnn.errors import MissingError, SketchError, display_path

from . import gallery_command
from .options import Device, path_option

EPILOG = "Example: sketchdnn serve --port 8765"
TOKEN_VARIABLE = "SKETCHDNN_TOKEN"  # noqa: S105
# The line on standard output when requests are answered; programs that start the server wait for it.
READY = "sketchdnn: serving at "
_NEEDED = ("fastapi", "uvicorn")

TOKEN_FILE = f"A file with the token that clients must send; by default the variable {TOKEN_VARIABLE}."
ALLOW_HOST = "A further name that the server is known under, such as that of a proxy; may be repeated."
Host = Annotated[str, Option(help="The address to listen on; beyond 127.0.0.1 a token is required.")]
Port = Annotated[int, Option(min=0, max=65535, help="The port; 0 means any that is free.")]
TokenFile = Annotated[Path | None, path_option(help=TOKEN_FILE)]
AllowHost = Annotated[list[str] | None, Option(help=ALLOW_HOST)]
_limit = {"rich_help_panel": "Limits", "min": 1}
MaxCount = Annotated[int, Option(help="Sketches of one request.", **_limit)]
MaxSeconds = Annotated[int, Option(help="Seconds that a request of the model may run.", **_limit)]
MaxWaiting = Annotated[int, Option(help="Requests of the model that may wait.", **_limit)]
MaxPerClient = Annotated[int, Option(help="Requests of the model that one client may have.", **_limit)]
MaxMegabytes = Annotated[int, Option(help="Size of a request's body, in MiB.", **_limit)]


def serve(
    host: Host = "127.0.0.1",
    port: Port = 8765,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    max_count: MaxCount = 64,
    max_seconds: MaxSeconds = 120,
    max_waiting: MaxWaiting = 64,
    max_per_client: MaxPerClient = 8,
    max_megabytes: MaxMegabytes = 16,
) -> None:
    """Serve the HTTP API and the studio until Ctrl-C. The URL is printed when requests are answered."""
    limits = {"count": max_count, "job_seconds": max_seconds, "waiting": max_waiting, "per_client": max_per_client}
    limits["body_bytes"] = max_megabytes * 2**20
    run(host, port, model, device, token_file, allow_host, limits)


def run(
    host: str,
    port: int,
    model: str,
    device: str,
    token_file: Path | None,
    allow_host: list[str] | None,
    limits: dict[str, int] | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve, and print the URL; `on_ready` is called with it too."""
    check_installed()
    token = read_token(token_file)

    # Imported here: torch and FastAPI take seconds to load, and --help should not.
    from sketchdnn.server.limits import Limits
    from sketchdnn.server.run import ServerOptions, log_to_stderr
    from sketchdnn.server.run import serve as serve_until_signal

    def ready(url: str) -> None:
        typer.echo(f"{READY}{url}")
        on_ready(url)

    options = ServerOptions(host, port, model, device, token, tuple(allow_host or ()), Limits(**(limits or {})))
    log_to_stderr()
    serve_until_signal(options, ready)


def check_installed() -> None:
    """Refuse to start without the packages of the extra."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise SketchError("the server needs FastAPI and uvicorn: pip install 'sketchdnn[studio]'")


def read_token(path: Path | None) -> str | None:
    """The token of the file or of the environment."""
    if path is None:
        return os.environ.get(TOKEN_VARIABLE) or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise MissingError(f"{display_path(path)}: there is no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SketchError(f"{display_path(path)}: cannot be read as a token") from error
