"""`sketchdnn studio`: starts the server and opens its page in the browser."""

from __future__ import annotations

import threading
import webbrowser
from typing import Annotated
from urllib.parse import quote

from typer import Option

from . import gallery_command
from .options import Device
from .serve import Port, read_token, run

EPILOG = "Example: sketchdnn studio"


def studio(
    port: Port = 8765,
    model: gallery_command.Model = "ours",
    device: Device = "auto",
    browser: Annotated[bool, Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open the studio in the browser: generate, draw, complete, constrain and export. Ctrl-C ends it."""

    # The page keeps the token for its tab; browsers do not send a fragment to the server.
    token = read_token(None)
    fragment = f"#token={quote(token, safe='')}" if token else ""

    def open_page(url: str) -> None:
        # In a thread: some systems wait until the browser is closed.
        if browser:
            threading.Thread(target=webbrowser.open, args=(url + fragment,), daemon=True).start()

    run("127.0.0.1", port, model, device, None, None, on_ready=open_page)
