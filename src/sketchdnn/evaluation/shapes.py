"""What a draughtsman would see at a glance: mirror symmetry, upright and level lines, and specks of no size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Kind
from sketchdnn.representation import Compact, layout

from .curves import Floats, filled, lengths, places

# With a larger side of 2: a curve shorter than this is a speck, and images this close are the same.
SPECK = 0.005
MIRROR_TOLERANCE = 0.01
AXIS_TOLERANCE = math.radians(0.5)

CHUNK = 1 << 22


def specks(compact: Compact) -> NDArray[np.bool_]:
    """`sketch, prim`: lines and arcs shorter than 0.005, circles of a smaller diameter."""
    size = np.where(compact.kind == Kind.CIRCLE, lengths(compact) / math.pi, lengths(compact))
    return np.asarray(filled(compact) & (compact.kind != Kind.POINT) & (size < SPECK))


def axis_aligned(compact: Compact) -> NDArray[np.bool_]:
    """`sketch, prim`: lines within half a degree of an axis."""
    along = np.abs(compact.params[..., layout.END] - compact.params[..., layout.START]).astype(np.float64)
    angle = np.arctan2(along.min(axis=-1), along.max(axis=-1))
    return np.asarray((compact.kind == Kind.LINE) & (angle <= AXIS_TOLERANCE))


def symmetric(compact: Compact, tolerance: float = MIRROR_TOLERANCE) -> NDArray[np.bool_]:
    """Which sketches are their own mirror image, left to right or top to bottom about the center of their box.

    One-to-one: every primitive has a partner of its kind and flag whose ends, middle and radius are within `tolerance`
    of its image. A sketch without primitives is not symmetric.
    """
    prims = compact.kind.shape[1]
    step = max(1, CHUNK // max(1, prims**2))
    blocks = [_symmetric(compact[begin : begin + step], tolerance) for begin in range(0, len(compact), step)]
    return np.concatenate([np.empty(0, bool), *blocks])


class _Features(NamedTuple):
    """What tells two primitives of a kind apart, whichever way they run."""

    start: Floats
    middle: Floats
    end: Floats
    radius: Floats


def _symmetric(compact: Compact, tolerance: float) -> NDArray[np.bool_]:
    features = _features(compact)
    label = compact.kind.astype(np.int64) * 2 + compact.construction
    exists = filled(compact)
    comparable = (label[:, :, None] == label[:, None]) & exists[:, :, None] & exists[:, None]
    result = np.zeros(len(compact), bool)
    for mirror in ((-1.0, 1.0), (1.0, -1.0)):
        alike = comparable & (_distance(features, np.array(mirror)) <= tolerance)
        result |= _one_to_one(alike, exists)
    return result


def _features(compact: Compact) -> _Features:
    along = places(compact, np.array([0.0, 0.5, 1.0]))
    circles = compact.kind == Kind.CIRCLE
    along[circles] = compact.params[circles, None, layout.START]
    radius = np.where(circles, compact.params[..., layout.RADIUS], 0.0).astype(np.float64)
    return _Features(along[..., 0, :], along[..., 1, :], along[..., 2, :], radius)


def _distance(features: _Features, mirror: Floats) -> Floats:
    """`sketch, prim, prim`: how far the image of one primitive is from another."""

    def apart(image: Floats, of: Floats) -> Floats:
        difference = (image * mirror)[:, :, None] - of[:, None]
        return np.asarray(np.hypot(difference[..., 0], difference[..., 1]), np.float64)

    start, middle, end, radius = features
    same_way = np.maximum(apart(start, start), apart(end, end))
    other_way = np.maximum(apart(start, end), apart(end, start))
    ends = np.minimum(same_way, other_way)
    rest = np.maximum(apart(middle, middle), np.abs(radius[:, :, None] - radius[:, None]))
    return np.maximum(ends, rest)


def _one_to_one(alike: NDArray[np.bool_], exists: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which sketches pair up without anything left over."""
    partners = alike.sum(axis=2)
    result: NDArray[np.bool_] = exists.any(axis=1) & ((partners > 0) | ~exists).all(axis=1)
    for i in np.flatnonzero(result & (partners > 1).any(axis=1)):  # twins, each of which needs a partner of its own
        result[i] = _pairs(alike[i]) == exists[i].sum()
    return result


def _pairs(alike: NDArray[np.bool_]) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return int((maximum_bipartite_matching(csr_array(alike.astype(np.int8))) >= 0).sum())
