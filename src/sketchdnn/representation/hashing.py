"""Hashes of sketches, by which two sketches are compared. Numpy only.

`row_codes` (for duplicates in a corpus): a length v in a box of ±half_extent becomes round(127·v/half_extent + ¼), one
of 255 levels; the sweep of an arc becomes round(127·(sweep/π − 1) + ¼). The quarter of a cell moves the borders of
levels away from common values (0, ±1, halves, thirds, tenths).

`symmetric_keys` (for novelty and uniqueness): two sketches are equal on a grid of L levels if one of the eight
symmetries of the square maps every number of one into the cell of the other. The order of primitives and the direction
of lines do not matter. Cells are 2/L wide and centered on 0, so that the symmetries map the grid onto itself and common
values lie in the middle of a cell. The two outermost cells are half as wide. A length v is in cell round(v·L/2); a
sweep likewise, by sweep/π − 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Kind

from . import layout
from .compact import Compact

Keys = NDArray[np.uint64]

LEVELS_A_SIDE = 127
OFF_CENTER = 0.25
NUM_SYMMETRIES = 8
# A share of a cell by which borders lie further out than half way, so that rounding noise does not decide.
NUDGE = 1e-3
CHUNK = 1 << 13
BITS = 9  # enough for a cell of any grid of up to 510 levels


def mix(values: Keys) -> Keys:
    """A bijection in which every bit of the result depends on every bit of the value (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def row_codes(compact: Compact, half_extent: float) -> NDArray[np.uint64]:
    """Each row as one integer: kind, construction flag and five levels, in that order. Equal codes, equal rows."""
    unit = compact.params / np.float32(half_extent)
    arcs = compact.kind == Kind.ARC
    unit[arcs, layout.BEND] = compact.params[arcs, layout.BEND] / np.float32(math.pi) - 1
    levels = np.floor(unit * LEVELS_A_SIDE + (OFF_CENTER + 0.5))
    levels = (np.clip(levels, -LEVELS_A_SIDE, LEVELS_A_SIDE) + (LEVELS_A_SIDE + 1)).astype(np.uint64)
    _turn_lines(levels, compact.kind == Kind.LINE)
    return pack(compact.kind, compact.construction, levels)


def pack(kind: NDArray[np.uint8], construction: NDArray[np.bool_], levels: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Kind, flag and 8-bit levels (last axis, at most seven) side by side in one integer."""
    code = kind.astype(np.uint64) << np.uint64(1) | construction.astype(np.uint64)
    for column in range(levels.shape[-1]):
        code = code << np.uint64(8) | levels[..., column]
    return code


def _turn_lines(levels: NDArray[np.uint64], lines: NDArray[np.bool_]) -> None:
    """Put the smaller end of each line first, in place."""
    start, end = levels[..., layout.START], levels[..., layout.END]
    byte = np.uint64(8)
    turn = lines & ((start[..., 0] << byte | start[..., 1]) > (end[..., 0] << byte | end[..., 1]))
    levels[turn, layout.START], levels[turn, layout.END] = end[turn], start[turn]


def turned(compact: Compact, symmetry: int) -> Compact:
    """Every sketch mirrored in x if the number, 0 to 7, is 4 or more, then turned by quarters. Exact: no rounding."""
    mirror, quarters = symmetry >= NUM_SYMMETRIES // 2, symmetry % (NUM_SYMMETRIES // 2)
    params = np.array(compact.params)
    arcs = compact.kind == Kind.ARC
    ends = arcs | (compact.kind == Kind.LINE)
    params[..., layout.START] = _turned(params[..., layout.START], mirror, quarters)
    params[ends, layout.END] = _turned(params[ends, layout.END], mirror, quarters)
    if mirror:
        # An arc runs counter-clockwise, so its mirror image runs from the image of its end.
        params[arcs, layout.START], params[arcs, layout.END] = params[arcs, layout.END], params[arcs, layout.START]
    return Compact(compact.kind, compact.construction, params + np.float32(0))


def symmetric_keys(compact: Compact, levels: int) -> Keys:
    """A 64-bit key for each sketch: the same for two that are the same on the grid, up to symmetry."""
    keys = np.zeros(len(compact), np.uint64)
    for begin in range(0, len(compact), CHUNK):
        block = compact[begin : begin + CHUNK]
        images = [_keys(turned(block, symmetry), levels) for symmetry in range(NUM_SYMMETRIES)]
        keys[begin : begin + CHUNK] = np.min(images, axis=0)
    return keys


def _turned(places: NDArray[np.float32], mirror: bool, quarters: int) -> NDArray[np.float32]:
    x, y = places[..., 0], places[..., 1]
    if mirror:
        x = -x
    for _ in range(quarters):
        x, y = -y, x
    return np.stack([x, y], axis=-1)


def _keys(compact: Compact, levels: int) -> Keys:
    """A sum over the rows, so that neither their order nor empty rows count."""
    rows = np.where(compact.kind != layout.NONE, mix(_row_codes(compact, levels)), np.uint64(0))
    return mix(rows.sum(axis=1, dtype=np.uint64))


def _row_codes(compact: Compact, levels: int) -> NDArray[np.uint64]:
    """Kind, flag and cells of each row in one integer; a line has its smaller end first."""
    unit = compact.params.astype(np.float64)
    arcs = compact.kind == Kind.ARC
    unit[arcs, layout.BEND] = unit[arcs, layout.BEND] / math.pi - 1
    half = levels // 2
    away = np.minimum(np.floor(np.abs(unit) * half + (0.5 + NUDGE)), half)
    cells = np.where(unit < 0, -away, away).astype(np.int64) + half
    places = (cells[..., layout.START], cells[..., layout.END])
    start, end = (place[..., 0] << BITS | place[..., 1] for place in places)
    lines = compact.kind == Kind.LINE
    first, second = np.where(lines, np.minimum(start, end), start), np.where(lines, np.maximum(start, end), end)
    label = compact.kind.astype(np.int64) * 2 + compact.construction
    code = ((label << 2 * BITS | first) << 2 * BITS | second) << BITS | cells[..., layout.BEND]
    return code.astype(np.uint64)
