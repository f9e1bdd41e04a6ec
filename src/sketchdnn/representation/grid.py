"""Rows on the 8-bit grid by which two sketches are judged to be the same.

A length v of a sketch in a box of ±half_extent becomes round(127·v/half_extent + ¼): 255 levels. An arc's sweep becomes
round(127·(sweep/π − 1) + ¼). The quarter of a cell moves the borders between levels away from the values that drawings
are full of (0, ±1, halves, thirds, tenths), so that rounding noise does not tell twins apart. A line counts as the same
from either end.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Kind

from . import layout
from .compact import Compact

LEVELS_A_SIDE = 127
OFF_CENTER = 0.25


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
