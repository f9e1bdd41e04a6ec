"""The interface of a file format, the options of readers, and the results of readers and writers.

A reader yields `ReadItem`s: a `Sketch`, a `Skipped` for content that was left out, or a `Note` for content that was
changed. A writer returns `Losses`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sketchdnn.errors import SketchError, quoted
from sketchdnn.geometry import MM_PER_UNIT, Sketch


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of readers.

    Attributes:
        curve_tolerance_mm: Splines, Bézier curves and ellipses are replaced by lines and arcs that differ from them by
            at most this length in millimeters. With None, such curves are skipped and counted. It is the option
            `--flatten` of the command line.
        assume_units: The unit of a file that states no unit. With None, the sketch has no unit, and one unit of the
            file counts as one millimeter for `curve_tolerance_mm`.
    """

    curve_tolerance_mm: float | None = 0.01
    assume_units: str | None = None

    def __post_init__(self) -> None:
        if self.curve_tolerance_mm is not None and not 0 < self.curve_tolerance_mm < math.inf:
            raise SketchError(f"a curve tolerance is a positive length in mm, not {self.curve_tolerance_mm}")
        if self.assume_units is not None and self.assume_units not in MM_PER_UNIT:
            raise SketchError(f"'{self.assume_units}' is not a known unit; use one of {', '.join(MM_PER_UNIT)}")

    @property
    def assumed_mm_per_unit(self) -> float:
        """The millimeters per unit of length in a file that states no unit."""
        return MM_PER_UNIT[self.assume_units or "mm"]


DEFAULT_READ_OPTIONS = ReadOptions()


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        name: The name that users type.
        suffixes: The suffixes of its files; the first is the default.
        multiple_sketches: Whether a file can contain several sketches.
        recognizes: `recognizes(path, head)` returns whether a file is in this format. `head` is the start of
            the file, some thousand bytes.
        read: `read(path)` yields the items of a file one by one, so that a file may be larger than memory. It raises
            `FormatError` for a file that is not in this format. None if the format cannot be read.
        write: `write(sketches, path, **options)` writes the complete file, or no file if there is an error. It returns
            the losses, or None if there are none. None if the format cannot be written.
        write_options: The names of the keyword arguments of `write`.
        read_takes_options: Whether `read` takes `ReadOptions` as its second argument. True for drawings (DXF, SVG).
        is_text: Whether files are UTF-8 text.
    """

    name: str
    suffixes: tuple[str, ...]
    multiple_sketches: bool
    recognizes: Callable[[Path, bytes], bool]
    read: Callable[..., Iterator[ReadItem]] | None = None
    write: Callable[..., Losses | None] | None = None
    write_options: tuple[str, ...] = ()
    read_takes_options: bool = False
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """Content of a file that was left out: a whole sketch or an entity.

    Attributes:
        reason: A short text. Similar cases have the same text, so that they can be counted.
        is_sketch: True if a whole sketch was left out, False if only an entity of a sketch.
        count: The number of cases.
    """

    reason: str
    is_sketch: bool = False
    count: int = 1

    def __post_init__(self) -> None:
        # The reason can contain text of the file. `quoted` makes it safe to print. The class is frozen, so the
        # attribute is set this way.
        object.__setattr__(self, "reason", quoted(self.reason))


@dataclass(frozen=True, slots=True)
class Note:
    """Content of a file that was changed, such as a spline that became arcs.

    Attributes:
        text: A short text. Similar cases have the same text, so that they can be counted.
        count: The number of cases.
    """

    text: str
    count: int = 1


ReadItem = Sketch | Skipped | Note


@dataclass(frozen=True, slots=True)
class ReadResult:
    """All sketches of a file, with the counts of other items.

    Attributes:
        sketches: The sketches.
        skipped: The number of cases for each `Skipped.reason`.
        notes: The number of cases for each `Note.text`.
    """

    sketches: tuple[Sketch, ...]
    skipped: Counter[str]
    notes: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Sketch]:
        return iter(self.sketches)

    def __len__(self) -> int:
        return len(self.sketches)


@dataclass(frozen=True, slots=True)
class Losses:
    """Content of sketches that a writer left out or changed.

    The class is frozen: its two counters are never replaced. The counts in them change, for example by `update`.

    Attributes:
        left_out: The number of cases for each reason.
        changed: The number of cases for each reason.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def update(self, other: Losses) -> None:
        """Add the counts of `other` to this object."""
        self.left_out.update(other.left_out)
        self.changed.update(other.changed)


class ReasonCounts(Counter[str]):
    """Counts by reason, with the input files in which each reason occurs.

    At most three file names are stored for each reason; further files are only counted.

    >>> reasons = ReasonCounts()
    >>> for file in ("a.dxf", "a.dxf", "b.dxf", "c.dxf", "d.dxf", "e.dxf"):
    ...     reasons.add("a text", file=file)
    >>> list(reasons.lines("skipped"))
    ['skipped 6 × a text (in a.dxf, b.dxf, c.dxf and 2 more files)']
    """

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        super().__init__(counts or {})
        # For each reason: the first files, the number of further files, and the file that was added last.
        self._first_files: dict[str, list[str]] = {}
        self._num_other_files: Counter[str] = Counter()
        self._last_file: dict[str, str] = {}

    def add(self, reason: str, count: int = 1, file: str = "") -> None:
        """Add `count` cases of a reason, found in `file`; without `file`, there is only one input.

        All cases of a file must be added before those of the next file. A file is new if it is not the last one.
        """
        self[reason] += count
        if not file or self._last_file.get(reason) == file:
            return
        self._last_file[reason] = file
        files = self._first_files.setdefault(reason, [])
        if len(files) < 3:
            files.append(file)
        else:
            self._num_other_files[reason] += 1

    def lines(self, verb: str = "", max_lines: int = 20) -> Iterator[str]:
        """Yield a line for each reason, the most frequent first, with `verb` before the count.

        If there are more than `max_lines` reasons, the last line is the total of the others.
        """
        verb = f"{verb} " if verb else ""
        most_frequent = self.most_common(max_lines)
        yield from (f"{verb}{count:,} × {reason}{self.files(reason)}" for reason, count in most_frequent)
        if num_others := self.total() - sum(count for _, count in most_frequent):
            yield f"{verb}{num_others:,} × for other reasons"

    def files(self, reason: str) -> str:
        """Format the files of a reason, in parentheses; empty if no files were given."""
        names = ", ".join(self._first_files.get(reason, ()))
        num_others = self._num_other_files[reason]
        others = f" and {num_others:,} more file{'s' * (num_others != 1)}" if num_others else ""
        return f" (in {names}{others})" if names else ""


def collect(items: Iterable[ReadItem]) -> ReadResult:
    """Read all items of a reader into a `ReadResult`."""
    return ReadResult(*separate_items(items))


def separate_items(items: Iterable[Any]) -> tuple[tuple[Any, ...], Counter[str], Counter[str]]:
    """Separate a stream that contains `Skipped` and `Note` items between values of any type.

    `collect` does this for a stream of sketches. The DXF reader does it for a stream of primitives.

    Returns:
        The values, the counts by `Skipped.reason`, and the counts by `Note.text`.
    """
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
