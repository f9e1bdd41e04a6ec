"""The file format interface: `Format`, read options, and the items that readers yield.

A reader yields `ReadItem`s: sketches, `Skipped` for what did not become one, and `Note` for what was read with a
change. A writer returns `Losses`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.geometry import MM_PER_UNIT, Sketch

# How many bytes of a file `Format.recognizes` receives.
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


DEFAULT_READ_OPTIONS = ReadOptions()


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
    read: Callable[..., Iterator[ReadItem]] | None = None
    write: Callable[..., Losses | None] | None = None
    options: tuple[str, ...] = ()
    is_drawing: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that did not become a sketch or part of one.

    `reason` is short and the same for every case of its kind, so that it can be counted; `count` says how many.
    `is_sketch` tells a whole sketch refused from a single entity left out of one.
    """

    reason: str
    is_sketch: bool = False
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", quoted(self.reason))


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was read otherwise than it is in the file, such as a spline as arcs; nothing is missing.

    `text` is the same for every case of its kind; `count` says how many.
    """

    text: str
    count: int = 1


ReadItem = Sketch | Skipped | Note
NO_UNITS = Note("a drawing without units, its lengths taken as mm (--assume-units names another unit)")


@dataclass(frozen=True, slots=True)
class Losses:
    """What writing left out of sketches, and what it changed in them: how often, by reason."""

    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def update(self, other: Losses) -> None:
        """Add the counts of another."""
        self.left_out.update(other.left_out)
        self.changed.update(other.changed)


class ReasonCounts(Counter[str]):
    """How often each reason occurred and, where there are several files, in which: their number and the first names.

    >>> reasons = ReasonCounts()
    >>> for file in ("a.dxf", "a.dxf", "b.dxf", "c.dxf", "d.dxf", "e.dxf"):
    ...     reasons.add("a text", file=file)
    >>> list(reasons.lines("skipped"))
    ['skipped 6 × a text (in a.dxf, b.dxf, c.dxf and 2 more files)']
    """

    _NAMED = 3
    _MOST = 20

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(counts or {})
        self._files: dict[str, list[str]] = {}
        self._others: Counter[str] = Counter()
        self._last: dict[str, str] = {}

    def add(self, reason: str, count: int = 1, file: str = "") -> None:
        """Count a reason. Files come one after the other, so that only few names need be kept."""
        self[reason] += count
        if not file or self._last.get(reason) == file:
            return
        self._last[reason] = file
        named = self._files.setdefault(reason, [])
        if len(named) < self._NAMED:
            named.append(file)
        else:
            self._others[reason] += 1

    def lines(self, what: str = "", most: int = _MOST) -> Iterator[str]:
        """A line for each reason, the commonest first; `what` became of things comes before the count."""
        what = f"{what} " if what else ""
        common = self.most_common(most)
        for reason, count in common:
            yield f"{what}{count:,} × {reason}{self.where(reason)}"
        if more := self.total() - sum(count for _, count in common):
            yield f"{what}{more:,} × other reasons"

    def where(self, reason: str) -> str:
        """The files of a reason, in brackets; nothing where there is only one input."""
        named, others = ", ".join(self._files.get(reason, ())), self._others[reason]
        more = f" and {others:,} more file{'s' * (others != 1)}" if others else ""
        return f" (in {named}{more})" if named else ""


def short_reason(error: SketchError) -> str:
    """What an error says, less what differs from case to case, so that it can be counted.

    >>> short_reason(SketchError("primitive 7: a line needs two different ends, both are (0, 0)"))
    'a line needs two different ends'
    """
    sentence = error.reason if isinstance(error, FormatError) else str(error)
    sentence = re.sub(r"^primitive \d+: ", "", sentence)
    return re.sub(r"\bprimitive -?\d+", "a primitive", re.split(r"[;:]|,(?!\d)", sentence)[0].strip())[:100]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A file read whole: its sketches, how often each reason kept something out, and what was read otherwise."""

    sketches: tuple[Sketch, ...]
    skipped: Counter[str]
    notes: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Sketch]:
        return iter(self.sketches)

    def __len__(self) -> int:
        return len(self.sketches)


def collect(found: Iterable[ReadItem]) -> ReadResult:
    """All sketches of a stream and the count of each reason."""
    sketches: list[Sketch] = []
    skipped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for item in found:
        if isinstance(item, Skipped):
            skipped[item.reason] += item.count
        elif isinstance(item, Note):
            notes[item.text] += item.count
        else:
            sketches.append(item)
    return ReadResult(tuple(sketches), skipped, notes)


def format_losses(
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


def single_sketch(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """The sketch for a file that holds one; any other number is refused before anything is written."""
    first = list(islice(sketches, 2))
    if len(first) != 1:
        there = "there are more" if first else "there is none"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {there}; many go to .jsonl or to a folder")
    return first[0]
