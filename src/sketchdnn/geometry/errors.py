"""What went wrong, as one sentence for the person who asked."""

from __future__ import annotations

import errno


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
