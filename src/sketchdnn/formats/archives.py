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
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, cast

from sketchdnn.errors import FormatError
from sketchdnn.io import is_temporary, remove_abandoned, temporary_folder

from .format import Skipped
from .manifest import MANIFEST, is_manifest, select_sketch_files

TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
# Members are extracted one at a time; a larger one is refused rather than fill the disk.
LARGEST_MEMBER = 2**30
# Headers other than of files hold long names and the like; the library reads them at any size.
_LARGEST_HEADER = 2**20


def is_tar(path: Path, head: bytes) -> bool:
    return path.name.lower().endswith(TAR_SUFFIXES) or head[257:262] == b"ustar"


class Member(NamedTuple):
    """A file to read, and the name of its sketch if a manifest lists it."""

    path: Path
    name: str | None = None


def folder_members(folder: Path) -> list[Member]:
    """Every file below a folder, in a fixed order. Files that are written later are not included.

    A subfolder that cannot be listed is a member itself, so that reading it fails and is counted. Where a manifest
    lists the files of each sketch, there is one member for each sketch and none for the gallery. Temporary files are
    left out.
    """
    members: list[Member] = []

    def add_unlistable(error: OSError) -> None:
        path = Path(error.filename or folder)
        if path == folder:
            raise FormatError(folder, f"cannot be listed ({error.strerror or error})") from error
        members.append(Member(path))

    for parent, folders, names in os.walk(folder, onerror=add_unlistable):
        folders[:] = sorted(name for name in folders if not is_temporary(name))
        files = sorted(name for name in names if not is_temporary(name))
        if MANIFEST in files and is_manifest(Path(parent, MANIFEST)):
            chosen, known = select_sketch_files(Path(parent), set(files))
            members.extend(Member(Path(parent, name), Path(name).stem) for name in chosen)
            files = [name for name in files if name not in known]
        members.extend(Member(Path(parent, name)) for name in files)
    return members


def check_no_overwrite(sources: Iterable[Path], targets: Iterable[Path]) -> None:
    """Refuse to overwrite an input: the file itself, under another name or link, or a file of an input folder.

    Raises:
        FormatError: If a target exists and is an input.
    """
    existing = {identity: path for path in targets if (identity := _identity(path)) is not None}
    for source in sources if existing else ():
        for path in [source, *(Path(parent, name) for parent, _, names in os.walk(source) for name in names)]:
            if (identity := _identity(path)) in existing:
                raise FormatError(existing[identity], "is an input, and would be overwritten; name another output")


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file, which all its names and links share; None if there is no file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(status.st_mode) else (status.st_dev, status.st_ino)


def tar_files(path: Path) -> Iterator[Path | Skipped]:
    """Each file of an archive, extracted to a temporary folder that is removed before the next one."""
    remove_abandoned()
    try:
        # As a stream an archive is read once, front to back, however it is compressed.
        with open_compressed(path) as file, tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive:
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # else it stores every member
                if not member.isdir():
                    yield from _extract(archive, member)
                _skip_to_next(archive)
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise FormatError(path, f"is not a whole tar archive: {error}") from error


def _skip_to_next(archive: tarfile.TarFile) -> None:
    """Read on to the next header. The library would loop to the end that a header claims, however far that is."""
    stream = archive.fileobj
    while stream is not None and (left := archive.offset - stream.tell()) > 0:
        if not stream.read(min(left, 2**20)):
            raise tarfile.ReadError("a member is larger than what remains of it")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[Path | Skipped]:
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
    """A header with checks before the library uses it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            # The library would take either for the end of the archive, and lose the rest.
            if not buf:
                raise tarfile.ReadError("it ends without its end mark") from error
            if bytes(buf).strip(b"\0"):
                raise tarfile.ReadError("a header is damaged") from error
            raise
        is_file = header.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE)
        if header.size < 0 or (not is_file and header.size > _LARGEST_HEADER):
            raise tarfile.ReadError(f"a header claims {header.size} bytes")
        return header


# The strongest setting of xz needs 65 MiB to decompress; a file may require 4 GiB.
XZ_MEMORY = 256 * 2**20
_BUFFER_BYTES = 2**18
_new_decompressor = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, XZ_MEMORY)


def open_compressed(path: Path) -> IO[bytes]:
    """A file open for reading, decompressed if its first bytes are those of gzip, bzip2 or xz."""
    with path.open("rb") as file:
        head = file.read(6)
    for magic, opener in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", open_xz)):
        if head.startswith(magic):
            return cast("IO[bytes]", opener(path))
    return path.open("rb")


def open_xz(path: Path) -> IO[bytes]:
    """An xz file open for reading; `LZMAError` if it is damaged or needs more than `XZ_MEMORY`."""
    return cast("IO[bytes]", io.BufferedReader(_XzReader(path), _BUFFER_BYTES))


class _XzReader(io.RawIOBase):
    """Decompresses one stream after another. The reader of the library has no limit on memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._decompressor = _new_decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        while True:
            data = b""
            if self._decompressor.eof:
                # Streams may be padded with zeros.
                data = self._decompressor.unused_data
                while not (data := data.lstrip(b"\0")):
                    if not (data := self._file.read(_BUFFER_BYTES)):
                        return 0
                self._decompressor = _new_decompressor()
            elif self._decompressor.needs_input and not (data := self._file.read(_BUFFER_BYTES)):
                raise EOFError("it is cut off")
            if output := self._decompressor.decompress(data, len(view)):
                view[: len(output)] = output
                return len(output)

    def close(self) -> None:
        self._file.close()
        super().close()
