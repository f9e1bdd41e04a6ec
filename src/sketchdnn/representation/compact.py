"""Compact rows: a kind, a construction flag and the parameters of that kind alone. What datasets store.

An arc is written by its ends and its sweep in radians, whatever scalar a model later sees, so one dataset serves both.
Numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Kind, Sketch
from sketchdnn.geometry.table import Floats, PrimitiveTable, sketches_to_table

from . import layout
from .layout import MAX_PRIMITIVES

# Two ends of a line whose x differ by no more than this (in a box of size about 1) are one above the other: rounding
# noise must not decide which end comes first.
SAME_X = 1e-6


@dataclass(frozen=True, slots=True)
class Compact:
    """`sketch, prim` arrays; `params` holds `sketch, prim, param`, zero beyond the row's own kind's parameters.

    An empty row has kind `layout.NONE`, no construction flag and zeros.
    """

    kind: NDArray[np.uint8]
    construction: NDArray[np.bool_]
    params: NDArray[np.float32]

    def __post_init__(self) -> None:
        rows = self.kind.shape
        if len(rows) != 2 or self.construction.shape != rows or self.params.shape != (*rows, layout.MAX_KIND_PARAMS):
            shapes = f"kind {rows}, construction {self.construction.shape}, params {self.params.shape}"
            raise ValueError(f"compact arrays do not fit together: {shapes}")

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, index: slice | NDArray[np.integer] | NDArray[np.bool_]) -> Compact:
        return Compact(self.kind[index], self.construction[index], self.params[index])

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many primitives each sketch has."""
        return np.asarray((self.kind != layout.NONE).sum(axis=1), np.int64)

    def permuted(self, order: NDArray[np.integer]) -> Compact:
        """The rows of each sketch in another order (`sketch, prim` indices)."""
        kind = np.take_along_axis(self.kind, order, axis=1)
        construction = np.take_along_axis(self.construction, order, axis=1)
        return Compact(kind, construction, np.take_along_axis(self.params, order[..., None], axis=1))


def encode(
    sketches: Sequence[Sketch], *, canonical_lines: bool = False, max_primitives: int = MAX_PRIMITIVES
) -> Compact:
    """The rows of some (normalized) sketches, in the order of their primitives.

    `canonical_lines` stores each line from its lexicographically smaller end, so that direction carries no meaning.

    >>> from sketchdnn.geometry import Line
    >>> rows = encode([Sketch((Line((1, 0), (0, 0)),))], canonical_lines=True)
    >>> rows.kind.shape, rows.params[0, 0].tolist()
    ((1, 16), [0.0, 0.0, 1.0, 0.0, 0.0])
    """
    compact = encode_table(sketches_to_table(sketches), canonical_lines=canonical_lines, max_primitives=max_primitives)
    if collapsed(compact).any():
        raise GeometryError("a primitive is too small beside its coordinates for single precision; normalize first")
    return compact


def encode_table(
    table: PrimitiveTable, *, canonical_lines: bool = False, max_primitives: int = MAX_PRIMITIVES
) -> Compact:
    """`encode` for a whole table at once. It does not look for primitives that collapse: `collapsed` does."""
    counts = table.counts
    if counts.max(initial=0) > max_primitives:
        raise GeometryError(f"a sketch of {counts.max()} primitives does not fit in {max_primitives} rows")
    first = np.cumsum(counts) - counts
    row = np.arange(len(table)) - first[table.owner]
    shape = (table.num_sketches, max_primitives)
    empty = np.zeros((*shape, layout.MAX_KIND_PARAMS), np.float32)
    compact = Compact(np.full(shape, layout.NONE, np.uint8), np.zeros(shape, bool), empty)
    compact.kind[table.owner, row] = table.kind
    compact.construction[table.owner, row] = table.construction
    for kind, params in _params_of_kind(table, canonical_lines).items():
        of_kind = table.kind == kind
        # Adding zero leaves only one zero: −0 would be a difference that nobody can see.
        numbers = np.stack(params, axis=1).astype(np.float32) + np.float32(0)
        compact.params[table.owner[of_kind], row[of_kind], : len(params)] = numbers
    return compact


def collapsed(compact: Compact) -> NDArray[np.bool_]:
    """Which sketches hold a primitive that is none any more in single precision: a line whose ends became one, say."""
    one_end = (compact.params[..., layout.START] == compact.params[..., layout.END]).all(axis=-1)
    sweep = compact.params[..., layout.BEND].astype(np.float64)
    lost = np.select(
        [compact.kind == Kind.LINE, compact.kind == Kind.ARC, compact.kind == Kind.CIRCLE],
        [one_end, one_end | ~((sweep > 0) & (sweep < TAU)), compact.params[..., layout.RADIUS] <= 0],
        False,
    )
    return np.asarray((lost | ~np.isfinite(compact.params).all(axis=-1)).any(axis=1), bool)


def _params_of_kind(table: PrimitiveTable, canonical_lines: bool) -> dict[Kind, list[Floats]]:
    def of(kind: Kind, *columns: Floats) -> list[Floats]:
        return [column[table.kind == kind] for column in columns]

    lines = of(Kind.LINE, table.x, table.y, table.x2, table.y2)
    x, y, radius, start, sweep = of(Kind.ARC, table.x, table.y, table.radius, table.start_angle, table.sweep)
    x1, x2 = (x + radius * np.cos(angle) for angle in (start, start + sweep))
    y1, y2 = (y + radius * np.sin(angle) for angle in (start, start + sweep))
    return {
        Kind.LINE: _smaller_end_first(*lines) if canonical_lines else lines,
        Kind.CIRCLE: of(Kind.CIRCLE, table.x, table.y, table.radius),
        Kind.ARC: [x1, y1, x2, y2, sweep],
        Kind.POINT: of(Kind.POINT, table.x, table.y),
    }


def _smaller_end_first(x1: Floats, y1: Floats, x2: Floats, y2: Floats) -> list[Floats]:
    upright = np.abs(x1 - x2) <= SAME_X
    turn = np.where(upright & (y1 != y2), y1 > y2, x1 > x2)
    return [np.where(turn, a, b) for a, b in ((x2, x1), (y2, y1), (x1, x2), (y1, y2))]
