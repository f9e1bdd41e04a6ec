"""Which outline lies in which."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .bounds import row_bounds
from .intersect import Curve, distance
from .near import near_pairs
from .primitives import TAU, Arc, Circle, Line, Vec
from .table import Floats, to_table

# How far along a curve a place is taken to ask what it lies in: the golden section, no fraction that drawings favor.
_ALONG = 0.381966


@dataclass(frozen=True, slots=True)
class Outline:
    """A closed curve: its pieces, its corners in order (both ends of each piece), and the area inside, above zero.

    `branches` says that it may share pieces or corners with another.
    """

    pieces: Sequence[Curve]
    corners: Sequence[Vec]
    area: float
    branches: bool = False


def nest(
    outlines: Sequence[Outline], crossing: set[tuple[int, int]], touching: set[tuple[int, int]], slack: float
) -> list[int | None]:
    """The outline just around each one, allowing it to stick out by a little slack.

    Of a pair i < j that cross, neither lies in the other; a pair that touch need a closer look.
    """
    parents: list[int | None] = [None] * len(outlines)
    if len(outlines) < 2:
        return parents
    corners = row_bounds(to_table([[piece for outline in outlines for piece in outline.pieces]]))
    begins = np.cumsum([0] + [len(outline.pieces) for outline in outlines[:-1]])
    low, high = np.minimum.reduceat(corners[0], begins), np.maximum.reduceat(corners[1], begins)
    area = np.array([outline.area for outline in outlines])
    for inner, outer in _candidates(low, high, area, slack):
        parent, pair = parents[inner], (min(inner, outer), max(inner, outer))
        if (parent is not None and area[parent] <= area[outer]) or pair in crossing:
            continue
        closely = pair in touching or (outlines[inner].branches and outlines[outer].branches)
        if lies_in(outlines[inner], outlines[outer], closely=closely):
            parents[inner] = outer
    return parents


def _candidates(low: Floats, high: Floats, area: Floats, slack: float) -> Iterator[tuple[int, int]]:
    """Pairs of which the first has the smaller area and its box lies in that of the second."""
    for a, b in near_pairs(low, high):
        inner, outer = np.where(area[a] < area[b], (a, b), (b, a))
        boxed = (low[inner] >= low[outer] - slack) & (high[inner] <= high[outer] + slack)
        keep = boxed.all(axis=1) & (area[inner] < area[outer])
        yield from zip(inner[keep].tolist(), outer[keep].tolist(), strict=True)


def lies_in(inner: Outline, outer: Outline, *, closely: bool) -> bool:
    """Whether an outline that does not cross another lies inside: any of its places tells, unless it is on both."""
    if not closely:
        return contains(outer, _place_on(inner.pieces[0]))
    places = [_place_on(piece) for piece in inner.pieces]
    return contains(outer, max(places, key=lambda place: min(distance(piece, place) for piece in outer.pieces)))


def _place_on(curve: Curve) -> Vec:
    """A place on a curve that symmetry singles out for nothing.

    Middles and quarters of one curve often lie on the chord of another, where rounding decides on which side.
    """
    match curve:
        case Line((x0, y0), (x1, y1)):
            return (x0 + _ALONG * (x1 - x0), y0 + _ALONG * (y1 - y0))
        case Arc():
            return curve.at(_ALONG)
        case Circle((x, y), radius):
            return (x + radius * math.cos(TAU * _ALONG), y + radius * math.sin(TAU * _ALONG))


def contains(outline: Outline, place: Vec) -> bool:
    """Whether a place is inside the polygon of chords, changed by each segment between chord and arc that has it."""
    x, y = place
    inside = False
    px, py = outline.corners[-1] if outline.corners else place
    for cx, cy in outline.corners:
        if (py > y) != (cy > y) and x < px + (y - py) / (cy - py) * (cx - px):
            inside = not inside
        px, py = cx, cy
    for piece in outline.pieces:
        if isinstance(piece, Line) or math.dist(place, piece.center) >= piece.radius:
            continue
        if isinstance(piece, Circle):
            inside = not inside
        else:
            (x0, y0), (x1, y1) = piece.start, piece.end
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):  # right of the chord, where a counter-clockwise arc bulges
                inside = not inside
    return inside
