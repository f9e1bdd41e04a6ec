"""HPSketch vectors: `.h5` files whose `vec` holds one model as rows of a command and its arguments, on a grid of 256.

A row is (command, x, y, sweep, counter-clockwise, radius, …) with −1 for unused arguments. Rows that build solids or
add constraints are skipped. One file may hold several sketches. There is no writer: the format has no points, no
construction and no coordinates between grid levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sketchdnn.errors import FormatError, GeometryError
from sketchdnn.geometry import TAU, Circle, Line, Primitive, Sketch, arc_from_sweep

from .checks import short_reason
from .format import Format, ReadItem, Skipped

LINE, ARC, CIRCLE, SPLINE, SPLINE_POINT, END, LOOP, CIRCLE_OP, LINE_FILLET, LINE_CHAMFER = range(10)
_LINES = (LINE, LINE_FILLET, LINE_CHAMFER)
_CIRCLES = (CIRCLE, CIRCLE_OP)
_SPLINES = (SPLINE, SPLINE_POINT)
_LAST_COMMAND = 15  # 10..15: selections, transforms and constraints

_WIDTH = 21
_ORIGIN = 128
_LEVELS = 256
# Real models have hundreds of rows.
_MOST_ROWS = 100_000
# HDF5 decompresses a chunk as a whole, which deflate can expand to a thousand times its size.
_LARGEST_CHUNK = 128 * 2**10
_MOST_CHUNKS = 4096
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}

Row = Sequence[int]
Loop = list[Row]


def read(path: Path) -> Iterator[ReadItem]:
    """The sketches of one model, around the origin, in grid units."""
    try:
        rows = _rows(path)
    except (OSError, RuntimeError, KeyError) as error:
        raise FormatError(path, "is not a whole HDF5 file") from error
    loops = _loops(path, rows)
    for index, sketch in enumerate(_sketches(loops)):
        try:
            primitives = tuple(p for loop in sketch for p in _primitives(loop))
        except GeometryError as error:
            yield Skipped(short_reason(error), is_sketch=True)
            continue
        # Models have DeepCAD names (00204565_1); the group joins the variants of one model.
        model = path.stem.split("_")[0]
        extra = {"source": "hpsketch", "group": f"deepcad/{model}", "id": f"{path.stem}.{index}"}
        yield Sketch(primitives, extra=extra)


def _rows(path: Path) -> list[Row]:
    import h5py

    with h5py.File(path, "r") as file:
        vectors = file["vec"] if isinstance(file.get("vec", getlink=True), h5py.HardLink) else None
        # HDF5 tables can refer to other files of this machine, which a sketch must not read.
        if not isinstance(vectors, h5py.Dataset) or vectors.external or vectors.is_virtual:
            raise FormatError(path, "is an HDF5 file without the table 'vec' of HPSketch")
        if vectors.ndim != 2 or vectors.shape[1] != _WIDTH or vectors.dtype.kind not in "iu":
            raise FormatError(path, f"has a table 'vec' that is not whole numbers in {_WIDTH} columns")
        if len(vectors) > _MOST_ROWS:
            raise FormatError(path, f"has more than {_MOST_ROWS} rows")
        if vectors.chunks is not None:
            _check_chunks(path, vectors)
        rows: list[Row] = vectors[:].tolist()
        return rows


def _check_chunks(path: Path, vectors: Any) -> None:
    """Refuse a table whose chunks could fill the memory, by their number and sizes."""
    chunks = math.prod(-(-size // step) for size, step in zip(vectors.shape, vectors.chunks, strict=True))
    unpacked = math.prod(vectors.chunks) * vectors.dtype.itemsize
    if chunks > _MOST_CHUNKS or unpacked > _MOST_ROWS * _WIDTH * vectors.dtype.itemsize:
        raise FormatError(path, "has a table 'vec' in more or larger pieces than any model needs")
    plist = vectors.id.get_create_plist()
    filters = [plist.get_filter(number)[0] for number in range(plist.get_nfilters())]
    names = [_FILTERS.get(code) for code in filters]
    if None in names or names.count("deflate") + names.count("lzf") > 1:
        raise FormatError(path, f"has a table 'vec' packed otherwise than once, by {' or '.join(_FILTERS.values())}")
    stored = (vectors.id.get_chunk_info(number).size for number in range(vectors.id.get_num_chunks()))
    if filters and max(stored, default=0) > _LARGEST_CHUNK:
        raise FormatError(path, f"has a table 'vec' with a packed piece over {_LARGEST_CHUNK >> 10} KiB")


def _loops(path: Path, rows: list[Row]) -> list[Loop]:
    loops: list[Loop] = []
    for row in rows:
        command = row[0]
        if not 0 <= command <= _LAST_COMMAND:
            raise FormatError(path, f"has an unknown command, {command}")
        if command == END:
            break
        if command == LOOP:
            loops.append([])
        elif command <= LINE_CHAMFER:
            if not loops:
                raise FormatError(path, "draws before its first loop starts")
            loops[-1].append(row)
    return [loop for loop in loops if loop]


def _sketches(loops: list[Loop]) -> list[list[Loop]]:
    """The loops of each sketch. A loop that starts at the origin begins a new one."""
    sketches: list[list[Loop]] = []
    for loop in loops:
        x, y = _start(loop)
        # A circle's center and radius are each rounded to the grid, so its start may be one level off.
        slack = 1 if loop[-1][0] in _CIRCLES else 0
        if not sketches or max(abs(x - _ORIGIN), abs(y - _ORIGIN)) <= slack:
            sketches.append([])
        sketches[-1].append(loop)
    return sketches


def _start(loop: Loop) -> tuple[int, int]:
    """The start of a loop: the end of its last row, since loops are closed; of a circle, the leftmost point."""
    command, x, y, _, _, radius, *_ = loop[-1]
    return (x - radius, y) if command in _CIRCLES else (x, y)


def _primitives(loop: Loop) -> Iterator[Primitive]:
    x, y = _start(loop)
    start = (float(x - _ORIGIN), float(y - _ORIGIN))
    for command, x, y, sweep, counter_clockwise, radius, *_ in loop:
        end = (float(x - _ORIGIN), float(y - _ORIGIN))
        if command in _SPLINES:
            raise GeometryError("a sketch with a spline")
        if command in _CIRCLES:
            yield Circle(end, float(radius))
            continue
        if command == ARC:
            if sweep <= 0:
                raise GeometryError("an arc without a sweep")
            turn = sweep / _LEVELS * TAU
            yield arc_from_sweep(start, end, turn if counter_clockwise == 1 else -turn)
        elif command in _LINES:
            yield Line(start, end)
        start = end


FORMAT = Format("hpsketch", (".h5", ".hdf5"), True, lambda path, head: head.startswith(b"\x89HDF\r\n\x1a\n"), read)
