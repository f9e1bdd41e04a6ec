"""What a reader finds in a file: sketches, and what did not become one, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sketchdnn.geometry import Sketch, SketchError


class FormatError(SketchError):
    """A file that cannot be read or written at all: the sentence names the file and the reason."""

    def __init__(self, path: Path | str, reason: str) -> None:
        # A path may hold bytes that are no UTF-8; a message must still print.
        super().__init__(f"{str(path).encode(errors='backslashreplace').decode()}: {reason}")


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
