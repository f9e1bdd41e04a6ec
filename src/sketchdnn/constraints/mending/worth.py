"""Whether a repaired sketch is at least as good as it was: what it moved, what closes, what crosses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Profile, Vec
from sketchdnn.geometry.intersections import distance_to_curve, endpoints, midpoint

# Ends that meet to within this share of the size meet.
EXACT = 1e-6
# What keeps less than this share of its length was not meant to be what it became.
_SHRUNK = 0.3


@dataclass(frozen=True, slots=True)
class Worth:
    """What speaks for a sketch as a profile, and what against it."""

    is_extrudable: bool
    loops: tuple[frozenset[int], ...]
    looped: int  # curves that are part of a loop
    crossings: int

    def is_worse_than(self, before: Worth, gone: Collection[int]) -> bool:
        """Whether something was lost; a loop made of nothing but what is `gone` was drawn twice, and is no loss."""
        if before.is_extrudable and not self.is_extrudable:
            return True
        mattered = [loop for loop in before.loops if not loop <= set(gone)]
        return len(self.loops) < len(mattered) or self.crossings > before.crossings


def worth(found: Profile) -> Worth:
    """Judge a profile."""
    loops = tuple(frozenset(edge.primitive for edge in loop.edges) for loop in found.loops)
    return Worth(
        found.is_extrudable,
        loops,
        len(frozenset().union(*loops)),
        sum(meeting.crosses for meeting in found.meetings),
    )


def bounds_something(primitives: Sequence[Primitive]) -> bool:
    """Whether enough is drawn that it might close."""
    curves = [p for p in primitives if not isinstance(p, Point) and not p.construction]
    return len(curves) > 2 or any(isinstance(p, Circle) for p in curves)


def displacement(before: Sequence[Primitive], after: Primitive) -> float:
    """How far what became one primitive went: by its ends, center and radius, or off the curve it is part of now."""
    if len(before) == 1 and before[0].kind == after.kind:
        return moved(before[0], after)
    if isinstance(after, Point):
        return max((math.dist(p.at, after.at) for p in before if isinstance(p, Point)), default=0.0)
    return max((distance_to_curve(after, place) for p in before for place in _places(p)), default=0.0)


def moved(a: Primitive, b: Primitive) -> float:
    """The largest move from one primitive to another of its kind."""
    match a, b:
        case Line(), Line():
            return max(math.dist(a.start, b.start), math.dist(a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            return max(
                math.dist(a.start, b.start),
                math.dist(a.end, b.end),
                math.dist(a.center, b.center),
                abs(a.radius - b.radius),
            )
    return math.inf


def has_shrunk(before: Primitive, after: Primitive) -> bool:
    """Whether a curve lost so much of itself that it is another one."""
    if isinstance(before, Point) or isinstance(after, Point):
        return False
    return after.length < _SHRUNK * before.length or (
        isinstance(before, Arc) and isinstance(after, Arc) and after.radius < _SHRUNK * before.radius
    )


def _places(p: Primitive) -> Iterable[Vec]:
    return () if isinstance(p, Point) else (*endpoints(p), midpoint(p))
