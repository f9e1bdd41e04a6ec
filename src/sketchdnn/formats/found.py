"""What a reader finds in a file: sketches, and what did not become one, with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sketchdnn.geometry import Sketch, SketchError
from sketchdnn.geometry.errors import MissingError


class FormatError(SketchError):
    """A file that cannot be read or written at all: the sentence names the file and the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{shown(path)}: {reason}")
        self.reason = reason


class MissingFileError(FormatError, MissingError):
    """A file that is to be read and does not exist."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.filename = str(path)


class UnfitError(FormatError):
    """A sketch that a format cannot hold, such as an open profile in a file of solids; another may be fine."""


def shown(path: Path | str) -> str:
    """A path as it can be printed: it may hold bytes that are no UTF-8."""
    return str(path).encode(errors="backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that did not become a sketch or part of one.

    `reason` is short and the same for every case of its kind, so that it can be counted; `count` says how many.
    `is_sketch` tells a whole sketch refused from a single entity left out of one.
    """

    reason: str
    is_sketch: bool = False
    count: int = 1


Found = Sketch | Skipped


@dataclass(frozen=True, slots=True)
class Losses:
    """What writing left out of sketches, and what it changed in them: how often, by reason."""

    left_out: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def update(self, other: Losses) -> None:
        """Add the counts of another."""
        self.left_out.update(other.left_out)
        self.changed.update(other.changed)


def reason_of(error: SketchError) -> str:
    """What an error says, less what differs from case to case, so that it can be counted.

    >>> reason_of(SketchError("primitive 7: a line needs two different ends, both are (0, 0)"))
    'a line needs two different ends'
    """
    sentence = error.reason if isinstance(error, FormatError) else str(error)
    sentence = re.sub(r"^primitive \d+: ", "", sentence)
    return re.sub(r"\bprimitive -?\d+", "a primitive", re.split("[,;:]", sentence)[0].strip())[:100]


@dataclass(frozen=True, slots=True)
class Reading:
    """A file read whole: its sketches, and how often each reason kept something out."""

    sketches: tuple[Sketch, ...]
    skipped: Counter[str]

    def __iter__(self) -> Iterator[Sketch]:
        return iter(self.sketches)

    def __len__(self) -> int:
        return len(self.sketches)


def gather(found: Iterable[Found]) -> Reading:
    """All sketches of a stream and the count of each reason."""
    sketches: list[Sketch] = []
    skipped: Counter[str] = Counter()
    for item in found:
        if isinstance(item, Skipped):
            skipped[item.reason] += item.count
        else:
            sketches.append(item)
    return Reading(tuple(sketches), skipped)
