"""SketchGraphs `.npy` files, read and written without the official library and without trusting them.

`read` yields sketches with their constraints, `read_table` returns columns without. `write` makes files that the
official library opens.
"""

from sketchdnn.formats.format import Format

from .sketches import SequenceTable, count, read, read_table, write

__all__ = ["FORMAT", "SequenceTable", "count", "read", "read_table", "write"]


FORMAT = Format("sketchgraphs", (".npy",), True, lambda path, head: head.startswith(b"\x93NUMPY"), read, write)
