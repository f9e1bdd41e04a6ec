"""A prepared corpus on disk.

    dataset.json                      what it is: representation version, choices, counts
    parquet/train/part-00000.parquet  for people and other tools: rows with their provenance and true size
    train/kind.npy …                  for training: the same sketches in the same order, as arrays that are mapped
    … validation, test                likewise

A Parquet row holds `id, source, licence, group, units` in words; `kind` and `construction`, one a primitive; `params`,
five numbers a primitive, zero-padded; and `center_x, center_y, scale`: true place = center + scale · stored place,
measured in `units`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact
from sketchdnn.representation.layout import MAX_KIND_PARAMS, MAX_PRIMITIVES, NONE

from .chunks import ORIGINS, centers_of, compact_of, take
from .config import SPLITS
from .dedup import Survivors
from .summary import Summary, summarize

if TYPE_CHECKING:
    import pyarrow as pa

PART_SIZE = 65_536

ARRAYS: dict[str, tuple[type, tuple[int, ...]]] = {
    "kind": (np.uint8, (MAX_PRIMITIVES,)),
    "construction": (np.bool_, (MAX_PRIMITIVES,)),
    "params": (np.float32, (MAX_PRIMITIVES, MAX_KIND_PARAMS)),
}


@dataclass(frozen=True, slots=True)
class Places:
    """Where each candidate lies: which chunk, which row of it."""

    chunk: NDArray[np.int32]
    row: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Part:
    """The sketches of one Parquet file: for each, the chunk it lies in and its row there; `offset` in the arrays."""

    folder: Path
    split: str
    number: int
    offset: int
    chunks: tuple[Path, ...]
    chunk: NDArray[np.int64]
    row: NDArray[np.int32]
    half_extent: float


def create_arrays(folder: Path, kept: Survivors) -> None:
    """Make room for the training form of each split."""
    for split in SPLITS:
        (folder / split).mkdir(parents=True, exist_ok=True)
        for name, (dtype, shape) in ARRAYS.items():
            np.lib.format.open_memmap(folder / split / f"{name}.npy", "w+", dtype, (kept.count(split), *shape)).flush()


def cut_parts(folder: Path, chunks: Sequence[Path], kept: Survivors, places: Places, half_extent: float) -> list[Part]:
    """The parts of all splits, each small enough for memory."""
    parts = []
    for number, split in enumerate(SPLITS):
        mine = kept.index[kept.split == number]
        for i, start in enumerate(range(0, len(mine), PART_SIZE)):
            index = mine[start : start + PART_SIZE]
            used, chunk = np.unique(places.chunk[index], return_inverse=True)
            paths = tuple(chunks[c] for c in used)
            parts.append(Part(folder, split, i, start, paths, chunk, places.row[index], half_extent))
    return parts


def write_part(part: Part) -> Summary:
    """Write one part in both forms, and say what is in it."""
    import pyarrow.parquet as pq

    table = _gathered(part)
    rows = compact_of(table)
    folder = part.folder / part.split
    for name in ARRAYS:
        array = np.lib.format.open_memmap(folder / f"{name}.npy", "r+")
        array[part.offset : part.offset + len(rows)] = getattr(rows, name)
        array.flush()
    path = part.folder / "parquet" / part.split / f"part-{part.number:05d}.parquet"
    # Through an open file: the library cannot take a name that is no UTF-8.
    with atomic_write(path, flush=False) as temporary, temporary.open("wb") as file:
        pq.write_table(_parquet_table(table, rows), file, compression="zstd")
    return summarize(table, rows, part.split, part.half_extent)


def _gathered(part: Part) -> pa.Table:
    """The candidates of a part, in its order."""
    import pyarrow as pa

    by_place = np.lexsort((part.row, part.chunk))
    chunk, row = part.chunk[by_place], part.row[by_place]
    firsts = np.flatnonzero(np.diff(chunk, prepend=-1))
    pieces = [take(part.chunks[chunk[piece[0]]], row[piece]) for piece in np.split(np.arange(len(chunk)), firsts[1:])]
    return pa.concat_tables(pieces).take(np.argsort(by_place))


def _parquet_table(table: pa.Table, rows: Compact) -> pa.Table:
    import pyarrow as pa

    there = rows.kind != NONE
    ends = np.concatenate([[0], np.cumsum(rows.counts)]).astype(np.int32)

    def lists(values: NDArray[Any], each: int = 1) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(ends * each), pa.array(values[there].reshape(-1)))

    center = centers_of(table)
    columns: dict[str, Any] = {name: table[name] for name in ORIGINS}
    columns["kind"] = lists(rows.kind)
    columns["construction"] = lists(rows.construction)
    columns["params"] = lists(rows.params, MAX_KIND_PARAMS)
    columns["center_x"], columns["center_y"] = center[:, 0], center[:, 1]
    columns["scale"] = table["scale"]
    return pa.table(columns)
