"""SketchGraphs `.npy` files, read and written without the official library and without trusting them.

`read` gives sketches with their constraints, `read_table` columns without; `write` makes files that the official
library opens. The container, the pickles, the entities and the constraints are each known by one module.
"""

from pathlib import Path

from sketchdnn.formats.format import Format

from .columns import SequenceTable, count, read_table
from .sketches import read, write

__all__ = ["FORMAT", "SequenceTable", "count", "read", "read_table", "write"]


def _recognizes(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x93NUMPY")


FORMAT = Format("sketchgraphs", (".npy",), holds_many=True, recognizes=_recognizes, read=read, write=write)
