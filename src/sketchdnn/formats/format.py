"""What every file format offers: a reader that streams, a writer beside it, or one of the two alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sketchdnn.geometry import MM_PER_UNIT, Sketch, SketchError

from .found import FormatError, Found

# How much of a file `recognises` is shown.
HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        flatten: millimetres by which lines and arcs may leave a spline, Bézier or ellipse of a drawing; None leaves
            such curves out and counts them.
        assume_units: the unit of a sketch whose file names none; by default it stays without one, and lengths in
            millimetres count as its own.
    """

    flatten: float | None = 0.01
    assume_units: str | None = None

    def __post_init__(self) -> None:
        if self.flatten is not None and not 0 < self.flatten < math.inf:
            raise SketchError(f"a tolerance of {self.flatten} mm is none to approximate curves within")
        if self.assume_units is not None and self.assume_units not in MM_PER_UNIT:
            known = ", ".join(MM_PER_UNIT)
            raise SketchError(f"'{self.assume_units}' is not a unit we know; use one of {known}")

    @property
    def mm_per_assumed(self) -> float:
        """The size of a unit of a file that names none."""
        return MM_PER_UNIT[self.assume_units or "mm"]


DEFAULT_READING = ReadOptions()


@dataclass(frozen=True, slots=True)
class Format:
    """A way of writing sketches down.

    `read` streams what it finds, so that a file larger than memory can be read; it raises `FormatError` for a file that
    is not in this format at all. `write` takes any iterable, so that a stream can be written as it is read, and leaves
    a whole file or none; `options` names the keywords it takes besides. `recognises(path, head)` judges by name and
    first bytes. `keeps_constraints` is false where writing leaves them out, so that the loss can be told. The reader of
    a drawing (`is_drawing`) takes `ReadOptions` besides the path.
    """

    name: str
    suffixes: tuple[str, ...]
    holds_many: bool
    recognises: Callable[[Path, bytes], bool]
    read: Callable[..., Iterator[Found]] | None = None
    write: Callable[..., None] | None = None
    keeps_constraints: bool = True
    options: tuple[str, ...] = ()
    is_drawing: bool = False


def only_one(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """The sketch for a file that holds one; any other number is refused before anything is written."""
    first = list(islice(sketches, 2))
    if len(first) != 1:
        there = "there are more" if first else "there is none"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {there}; many go to .jsonl or to a folder")
    return first[0]
