"""The errors of the package, each with one sentence for the user, and quoting of text from files."""

from __future__ import annotations

import errno
from pathlib import Path

# Longest text from a file that a message quotes, in characters.
MAX_QUOTED = 200
_MAX_SENTENCE = 5 * MAX_QUOTED


class SketchError(ValueError):
    """Bad input. The command line prints the message and exits with code 2."""


class GeometryError(SketchError):
    """An invalid primitive, constraint or sketch: a line of no length, a radius below zero, a NaN."""


class MissingError(SketchError, FileNotFoundError):
    """A file or folder that does not exist. It is also a `FileNotFoundError`."""

    __str__ = ValueError.__str__

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.errno = errno.ENOENT


class FormatError(SketchError):
    """A file that cannot be read or written. The message names the file and the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        self.reason = quoted(reason, _MAX_SENTENCE)
        super().__init__(f"{display_path(path)}: {self.reason}")


class MissingFileError(FormatError, MissingError):
    """An input file that does not exist."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.filename = str(path)


class UnsuitableSketchError(FormatError):
    """A sketch that a format cannot hold, such as an open profile in a STEP file."""


def display_path(path: Path | str) -> str:
    r"""A printable path: control characters, and bytes that are not UTF-8, are escaped.

    >>> display_path("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    text = str(path)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(text: object, limit: int = MAX_QUOTED) -> str:
    """Text from a file for a message: without control characters, at most `limit` characters.

    >>> quoted("x" * 300, 10)
    'xxxxxxxxx…'
    """
    text = str(text)
    text = display_path(text[:limit]) + text[limit : limit + 1]
    return text if len(text) <= limit else text[: limit - 1] + "…"
