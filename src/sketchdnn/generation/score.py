"""How good a drawing looks to someone who wants to extrude it, in one number: for the choice of the best of several.

    score = closed − overlapping − gap / 2

| part | is | from |
|---|---|---|
| `closed` | the share of curves, construction aside, in a loop, and without crossing, contact or branch | 0 to 1 |
| | times the outline's share of the size over `OUTLINE`, if it is smaller | |
| `overlapping` | the share of primitives that lie along another of their sort | 0 to 1 |
| `gap` | the largest distance between ends that count as joined, over the largest that does | 0 to 1 |

Only a drawing that is closed, as `closed.py` has it, has 1; one without any curve has 0 for `closed`. All is judged at
`CLOSE`, and nothing depends on the size or the place of the sketch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sketchdnn.geometry import Arc, Line, Point, Primitive, Sketch, bounds, overlaps, profile

from .closed import CLOSE, OUTLINE, outline_share

__all__ = ["CLOSE", "score"]


def score(sketch: Sketch) -> float:
    """Larger is better; at most 1.

    >>> corners = [(0, 0), (2, 0), (2, 1), (0, 1)]
    >>> plate = [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])]
    >>> score(Sketch(tuple(plate))), score(Sketch(tuple(plate[:3])))
    (1.0, 0.0)
    """
    curves = [p for p in sketch if not isinstance(p, Point) and not p.construction]
    return _closed(sketch, len(curves)) - _overlapping(sketch) - _gap(curves) / 2


def _closed(sketch: Sketch, curves: int) -> float:
    found = profile(sketch, CLOSE)
    looped = {edge.primitive for loop in found.loops for edge in loop.edges}
    looped -= {number for met in found.meetings for number in (met.first, met.second)}
    looped -= {number for branch in found.branches for number in branch.primitives}
    return len(looped) / max(curves, 1) * min(1.0, outline_share(sketch, found) / OUTLINE)


def _overlapping(sketch: Sketch) -> float:
    touched = {number for pair in overlaps(sketch, CLOSE) for number in (pair.first, pair.second)}
    return len(touched) / max(len(sketch), 1)


def _gap(curves: Sequence[Primitive]) -> float:
    """How far from its nearest neighbor an end is, at worst, of those near enough to count as joined to it."""
    with_ends = [p for p in curves if isinstance(p, Line | Arc)]
    if len(with_ends) < 2:
        return 0.0
    ends = np.array([end for curve in with_ends for end in (curve.start, curve.end)])
    apart = np.hypot(*np.moveaxis(ends[:, None] - ends, -1, 0))
    owner = np.arange(len(ends)) // 2
    nearest = np.where(owner[:, None] == owner, np.inf, apart).min(axis=1) / (CLOSE * bounds(curves).size)
    return float(nearest[nearest <= 1].max(initial=0.0))
