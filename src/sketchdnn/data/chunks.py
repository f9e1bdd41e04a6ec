"""Candidates on disk between the two passes: Arrow files, sorted by content, that are mapped rather than read.

A sorted file gives the rows of any range of content as one slice, so the second pass can write the corpus in its final
order from hundreds of these without holding more than one part in memory.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.io import atomic_write
from sketchdnn.representation import Compact
from sketchdnn.representation.layout import MAX_KIND_PARAMS

from .blocks import Origins
from .steps import Candidates

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = ("duplicate", "content", "tie", "split", "symmetric")
ORIGINS = tuple(field.name for field in fields(Origins))


def write_chunk(path: Path, found: Candidates) -> None:
    """Write candidates in the order of their content."""
    import pyarrow as pa

    order = np.lexsort((found.tie, found.content))
    rows = found.compact[order]
    width = rows.kind.shape[1]
    chosen = order.tolist()
    columns: dict[str, Any] = {name: getattr(found, name)[order] for name in KEYS}
    columns["kind"] = _fixed(rows.kind, width)
    columns["construction"] = _fixed(rows.construction.astype(np.uint8), width)
    columns["params"] = _fixed(rows.params, width * MAX_KIND_PARAMS)
    columns["center"] = _fixed(found.center[order], 2)
    columns["scale"] = found.scale[order]
    for name, words in zip(ORIGINS, found.origins.columns(), strict=True):
        columns[name] = pa.array([words[i] for i in chosen], pa.string())
    table = pa.table(columns)
    with (
        atomic_write(path, flush=False) as temporary,  # a damaged one is noticed, and made again
        pa.OSFile(os.fsencode(temporary), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as f,
    ):
        f.write_table(table)


def read_keys(path: Path) -> NDArray[np.uint64]:
    """The keys of a chunk, `key, candidate`, in the order of `KEYS`."""
    table = _mapped(path)
    return np.stack([table[name].to_numpy() for name in KEYS])


def take(path: Path, rows: NDArray[np.int32]) -> pa.Table:
    """Some candidates of a chunk; `rows` ascend."""
    return _mapped(path).take(rows)


def compact_of(table: pa.Table) -> Compact:
    """The rows of candidates."""
    kind = _array(table, "kind")
    params = _array(table, "params").reshape(*kind.shape, MAX_KIND_PARAMS)
    return Compact(kind, _array(table, "construction").astype(bool), params)


def centers_of(table: pa.Table) -> NDArray[np.float64]:
    """The centers of candidates."""
    return _array(table, "center")


def _mapped(path: Path) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(os.fsencode(path))).read_all()


def _fixed(values: NDArray[Any], width: int) -> Any:
    import pyarrow as pa

    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), width)


def _array(table: pa.Table, name: str) -> NDArray[Any]:
    column = table[name].combine_chunks()
    values: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(table), column.type.list_size)
