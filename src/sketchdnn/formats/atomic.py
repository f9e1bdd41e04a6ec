"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sketchdnn.geometry import SketchError

from .found import FormatError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name in the same folder; on success it becomes `path`, on any failure it is removed.

    The suffix is kept, since some libraries look at it.
    """
    # Known before there is such a file, so that Ctrl-C at any time leaves none.
    temporary = path.parent / f".{path.stem[:40]}-{secrets.token_hex(8)}{path.suffix}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(0o600, exist_ok=False)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # private until now; a result is an ordinary file
        temporary.replace(path)
    except SketchError:
        raise  # from what is being written, which may be read from a file that is missing
    except OSError as error:
        raise FormatError(path, f"cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):  # where there can be no file, there is none
            temporary.unlink()
