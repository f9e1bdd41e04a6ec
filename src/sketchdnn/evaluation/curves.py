"""Compact rows as curves: places along them and their sizes, for all sketches at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Kind
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.compact import collapsed

Floats = NDArray[np.float64]


def check(compact: Compact) -> None:
    """Refuse a set that holds nothing, or rows that are no primitives: they would be counted as something else."""
    if len(compact) == 0:
        raise GeometryError("there are no sketches to look at")
    wrong = np.flatnonzero(collapsed(compact))
    if len(wrong):
        raise GeometryError(f"sketch {wrong[0]} holds numbers that make no primitive ({len(wrong)} sketches do)")


def filled(compact: Compact) -> NDArray[np.bool_]:
    """Which rows hold a primitive."""
    return np.asarray(compact.kind != layout.NONE)


def with_ends(compact: Compact) -> NDArray[np.bool_]:
    """Which rows have two ends: lines and arcs."""
    return np.asarray((compact.kind == Kind.LINE) | (compact.kind == Kind.ARC))


def places(compact: Compact, along: NDArray[np.floating]) -> Floats:
    """`sketch, prim, place, 2`: where each curve is at these fractions of its length. Points stay put."""
    params = compact.params.astype(np.float64)
    start, fraction = params[..., None, layout.START], np.asarray(along, np.float64)[:, None]
    chord = params[..., None, layout.END] - start
    result = start + fraction * chord

    arcs = compact.kind == Kind.ARC
    # From its start, the place at fraction f of an arc lies along the chord turned back by (1 − f) of half the sweep.
    half = params[arcs, None, layout.BEND, None] / 2
    turned = _turned(chord[arcs], (fraction - 1) * half)
    result[arcs] = start[arcs] + turned * np.sin(fraction * half) / np.sin(half)

    circles = compact.kind == Kind.CIRCLE
    angle = TAU * fraction[:, 0]
    around = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    result[circles] = start[circles] + params[circles, layout.RADIUS, None, None] * around
    resting = ~(arcs | circles | (compact.kind == Kind.LINE))
    result[resting] = start[resting]
    return result


def lengths(compact: Compact) -> Floats:
    """`sketch, prim`: how long each curve is; nothing for points and empty rows."""
    params = compact.params.astype(np.float64)
    chord = np.hypot(*np.moveaxis(params[..., layout.END] - params[..., layout.START], -1, 0))
    arcs = compact.kind == Kind.ARC
    half = np.where(arcs, params[..., layout.BEND] / 2, 1.0)
    return np.select(
        [compact.kind == Kind.LINE, arcs, compact.kind == Kind.CIRCLE],
        [chord, chord * half / np.sin(half), TAU * params[..., layout.RADIUS]],
        0.0,
    )


def _turned(vector: Floats, angle: Floats) -> Floats:
    x, y, cos, sin = vector[..., 0], vector[..., 1], np.cos(angle[..., 0]), np.sin(angle[..., 0])
    return np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
