"""`manifest.json`: what was asked for, by which model it was drawn, and what became of each sketch.

Entries go to a hidden file as sketches are written, so that a million of them need no memory; at the end they are put
together, whoever wrote them.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import sketchdnn
from sketchdnn.formats import FormatError
from sketchdnn.formats.atomic import replacing

MANIFEST = "manifest.json"
# What files of sketches are called after their stem: nothing else is taken for one, whatever a manifest says.
_NUMBERED = r"-\d{4,10}(\.trajectory)?\.\w{2,5}"


class Spool:
    """Entries on their way to the manifest: one a line."""

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.path = folder / f".manifest-{rank:05d}.part"
        try:
            # Without a buffer, which a full disk would leave to be written later.
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def add(self, entry: Mapping[str, Any]) -> None:
        """Written out at once: what follows may be stopped at any time."""
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise FormatError(self.path, f"cannot be written ({error.strerror})") from error

    def close(self) -> None:
        """No more entries."""
        self._file.close()


def spools(folder: Path, world: int) -> list[Path]:
    """The parts of all processes, in the order of their numbers."""
    return [folder / f".manifest-{rank:05d}.part" for rank in range(world)]


def entries(parts: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """What was added, in order; a last line that was cut short is left out."""
    for part in parts:
        try:
            with part.open(encoding="utf-8") as lines:
                for line in lines:
                    if line.endswith("\n"):
                        yield json.loads(line)
        except OSError as error:
            raise FormatError(part, f"cannot be read ({error.strerror})") from error


def write_manifest(folder: Path, facts: Mapping[str, Any], parts: Iterable[Path]) -> Path:
    """The facts, and all entries as `sketches`, one a line; they are read as they are written."""
    path = folder / MANIFEST
    head = json.dumps({"program": f"sketchdnn {sketchdnn.__version__}", **facts}, indent=1, ensure_ascii=False)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.write(head.removesuffix("\n}") + ',\n "sketches": [')
        for number, entry in enumerate(entries(parts)):
            out.write(("," if number else "") + "\n  " + json.dumps(entry, ensure_ascii=False))
        out.write("\n ]\n}\n")
    return path


def clear_earlier(folder: Path, stem: str, beside: Iterable[str]) -> int:
    """Remove the sketches of that stem that an earlier run's manifest lists, it and files `beside` it; says how many.

    So that no sketch of another run lies among the new ones. Files that it does not list stay.
    """
    path = folder / MANIFEST
    ours = re.compile(re.escape(stem) + _NUMBERED, re.ASCII)
    removed = 0
    try:
        for name in _listed(path):
            if ours.fullmatch(name) and (folder / name).is_file():
                (folder / name).unlink()
                removed += 1
        if removed:
            for name in (*beside, MANIFEST):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise FormatError(path, f"lists files that cannot be removed ({error.strerror})") from error
    return removed


def _listed(path: Path) -> Iterator[str]:
    """The names that a manifest lists, read a line at a time, as `write_manifest` writes them."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                entry = json.loads(line.strip().removesuffix(","))
            except (ValueError, RecursionError):
                continue
            names = entry.get("files") if isinstance(entry, dict) else None
            for name in names if isinstance(names, list) else ():
                if isinstance(name, str):
                    yield name
