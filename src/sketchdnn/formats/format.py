"""What every file format offers: a reader that streams, a writer beside it, or one of the two alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sketchdnn.geometry import Sketch

from .found import FormatError, Found

# How much of a file `recognises` is shown.
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing sketches down.

    `read` streams what it finds, so that a file larger than memory can be read; it raises `FormatError` for a file that
    is not in this format at all. `write` takes any iterable, so that a stream can be written as it is read, and leaves
    a whole file or none; `options` names the keywords it takes besides. `recognises(path, head)` judges by name and
    first bytes. `keeps_constraints` is false where writing leaves them out, so that the loss can be told.
    """

    name: str
    suffixes: tuple[str, ...]
    holds_many: bool
    recognises: Callable[[Path, bytes], bool]
    read: Callable[[Path], Iterator[Found]] | None = None
    write: Callable[..., None] | None = None
    keeps_constraints: bool = True
    options: tuple[str, ...] = ()


def only_one(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """The sketch for a file that holds one; any other number is refused before anything is written."""
    first = list(islice(sketches, 2))
    if len(first) != 1:
        there = "there are more" if first else "there is none"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {there}; many go to .jsonl or to a folder")
    return first[0]
