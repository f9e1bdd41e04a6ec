"""The errors of the package, each one sentence for the user, and how text from files is quoted in them."""

from __future__ import annotations

import errno
from pathlib import Path

# Longest text from a file that a message quotes, in characters.
MAX_QUOTED = 200
_MAX_SENTENCE = 5 * MAX_QUOTED


class SketchError(ValueError):
    """Something in what we were given is wrong. The command line prints it and exits with code 2."""


class GeometryError(SketchError):
    """A primitive, constraint or sketch that cannot exist: a line of no length, a radius below zero, a NaN."""


class MissingError(SketchError, FileNotFoundError):
    """A file or folder that does not exist. It is a `FileNotFoundError` too; the sentence is ours."""

    __str__ = ValueError.__str__

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.errno = errno.ENOENT


class FormatError(SketchError):
    """A file that cannot be read or written at all: the sentence names the file and the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        self.reason = quoted(reason, _MAX_SENTENCE)
        super().__init__(f"{display_path(path)}: {self.reason}")


class MissingFileError(FormatError, MissingError):
    """A file that is to be read and does not exist."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.filename = str(path)


class UnsuitableSketchError(FormatError):
    """A sketch that a format cannot hold, such as an open profile in a file of solids; another may be fine."""


def display_path(path: Path | str) -> str:
    r"""A path as it can be printed: control characters, and bytes that are no UTF-8, as escapes.

    >>> display_path("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    text = str(path)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(text: object, limit: int = MAX_QUOTED) -> str:
    """Text from a file as a message may quote it: no control characters, no more than `limit` characters.

    >>> quoted("x" * 300, 10)
    'xxxxxxxxx…'
    """
    words = str(text)
    words = display_path(words[:limit]) + words[limit : limit + 1]
    return words if len(words) <= limit else words[: limit - 1] + "…"
