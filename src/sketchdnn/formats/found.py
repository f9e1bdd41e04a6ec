"""What a reader finds in a file: sketches, and what did not become one, with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.geometry import Sketch


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


Found = Sketch | Skipped | Note
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


class Reasons(Counter[str]):
    """How often each reason occurred and, where there are several files, in which: their number and the first names.

    >>> reasons = Reasons()
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


def reason_of(error: SketchError) -> str:
    """What an error says, less what differs from case to case, so that it can be counted.

    >>> reason_of(SketchError("primitive 7: a line needs two different ends, both are (0, 0)"))
    'a line needs two different ends'
    """
    sentence = error.reason if isinstance(error, FormatError) else str(error)
    sentence = re.sub(r"^primitive \d+: ", "", sentence)
    return re.sub(r"\bprimitive -?\d+", "a primitive", re.split(r"[;:]|,(?!\d)", sentence)[0].strip())[:100]


@dataclass(frozen=True, slots=True)
class Reading:
    """A file read whole: its sketches, how often each reason kept something out, and what was read otherwise."""

    sketches: tuple[Sketch, ...]
    skipped: Counter[str]
    notes: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Sketch]:
        return iter(self.sketches)

    def __len__(self) -> int:
        return len(self.sketches)


def gather(found: Iterable[Found]) -> Reading:
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
    return Reading(tuple(sketches), skipped, notes)
