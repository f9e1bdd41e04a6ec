"""`sketchdnn mcp`: the tools of the package for assistants, over the Model Context Protocol."""

from __future__ import annotations

from sketchdnn.errors import SketchError

from .gallery_command import Model
from .options import Device

EPILOG = "Example: sketchdnn mcp --device cpu"


def mcp(model: Model = "ours", device: Device = "auto") -> None:
    """Serve the tools generate, complete, constrain, repair and convert over the Model Context Protocol.

    A client starts this command and talks to it on standard input and output.
    """
    try:
        from sketchdnn.server.mcp import serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise SketchError("the extra mcp is not installed; run: pip install 'sketchdnn[mcp]'") from error
    serve_stdio(model, device)
