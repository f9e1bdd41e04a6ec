"""The `manifest.json` of a folder that `generate` or `complete` wrote: the files of each sketch and their SHA-256.

A manifest is not trusted: only plain names of files in its own folder count, each once, and links are not followed.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
PAGE, GALLERY = "gallery.html", "gallery.png"
PROGRAM = "sketchdnn"
# A larger manifest is not parsed as a whole; it must have an entry a line, as we write it.
LARGEST_WHOLE = 2**24
LONGEST_LINE = 2**20
LARGEST_FILE = 2**26
# The suffixes to read a sketch back from, best first: all but the last keep everything.
PREFERRED_SUFFIXES = (".json", ".svg", ".FCStd", ".dxf")

# The files of one sketch, or of the gallery: names, and hashes if the manifest has them.
Entry = dict[str, str | None]


def is_manifest(path: Path) -> bool:
    """Whether a file is a manifest of this program."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        if path.stat().st_size > LARGEST_WHOLE:
            with path.open("rb") as file:
                return f'"program": "{PROGRAM} '.encode() in file.read(256)
        match _parse(path.read_bytes()):
            case {"program": program, "sketches": list()}:
                return str(program).startswith(f"{PROGRAM} ")
    except OSError:
        pass
    return False


def manifest_entries(path: Path) -> Iterator[Entry]:
    """The files of the gallery and of each sketch in a manifest; none if it cannot be read."""
    try:
        if not is_manifest(path):
            return
        if path.stat().st_size <= LARGEST_WHOLE:
            content = _parse(path.read_bytes())
            yield from map(_files, (content.get("gallery"), *content["sketches"]))
            return
        with path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                yield _files(_parse(line.strip().removeprefix(b'"gallery": ').removesuffix(b",")))
    except OSError:
        return


def select_sketch_files(folder: Path, names: Container[str]) -> tuple[list[str], set[str]]:
    """One file for each sketch of a folder with a manifest, and all names that the manifest lists.

    It is the first of `PREFERRED_SUFFIXES` that is there; files changed since they were written come first.

    Args:
        folder: A folder that holds a manifest.
        names: The files in it.
    """
    chosen: list[str] = []
    known: set[str] = {MANIFEST, PAGE, GALLERY}
    for files in manifest_entries(folder / MANIFEST):
        here = {name: sha256 for name, sha256 in files.items() if name in names and name not in known}
        known |= here.keys()
        ranked = [name for name in sorted(here) if _is_sketch(folder / name)]
        ranked.sort(key=lambda name: PREFERRED_SUFFIXES.index(Path(name).suffix))
        changed = [name for name in ranked if here[name] is not None and file_sha256(folder / name) != here[name]]
        chosen += (changed or ranked)[:1]
    return chosen, known


def file_sha256(path: Path) -> str | None:
    """The SHA-256 of a file; None for a link, a file that cannot be read or a huge one."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
            return None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _is_sketch(path: Path) -> bool:
    """Whether a file is a sketch in a readable format; not an animation of its sampling, nor a link."""
    return path.suffix in PREFERRED_SUFFIXES and len(path.suffixes) == 1 and path.is_file() and not path.is_symlink()


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _files(entry: Any) -> Entry:
    """The plain names of an entry, with their hashes."""
    match entry:
        case {"files": list(names), "sha256": list(hashes)} if len(hashes) == len(names):
            pass
        case {"files": list(names)}:
            hashes = [None] * len(names)
        case _:
            return {}
    return {
        name: sha256 if isinstance(sha256, str) else None
        for name, sha256 in zip(names, hashes, strict=True)
        if isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")
    }
