"""Real sketches made worse on purpose, a known amount at a time: a score that does not get worse too measures nothing.

The same seed draws the same noise, only stronger, and drops the same primitives first. What comes out is normalized
again, as every set of sketches here is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Kind
from sketchdnn.geometry.bounds import table_bounds
from sketchdnn.geometry.table import sketches_to_table
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import collapsed

from .curves import check, filled, with_ends

SMALLEST_RADIUS = 1e-4


def jitter_ends(compact: Compact, sigma: float, seed: int) -> Compact:
    """Gaussian noise on every end, center, point and radius, each on its own. An arc keeps its sweep."""
    if not 0 <= sigma < np.inf:
        raise GeometryError(f"noise has a standard deviation of zero or more, not {sigma}")
    check(compact)
    noise = sigma * np.random.default_rng(seed).standard_normal(compact.params.shape)
    circles = compact.kind == Kind.CIRCLE
    params = compact.params.astype(np.float64)
    params[..., layout.START] += np.where(filled(compact)[..., None], noise[..., layout.START], 0.0)
    params[..., layout.END] += np.where(with_ends(compact)[..., None], noise[..., layout.END], 0.0)
    radius = np.abs(params[..., layout.RADIUS] + noise[..., layout.RADIUS])
    params[..., layout.RADIUS] = np.where(circles, np.maximum(radius, SMALLEST_RADIUS), params[..., layout.RADIUS])
    return _normalized(compact.kind, compact.construction, params, otherwise=compact)


def drop_primitives(compact: Compact, share: float, seed: int) -> Compact:
    """Leave out each primitive with this chance, but never all of a sketch, nor all of what gives it a size."""
    if not 0 <= share <= 1:
        raise GeometryError(f"the share of primitives to leave out lies between 0 and 1, not {share}")
    check(compact)
    draws = np.random.default_rng(seed).random(compact.kind.shape)
    exists = filled(compact)
    # Whatever is left to the last must have a size of its own, so a point only where there is nothing else.
    draws = np.where(exists, draws, -1.0)
    last = np.where(exists & (compact.kind != Kind.POINT), draws + 1, draws).argmax(axis=1)
    keep = exists & (draws >= share)
    keep[np.arange(len(compact)), last] |= exists.any(axis=1)
    kind = np.where(keep, compact.kind, np.uint8(layout.NONE))
    params = np.where(keep[..., None], compact.params, 0.0).astype(np.float64)
    dropped = _normalized(kind, compact.construction & keep, params, otherwise=compact)
    return dropped.permuted(np.argsort(dropped.kind == layout.NONE, axis=1, kind="stable"))


def _normalized(
    kind: NDArray[np.uint8], construction: NDArray[np.bool_], params: NDArray[np.float64], *, otherwise: Compact
) -> Compact:
    """The sketches centered and scaled to a larger side of 2; those that cannot be (points alone) stay as they were."""
    raw = Compact(kind, construction, params.astype(np.float32))
    box = table_bounds(sketches_to_table([one.sketch for one in decode_compact(raw)]))
    size = (box[:, 2:] - box[:, :2]).max(axis=1)
    wide = size > 0
    center = np.where(wide[:, None], (box[:, :2] + box[:, 2:]) / 2, 0.0)[:, None]
    scale = np.where(wide, size / 2, 1.0)[:, None, None]
    ends, circles = with_ends(raw)[..., None], kind == Kind.CIRCLE
    params = params.copy()
    start, end = ((params[..., part] - center) / scale for part in (layout.START, layout.END))
    radius = np.where(circles, params[..., layout.RADIUS] / scale[..., 0], params[..., layout.RADIUS])
    params[..., layout.RADIUS] = radius
    params[..., layout.START] = np.where(filled(raw)[..., None], start, params[..., layout.START])
    params[..., layout.END] = np.where(ends, end, params[..., layout.END])
    placed = Compact(kind, construction, params.astype(np.float32))
    good = wide & ~collapsed(placed)
    return Compact(
        np.where(good[:, None], placed.kind, otherwise.kind),
        np.where(good[:, None], placed.construction, otherwise.construction),
        np.where(good[:, None, None], placed.params, otherwise.params),
    )
