"""Compressed files as streams of bytes, in bounded memory: gzip, bzip2 and xz."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# The strongest setting of xz needs 65 MiB to unpack; a file may ask for 4 GiB.
XZ_MEMORY = 256 * 2**20
_PIECE = 2**18
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"


def open_packed(path: Path) -> IO[bytes]:
    """A file open for reading, unpacked as it is read if its first bytes say that it is compressed."""
    with path.open("rb") as file:
        head = file.read(len(_XZ))
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if head.startswith(_BZIP2):
        return cast("IO[bytes]", bz2.open(path, "rb"))
    return open_xz(path) if head == _XZ else path.open("rb")


def open_xz(path: Path) -> IO[bytes]:
    """The bytes in an xz file; `LZMAError` for one that is damaged or asks for more than `XZ_MEMORY`."""
    return cast("IO[bytes]", io.BufferedReader(_Unxz(path), _PIECE))


class _Unxz(io.RawIOBase):
    """One stream after another. The library's own reader takes whatever memory a file asks for."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacker = _new_unpacker()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while True:
            data = b""
            if self._unpacker.eof:
                # Streams may be padded with zeros.
                data = self._unpacker.unused_data.lstrip(b"\0")
                while not data:
                    if not (data := self._file.read(_PIECE)):
                        return 0
                    data = data.lstrip(b"\0")
                self._unpacker = _new_unpacker()
            elif self._unpacker.needs_input and not (data := self._file.read(_PIECE)):
                raise EOFError("it is cut off")
            if unpacked := self._unpacker.decompress(data, len(view)):
                view[: len(unpacked)] = unpacked
                return len(unpacked)

    def close(self) -> None:
        self._file.close()
        super().close()


def _new_unpacker() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY)
