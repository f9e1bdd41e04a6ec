"""The compact JSONL of a corpus: one record a line, primitives as rows, with `source`, `licence`, `group` and `id`.

    {"source": "freecad", "licence": "MIT", "group": "…", "id": "…", "primitives": [["L", 0, 0.0, 0.5, 0.5, 0.5], …]}

Rows are `["L", construction, x1, y1, x2, y2]`, `["C", con, cx, cy, r]`, `["A", con, cx, cy, r, a0, a1]` and
`["P", con, x, y]`; an arc runs counter-clockwise and its a1 may lie below a0. Constraints and units are written as in
our own files, where there are any. What each record says besides its primitives travels in `Sketch.extra`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from sketchdnn.formats.format import Losses, Skipped
from sketchdnn.geometry import Sketch

from .format import Format
from .json_files import LINE_SUFFIXES, lines, read_lines, write_lines

_FIRST_ROW = re.compile(rb'"primitives"\s*:\s*\[\s*\["[LCAP]"')


def write(sketches: Iterable[Sketch], path: Path) -> Losses:
    """A record a line, in rows, which have no room for keys of a primitive's own."""
    losses = Losses()

    def counted() -> Iterator[Sketch]:
        for sketch in sketches:
            if isinstance(kept := sketch.extra.get("primitives"), Mapping):
                losses.left_out["a primitive's own keys, which corpus cannot hold"] += len(kept)
            yield sketch

    write_lines(counted(), path, compact=True)
    return losses


def _recognizes(path: Path, head: bytes) -> bool:
    """By its first record, which may lie behind a compression that hides it from `head`."""
    if not path.name.lower().endswith(LINE_SUFFIXES):
        return False
    first = next(lines(path), b"")
    return not isinstance(first, Skipped) and _FIRST_ROW.search(first) is not None


# By name only `….corpus.jsonl` is a corpus; a plain `.jsonl` is our own when written, and judged by content when read.
SUFFIXES = tuple(f".corpus{suffix}" for suffix in LINE_SUFFIXES)
# Our own lines and a corpus are told apart record by record, so both are read by the same reader.
FORMAT = Format("corpus", SUFFIXES, holds_many=True, recognizes=_recognizes, read=read_lines, write=write)
