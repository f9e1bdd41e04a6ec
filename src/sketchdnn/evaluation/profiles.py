"""Could it be extruded? Closed profiles and primitives on top of one another, sketch by sketch.

Each is judged at two tolerances, shares of the size of what is drawn: `EXACT` is what files of real sketches keep, and
`LOOSE`, 0.02 of a larger side of 2, forgives what a sampler leaves open before any repair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Profile, Sketch, overlaps, profile
from sketchdnn.geometry.proximity import TOLERANCE

from .clusters import clustered_share
from .estimate import Estimate, share_estimate

EXACT, LOOSE = TOLERANCE, 0.01
REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class Profiles:
    """Shares of sketches, at one tolerance, construction aside.

    `closed`: there is a loop and every curve is part of one. `extrudable`: also nothing crosses, touches, branches or
    overlaps. `overlapping`: some primitive lies along another that is as much construction as it is.
    `primitives_overlapping` is the share of primitives that do.
    """

    tolerance: float
    closed: Estimate
    extrudable: Estimate
    overlapping: Estimate
    primitives_overlapping: Estimate


def profiles(
    sketches: list[Sketch], tolerance: float = EXACT, on_progress: Callable[[float], None] | None = None
) -> Profiles:
    """What closes and what overlaps in a set of sketches."""
    count = len(sketches)
    closed, extrudable = np.zeros(count, bool), np.zeros(count, bool)
    overlapping = np.zeros(count, np.int64)
    for i, sketch in enumerate(sketches):
        found = profile(sketch, tolerance)
        closed[i], extrudable[i] = is_closed(found), found.is_extrudable
        overlapping[i] = len({number for pair in overlaps(sketch, tolerance) for number in (pair.first, pair.second)})
        if on_progress is not None and i % REPORT_EVERY == 0:
            on_progress(i / count)
    primitives = np.array([len(sketch) for sketch in sketches], np.int64)
    return Profiles(
        tolerance,
        _share(closed),
        _share(extrudable),
        _share(overlapping > 0),
        clustered_share(overlapping, primitives),
    )


def is_closed(found: Profile) -> bool:
    """Whether there is a loop, and nothing but loops."""
    return bool(found.loops) and not found.chains


def _share(hits: NDArray[np.bool_]) -> Estimate:
    return share_estimate(int(hits.sum()), len(hits))
