"""Geometry of compact rows, for all sketches of a set at once: points, lengths, end gaps, symmetry, alignment.

Sketches are normalized: their larger side is 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Kind
from sketchdnn.representation import Compact, layout
from sketchdnn.representation.compact import collapsed

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TINY = 0.005
MIRROR_TOLERANCE = 0.01
AXIS_TOLERANCE = math.radians(0.5)

# Pairwise distances computed at once: bounds the memory for any number of sketches and rows.
CHUNK = 1 << 22


def check_sketches(compact: Compact) -> None:
    """Refuse an empty set, and rows that are not valid primitives."""
    if len(compact) == 0:
        raise GeometryError("there are no sketches to measure")
    invalid = np.flatnonzero(collapsed(compact))
    if len(invalid):
        raise GeometryError(f"sketch {invalid[0]} holds an invalid primitive ({len(invalid)} sketches do)")


def has_primitive(compact: Compact) -> Mask:
    """`sketch, prim`: rows that hold a primitive."""
    return np.asarray(compact.kind != layout.NONE)


def has_ends(compact: Compact) -> Mask:
    """`sketch, prim`: rows with two ends, which are lines and arcs."""
    return np.asarray((compact.kind == Kind.LINE) | (compact.kind == Kind.ARC))


def points_along(compact: Compact, fractions: NDArray[np.floating]) -> Floats:
    """`sketch, prim, fraction, 2`: the point of each curve at each fraction of its length. Points do not move."""
    params = compact.params.astype(np.float64)
    start, fraction = params[..., None, layout.START], np.asarray(fractions, np.float64)[:, None]
    chord = params[..., None, layout.END] - start
    result = start + fraction * chord

    arcs = compact.kind == Kind.ARC
    # The vector from the start to the point at fraction f is the chord rotated by −(1 − f) of half the sweep, scaled.
    half = params[arcs, None, layout.BEND, None] / 2
    rotated = _rotate(chord[arcs], (fraction - 1) * half)
    result[arcs] = start[arcs] + rotated * np.sin(fraction * half) / np.sin(half)

    circles = compact.kind == Kind.CIRCLE
    angle = TAU * fraction[:, 0]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    result[circles] = start[circles] + params[circles, layout.RADIUS, None, None] * direction
    others = ~(arcs | circles | (compact.kind == Kind.LINE))
    result[others] = start[others]
    return result


def lengths(compact: Compact) -> Floats:
    """`sketch, prim`: the length of each curve; 0 for points and empty rows."""
    params = compact.params.astype(np.float64)
    chord = np.hypot(*np.moveaxis(params[..., layout.END] - params[..., layout.START], -1, 0))
    arcs = compact.kind == Kind.ARC
    half = np.where(arcs, params[..., layout.BEND] / 2, 1.0)
    return np.select(
        [compact.kind == Kind.LINE, arcs, compact.kind == Kind.CIRCLE],
        [chord, chord * half / np.sin(half), TAU * params[..., layout.RADIUS]],
        0.0,
    )


def end_gaps(compact: Compact) -> Floats:
    """`sketch, prim, end`: the distance from each end to the nearest end of another line or arc of its sketch.

    Construction counts, circles and points do not. NaN for rows without ends; infinite for the ends of a primitive
    that is the only one with ends.
    """
    return _in_chunks(_end_gaps, compact)


def largest_gaps(compact: Compact) -> Floats:
    """`sketch`: the largest end gap of each sketch; NaN for a sketch without ends."""
    gaps = end_gaps(compact).reshape(len(compact), -1)
    with_ends = ~np.isnan(gaps).all(axis=1)
    largest = np.full(len(compact), np.nan)
    largest[with_ends] = np.nanmax(gaps[with_ends], axis=1)
    return largest


def tiny_primitives(compact: Compact) -> Mask:
    """`sketch, prim`: lines and arcs shorter than 0.005, circles of a smaller diameter."""
    size = np.where(compact.kind == Kind.CIRCLE, lengths(compact) / math.pi, lengths(compact))
    return np.asarray(has_primitive(compact) & (compact.kind != Kind.POINT) & (size < TINY))


def axis_aligned(compact: Compact) -> Mask:
    """`sketch, prim`: lines within half a degree of an axis."""
    extent = np.abs(compact.params[..., layout.END] - compact.params[..., layout.START]).astype(np.float64)
    angle = np.arctan2(extent.min(axis=-1), extent.max(axis=-1))
    return np.asarray((compact.kind == Kind.LINE) & (angle <= AXIS_TOLERANCE))


def mirror_symmetric(compact: Compact) -> Mask:
    """`sketch`: sketches equal to their mirror image, left to right or top to bottom about the center of their box.

    Every primitive needs a partner of its own, of the same kind and flag, whose ends, middle and radius are within
    `MIRROR_TOLERANCE` of its image. A sketch without primitives is not symmetric.
    """
    return _in_chunks(_mirror_symmetric, compact)


def _in_chunks(measure: Callable[[Compact], NDArray[Any]], compact: Compact) -> NDArray[Any]:
    """Apply `measure` to as many sketches at once as have `CHUNK` pairs of ends."""
    step = max(1, CHUNK // max(1, 4 * compact.kind.shape[1] ** 2))
    return np.concatenate([measure(compact[i : i + step]) for i in range(0, max(1, len(compact)), step)])


def _rotate(vector: Floats, angle: Floats) -> Floats:
    x, y, cos, sin = vector[..., 0], vector[..., 1], np.cos(angle[..., 0]), np.sin(angle[..., 0])
    return np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)


def _end_gaps(compact: Compact) -> Floats:
    sketches, prims = compact.kind.shape
    exists = np.repeat(has_ends(compact), 2, axis=1)
    params = compact.params.astype(np.float64)
    ends = np.stack([params[..., layout.START], params[..., layout.END]], axis=2).reshape(sketches, 2 * prims, 2)
    difference = ends[:, :, None] - ends[:, None]
    distance = np.hypot(difference[..., 0], difference[..., 1])
    owner = np.repeat(np.arange(prims), 2)
    distance[:, owner[:, None] == owner] = np.inf
    distance[np.broadcast_to(~exists[:, None], distance.shape)] = np.inf
    nearest = distance.min(axis=2, initial=np.inf)
    nearest[~exists] = np.nan
    return np.asarray(nearest.reshape(sketches, prims, 2), np.float64)


def _mirror_symmetric(compact: Compact) -> Mask:
    points = points_along(compact, np.array([0.0, 0.5, 1.0]))
    circles = compact.kind == Kind.CIRCLE
    points[circles] = compact.params[circles, None, layout.START]
    radius = np.where(circles, compact.params[..., layout.RADIUS], 0.0).astype(np.float64)
    label = compact.kind.astype(np.int64) * 2 + compact.construction
    exists = has_primitive(compact)
    comparable = (label[:, :, None] == label[:, None]) & exists[:, :, None] & exists[:, None]
    result = np.zeros(len(compact), bool)
    for mirror in ((-1.0, 1.0), (1.0, -1.0)):
        matches = comparable & (_image_distance(points, radius, np.array(mirror)) <= MIRROR_TOLERANCE)
        result |= _has_perfect_matching(matches, exists)
    return result


def _image_distance(points: Floats, radius: Floats, mirror: Floats) -> Floats:
    """`sketch, prim, prim`: the distance from the mirror image of one primitive to another, in either direction."""

    def distance(image: Floats, other: Floats) -> Floats:
        difference = (image * mirror)[:, :, None] - other[:, None]
        return np.asarray(np.hypot(difference[..., 0], difference[..., 1]), np.float64)

    start, middle, end = (points[..., i, :] for i in range(3))
    same_direction = np.maximum(distance(start, start), distance(end, end))
    reversed_direction = np.maximum(distance(start, end), distance(end, start))
    ends = np.minimum(same_direction, reversed_direction)
    rest = np.maximum(distance(middle, middle), np.abs(radius[:, :, None] - radius[:, None]))
    return np.maximum(ends, rest)


def _has_perfect_matching(matches: Mask, exists: Mask) -> Mask:
    """`sketch`: whether every primitive can have a partner of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    partners = matches.sum(axis=2)
    result: Mask = exists.any(axis=1) & ((partners > 0) | ~exists).all(axis=1)
    for i in np.flatnonzero(result & (partners > 1).any(axis=1)):  # only coincident primitives need the matching
        matched = maximum_bipartite_matching(csr_array(matches[i].astype(np.int8))) >= 0
        result[i] = int(matched.sum()) == exists[i].sum()
    return result
