"""Where on a sketch the things are that a constraint speaks of."""

from __future__ import annotations

import math

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Ref, Sketch, Vec
from sketchdnn.geometry.constraints import ref_point

# Ends nearer to each other than this share of the shorter curve are one corner.
_MEETS = 0.02


def middle(ref: Ref, sketch: Sketch) -> Vec | None:
    """Where to point at something: a place itself, a circle's center, halfway along a line or arc."""
    at = ref_point(ref, sketch.primitives)
    if at is not None or ref.primitive is None:
        return at
    match sketch.primitives[ref.primitive]:
        case Line(start, end):
            return ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        case Circle(center):
            return center
        case Arc() as arc:
            return arc.mid
        case Point(spot):
            return spot


def corner(a: Primitive, b: Primitive) -> tuple[Vec, tuple[float, float]] | None:
    """Where two lines meet with their ends, and the directions that they leave in."""
    if not (isinstance(a, Line) and isinstance(b, Line)):
        return None
    near = _MEETS * min(a.length, b.length)
    for p, p_far in ((a.start, a.end), (a.end, a.start)):
        for q, q_far in ((b.start, b.end), (b.end, b.start)):
            if math.dist(p, q) <= near:
                along = math.atan2(p_far[1] - p[1], p_far[0] - p[0]), math.atan2(q_far[1] - q[1], q_far[0] - q[0])
                return p, along
    return None


def touch(a: Primitive, b: Primitive) -> Vec | None:
    """Where two curves touch: at a shared end, or where the circle comes nearest to the other curve."""
    ends = [[c.start, c.end] if isinstance(c, Line | Arc) else [] for c in (a, b)]
    pairs = [(math.dist(p, q), p) for p in ends[0] for q in ends[1]]
    if pairs and min(pairs)[0] <= _MEETS * min(a.length, b.length):
        return min(pairs)[1]
    if not isinstance(b, Circle | Arc):
        a, b = b, a
    if not isinstance(b, Circle | Arc):
        return None
    match a:
        case Line(start, end):
            ux, uy = (end[0] - start[0]) / a.length, (end[1] - start[1]) / a.length
            along = (b.center[0] - start[0]) * ux + (b.center[1] - start[1]) * uy
            return (start[0] + along * ux, start[1] + along * uy)
        case Circle(center, radius) | Arc(center, radius):
            apart = math.dist(center, b.center)
            if apart == 0:
                return None
            # From the larger circle's center through the other's, unless they lie outside each other.
            big, small = ((center, radius), b.center) if radius >= b.radius else ((b.center, b.radius), center)
            share = big[1] / apart
            return (big[0][0] + share * (small[0] - big[0][0]), big[0][1] + share * (small[1] - big[0][1]))
        case Point():
            return None
