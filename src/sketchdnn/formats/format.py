"""The interface of a file format, read options, and the items that readers yield.

A reader yields `ReadItem`s: sketches, `Skipped` for anything that did not become part of one, and `Note` for anything
that was read with a change. A writer returns `Losses`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.geometry import MM_PER_UNIT, Sketch

# How many bytes of a file `Format.recognizes` receives.
HEAD_BYTES = 4096

# Keys that readers add to record the origin of a sketch. A format that does not hold them loses nothing.
_PROVENANCE = frozenset({"id", "source", "index", "group", "dropped_entities"})
_UNIT_NAMES = {"m": "meters", "mm": "millimeters"}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    Attributes:
        flatten: Tolerance in millimeters of the lines and arcs that replace a spline, Bézier curve or ellipse; None
            skips such curves and counts them.
        assume_units: The unit of a sketch whose file names none. By default the sketch has no unit, and tolerances
            treat its unit as a millimeter.
    """

    flatten: float | None = 0.01
    assume_units: str | None = None

    def __post_init__(self) -> None:
        if self.flatten is not None and not 0 < self.flatten < math.inf:
            raise SketchError(f"a tolerance of {self.flatten} mm is none to approximate curves within")
        if self.assume_units is not None and self.assume_units not in MM_PER_UNIT:
            raise SketchError(f"'{self.assume_units}' is no known unit; use one of {', '.join(MM_PER_UNIT)}")

    @property
    def mm_per_assumed(self) -> float:
        """Millimeters per unit of a file that names no unit."""
        return MM_PER_UNIT[self.assume_units or "mm"]


DEFAULT_READ_OPTIONS = ReadOptions()


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: The name that users type.
        suffixes: Suffixes of its files; the first is the default.
        holds_many: Whether a file can hold several sketches.
        recognizes: `recognizes(path, head)` decides by the name and the first bytes of a file.
        read: Streams the items of a file, so that it may be larger than memory. Raises `FormatError` for a file that
            is not in this format.
        write: Writes any iterable of sketches, completely or not at all. Returns the losses, None where there are none.
        options: Keywords that `write` takes.
        is_drawing: `read` takes `ReadOptions` after the path.
        is_text: Files are UTF-8 text.
    """

    name: str
    suffixes: tuple[str, ...]
    holds_many: bool
    recognizes: Callable[[Path, bytes], bool]
    read: Callable[..., Iterator[ReadItem]] | None = None
    write: Callable[..., Losses | None] | None = None
    options: tuple[str, ...] = ()
    is_drawing: bool = False
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that did not become a sketch or part of one.

    Attributes:
        reason: A short text, the same for every case of its kind, so that cases can be counted.
        is_sketch: A whole sketch was refused, not a single entity.
        count: The number of cases.
    """

    reason: str
    is_sketch: bool = False
    count: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", quoted(self.reason))


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was read with a change, such as a spline as arcs. `text` is the same for all cases of a kind."""

    text: str
    count: int = 1


ReadItem = Sketch | Skipped | Note
NO_UNITS = Note("a drawing without units, its lengths taken as mm (--assume-units names another unit)")


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The sketches of a file, and the counts of each reason to skip something and of each note."""

    sketches: tuple[Sketch, ...]
    skipped: Counter[str]
    notes: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Sketch]:
        return iter(self.sketches)

    def __len__(self) -> int:
        return len(self.sketches)


@dataclass(frozen=True, slots=True)
class Losses:
    """Counts by reason of what a writer left out of sketches, and of what it changed."""

    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def update(self, other: Losses) -> None:
        """Add the counts of `other`."""
        self.left_out.update(other.left_out)
        self.changed.update(other.changed)


class ReasonCounts(Counter[str]):
    """Counts by reason and, for several input files, their number and the first names.

    >>> reasons = ReasonCounts()
    >>> for file in ("a.dxf", "a.dxf", "b.dxf", "c.dxf", "d.dxf", "e.dxf"):
    ...     reasons.add("a text", file=file)
    >>> list(reasons.lines("skipped"))
    ['skipped 6 × a text (in a.dxf, b.dxf, c.dxf and 2 more files)']
    """

    _NAMED_FILES = 3
    _MAX_LINES = 20

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(counts or {})
        self._files: dict[str, list[str]] = {}
        self._other_files: Counter[str] = Counter()
        self._last_file: dict[str, str] = {}

    def add(self, reason: str, count: int = 1, file: str = "") -> None:
        """Count a reason. Files come one after the other, so that few names are stored."""
        self[reason] += count
        if not file or self._last_file.get(reason) == file:
            return
        self._last_file[reason] = file
        files = self._files.setdefault(reason, [])
        if len(files) < self._NAMED_FILES:
            files.append(file)
        else:
            self._other_files[reason] += 1

    def lines(self, verb: str = "", max_lines: int = _MAX_LINES) -> Iterator[str]:
        """A line for each reason, the commonest first, with `verb` before the count."""
        verb = f"{verb} " if verb else ""
        common = self.most_common(max_lines)
        for reason, count in common:
            yield f"{verb}{count:,} × {reason}{self.files(reason)}"
        if more := self.total() - sum(count for _, count in common):
            yield f"{verb}{more:,} × other reasons"

    def files(self, reason: str) -> str:
        """The files of a reason, in brackets; empty for a single input."""
        names, others = ", ".join(self._files.get(reason, ())), self._other_files[reason]
        more = f" and {others:,} more file{'s' * (others != 1)}" if others else ""
        return f" (in {names}{more})" if names else ""


def collect(items: Iterable[ReadItem]) -> ReadResult:
    """All sketches of a stream, and the counts of the other items."""
    return ReadResult(*tally(items))


def tally(items: Iterable[Any]) -> tuple[tuple[Any, ...], Counter[str], Counter[str]]:
    """The values of a stream, and the counts of what was skipped and of the notes."""
    values: list[Any] = []
    skipped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for item in items:
        if isinstance(item, Skipped):
            skipped[item.reason] += item.count
        elif isinstance(item, Note):
            notes[item.text] += item.count
        else:
            values.append(item)
    return tuple(values), skipped, notes


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a file; `FormatError` if it is larger than `limit` bytes."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise FormatError(path, f"is larger than {limit >> 20} MiB; that is no sketch")
    return data


def short_reason(error: SketchError) -> str:
    """The message of an error without the details of the case, so that equal cases can be counted.

    >>> short_reason(SketchError("primitive 7: a line needs two different ends, both are (0, 0)"))
    'a line needs two different ends'
    """
    sentence = error.reason if isinstance(error, FormatError) else str(error)
    sentence = re.sub(r"^primitive \d+: ", "", sentence)
    return re.sub(r"\bprimitive -?\d+", "a primitive", re.split(r"[;:]|,(?!\d)", sentence)[0].strip())[:100]


def format_losses(
    sketch: Sketch, name: str, *, constraints: bool = False, keys: Collection[str] = (), units: str | None = None
) -> Losses:
    """The losses of a sketch in the format `name`.

    Args:
        sketch: The sketch that is written.
        name: The name of the format.
        constraints: Whether the format holds constraints.
        keys: The keys of `Sketch.extra` that it holds.
        units: Its only unit, if it has one.
    """
    losses = Losses()
    if sketch.constraints and not constraints:
        losses.left_out[f"a constraint, which {name} cannot hold"] = len(sketch.constraints)
    if lost := len(sketch.extra.keys() - _PROVENANCE - set(keys)):
        losses.left_out[f"a name or other key of a sketch, which {name} cannot hold"] = lost
    if units is not None and sketch.units is None:
        losses.changed[f"a sketch without units, taken to be in {_UNIT_NAMES[units]}"] = 1
    return losses


def single_sketch(sketches: Iterable[Sketch], path: Path) -> Sketch:
    """The sketch for a file that holds one; any other number is refused before anything is written."""
    first = list(islice(sketches, 2))
    if len(first) != 1:
        number = "there are more" if first else "there is none"
        advice = "write many to a .jsonl file, or to a folder with --format"
        raise FormatError(path, f"a {path.suffix} file holds one sketch, and {number}; {advice}")
    return first[0]
