"""Folders, tar archives and compressed files, read in bounded memory.

An archive is not trusted. Only the last part of a member's name is used. Links and devices are never followed. A
header with an implausible size ends the archive with an error, and so does a member larger than the rest of it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from sketchdnn.errors import FormatError
from sketchdnn.io import is_temporary, remove_abandoned, temporary_folder

from .format import Skipped
from .manifest import MANIFEST, is_manifest, select_sketch_files

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
# A member is unpacked into a temporary folder, one at a time; a larger one is refused rather than fill the disk.
LARGEST_MEMBER = 2**30
# Headers other than of files hold long names and the like; the library reads them whole, whatever size they claim.
_LARGEST_HEADER = 2**20


def is_tar(path: Path, head: bytes) -> bool:
    return path.name.lower().endswith(TAR_SUFFIXES) or head[257:262] == b"ustar"


@dataclass(frozen=True, slots=True)
class Member:
    """A file to read; `name` is that of its one sketch, where a manifest tells it."""

    path: Path
    name: str | None = None


def folder_members(folder: Path) -> list[Member]:
    """Every file below a folder, in a fixed order; listed at once, so that what is written there later stays out.

    A folder below that cannot be listed stands for its files, so that whoever reads it finds out and can count it.
    Where a manifest lists the files of each sketch, there is one file for each, and the gallery is left out. So is what
    is not finished.
    """
    members: list[Member] = []

    def keep(error: OSError) -> None:
        place = Path(error.filename or folder)
        if place == folder:
            raise FormatError(folder, f"cannot be listed ({error.strerror or error})") from error
        members.append(Member(place))

    for place, folders, names in os.walk(folder, onerror=keep):
        folders[:] = sorted(name for name in folders if not is_temporary(name))
        there = sorted(name for name in names if not is_temporary(name))
        if MANIFEST in there and is_manifest(Path(place, MANIFEST)):
            chosen, known = select_sketch_files(Path(place), set(there))
            members.extend(Member(Path(place, name), Path(name).stem) for name in chosen)
            there = [name for name in there if name not in known]
        members.extend(Member(Path(place, name)) for name in there)
    return members


def check_no_overwrite(sources: Iterable[Path], targets: Iterable[Path]) -> None:
    """Refuse to write over a file that is read: itself, by another name or link, or one in a folder that is read.

    Raises:
        FormatError: If one of the targets exists and is such a file.
    """
    there = {identity: path for path in targets if (identity := _identity(path)) is not None}
    if not there:
        return
    for source in sources:
        for path in [source, *(Path(place, name) for place, _, names in os.walk(source) for name in names)]:
            identity = _identity(path)
            if identity in there:
                raise FormatError(there[identity], "is an input, and would be overwritten; name another output")


def _identity(path: Path) -> tuple[int, int] | None:
    """What two names of one file have in common, links included; nothing if there is no file."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(found.st_mode) else (found.st_dev, found.st_ino)


def tar_files(path: Path) -> Iterator[Path | Skipped]:
    """Each file of an archive under its own last name in a temporary folder, gone when the next is asked for."""
    remove_abandoned()
    try:
        # As a stream an archive is read once, front to back, however it is compressed.
        with open_packed(path) as file, tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive:
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # else it remembers every member it has passed
                if not member.isdir():
                    yield from _unpacked(archive, member)
                _pass_over(archive)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise FormatError(path, f"is not a whole tar archive: {error}") from error


def _pass_over(archive: tarfile.TarFile) -> None:
    """Read on to the next header. The library would count to the end that a header claims, however far that is."""
    stream = archive.fileobj
    while stream is not None and (left := archive.offset - stream.tell()) > 0:
        if not stream.read(min(left, 2**20)):
            raise tarfile.ReadError("a member is larger than what remains of it")


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Path | Skipped]:
    name = PurePosixPath(member.name).name
    content = archive.extractfile(member) if member.isreg() else None
    if content is None or name in ("", "..") or "\0" in name:
        yield Skipped("an archive member that is no plain file")
    elif member.size > LARGEST_MEMBER:
        yield Skipped(f"an archive member larger than {LARGEST_MEMBER >> 20} MiB")
    else:
        with temporary_folder() as folder:
            # The end of a long name holds the suffix; file systems allow 255 bytes.
            file = folder / name[-60:]
            with file.open("wb") as unpacked:
                shutil.copyfileobj(content, unpacked)
            yield file


class _Header(tarfile.TarInfo):
    """A header that is checked before the library acts on it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            # The library would take either for the end of the archive, and what follows would be lost.
            if not buf:
                raise tarfile.ReadError("it ends without its end mark") from error
            if bytes(buf).strip(b"\0"):
                raise tarfile.ReadError("a header is damaged") from error
            raise
        is_file = header.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE)
        if header.size < 0 or (not is_file and header.size > _LARGEST_HEADER):
            raise tarfile.ReadError(f"a header claims {header.size} bytes")
        return header


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
