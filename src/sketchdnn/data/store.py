"""A corpus on disk, and the candidates between the two passes of its preparation.

    dataset.json                      representation version, settings, counts
    parquet/train/part-00000.parquet  for people and other tools: rows with their provenance and true size
    train/kind.npy …                  for training: the same sketches in the same order, as memory-mapped arrays
    … validation, test                likewise

A Parquet row holds `id, source, licence, group, units` as text; `kind` and `construction`, one per primitive; `params`,
five numbers per primitive, zero-padded; and `center_x, center_y, scale`: point = center + scale · stored point, in
`units`.

Candidates are kept in Arrow files sorted by content. The rows of any range of content are then one slice, so the second
pass writes the corpus in its final order from hundreds of files with one shard in memory.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import MM_PER_UNIT, Kind
from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact
from sketchdnn.representation.layout import MAX_KIND_PARAMS, MAX_PRIMITIVES, NONE

from .candidates import Candidates, Selection
from .config import SPLITS
from .sources import Origins

if TYPE_CHECKING:
    import pyarrow as pa


SHARD_SIZE = 65_536
# Counts of sketches and of their rows, by what is counted.
Summary = dict[str, Counter[Any]]

ARRAYS: dict[str, tuple[type, tuple[int, ...]]] = {
    "kind": (np.uint8, (MAX_PRIMITIVES,)),
    "construction": (np.bool_, (MAX_PRIMITIVES,)),
    "params": (np.float32, (MAX_PRIMITIVES, MAX_KIND_PARAMS)),
}


@dataclass(frozen=True, slots=True)
class Shard:
    """The sketches of one Parquet file: their offset in the arrays, and their rows in chunks of candidates.

    `order` gives the place of each sketch among the rows of all `pieces`, one after the other.
    """

    folder: Path
    split: str
    number: int
    offset: int
    pieces: list[tuple[Path, NDArray[np.int64]]]
    order: NDArray[np.int64]
    half_extent: float


def create_arrays(folder: Path, selection: Selection) -> None:
    """Create the empty arrays of each split."""
    for split in SPLITS:
        (folder / split).mkdir(parents=True, exist_ok=True)
        for name, (dtype, shape) in ARRAYS.items():
            np.lib.format.open_memmap(
                folder / split / f"{name}.npy", "w+", dtype, (selection.count(split), *shape)
            ).flush()


def plan_shards(folder: Path, chunks: Mapping[Path, int], selection: Selection, half_extent: float) -> list[Shard]:
    """The shards of all splits; `chunks` maps the files of all candidates, in order, to their sizes."""
    firsts = np.cumsum([0, *chunks.values()])
    shards = []
    for number, split in enumerate(SPLITS):
        indices = selection.index[selection.split == number]
        for i, start in enumerate(range(0, len(indices), SHARD_SIZE)):
            index = indices[start : start + SHARD_SIZE]
            by_place = np.argsort(index)
            in_chunks = np.split(index[by_place], np.searchsorted(index[by_place], firsts[1:-1]))
            pieces = [
                (path, rows - first) for path, first, rows in zip(chunks, firsts, in_chunks, strict=False) if len(rows)
            ]
            shards.append(Shard(folder, split, i, start, pieces, np.argsort(by_place), half_extent))
    return shards


def write_shard(shard: Shard) -> Summary:
    """Write a shard as arrays and as Parquet, and return its counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables([_open_chunk(path).take(rows) for path, rows in shard.pieces]).take(shard.order)
    rows = _compact(table)
    folder = shard.folder / shard.split
    for name in ARRAYS:
        array = np.lib.format.open_memmap(folder / f"{name}.npy", "r+")
        array[shard.offset : shard.offset + len(rows)] = getattr(rows, name)
        array.flush()
    path = shard.folder / "parquet" / shard.split / f"part-{shard.number:05d}.parquet"
    # Through an open file: the library takes no name that is not UTF-8.
    with atomic_write(path, flush=False) as temporary, temporary.open("wb") as file:
        pq.write_table(_parquet_table(table, rows), file, compression="zstd")
    return _summarize(table, rows, shard.half_extent)


def _parquet_table(table: pa.Table, rows: Compact) -> pa.Table:
    import pyarrow as pa

    is_present = rows.kind != NONE
    ends = np.concatenate([[0], np.cumsum(rows.counts)]).astype(np.int32)

    def lists(values: NDArray[Any], each: int = 1) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(ends * each), pa.array(values[is_present].reshape(-1)))

    center = _array(table, "center")
    columns: dict[str, Any] = {name: table[name] for name in Origins._fields}
    columns["kind"] = lists(rows.kind)
    columns["construction"] = lists(rows.construction)
    columns["params"] = lists(rows.params, MAX_KIND_PARAMS)
    columns["center_x"], columns["center_y"] = center[:, 0], center[:, 1]
    columns["scale"] = table["scale"]
    return pa.table(columns)


KEYS = ("duplicate", "content", "tie", "split", "symmetric")


def write_chunk(path: Path, candidates: Candidates) -> None:
    """Write candidates in the order of their content."""
    import pyarrow as pa

    order = np.lexsort((candidates.tie, candidates.content))
    rows = candidates.compact[order]
    width = rows.kind.shape[1]
    chosen = order.tolist()
    columns: dict[str, Any] = {name: getattr(candidates, name)[order] for name in KEYS}
    columns["kind"] = _fixed(rows.kind, width)
    columns["construction"] = _fixed(rows.construction.astype(np.uint8), width)
    columns["params"] = _fixed(rows.params, width * MAX_KIND_PARAMS)
    columns["center"] = _fixed(candidates.center[order], 2)
    columns["scale"] = candidates.scale[order]
    for name, texts in candidates.origins._asdict().items():
        columns[name] = pa.array([texts[i] for i in chosen], pa.string())
    table = pa.table(columns)
    with (
        atomic_write(path, flush=False) as temporary,  # damage is detected by its digest
        pa.OSFile(os.fsencode(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as f,
    ):
        f.write_table(table)


def read_keys(path: Path) -> NDArray[np.uint64]:
    """The keys of a chunk, `key, candidate`, in the order of `KEYS`."""
    table = _open_chunk(path)
    return np.stack([table[name].to_numpy() for name in KEYS])


def _compact(table: pa.Table) -> Compact:
    kind = _array(table, "kind")
    params = _array(table, "params").reshape(*kind.shape, MAX_KIND_PARAMS)
    return Compact(kind, _array(table, "construction").astype(bool), params)


def _open_chunk(path: Path) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(os.fsencode(path))).read_all()


def _fixed(values: NDArray[Any], width: int) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width)


def _array(table: pa.Table, name: str) -> NDArray[Any]:
    column = table[name].combine_chunks()
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(table), column.type.list_size)


def _summarize(table: pa.Table, rows: Compact, half_extent: float) -> Summary:
    """The counts of one shard.

    `sizes` counts sketches with known units by the larger side of their box in mm, in half-decades (2 is 10 to 10^1.5
    mm).
    """
    kinds, construction = (
        Counter({kind.label: int(((rows.kind == kind) & where).sum()) for kind in Kind})
        for where in (True, rows.construction)
    )
    units = table["units"].to_pylist()
    sizes = Counter(
        math.floor(2 * math.log10(2 * half_extent * scale * MM_PER_UNIT[unit]))
        for scale, unit in zip(table["scale"].to_pylist(), units, strict=True)
        if unit
    )
    return {
        "kinds": kinds,
        "construction": construction,
        "primitives": Counter(rows.counts.tolist()),
        "sizes": sizes,
        "units": Counter(units),
        "licences": Counter(zip(table["source"].to_pylist(), table["licence"].to_pylist(), strict=True)),
    }
