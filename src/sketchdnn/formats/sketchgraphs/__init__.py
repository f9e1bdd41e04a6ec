"""SketchGraphs `.npy` files, read and written without the official library and without trusting them.

`read` yields sketches with their constraints, `read_table` returns columns without. `write` makes files that the
official library opens.
"""

from pathlib import Path

from sketchdnn.formats.format import Format

from .sketches import SequenceTable, count, read, read_table, write

__all__ = ["FORMAT", "SequenceTable", "count", "read", "read_table", "write"]


def _recognizes(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x93NUMPY")


FORMAT = Format("sketchgraphs", (".npy",), holds_many=True, recognizes=_recognizes, read=read, write=write)
