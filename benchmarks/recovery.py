"""Which primitives that were taken away came back: near enough, of the same kind and flag, each found but once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive

# With a larger side of 2, every end, middle, center and radius must be as near as this.
NEAR = 0.05


def recovered(hidden: Sequence[Primitive], added: Sequence[Primitive], near: float = NEAR) -> int:
    """How many of the hidden ones can be paired with an added one each.

    >>> recovered([Line((0, 0), (1, 0))], [Line((1, 0.04), (0, 0)), Line((0, 0), (1, 0))])
    1
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not hidden or not added:
        return 0
    alike = np.array([[apart(a, b) <= near for b in added] for a in hidden], np.int8)
    return int((maximum_bipartite_matching(csr_array(alike), perm_type="column") >= 0).sum())


def apart(a: Primitive, b: Primitive) -> float:
    """How far the furthest of what defines one is from its counterpart; infinite for another kind or flag."""
    if a.construction != b.construction:
        return math.inf
    match a, b:
        case Line(), Line():
            return min(_furthest((a.start, b.start), (a.end, b.end)), _furthest((a.start, b.end), (a.end, b.start)))
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            return _furthest((a.start, b.start), (a.mid, b.mid), (a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case _:
            return math.inf


def _furthest(*pairs: tuple[tuple[float, float], tuple[float, float]]) -> float:
    return max(math.dist(p, q) for p, q in pairs)
