"""The file around SketchGraphs sequences: an `.npy` of bytes that holds a dictionary that holds a list of LZ4 frames.

    .npy, 1-D int8:  dictionary | flat list (a file of one list may leave the dictionary out)
    dictionary:      magic, version 1, H; H bytes of pickle {key: (offset, length, type)}; the blobs
    flat list:       magic, version 2, N; N + 1 offsets; N frames end to end; up to 8 bytes of slack

All numbers are little-endian int64; a dictionary's offsets count from the end of its header, a list's from the end of
its offsets. The file is memory-mapped, so its size does not matter, and every offset is checked before it is followed:
frames that overlap would have a small file unpacked many times over.
Beside the sequences a file of ours may have notes on them: an array of bytes that is itself a flat list, whose frames
hold text. A list of no sequences is an empty array: the official library cannot count a flat list of none.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import FormatError, quoted
from sketchdnn.formats.format import Skipped

from .ops import PickleError, load_plain

DICTIONARY_MAGIC, DICTIONARY_VERSION = 87374267, 1
LIST_MAGIC, LIST_VERSION = -2356038617, 2
ARRAY, FLAT_LIST = 1, 2  # types of a dictionary's blobs; 0 is a pickle, which we have no use for
SEQUENCES, IDS, NOTES = "sequences", "sketch_ids", "sketchdnn_notes"

# A sequence of 16 primitives takes 2 KiB; a pickle may need 80 bytes of memory for one of its own.
LARGEST_SEQUENCE = 4 * 2**20
_LARGEST_HEADER = 2**20
# Offsets looked at together: a list of all of them would take five times the memory of the array.
_TOGETHER = 4096
_LARGEST_ARRAY_HEADER = 16 * 1024
_LONGEST_ID = 200
_HEADER = struct.Struct("<qqq")
# All that numpy raises for a file that is not one of its own, or damaged.
NO_ARRAY = (ValueError, EOFError, OverflowError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The frames of an open file, the name of each sketch where the file gives one, and its notes likewise."""

    path: Path
    offsets: NDArray[np.int64]
    frames: memoryview
    ids: NDArray[np.generic] | None = None
    notes: Sequences | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pickles(self, start: int, stop: int) -> Iterator[bytes | Skipped]:
        """The unpacked bytes of sequences start … stop − 1, or why there are none. No byte is unpacked twice."""
        from lz4.frame import create_decompression_context, decompress_chunk

        context = create_decompression_context()
        before = self.offsets[: start + 1]
        reached = int(before.max(initial=0, where=before <= len(self.frames)))
        places = chain.from_iterable(
            pairwise(self.offsets[first : min(first + _TOGETHER, stop) + 1].tolist())
            for first in range(start, stop, _TOGETHER)
        )
        for begin, end in places:
            if not 0 <= begin <= end <= len(self.frames):
                yield Skipped("a sequence that lies outside its file", is_sketch=True)
                continue
            if begin < reached:
                yield Skipped("a sequence that lies in another one", is_sketch=True)
                continue
            reached = end
            try:
                data, _, is_whole = decompress_chunk(context, self.frames[begin:end], max_length=LARGEST_SEQUENCE + 1)
            except (RuntimeError, ValueError, MemoryError):
                data, is_whole = b"", False
            if not is_whole:  # what is left of a frame would spoil the next one
                context = create_decompression_context()
            if len(data) > LARGEST_SEQUENCE:
                yield Skipped(f"a sequence over {LARGEST_SEQUENCE >> 20} MiB", is_sketch=True)
            elif is_whole:
                yield data
            else:
                yield Skipped("a sequence with a damaged LZ4 frame", is_sketch=True)

    def id_of(self, index: int) -> str:
        """The file's name for a sketch, else the file's own name and the place in it."""
        if self.ids is None:
            return f"{self.path.stem}/{index}"
        try:
            name = self.ids[index].item()
        except (ValueError, SystemError):  # code points that no text can hold
            return f"{self.path.stem}/{index}"
        parts = name if isinstance(name, tuple) else (name,)
        text = "/".join(p.decode(errors="replace") if isinstance(p, bytes) else str(p) for p in parts)
        return text[:_LONGEST_ID].encode(errors="replace").decode()  # half a surrogate pair could not be written again


def open_sequences(path: Path) -> Sequences:
    """Map a file into memory and find its sequences; `FormatError` when it is not such a file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers of other ages
            bytes_ = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror or error})") from error
    except NO_ARRAY as error:
        raise FormatError(path, "is not a whole .npy file") from error
    if bytes_.ndim != 1 or bytes_.dtype not in (np.int8, np.uint8):
        raise FormatError(path, "is an .npy file, but not of bytes as SketchGraphs writes it")
    data = memoryview(bytes_.view(np.uint8))  # type: ignore[arg-type]
    magic, version, size = _numbers(path, data)
    if (magic, version) == (LIST_MAGIC, LIST_VERSION):
        return Sequences(path, *_flat_list(path, data))
    if (magic, version) != (DICTIONARY_MAGIC, DICTIONARY_VERSION):
        raise FormatError(path, "is not a SketchGraphs file: its first numbers are others")
    return _dictionary(path, data, size)


def _numbers(path: Path, data: memoryview) -> tuple[int, int, int]:
    """The three numbers that a dictionary and a list begin with."""
    if len(data) < _HEADER.size:
        raise FormatError(path, "is cut short")
    magic, version, size = _HEADER.unpack_from(data)
    return magic, version, size


def _dictionary(path: Path, data: memoryview, header_size: int) -> Sequences:
    blobs = data[_HEADER.size :]
    if not 0 <= header_size <= min(len(blobs), _LARGEST_HEADER):
        raise FormatError(path, "is damaged: its header does not fit")
    try:
        entries = load_plain(bytes(blobs[:header_size]))
    except PickleError as error:
        raise FormatError(path, f"has a header with {error}") from error
    blobs = blobs[header_size:]
    sequences = _blob(path, blobs, entries, SEQUENCES, FLAT_LIST)
    if sequences is None and _is_empty(_blob(path, blobs, entries, SEQUENCES, ARRAY)):
        return Sequences(path, np.zeros(1, np.int64), memoryview(b""))
    if sequences is None:
        raise FormatError(path, "holds no sequences")
    offsets, frames = _flat_list(path, sequences)
    ids = _ids(path, _blob(path, blobs, entries, IDS, ARRAY), len(offsets) - 1)
    notes = _notes(path, _blob(path, blobs, entries, NOTES, ARRAY), len(offsets) - 1)
    return Sequences(path, offsets, frames, ids, notes)


def _is_empty(data: memoryview | None) -> bool:
    """Whether an entry is an array of nothing, as a list of no sequences is."""
    try:
        return data is not None and _array_in(data)[0] == (0,)
    except NO_ARRAY:
        return False


def _blob(path: Path, blobs: memoryview, entries: object, key: str, type_: int) -> memoryview | None:
    """The bytes of an entry; None where there is none of that name and type."""
    match entries:
        case {**named} if key in named:
            entry = named[key]
        case _:
            return None
    match entry:
        case (int(offset), int(length), int(found)) if found == type_:
            if min(offset, length) >= 0 and offset + length <= len(blobs):
                return blobs[offset : offset + length]
            raise FormatError(path, f"is damaged: its '{key}' lies outside the file")
    return None


def _flat_list(path: Path, data: memoryview) -> tuple[NDArray[np.int64], memoryview]:
    """The offsets of a list, and the frames they count into."""
    magic, version, count = _numbers(path, data)
    if (magic, version) != (LIST_MAGIC, LIST_VERSION):
        raise FormatError(path, "is damaged: its list of sequences does not begin like one")
    size = 8 * (count + 1)
    if not 0 < size <= len(data) - _HEADER.size:
        raise FormatError(path, f"is damaged: there is no room for its {count} sequences")
    frames = data[_HEADER.size + size :]
    return np.frombuffer(data[_HEADER.size : _HEADER.size + size], "<i8"), frames


def _ids(path: Path, data: memoryview | None, count: int) -> NDArray[np.generic] | None:
    """The names of the sketches, an embedded .npy, left where it is."""
    if data is None or not count:
        return None
    try:
        shape, dtype, values = _array_in(data)
        fits = shape == (count,) and not dtype.hasobject
        ids = np.frombuffer(values, dtype, count) if fits else None
    except NO_ARRAY as error:
        raise FormatError(path, "has damaged sketch names") from error
    if ids is None:
        raise FormatError(path, f"should name {count} sketches, but its names are {quoted(dtype)} of shape {shape}")
    return ids


def _notes(path: Path, data: memoryview | None, count: int) -> Sequences | None:
    """The notes on the sequences: an embedded .npy of bytes that are a flat list, left where it is."""
    if data is None or not count:
        return None
    try:
        shape, dtype, values = _array_in(data)
    except NO_ARRAY as error:
        raise FormatError(path, "has damaged notes") from error
    if dtype != np.uint8 or shape != (len(values),):
        raise FormatError(path, f"has damaged notes: {dtype} of shape {shape}")
    offsets, frames = _flat_list(path, values)
    if len(offsets) - 1 != count:
        raise FormatError(path, f"has notes on {len(offsets) - 1} sequences, but {count} sequences")
    return Sequences(path, offsets, frames)


def _array_in(data: memoryview) -> tuple[tuple[int, ...], np.dtype[Any], memoryview]:
    """The shape, type and bytes of an embedded .npy; one of `NO_ARRAY` if it is none."""
    start = io.BytesIO(data[:_LARGEST_ARRAY_HEADER])
    version = np.lib.format.read_magic(start)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(start)
    return shape, dtype, data[start.tell() :]
