"""Shapes with known areas, and transformations of drawings."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from sketchdnn.geometry import Arc, Circle, Line, Loop, Point, Primitive, Vec, tessellate


def polygon(*corners: Vec, construction: bool = False) -> list[Primitive]:
    """Lines from corner to corner and back to the first."""
    return [Line(a, b, construction) for a, b in zip(corners, (*corners[1:], corners[0]), strict=True)]


def rectangle(x: float, y: float, width: float, height: float) -> list[Primitive]:
    return polygon((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def slot(length: float, radius: float) -> list[Primitive]:
    """Two half circles and two lines around the origin; `length` between the centers."""
    x = length / 2
    right, left = Arc((x, 0), radius, -math.pi / 2, math.pi), Arc((-x, 0), radius, math.pi / 2, math.pi)
    return [Line((-x, -radius), (x, -radius)), right, Line((x, radius), (-x, radius)), left]


def d_shape(radius: float, sweep: float) -> list[Primitive]:
    """An arc, major or minor, and its chord."""
    arc = Arc((0, 0), radius, 0.3, sweep)
    return [arc, Line(arc.end, arc.start)]


def nested_plate() -> list[Primitive]:
    """A plate of 80 by 60 with a round corner, a slot in it, and an island of an arc and its chord in that."""
    bottom, corner = Line((-40.0, -30.0), (35.0, -30.0)), Arc((35.0, -25.0), 5.0, -math.pi / 2, math.pi / 2)
    right, top = Line((40.0, 30.0), (40.0, -25.0)), Line((40.0, 30.0), (-40.0, 30.0))  # the right is drawn backwards
    left = Line((-40.0, 30.0), (-40.0, -30.0))
    return [bottom, corner, right, top, left, *slot(30.0, 15.0), *d_shape(4.0, 4.0)]


def turned(
    p: Primitive, angle: float = 0.0, *, mirrored: bool = False, scale: float = 1.0, by: Vec = (0, 0)
) -> Primitive:
    """A primitive, optionally mirrored in the y axis, then rotated about the origin, scaled and moved."""

    def move(v: Vec) -> Vec:
        x, y = (-v[0] if mirrored else v[0]), v[1]
        c, s = math.cos(angle), math.sin(angle)
        return (scale * (c * x - s * y) + by[0], scale * (s * x + c * y) + by[1])

    match p:
        case Line(start, end):
            return replace(p, start=move(start), end=move(end))
        case Circle(center, radius):
            return replace(p, center=move(center), radius=scale * radius)
        case Arc(center, radius, start_angle, sweep):
            first = math.pi - start_angle - sweep if mirrored else start_angle
            return replace(p, center=move(center), radius=scale * radius, start_angle=first + angle)
        case Point(at):
            return replace(p, at=move(at))


def backwards(p: Primitive) -> Primitive:
    """A line drawn from its other end; other kinds are unchanged."""
    return replace(p, start=p.end, end=p.start) if isinstance(p, Line) else p


def permuted(items: Sequence[Primitive], order: Sequence[int]) -> list[Primitive]:
    return [items[i] for i in order]


def drawn_area(items: list[Primitive], loop: Loop) -> float:
    """The shoelace area of a fine polyline along the edges of a loop, which must follow one another."""
    size = sum(items[e.primitive_index].length for e in loop.edges)
    pieces = [tessellate(items[e.primitive_index], 1e-7 * size)[:: 1 if e.forward else -1] for e in loop.edges]
    for a, b in zip(pieces, pieces[1:] + pieces[:1], strict=True):
        assert np.hypot(*(a[-1] - b[0])) < 1e-6 * size
    x, y = (np.concatenate(pieces) - pieces[0][0]).T
    return float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


@st.composite
def placements(draw: st.DrawFn, primitives: Sequence[Primitive], scales: Sequence[float]) -> list[Primitive]:
    """The primitives in any order, each from either end, all mirrored, turned and scaled."""
    angle, mirrored, scale = draw(st.tuples(st.floats(0, math.tau), st.booleans(), st.sampled_from(scales)))
    moved = (turned(p, angle, mirrored=mirrored, scale=scale) for p in draw(st.permutations(primitives)))
    return [backwards(p) if draw(st.booleans()) else p for p in moved]
