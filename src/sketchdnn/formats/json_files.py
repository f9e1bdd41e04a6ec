"""JSON files of sketches: `.json` holds one, `.jsonl` one a line, `.corpus.jsonl` one a line with primitives as rows.

    {"source": "freecad", "licence": "MIT", "group": "…", "id": "…", "primitives": [["L", 0, 0.0, 0.5, 0.5, 0.5], …]}

The data is that of `Sketch.to_dict`. Lines may be compressed with gzip or xz. Text is parsed strictly: UTF-8, no NaN or
Infinity, no key twice, bounded depth and size.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write

from .archives import XZ_MEMORY, open_xz
from .checks import read_bounded, short_reason, single_sketch
from .format import Format, Losses, ReadItem, Skipped

# Enough for 100,000 primitives. JSON may need 30 bytes of memory for one of its own, so more could fill the memory.
LARGEST_RECORD = 16 * 2**20
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
_FIRST_ROW = re.compile(rb'"primitives"\s*:\s*\[\s*\["[LCAP]"')


def read_json(path: Path) -> Iterator[ReadItem]:
    """The one sketch of a `.json` file."""
    data = read_bounded(path, LARGEST_RECORD)
    try:
        sketch = parse_record(data)
    except SketchError as error:
        raise FormatError(path, f"is not a sketch: {quoted(error)}") from error
    yield sketch


def write_json(sketches: Iterable[Sketch], path: Path) -> None:
    """One sketch, a primitive a line, so that people can read it and version control can compare it."""
    sketch = single_sketch(sketches, path)
    parts = []
    for key, value in sketch.to_dict().items():
        is_list = key in ("primitives", "constraints") and value
        text = "[\n  " + ",\n  ".join(map(dump_json, value)) + "]" if is_list else dump_json(value)
        parts.append(f"{dump_json(key)}: {text}")
    with atomic_write(path) as temporary:
        temporary.write_text("{" + ",\n ".join(parts) + "}\n", encoding="utf-8")


def read_lines(path: Path) -> Iterator[ReadItem]:
    """A sketch a line; a line that holds none is counted, and reading continues."""
    for line in iter_lines(path):
        if isinstance(line, Skipped):
            yield line
            continue
        try:
            yield parse_record(line)
        except SketchError as error:
            yield Skipped(short_reason(error), is_sketch=True)


def write_lines(sketches: Iterable[Sketch], path: Path, *, compact: bool = False) -> None:
    """A sketch a line, written as they come; compressed by the suffix of the path."""
    with atomic_write(path) as temporary, _open(temporary, "wb") as file:
        for sketch in sketches:
            file.write(format_record(sketch, compact=compact).encode() + b"\n")


def write_corpus(sketches: Iterable[Sketch], path: Path) -> Losses:
    """A sketch a line with primitives as rows, which hold no keys of a primitive's own."""
    losses = Losses()

    def counted() -> Iterator[Sketch]:
        for sketch in sketches:
            if isinstance(extras := sketch.extra.get("primitives"), Mapping):
                losses.left_out["a primitive's own keys, which corpus cannot hold"] += len(extras)
            yield sketch

    write_lines(counted(), path, compact=True)
    return losses


def iter_lines(path: Path) -> Iterator[bytes | Skipped]:
    """The lines of a file that are not blank. The length of the file does not matter."""
    try:
        with _open(path, "rb") as file:
            yield from _bounded_lines(file)
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        memory = f"in need of over {XZ_MEMORY >> 20} MiB of memory"
        raise FormatError(path, f"is compressed, and damaged, cut off or {memory}") from error


def parse_record(data: bytes) -> Sketch:
    """The sketch in the JSON text of one record; `SketchError` if it holds none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SketchError("text that is not UTF-8") from error
    return Sketch.from_dict(parse_json(text))


def format_record(sketch: Sketch, *, compact: bool = False) -> str:
    """One line of JSON. Extra data that is not JSON is refused rather than lost."""
    return dump_json(sketch.to_dict(compact=compact))


def dump_json(value: object) -> str:
    """JSON on one line, in ASCII."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SketchError(f"a sketch cannot be written as JSON: {error}") from error


def parse_json(text: str) -> object:
    """The value of JSON text: no NaN or Infinity, no key twice, bounded depth; `SketchError` otherwise."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise SketchError("JSON nested too deeply") from error
    except json.JSONDecodeError as error:
        raise SketchError(f"not JSON: {error.msg}, line {error.lineno}, column {error.colno}") from error
    except SketchError:
        raise
    except ValueError as error:  # Python refuses to parse a number of thousands of digits
        raise SketchError("a number too large to read") from error


def _bounded_lines(file: IO[bytes]) -> Iterator[bytes | Skipped]:
    while line := file.readline(LARGEST_RECORD + 1):
        if len(line) > LARGEST_RECORD:
            while line and not line.endswith(b"\n"):
                line = file.readline(LARGEST_RECORD)
            yield Skipped(f"a line longer than {LARGEST_RECORD >> 20} MiB", is_sketch=True)
        elif line.strip():
            yield line


def _open(path: Path, mode: str) -> IO[bytes]:
    """Open by suffix alone, which a temporary name shares."""
    if path.suffix.lower() == ".xz" and mode == "rb":
        return open_xz(path)
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    return cast("IO[bytes]", opener(path, mode))


def _refuse_constant(word: str) -> None:
    raise SketchError(f"{word} where a number belongs")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise SketchError("an object with a key that appears twice")
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def _is_json(path: Path, head: bytes) -> bool:
    return path.suffix.lower() == ".json" and b'"primitives"' in head


def _is_lines(path: Path, head: bytes) -> bool:
    return path.name.lower().endswith(LINE_SUFFIXES)


def _is_corpus(path: Path, head: bytes) -> bool:
    """Whether the first record, which compression may hide from `head`, has rows."""
    if not _is_lines(path, head):
        return False
    first = next(iter_lines(path), b"")
    return not isinstance(first, Skipped) and _FIRST_ROW.search(first) is not None


JSON = Format("json", (".json",), False, _is_json, read_json, write_json, is_text=True)
JSONL = Format("jsonl", LINE_SUFFIXES, True, _is_lines, read_lines, write_lines, is_text=True)
# A plain `.jsonl` is written as JSONL; on reading the content decides. One reader handles both, record by record.
_CORPUS_SUFFIXES = tuple(f".corpus{suffix}" for suffix in LINE_SUFFIXES)
CORPUS = Format("corpus", _CORPUS_SUFFIXES, True, _is_corpus, read_lines, write_corpus, is_text=True)
