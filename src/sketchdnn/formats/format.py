"""What every file format offers: a reader that streams, a writer beside it, or one of the two alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sketchdnn.errors import FormatError, SketchError
from sketchdnn.geometry import MM_PER_UNIT, Sketch

from .found import Found, Losses

# How much of a file `recognizes` is shown.
HEAD_BYTES = 4096

# Keys that readers add: where a sketch came from. It is no loss if a format does not hold them.
_PROVENANCE = frozenset({"id", "source", "index", "group", "dropped_entities"})
_UNIT_NAMES = {"m": "meters", "mm": "millimeters"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        flatten: millimeters by which lines and arcs may leave a spline, Bézier or ellipse of a drawing; None leaves
            such curves out and counts them.
        assume_units: the unit of a sketch whose file names none; by default it stays without one, and lengths in
            millimeters count as its own.
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
    a whole file or none; it returns what the file does not hold of the sketches, or None where it holds all. `options`
    names the keywords it takes besides. `recognizes(path, head)` judges by name and first bytes. The reader of a
    drawing (`is_drawing`) takes `ReadOptions` besides the path.
    """

    name: str
    suffixes: tuple[str, ...]
    holds_many: bool
    recognizes: Callable[[Path, bytes], bool]
    read: Callable[..., Iterator[Found]] | None = None
    write: Callable[..., Losses | None] | None = None
    options: tuple[str, ...] = ()
    is_drawing: bool = False


def losses_of(
    sketch: Sketch, name: str, *, constraints: bool = False, keys: Collection[str] = (), units: str | None = None
) -> Losses:
    """What the format `name` loses of a sketch if it holds no constraints, no keys but these, and has `units` only."""
    left_out: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    if sketch.constraints and not constraints:
        left_out[f"a constraint, which {name} cannot hold"] = len(sketch.constraints)
    if lost := len(sketch.extra.keys() - _PROVENANCE - set(keys)):
        left_out[f"a name or other key of a sketch, which {name} cannot hold"] = lost
    if units is not None and sketch.units is None:
        changed[f"a sketch without units, taken to be in {_UNIT_NAMES[units]}"] = 1
    return Losses(left_out, changed)


def only_one(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """The sketch for a file that holds one; any other number is refused before anything is written."""
    first = list(islice(sketches, 2))
    if len(first) != 1:
        there = "there are more" if first else "there is none"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {there}; many go to .jsonl or to a folder")
    return first[0]
