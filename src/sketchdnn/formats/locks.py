"""Locks on files that are open: the system drops them when the process ends, however it ends.

On a file system that knows no locks, nothing can be said of other processes: a run goes on, and nothing is cleaned up.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .found import FormatError

LOCK = ".sketchdnn.lock"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def one_run(folder: Path, *, name: Path | None = None) -> Iterator[None]:
    """Hold a folder, made if need be, for this run alone; refuses one that another run holds.

    The lock is on a hidden file in the folder, which is removed at the end; so is a folder that was made and is empty.

    Args:
        folder: Where the run writes.
        name: What the sentence calls it, if that is another path.

    Raises:
        FormatError: If another process holds the folder, or if it cannot be made.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    handle = _hold(folder, name or folder)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(handle)
        with suppress(OSError):  # one that is not empty stays, and those above it
            for place in made:
                place.rmdir()


def claim(path: Path, make: Callable[[], int]) -> int:
    """Make a temporary file or folder and lock it: `take_abandoned` leaves it alone while the handle is open."""
    while True:
        try:
            handle = make()
        except FileNotFoundError:
            if path.parent.is_dir():
                continue  # it was taken for abandoned, in the moment before it was locked
            raise
        lock(handle, wait=True)
        if _is_at(handle, path):
            return handle
        os.close(handle)


def take_abandoned(path: Path) -> int | None:
    """Lock a temporary file or folder whose process has ended, to be removed and closed; nothing if it has not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    except OSError:
        return None
    if lock(handle):
        return handle
    os.close(handle)
    return None


def lock(handle: int, *, wait: bool = False) -> bool | None:
    """Lock what is open; false if another process holds it, nothing if there are no locks here."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _hold(folder: Path, name: Path) -> int:
    """An open handle of the locked file in a folder."""
    path = folder / LOCK
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
        except FileNotFoundError:
            continue  # another run ended just now, and took the empty folder with it
        except OSError as error:
            raise FormatError(
                name, f"cannot be written to as a folder ({error.strerror}); name another folder"
            ) from error
        if lock(handle) is False:
            owner = os.read(handle, 20).decode(errors="replace").strip()
            os.close(handle)
            process = f" (process {owner})" if owner.isdecimal() else ""
            raise FormatError(name, f"is in use by another run{process}; wait until it ends, or name another folder")
        if _is_at(handle, path):
            break
        os.close(handle)
    with suppress(OSError):  # only told to whoever is refused
        os.truncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _is_at(handle: int, path: Path) -> bool:
    """Whether a name still means what is open: it may have been removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False
