"""Write a file or a folder completely or not at all, lock a folder for one run, and end workers with their parent.

An unfinished file has a temporary name that begins with `.sketchdnn-`. It is created exclusively, never through a
symbolic link, with the permissions that the umask leaves, and it is locked while it is written. So `remove_abandoned`
distinguishes the files of a killed process from those that another process is writing.

Locks are held on open files: the system drops them when the process ends. On a file system without locks, runs are not
refused and nothing is cleaned up. A system that is not POSIX counts as one.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import NoReturn

from sketchdnn.errors import FormatError, SketchError

try:
    import fcntl
except ImportError:  # not a POSIX system: as on a file system without locks
    fcntl = None  # type: ignore[assignment]


def _flags(*names: str) -> int:
    """The flags of `os.open` that this system has."""
    return reduce(or_, (getattr(os, name, 0) for name in names))


PREFIX = ".sketchdnn-"
_TEMPORARY = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}(\..*)?", re.DOTALL)
_FLAGS = _flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _FLAGS
LOCK = ".sketchdnn.lock"
# A folder can be opened, locked and flushed like a file.
_OPENS_FOLDERS = hasattr(os, "O_DIRECTORY")
# Signals that end a run in an orderly way.
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


@contextmanager
def atomic_write(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield a temporary name in the same folder; on success it becomes `path`, on any failure it is removed.

    The suffix is the same, because some libraries depend on it. The content is flushed to disk before the file is
    renamed, except without `flush` and in a temporary folder.
    """
    # Named before the file exists, so that a signal at any time leaves none.
    temporary = _temporary_name(path.parent, path.suffix)
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = create_locked(temporary, lambda: create(temporary))
        yield temporary
        if flush and not is_temporary(path.parent.name):
            flush_to_disk(temporary)
        if fcntl is None:  # an open file may have to keep its name
            os.close(handle)
            handle = None
        temporary.replace(path)
    except SketchError:
        raise  # of the data that is written, which may come from a missing file
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):  # the folder may not exist
            temporary.unlink()
        if handle is not None:
            os.close(handle)


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder in `parent`, which is removed at the end unless it was renamed.

    Without `parent` it is a private folder among the temporary files of the system.
    """
    path = _temporary_name(parent or Path(tempfile.gettempdir()))
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = create_locked(path, lambda: _make_folder(path, 0o777 if parent else 0o700))
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def create(path: Path) -> int:
    """Open a new file to write to; fails if a file or link exists."""
    return os.open(path, _NEW, 0o666)


def new_file_mode(folder: Path) -> int:
    """The permissions of a new file in a folder, by the umask."""
    path = _temporary_name(folder)
    handle = create(path)
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        path.unlink()
        os.close(handle)


def flush_to_disk(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    if not _OPENS_FOLDERS and path.is_dir():
        return
    handle = os.open(path, (os.O_RDONLY if _OPENS_FOLDERS else os.O_RDWR) | _flags("O_CLOEXEC"))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_temporary(name: str) -> bool:
    """Whether a name is that of an unfinished file or folder, or of a lock."""
    return name == LOCK or name.startswith(PREFIX)


def remove_abandoned(folder: Path | None = None) -> None:
    """Remove the temporary files and folders of killed processes, as far as possible."""
    with suppress(OSError), os.scandir(folder or tempfile.gettempdir()) as entries:
        for path in [Path(entry) for entry in entries if _TEMPORARY.fullmatch(entry.name)]:
            handle = lock_abandoned(path)
            if handle is None:
                continue
            shutil.rmtree(path, ignore_errors=True)  # ignores a file
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _temporary_name(folder: Path, suffix: str = "") -> Path:
    return folder / f"{PREFIX}{secrets.token_hex(8)}{suffix}"


def _make_folder(folder: Path, mode: int) -> int:
    folder.mkdir(mode)
    if not _OPENS_FOLDERS:
        return os.open(os.devnull, os.O_RDONLY)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)


@contextmanager
def exclusive_run(folder: Path, *, name: Path | None = None) -> Iterator[None]:
    """Lock a folder, created if need be, for this run.

    The lock is on a hidden file in the folder, which is removed at the end; so is a folder that was created and is
    empty.

    Args:
        folder: Where the run writes.
        name: The path in error messages, if it differs.

    Raises:
        FormatError: If another process holds the lock, or if the folder cannot be created.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    handle = _lock_folder(folder, name or folder)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(handle)
        with suppress(OSError):  # up to the first one that is not empty
            for path in created:
                path.rmdir()


def create_locked(path: Path, make: Callable[[], int]) -> int:
    """Create a temporary file or folder and lock it; `lock_abandoned` fails while the handle is open."""
    while True:
        try:
            handle = make()
        except FileNotFoundError:
            if path.parent.is_dir():
                continue  # removed as abandoned, just before it was locked
            raise
        # Without locks nothing is removed as abandoned.
        if lock(handle, wait=True) is None or _is_at(handle, path):
            return handle
        os.close(handle)


def lock_abandoned(path: Path) -> int | None:
    """Lock a temporary file or folder whose process has ended; None if the process is alive."""
    try:
        handle = os.open(path, os.O_RDONLY | _flags("O_NONBLOCK") | _FLAGS)
    except OSError:
        return None
    if lock(handle):
        return handle
    os.close(handle)
    return None


def lock(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file; False if another process holds the lock, None if there are no locks here."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _lock_folder(folder: Path, name: Path) -> int:
    """An open handle of the lock file of a folder."""
    path = folder / LOCK
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
        except FileNotFoundError:
            continue  # another run just ended and removed the empty folder
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
    with suppress(OSError):  # for the message of a refused run
        os.truncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _is_at(handle: int, path: Path) -> bool:
    """Whether a path still refers to an open file, which may have been removed before it was locked."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


# The description of a corpus or a model takes a few KiB, a report with all its curves a few MiB.
MAX_JSON_BYTES = 16 * 2**20


def load_json(path: Path) -> object:
    """The JSON of a file; `ValueError` for text that is not JSON, too long or too deeply nested, or holds NaN."""
    with path.open("rb") as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise ValueError(f"it is larger than {MAX_JSON_BYTES >> 20} MiB")
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"it holds {word} where a number belongs")


def exit_with_parent() -> None:
    """Initialize a worker process: exit when the parent is gone, and leave signals to the parent."""
    from multiprocessing import parent_process

    for number in STOP_SIGNALS:
        if number != signal.SIGTERM:  # which is how a pool ends its workers
            signal.signal(number, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
