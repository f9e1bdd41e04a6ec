"""Write a file or a folder whole or not at all, and leave nothing else behind.

What is not finished has a temporary name that begins with `.sketchdnn-`. It is made exclusively, never through a link,
with the permissions that the umask leaves, and it is locked while it is written. So `clear_abandoned` can tell what a
killed process left from what another process is writing.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchdnn.geometry import SketchError

from .found import FormatError
from .locks import LOCK, claim, take_abandoned

PREFIX = ".sketchdnn-"
_TEMPORARY = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}(\..*)?", re.DOTALL)
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def replacing(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary name in the same folder; on success it becomes `path`, on any failure it is removed.

    The suffix is kept, since some libraries look at it. The content is on the disk before it gets its name. Without
    `flush`, and in a temporary folder, that is left to the system: for what would be done again, or is one of many.
    """
    # Known before there is such a file, so that a signal at any time leaves none.
    temporary = _temporary_name(path.parent, path.suffix)
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = claim(temporary, lambda: create(temporary))
        yield temporary
        if flush and not is_temporary(path.parent.name):
            flush_to_disk(temporary)
        temporary.replace(path)
    except SketchError:
        raise  # from what is being written, which may be read from a file that is missing
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):  # where there can be no file, there is none
            temporary.unlink()
        if handle is not None:
            os.close(handle)


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder in `parent`, which is removed at the end, unless it was renamed.

    Without `parent` it lies where the system keeps temporary files, and is private.
    """
    path = _temporary_name(parent or Path(tempfile.gettempdir()))
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = claim(path, lambda: _made(path, 0o777 if parent else 0o700))
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def create(path: Path) -> int:
    """Open a new file to write to, where there is none and no link either."""
    return os.open(path, _NEW, 0o666)


def new_file_mode(folder: Path) -> int:
    """The permissions that the umask leaves a new file there."""
    path = _temporary_name(folder)
    handle = create(path)
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        path.unlink()
        os.close(handle)


def flush_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_temporary(name: str) -> bool:
    """Whether a file or folder of that name is unfinished work, or marks a folder in use: nothing to read."""
    return name == LOCK or name.startswith(PREFIX)


def clear_abandoned(folder: Path | None = None) -> None:
    """Remove the temporary files and folders that killed processes left there; what cannot be removed stays."""
    with suppress(OSError), os.scandir(folder or tempfile.gettempdir()) as found:
        for path in [Path(entry) for entry in found if _TEMPORARY.fullmatch(entry.name)]:
            handle = take_abandoned(path)
            if handle is None:
                continue
            shutil.rmtree(path, ignore_errors=True)  # does nothing to a file
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _temporary_name(folder: Path, suffix: str = "") -> Path:
    return folder / f"{PREFIX}{secrets.token_hex(8)}{suffix}"


def _made(folder: Path, mode: int) -> int:
    folder.mkdir(mode)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
