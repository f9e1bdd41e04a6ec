"""The project's own files: `.json` holds one sketch, `.jsonl` one a line, plain or compressed with gzip or xz."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.formats.archives import XZ_MEMORY, open_xz
from sketchdnn.formats.format import ReadItem, Skipped, short_reason
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write

from .format import Format, single_sketch
from .records import dumps, read_record, to_record, write_record

# Room for 100,000 primitives. JSON may need 30 bytes of memory for one of its own, so more could fill the memory.
LARGEST_RECORD = 16 * 2**20
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.xz")


def read_json(path: Path) -> Iterator[ReadItem]:
    """The one sketch of a `.json`."""
    with path.open("rb") as file:
        data = file.read(LARGEST_RECORD + 1)
    if len(data) > LARGEST_RECORD:
        raise FormatError(path, f"is larger than {LARGEST_RECORD >> 20} MiB, too large for one sketch")
    try:
        sketch = read_record(data)
    except SketchError as error:
        raise FormatError(path, f"is not a sketch: {quoted(error)}") from error
    yield sketch


def write_json(sketches: Iterable[Sketch], path: Path) -> None:
    """One sketch, one primitive a line, so that people can read it and version control can compare it."""
    sketch = single_sketch(sketches, path)
    parts = []
    for key, value in to_record(sketch).items():
        is_list = key in ("primitives", "constraints") and value
        text = "[\n  " + ",\n  ".join(map(dumps, value)) + "]" if is_list else dumps(value)
        parts.append(f"{dumps(key)}: {text}")
    with atomic_write(path) as temporary:
        temporary.write_text("{" + ",\n ".join(parts) + "}\n", encoding="utf-8")


def read_lines(path: Path) -> Iterator[ReadItem]:
    """A sketch a line; a line that is none is counted and the next one read."""
    for line in lines(path):
        if isinstance(line, Skipped):
            yield line
            continue
        try:
            yield read_record(line)
        except SketchError as error:
            yield Skipped(short_reason(error), is_sketch=True)


def write_lines(sketches: Iterable[Sketch], path: Path, *, compact: bool = False) -> None:
    """A sketch a line, written as they come; compressed when the name says so."""
    with atomic_write(path) as temporary, _open(temporary, "wb") as file:
        for sketch in sketches:
            file.write(write_record(sketch, compact=compact).encode() + b"\n")


def lines(path: Path) -> Iterator[bytes | Skipped]:
    """The lines of a file that are not blank, however long the file is."""
    try:
        with _open(path, "rb") as file:
            yield from _lines(file)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        memory = f"in need of over {XZ_MEMORY >> 20} MiB of memory"
        raise FormatError(path, f"is compressed, and damaged, cut off or {memory}") from error


def _lines(file: IO[bytes]) -> Iterator[bytes | Skipped]:
    while line := file.readline(LARGEST_RECORD + 1):
        if len(line) <= LARGEST_RECORD:
            if line.strip():
                yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LARGEST_RECORD)
        yield Skipped(f"a line longer than {LARGEST_RECORD >> 20} MiB", is_sketch=True)


def _open(path: Path, mode: str) -> IO[bytes]:
    """By the name alone: a temporary name keeps its suffix."""
    match path.suffix.lower():
        case ".gz":
            return cast("IO[bytes]", gzip.open(path, mode))
        case ".xz":
            return open_xz(path) if mode == "rb" else cast("IO[bytes]", lzma.open(path, mode))
    return cast("IO[bytes]", path.open(mode))


def _is_json(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".json" and b'"primitives"' in head


def _is_lines(path: Path, head: bytes) -> bool:
    return path.name.lower().endswith(LINE_SUFFIXES)


JSON = Format("json", (".json",), holds_many=False, recognizes=_is_json, read=read_json, write=write_json)
JSONL = Format("jsonl", LINE_SUFFIXES, holds_many=True, recognizes=_is_lines, read=read_lines, write=write_lines)
