"""Do ends meet? How far each end of a line or arc is from the nearest end of another line or arc of its sketch.

Construction counts too; circles and points do not, and neither does a primitive's own other end. Sketches are taken as
normalized, their larger side being 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchdnn.representation import Compact, layout

from .clusters import clustered_median, clustered_share
from .curves import Floats, with_ends
from .estimate import Estimate

FINE, LOOSE = 0.005, 0.02

# Distances computed in one go: bounds the memory, whatever the number of sketches and rows.
CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Gaps:
    """Over all ends: the median gap and the shares within 0.005 and 0.02. `sketches_within_loose` is the share of the
    sketches with any end in which every end has another within 0.02. An end alone in its sketch is infinitely far."""

    median: Estimate
    within_fine: Estimate
    within_loose: Estimate
    sketches_within_loose: Estimate


def gaps(compact: Compact) -> Gaps:
    """The gaps of a set, in a few numbers; intervals are by sketch."""
    distance = end_gaps(compact)
    exists = ~np.isnan(distance)
    of = exists.sum(axis=(1, 2))
    fine, loose = ((distance <= within).sum(axis=(1, 2)) for within in (FINE, LOOSE))
    any_end = of > 0
    return Gaps(
        clustered_median(distance[exists], np.nonzero(exists)[0]),
        clustered_share(fine, of),
        clustered_share(loose, of),
        clustered_share((loose == of) & any_end, any_end.astype(np.int64)),
    )


def end_gaps(compact: Compact) -> Floats:
    """`sketch, prim, end`: the distance to the nearest end of another primitive; not a number where there is no end."""
    prims = compact.kind.shape[1]
    step = max(1, CHUNK // max(1, 4 * prims**2))
    blocks = [_end_gaps(compact[begin : begin + step]) for begin in range(0, len(compact), step)]
    return np.concatenate([np.empty((0, prims, 2)), *blocks])


def _end_gaps(compact: Compact) -> Floats:
    sketches, prims = compact.kind.shape
    exists = np.repeat(with_ends(compact), 2, axis=1)
    params = compact.params.astype(np.float64)
    ends = np.stack([params[..., layout.START], params[..., layout.END]], axis=2).reshape(sketches, 2 * prims, 2)
    apart = ends[:, :, None] - ends[:, None]
    distance = np.hypot(apart[..., 0], apart[..., 1])
    owner = np.repeat(np.arange(prims), 2)
    distance[:, owner[:, None] == owner] = np.inf
    distance[np.broadcast_to(~exists[:, None], distance.shape)] = np.inf
    nearest = distance.min(axis=2, initial=np.inf)
    nearest[~exists] = np.nan
    return np.asarray(nearest.reshape(sketches, prims, 2), np.float64)
