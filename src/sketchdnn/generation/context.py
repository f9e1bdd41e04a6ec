"""The primitives of a large part that the model takes as input: whole loops and single curves near some places.

A loop is included whole or not at all: the model would close a piece of it. The outline of a closed part that has too
many primitives is replaced by its box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sketchdnn.geometry import Line, Loop, Point, Primitive, Profile, Sketch, Vec, bounds, profile
from sketchdnn.geometry.intersections import distance_to_curve

from .conditions import joint_tolerance

# The most rows of known primitives; the others are left for additions. Contexts of larger parts have the sizes below in
# turn.
MAX_CONTEXT = 12
CONTEXT_SIZES = (MAX_CONTEXT, 9, 6)


class Context(NamedTuple):
    """The primitives that the model takes as input in place of the whole part.

    Attributes:
        primitives: Indices of primitives of the part, in order.
        stand_in: Lines that stand for an outline that is not among them.
    """

    primitives: tuple[int, ...]
    stand_in: tuple[Primitive, ...] = ()


def choose_context(part: Sketch, places: Sequence[Vec], limit: int = MAX_CONTEXT, *, outline: bool = False) -> Context:
    """The loops and other primitives that are nearest to any of some places.

    Args:
        part: The part.
        places: The places.
        limit: The largest number of primitives, those of a stand-in included.
        outline: Always include the outline, or its box if it has too many primitives.

    >>> lines = Sketch(tuple(Line((x, 0), (x, 1)) for x in range(9)))
    >>> choose_context(lines, [(0.2, 0.5), (7.9, 0.5)], 4).primitives
    (0, 1, 7, 8)
    """
    distances = [_distance(item, places) for item in part]
    shape = profile(part, joint_tolerance(part.primitives))
    units = _units(part, shape)
    units.sort(key=lambda unit: min(distances[number] for number in unit))
    stand_in: tuple[Primitive, ...] = ()
    if outline and shape.loops:
        outer = _members(max(shape.loops, key=lambda loop: abs(loop.area)))
        if len(outer) < limit:
            units.sort(key=lambda unit: outer.isdisjoint(unit))
        else:
            stand_in = _box_lines(part.select(sorted(outer)))
    chosen: list[int] = []
    for unit in units:
        if len(chosen) + len(unit) <= limit - len(stand_in):
            chosen += unit
    if not chosen:  # one loop of very many
        chosen = sorted(range(len(part)), key=distances.__getitem__)[:limit]
    return Context(tuple(sorted(chosen)), stand_in)


def _units(part: Sketch, shape: Profile) -> list[tuple[int, ...]]:
    """The loops, each whole, and all other primitives alone."""
    units: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for loop in shape.loops:
        members = _members(loop) - taken
        taken |= members
        if members:
            units.append(tuple(sorted(members)))
    return units + [(number,) for number in range(len(part)) if number not in taken]


def _members(loop: Loop) -> set[int]:
    return {edge.primitive_index for edge in loop.edges}


def _box_lines(sketch: Sketch) -> tuple[Primitive, ...]:
    (x0, y0), (x1, y1) = (box := bounds(sketch)).low, box.high
    corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]
    return tuple(Line(a, b) for a, b in pairwise(corners) if a != b)


def _distance(item: Primitive, places: Sequence[Vec]) -> float:
    if isinstance(item, Point):
        return min(math.dist(item.at, place) for place in places)
    return min(distance_to_curve(item, place) for place in places)
