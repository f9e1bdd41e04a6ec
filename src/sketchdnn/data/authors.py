"""Steps that only the authors' code takes: their box, and their idea of a duplicate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Kind
from sketchdnn.geometry.table import PrimitiveTable
from sketchdnn.representation.grid import pack

LEVELS = 256


def authors_bounds(table: PrimitiveTable) -> NDArray[np.float64]:
    """Low x, low y, high x, high y of each sketch as the authors measure it.

    Their rows hold the parameters of every kind, zero where unused, and all of them count: the box always reaches the
    origin. Arcs count by their whole circle.
    """
    low, high = _row_bounds(table)
    box = np.zeros((table.num_sketches, 4))
    starts = np.flatnonzero(np.diff(table.owner, prepend=-1))
    if len(starts):
        owners = table.owner[starts]
        box[owners, :2] = np.minimum(np.minimum.reduceat(low, starts), 0)
        box[owners, 2:] = np.maximum(np.maximum.reduceat(high, starts), 0)
    return box


def authors_codes(table: PrimitiveTable) -> NDArray[np.uint64]:
    """Each primitive as one integer: its numbers on 256 levels between the smallest and largest of its own row.

    The row holds its kind and flag as ones among zeros and zeros in all unused columns, so its smallest number is at
    most 0 and its largest at least 1; which levels 0 and 1 fall on is part of the code. An arc is written by center,
    radius and its two angles in turns.
    """
    own = _own_numbers(table).astype(np.float32)
    low = np.minimum(own.min(axis=1, initial=0), 0)[:, None]
    high = np.maximum(own.max(axis=1, initial=1), 1)[:, None]
    one = np.ones_like(low)
    numbers = np.concatenate([own, 0 * one, one], axis=1)
    levels = np.rint((numbers - low) / (high - low + np.float32(1e-8)) * np.float32(LEVELS - 1))
    return pack(table.kind, table.construction, levels.astype(np.uint64))


def _row_bounds(table: PrimitiveTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at = np.stack([table.x, table.y], axis=1)
    # A line's reach is zero, and x2, y2 of the other kinds are zeros that would count anyway.
    other = np.stack([table.x2, table.y2], axis=1)
    reach = table.radius[:, None]
    return np.minimum(at - reach, other), np.maximum(at + reach, other)


def _own_numbers(table: PrimitiveTable) -> NDArray[np.float64]:
    round_ = (table.kind == Kind.CIRCLE) | (table.kind == Kind.ARC)
    arc = table.kind == Kind.ARC
    third = np.where(round_, table.radius, table.x2)
    fourth = np.where(arc, (table.start_angle % TAU) / TAU, table.y2)
    fifth = np.where(arc, ((table.start_angle + table.sweep) % TAU) / TAU, 0.0)
    return np.stack([table.x, table.y, third, fourth, fifth], axis=1)
