"""Write a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .found import FormatError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name in the same folder; on success it becomes `path`, on any failure it is removed.

    The suffix is kept, since some libraries look at it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes it private; a result is an ordinary file
        temporary.replace(path)
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)
