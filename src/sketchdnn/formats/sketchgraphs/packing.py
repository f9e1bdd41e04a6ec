"""Write the file around SketchGraphs sequences, laid out as `container` reads it."""

from __future__ import annotations

import io
import shutil
import struct
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from sketchdnn.io import atomic_write

from .container import (
    ARRAY,
    DICTIONARY_MAGIC,
    DICTIONARY_VERSION,
    FLAT_LIST,
    LIST_MAGIC,
    LIST_VERSION,
    NOTES,
    SEQUENCES,
)
from .pickling import dump_header

LENGTHS = "sequence_lengths"
_HEADER = struct.Struct("<qqq")
_SLACK = bytes(8)
_COMPRESSION = 3  # as in the official files


class Add(Protocol):
    """Adds a sequence to a file: its pickle, its number of operations, its notes."""

    def __call__(self, pickle: bytes, length: int, note: bytes = b"") -> None: ...


@contextmanager
def writing(path: Path) -> Iterator[Add]:
    """Yield what adds a sequence to a file that is written whole or not at all.

    The offsets come first in the file, so frames wait in others; memory holds 24 bytes a sequence.
    """
    lengths = array("q")
    with (
        atomic_write(path) as temporary,
        temporary.open("wb") as file,
        TemporaryFile(dir=path.parent) as sequence_frames,
        TemporaryFile(dir=path.parent) as note_frames,
    ):
        sequences, notes = _FlatList(sequence_frames), _FlatList(note_frames)

        def add(pickle: bytes, length: int, note: bytes = b"") -> None:
            sequences.add(pickle)
            notes.add(note)
            lengths.append(length)

        yield add
        _assemble(file, sequences, notes, np.array(lengths, "<i8"))


class _FlatList:
    """A flat list in the making, its frames in a file."""

    def __init__(self, frames: IO[bytes]) -> None:
        from lz4.frame import compress

        self.frames = frames
        self.offsets = array("q", [0])
        self.is_blank = True
        self._compress = partial(compress, compression_level=_COMPRESSION, store_size=False)
        self._blank: bytes = self._compress(b"")

    def add(self, data: bytes) -> None:
        frame = self._compress(data) if data else self._blank
        self.frames.write(frame)
        self.offsets.append(self.offsets[-1] + len(frame))
        self.is_blank = self.is_blank and not data

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def num_bytes(self) -> int:
        return _HEADER.size + 8 * len(self.offsets) + self.offsets[-1] + len(_SLACK)

    def write(self, file: IO[bytes]) -> None:
        file.write(_HEADER.pack(LIST_MAGIC, LIST_VERSION, len(self)))
        file.write(np.array(self.offsets, "<i8").tobytes())
        self.frames.seek(0)
        shutil.copyfileobj(self.frames, file, 1 << 20)
        file.write(_SLACK)


def _assemble(file: IO[bytes], sequences: _FlatList, notes: _FlatList, lengths: NDArray[np.int64]) -> None:
    """Put the parts of the official layout one behind the other."""
    counts = _array_header("<i8", len(lengths)) + lengths.tobytes()
    # With no sequence the counts are an array of none, which is what the sequences are then.
    blobs: dict[str, tuple[int, bytes, _FlatList | None]] = {
        SEQUENCES: (FLAT_LIST, b"", sequences) if len(sequences) else (ARRAY, counts, None),
        LENGTHS: (ARRAY, counts, None),
    }
    if not notes.is_blank:
        blobs[NOTES] = (ARRAY, _array_header("|u1", notes.num_bytes()), notes)
    entries: dict[str, tuple[int, int, int]] = {}
    end = 0
    for key, (type_, head, flat_list) in blobs.items():
        size = len(head) + (flat_list.num_bytes() if flat_list else 0)
        entries[key] = (end, size, type_)
        end += size
    header = dump_header(entries)
    dictionary_header = _HEADER.pack(DICTIONARY_MAGIC, DICTIONARY_VERSION, len(header)) + header
    file.write(_array_header("|i1", len(dictionary_header) + end))
    file.write(dictionary_header)
    for _, head, flat_list in blobs.values():
        file.write(head)
        if flat_list:
            flat_list.write(file)


def _array_header(descr: str, length: int) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": (length,)})
    return header.getvalue()
