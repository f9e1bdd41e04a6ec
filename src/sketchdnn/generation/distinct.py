"""Which suggestions are the same idea: the distance between what two of them add, and one of each cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sketchdnn.geometry import Circle, Point, Primitive

# Additions that are nowhere farther apart than this, as a fraction of the size, are the same idea.
SAME_IDEA = 0.08
# Places on a curve: at least so many, and at most this far apart as a fraction of the size.
_MIN_PLACES, _SPACING = 5, 0.02
_MAX_PLACES = 200


def difference(first: Sequence[Primitive], second: Sequence[Primitive], size: float) -> float:
    """The largest distance from a place on either addition to the nearest on the other, as a fraction of the size.

    This is the Hausdorff distance between matched geometry: curves are compared with curves, construction with
    construction and points with points. It is infinite if one addition has a group that the other lacks. How a curve
    is split into pieces makes no difference.

    >>> from sketchdnn.geometry import Line
    >>> whole, halves = [Line((0, 0), (4, 0))], [Line((0, 0), (2, 0)), Line((2, 0), (4, 0))]
    >>> difference(whole, halves, 4.0), round(difference(whole, [Line((0, 1), (4, 1))], 4.0), 2)
    (0.0, 0.25)
    """
    return _difference(_trees(first, size), _trees(second, size), size)


def choose_distinct(
    additions: Sequence[Sequence[Primitive]],
    size: float,
    ranking: Sequence[int],
    chosen: Sequence[Sequence[Primitive]] = (),
) -> dict[int, list[int]]:
    """The first of each cluster, in the order of the ranking, and the numbers of those that share its idea.

    Args:
        additions: What each suggestion adds.
        size: The size of the part.
        ranking: The numbers of the suggestions, best first.
        chosen: Additions whose ideas are taken already.
    """
    clusters: dict[int, list[int]] = {}
    trees, taken = [_trees(added, size) for added in additions], [_trees(added, size) for added in chosen]
    for number in ranking:
        if any(_difference(trees[number], other, size) <= SAME_IDEA for other in taken):
            continue
        for first, members in clusters.items():
            if _difference(trees[number], trees[first], size) <= SAME_IDEA:
                members.append(number)
                break
        else:
            clusters[number] = [number]
    return clusters


# Places on the primitives of each group: points or not, construction or not.
_Trees = dict[tuple[bool, bool], cKDTree]


def _trees(added: Sequence[Primitive], size: float) -> _Trees:
    groups: defaultdict[tuple[bool, bool], list[Primitive]] = defaultdict(list)
    for p in added:
        groups[isinstance(p, Point), p.construction].append(p)
    return {group: cKDTree(sample_places(items, size)) for group, items in groups.items()}


def _difference(first: _Trees, second: _Trees, size: float) -> float:
    """The `difference` of additions from the places on them."""
    if first.keys() != second.keys():
        return math.inf
    largest = 0.0
    for group, a in first.items():
        b = second[group]
        largest = max(largest, a.query(b.data)[0].max(), b.query(a.data)[0].max())
    # The nearest of the sampled places may lie half a spacing along the curve from the nearest place.
    return math.sqrt(max(0.0, (float(largest) / size) ** 2 - (_SPACING / 2) ** 2))


def sample_places(items: Sequence[Primitive], size: float) -> NDArray[np.float64]:
    """Places along primitives, evenly spaced on each."""
    places = []
    for item in items:
        if isinstance(item, Point):
            places.append(item.at)
            continue
        count = min(max(_MIN_PLACES, math.ceil(item.length / (_SPACING * size)) + 1), _MAX_PLACES)
        places += [item.at(k / count if isinstance(item, Circle) else k / (count - 1)) for k in range(count)]
    return np.array(places).reshape(-1, 2)
