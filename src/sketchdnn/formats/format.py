"""What every file format offers: a reader that streams, and beside it, where we can write it, a writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sketchdnn.geometry import Sketch

from .found import Found

# How much of a file `recognises` is shown.
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing sketches down.

    `read` streams what it finds, so that a file larger than memory can be read; it raises `FormatError` for a file that
    is not in this format at all. `write` leaves a whole file or none. `recognises(path, head)` judges by name and first
    bytes.
    """

    name: str
    suffixes: tuple[str, ...]
    holds_many: bool
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Iterator[Found]]
    write: Callable[[Sequence[Sketch], Path], None] | None = None
