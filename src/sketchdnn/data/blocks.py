"""A block: some thousand sketches as columns, with where each came from. What preparation works on at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.formats import Note, ReadItem, Skipped
from sketchdnn.geometry import Sketch
from sketchdnn.geometry.table import PrimitiveTable, sketches_to_table

# Small enough that a handful of workers stay far below a gigabyte, large enough that numpy does the work.
BLOCK_SIZE = 8192
# Files are not trusted: what they say beside the geometry is taken up to here.
LONGEST_WORD, MOST_ENTITIES = 1000, 10**6


@dataclass(frozen=True, slots=True)
class Origins:
    """Where each sketch came from, in words; "" where its file does not say."""

    id: Sequence[str]
    source: Sequence[str]
    licence: Sequence[str]
    group: Sequence[str]
    units: Sequence[str]

    def select(self, keep: NDArray[np.bool_]) -> Origins:
        chosen = np.flatnonzero(keep).tolist()
        return Origins(*([column[i] for i in chosen] for column in self.columns()))

    def columns(self) -> tuple[Sequence[str], ...]:
        return (self.id, self.source, self.licence, self.group, self.units)


@dataclass(slots=True)
class Tally:
    """What became of everything that was found: counts that add up over blocks, tasks and files."""

    found: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    files: int = 0
    bad_files: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.found += other.found
        self.refused.update(other.refused)
        self.left_out.update(other.left_out)
        self.files += other.files
        self.bad_files.update(other.bad_files)

    def refuse(self, reason: str, count: int = 1) -> None:
        if count:
            self.refused[reason] += count

    def to_record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_record(record: dict[str, Any]) -> Tally:
        counters = {name: Counter(record[name]) for name in ("refused", "left_out")}
        return Tally(**{**record, **counters})


@dataclass(frozen=True, slots=True)
class Block:
    """Sketches as a table; for each, how many constraints it has and how many entities that are no primitive."""

    table: PrimitiveTable
    constraints: NDArray[np.int64]
    left_out: NDArray[np.int64]
    origins: Origins

    def select(self, keep: NDArray[np.bool_]) -> Block:
        return Block(self.table.select(keep), self.constraints[keep], self.left_out[keep], self.origins.select(keep))


def gather_blocks(found: Iterable[ReadItem], tally: Tally, source: str, group: str = "") -> Iterator[Block]:
    """Sketches of a stream in blocks; what was skipped goes to the tally.

    `source` and `group` stand in where a sketch does not name its own.
    """
    waiting: list[Sketch] = []
    for item in found:
        if isinstance(item, Skipped):
            if item.is_sketch:
                tally.found += item.count
                tally.refuse(item.reason, item.count)
            else:
                tally.left_out[item.reason] += item.count
            continue
        if isinstance(item, Note):
            continue
        tally.found += 1
        waiting.append(item)
        if len(waiting) == BLOCK_SIZE:
            yield _block(waiting, source, group)
            waiting = []
    if waiting:
        yield _block(waiting, source, group)


def _block(sketches: list[Sketch], source: str, group: str) -> Block:
    def said(key: str, otherwise: str = "") -> list[str]:
        return [word(sketch.extra.get(key)) or otherwise for sketch in sketches]

    origins = Origins(
        said("id"), said("source", source), said("licence"), said("group", group), [s.units or "" for s in sketches]
    )
    constraints = np.array([len(sketch.constraints) for sketch in sketches], np.int64)
    lost = np.array([_count(sketch.extra.get("dropped_entities")) for sketch in sketches], np.int64)
    return Block(sketches_to_table(sketches), constraints, lost, origins)


def word(value: object) -> str:
    """What a file says of a sketch, which may be anything, as text that can be written."""
    return "" if value is None else str(value)[:LONGEST_WORD].encode(errors="backslashreplace").decode()


def _count(value: object) -> int:
    return min(value, MOST_ENTITIES) if isinstance(value, int) and value > 0 else 0
