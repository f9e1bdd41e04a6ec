"""The file around SketchGraphs sequences: an `.npy` of bytes that holds a dictionary that holds a list of LZ4 frames.

    .npy, 1-D int8:  dictionary | flat list (a file of one list may leave the dictionary out)
    dictionary:      magic, version 1, H; H bytes of pickle {key: (offset, length, type)}; the blobs
    flat list:       magic, version 2, N; N + 1 offsets; N frames end to end; up to 8 bytes of slack

All numbers are little-endian int64. The offsets of a dictionary count from the end of its header, those of a list from
the end of its offsets. The file is memory-mapped, so its size does not matter. Every offset is checked before use:
with overlapping frames, a small file would be decompressed many times over.

Our files may also hold notes on the sequences: an array of bytes that is itself a flat list of texts. A list of no
sequences is an empty array, because the official library cannot count an empty flat list.
"""

from __future__ import annotations

import io
import shutil
import struct
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryFile
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import FormatError, quoted
from sketchdnn.formats.format import Skipped
from sketchdnn.io import atomic_write

from .pickles import Op, PickleError, dump_header, load_ops, load_plain

DICTIONARY_MAGIC, DICTIONARY_VERSION = 87374267, 1
LIST_MAGIC, LIST_VERSION = -2356038617, 2
ARRAY, FLAT_LIST = 1, 2  # types of a dictionary's blobs; 0 is a pickle, which is not used
SEQUENCES, LENGTHS, IDS, NOTES = "sequences", "sequence_lengths", "sketch_ids", "sketchdnn_notes"

# A sequence of 16 primitives takes 2 KiB; a pickle may need 80 bytes of memory for one of its own.
LARGEST_SEQUENCE = 4 * 2**20
_LARGEST_HEADER = 2**20
# Offsets handled together: a list of all of them would take five times the memory of the array.
_OFFSETS_PER_BATCH = 4096
_LARGEST_ARRAY_HEADER = 16 * 1024
_LONGEST_ID = 200
_HEADER = struct.Struct("<qqq")
_SLACK = bytes(8)
_COMPRESSION_LEVEL = 3  # as in the official files
# The exceptions of numpy for a file that is damaged or not an `.npy`.
NPY_ERRORS = (ValueError, EOFError, OverflowError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class Sequences:
    """The frames of an open file, with the ids of the sketches and the notes on them, if the file holds any."""

    path: Path
    offsets: NDArray[np.int64]
    frames: memoryview
    ids: NDArray[np.generic] | None = None
    notes: Sequences | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pickles(self, start: int, stop: int) -> Iterator[bytes | Skipped]:
        """The decompressed bytes of sequences start … stop − 1. No byte is decompressed twice."""
        from lz4.frame import create_decompression_context, decompress_chunk

        context = create_decompression_context()
        before = self.offsets[: start + 1]
        reached = int(before.max(initial=0, where=before <= len(self.frames)))
        ranges = chain.from_iterable(
            pairwise(self.offsets[first : min(first + _OFFSETS_PER_BATCH, stop) + 1].tolist())
            for first in range(start, stop, _OFFSETS_PER_BATCH)
        )
        for begin, end in ranges:
            is_inside = 0 <= begin <= end <= len(self.frames)
            if not is_inside or begin < reached:
                place = "lies in another one" if is_inside else "lies outside its file"
                yield Skipped(f"a sequence that {place}", is_sketch=True)
                continue
            reached = end
            try:
                data, _, is_whole = decompress_chunk(context, self.frames[begin:end], max_length=LARGEST_SEQUENCE + 1)
            except (RuntimeError, ValueError, MemoryError):
                data, is_whole = b"", False
            if not is_whole:  # the rest of a frame would spoil the next one
                context = create_decompression_context()
            if len(data) > LARGEST_SEQUENCE:
                yield Skipped(f"a sequence over {LARGEST_SEQUENCE >> 20} MiB", is_sketch=True)
            elif is_whole:
                yield data
            else:
                yield Skipped("a sequence with a damaged LZ4 frame", is_sketch=True)

    def ops(self, start: int, stop: int) -> Iterator[list[Op] | Skipped]:
        """The operations of sequences start … stop − 1."""
        for data in self.pickles(start, stop):
            try:
                yield data if isinstance(data, Skipped) else load_ops(data)
            except PickleError as error:
                yield Skipped(str(error), is_sketch=True)

    def sketch_id(self, index: int) -> str:
        """The id of a sketch in the file, else the name of the file and the index."""
        name = None
        with suppress(ValueError, SystemError):  # code points that no text can hold
            name = None if self.ids is None else self.ids[index].item()
        if name is None:
            return f"{self.path.stem}/{index}"
        parts = name if isinstance(name, tuple) else (name,)
        text = "/".join(p.decode(errors="replace") if isinstance(p, bytes) else str(p) for p in parts)
        return text[:_LONGEST_ID].encode(errors="replace").decode()  # half a surrogate pair could not be written again


def open_sequences(path: Path) -> Sequences:
    """Map a file into memory and locate its sequences; `FormatError` if it is not a SketchGraphs file."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about old header versions
            array_ = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror or error})") from error
    except NPY_ERRORS as error:
        raise FormatError(path, "is not a whole .npy file") from error
    if array_.ndim != 1 or array_.dtype not in (np.int8, np.uint8):
        raise FormatError(path, "is an .npy file, but not of bytes as SketchGraphs writes it")
    data = memoryview(array_.view(np.uint8))  # type: ignore[arg-type]
    *kind, size = _header(path, data)
    if kind == [LIST_MAGIC, LIST_VERSION]:
        return Sequences(path, *_flat_list(path, data))
    if kind != [DICTIONARY_MAGIC, DICTIONARY_VERSION]:
        raise FormatError(path, "is not a SketchGraphs file: its first numbers are others")
    return _dictionary(path, data, size)


@contextmanager
def sequence_writer(path: Path) -> Iterator[Callable[..., None]]:
    """Yield a function that adds a sequence to a file, which is written completely or not at all.

    The function takes the pickle of the sequence, its number of operations, and its notes.

    The offsets precede the frames in the file, so the frames wait in temporary files. Memory holds 24 bytes a sequence.
    """
    lengths = array("q")
    with (
        atomic_write(path) as temporary,
        temporary.open("wb") as file,
        TemporaryFile(dir=path.parent) as sequence_frames,
        TemporaryFile(dir=path.parent) as note_frames,
    ):
        sequences, notes = _FlatListWriter(sequence_frames), _FlatListWriter(note_frames)

        def add(pickle: bytes, length: int, note: bytes = b"") -> None:
            sequences.add(pickle)
            notes.add(note)
            lengths.append(length)

        yield add
        _write_dictionary(file, sequences, notes, np.array(lengths, "<i8"))


def _header(path: Path, data: memoryview) -> tuple[int, ...]:
    """The three numbers at the start of a dictionary or list."""
    if len(data) < _HEADER.size:
        raise FormatError(path, "is cut short")
    return _HEADER.unpack_from(data)


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
    if sequences is None:
        empty = _blob(path, blobs, entries, SEQUENCES, ARRAY)  # an empty array stands for a list of no sequences
        with suppress(FormatError):
            if empty is not None and _embedded_array(path, empty, "sequences")[0] == (0,):
                return Sequences(path, np.zeros(1, np.int64), memoryview(b""))
        raise FormatError(path, "holds no sequences")
    offsets, frames = _flat_list(path, sequences)
    ids = _ids(path, _blob(path, blobs, entries, IDS, ARRAY), len(offsets) - 1)
    notes = _notes(path, _blob(path, blobs, entries, NOTES, ARRAY), len(offsets) - 1)
    return Sequences(path, offsets, frames, ids, notes)


def _blob(path: Path, blobs: memoryview, entries: object, key: str, type_: int) -> memoryview | None:
    """The bytes of an entry; None if there is none of that name and type."""
    match entries.get(key) if isinstance(entries, dict) else None:
        case (int(offset), int(length), int(actual)) if actual == type_:
            if min(offset, length) >= 0 and offset + length <= len(blobs):
                return blobs[offset : offset + length]
            raise FormatError(path, f"is damaged: its '{key}' lies outside the file")
    return None


def _flat_list(path: Path, data: memoryview) -> tuple[NDArray[np.int64], memoryview]:
    """The offsets of a list, and the frames that they refer to."""
    *kind, count = _header(path, data)
    if kind != [LIST_MAGIC, LIST_VERSION]:
        raise FormatError(path, "is damaged: its list of sequences does not begin like one")
    size = 8 * (count + 1)
    if not 0 < size <= len(data) - _HEADER.size:
        raise FormatError(path, f"is damaged: there is no room for its {count} sequences")
    frames = data[_HEADER.size + size :]
    return np.frombuffer(data[_HEADER.size : _HEADER.size + size], "<i8"), frames


def _ids(path: Path, data: memoryview | None, count: int) -> NDArray[np.generic] | None:
    """The ids of the sketches, a view of an embedded .npy."""
    if data is None or not count:
        return None
    shape, dtype, values = _embedded_array(path, data, "sketch names")
    if shape != (count,) or dtype.hasobject:
        raise FormatError(path, f"should name {count} sketches, but its names are {quoted(dtype)} of shape {shape}")
    try:
        return np.frombuffer(values, dtype, count)
    except ValueError as error:
        raise FormatError(path, "has damaged sketch names") from error


def _notes(path: Path, data: memoryview | None, count: int) -> Sequences | None:
    """The notes on the sequences, a view of an embedded .npy of bytes that is a flat list."""
    if data is None or not count:
        return None
    shape, dtype, values = _embedded_array(path, data, "notes")
    if dtype != np.uint8 or shape != (len(values),):
        raise FormatError(path, f"has damaged notes: {dtype} of shape {shape}")
    offsets, frames = _flat_list(path, values)
    if len(offsets) - 1 != count:
        raise FormatError(path, f"has notes on {len(offsets) - 1} sequences, but {count} sequences")
    return Sequences(path, offsets, frames)


def _embedded_array(path: Path, data: memoryview, name: str) -> tuple[tuple[int, ...], np.dtype[Any], memoryview]:
    """The shape, type and bytes of an embedded .npy; `FormatError` if it is none."""
    start = io.BytesIO(data[:_LARGEST_ARRAY_HEADER])
    try:
        version = np.lib.format.read_magic(start)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(start)
    except NPY_ERRORS as error:
        raise FormatError(path, f"has damaged {name}") from error
    return shape, dtype, data[start.tell() :]


class _FlatListWriter:
    """Collects the frames of a flat list in a temporary file."""

    def __init__(self, frames: IO[bytes]) -> None:
        from lz4.frame import compress

        self._frames = frames
        self._offsets = array("q", [0])
        self._compress = partial(compress, compression_level=_COMPRESSION_LEVEL, store_size=False)
        self._blank: bytes = self._compress(b"")
        self.is_blank = True

    def add(self, data: bytes) -> None:
        frame = self._compress(data) if data else self._blank
        self._frames.write(frame)
        self._offsets.append(self._offsets[-1] + len(frame))
        self.is_blank = self.is_blank and not data

    def num_bytes(self) -> int:
        return _HEADER.size + 8 * len(self._offsets) + self._offsets[-1] + len(_SLACK)

    def write(self, file: IO[bytes]) -> None:
        file.write(_HEADER.pack(LIST_MAGIC, LIST_VERSION, len(self._offsets) - 1))
        file.write(np.array(self._offsets, "<i8").tobytes())
        self._frames.seek(0)
        shutil.copyfileobj(self._frames, file, 1 << 20)
        file.write(_SLACK)


def _write_dictionary(
    file: IO[bytes], sequences: _FlatListWriter, notes: _FlatListWriter, lengths: NDArray[np.int64]
) -> None:
    """Write the parts of the official layout one after the other."""
    counts = _array_header("<i8", len(lengths)) + lengths.tobytes()
    # Without sequences, the counts are an empty array, which also stands for the sequences.
    blobs: dict[str, tuple[int, bytes, _FlatListWriter | None]] = {
        SEQUENCES: (FLAT_LIST, b"", sequences) if len(lengths) else (ARRAY, counts, None),
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
