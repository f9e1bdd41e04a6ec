"""Loops and chains of a profile as corners: what polylines, scripts and solids are drawn through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sketchdnn.geometry import Circle, Line, Point, Primitive, Vec, arc_from_sweep
from sketchdnn.geometry.profiles import Edge, Loop


class Corner(NamedTuple):
    """A place, and by how much the way to the next one turns: not at all, or along an arc, clockwise below 0."""

    at: Vec
    sweep: float = 0.0


Wire = tuple[Corner, ...]


def corners(edges: Sequence[Edge], primitives: Sequence[Primitive]) -> Wire:
    """One corner an edge, where it begins as it is run through. Ends that profiles take as one become one."""
    return tuple(_corner(primitives[edge.primitive], edge.forward) for edge in edges)


def outline(loop: Loop, primitives: Sequence[Primitive]) -> Wire | Circle:
    """A loop as a closed wire, or the circle that it is: one curve that closes on itself."""
    first = primitives[loop.edges[0].primitive]
    if len(loop.edges) == 1 and not isinstance(first, Line | Point):
        return Circle(first.center, first.radius)
    return corners(loop.edges, primitives)


def through(start: Corner, end: Vec) -> Vec | None:
    """The middle of the arc from a corner to the next, None where the way is straight."""
    return arc_from_sweep(start.at, end, start.sweep).mid if start.sweep else None


def _corner(primitive: Primitive, forward: bool) -> Corner:
    if isinstance(primitive, Circle | Point):
        raise TypeError("what has no ends has no corners")
    at = primitive.start if forward else primitive.end
    if isinstance(primitive, Line):
        return Corner(at)
    return Corner(at, primitive.sweep if forward else -primitive.sweep)
