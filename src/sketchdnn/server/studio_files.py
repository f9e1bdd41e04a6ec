"""The files of the studio's page. Only files that are in the package when the server starts are served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.responses import Response

from .responses import ApiError

FOLDER = Path(__file__).with_name("studio")
INDEX = "index.html"
_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


def find_files(folder: Path = FOLDER) -> dict[str, Path]:
    """The files that may be served, by name within the folder."""
    if not folder.is_dir():
        return {}
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in _TYPES and path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in files if not path.is_symlink()}


def file_response(files: Mapping[str, Path], name: str) -> Response:
    """The file of that name."""
    path = files.get(name or INDEX)
    if path is None:
        raise ApiError(404, "there is nothing here; the API is under /api/v1/")
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})
