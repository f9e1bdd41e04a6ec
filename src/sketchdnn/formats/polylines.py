"""Loops and chains of a sketch's profile as polylines with arcs, for DXF polylines, solids and scripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec, arc_from_sweep, bounds, profile
from sketchdnn.geometry.profiles import Edge, Loop
from sketchdnn.geometry.proximity import TOLERANCE

# An arc with a smaller sweep is read back as a line.
_MIN_SWEEP = 1e-5
# A gap below this part of the size is rounding.
_ROUNDING = 1e-9


class Vertex(NamedTuple):
    """A vertex, and the sweep of the arc to the next one: 0 for a segment, negative for clockwise."""

    at: Vec
    sweep: float = 0.0


Vertices = tuple[Vertex, ...]


@dataclass(frozen=True, slots=True)
class Polyline:
    """Vertices, whether the last connects to the first, and the number of vertices that close a gap."""

    vertices: Vertices
    closed: bool
    closed_gaps: int = 0


def outline(loop: Loop, primitives: Sequence[Primitive]) -> Vertices | Circle:
    """The vertices of a loop, or the circle that it consists of."""
    first = primitives[loop.edges[0].primitive_index]
    if len(loop.edges) == 1 and not isinstance(first, Line | Point):
        return Circle(first.center, first.radius)
    return _vertices(loop.edges, primitives)


def arc_midpoint(start: Vertex, end: Vec) -> Vec | None:
    """The middle of the arc from a vertex to the next one; None for a segment."""
    return arc_from_sweep(start.at, end, start.sweep).mid if start.sweep else None


def to_polylines(sketch: Sketch) -> Iterator[Polyline | Primitive]:
    """Each loop and each chain of several curves, outlines counter-clockwise and holes clockwise, then the rest.

    The rest are circles, points, construction, single curves, duplicates, loops that share a curve with another, and
    arcs whose ends are so close that no polyline can hold them.
    """
    parts = profile(sketch)
    uses = Counter(edge.primitive_index for loop in parts.loops for edge in loop.edges)
    loops = [(loop.edges, None) for loop in parts.loops if all(uses[edge.primitive_index] == 1 for edge in loop.edges)]
    used: set[int] = set()
    for edges, end in [*loops, *((chain.edges, Vertex(chain.end)) for chain in parts.chains)]:
        if len(edges) == 1:
            continue
        vertices = _vertices(edges, sketch.primitives) + (() if end is None else (end,))
        if _is_equivalent(vertices, edges, sketch, closed=end is None):
            used.update(edge.primitive_index for edge in edges)
            yield Polyline(vertices, end is None, _count_gaps(vertices, edges, sketch))
    yield from (primitive for i, primitive in enumerate(sketch) if i not in used)


def _vertices(edges: Sequence[Edge], primitives: Sequence[Primitive]) -> Vertices:
    """The start of each edge in its direction. Ends within the tolerance of profiles become one vertex."""
    vertices: list[Vertex] = []
    for edge in edges:
        match primitives[edge.primitive_index]:
            case Line(start, end):
                vertices.append(Vertex(start if edge.forward else end))
            case Arc() as arc:
                vertices.append(Vertex(arc.start, arc.sweep) if edge.forward else Vertex(arc.end, -arc.sweep))
    return tuple(vertices)


def _is_equivalent(vertices: Vertices, edges: Sequence[Edge], sketch: Sketch, *, closed: bool) -> bool:
    """Whether the polyline equals its curves, within the tolerance of profiles."""
    within = 2 * TOLERANCE * bounds(sketch).size
    curves = [sketch.primitives[edge.primitive_index] for edge in edges]
    pairs = pairwise(vertices + vertices[:1] if closed else vertices)
    return all(_is_same_curve(curve, *ends, within) for curve, ends in zip(curves, pairs, strict=True))


def _count_gaps(vertices: Vertices, edges: Sequence[Edge], sketch: Sketch) -> int:
    """The number of curves that end away from the start of the next, by more than rounding."""
    least = _ROUNDING * bounds(sketch).size
    gaps = 0
    for edge, vertex in zip(edges, vertices[1:] + vertices[:1], strict=False):
        primitive = sketch.primitives[edge.primitive_index]
        if isinstance(primitive, Line | Arc):
            gaps += math.dist(primitive.end if edge.forward else primitive.start, vertex.at) > least
    return gaps


def _is_same_curve(primitive: Primitive, start: Vertex, end: Vertex, within: float) -> bool:
    if start.at == end.at or isinstance(primitive, Line):
        return start.at != end.at
    if not isinstance(primitive, Arc) or abs(start.sweep) < _MIN_SWEEP:
        return False
    try:
        arc = arc_from_sweep(start.at, end.at, start.sweep)
    except GeometryError:
        return False
    moved = (arc.center[0] - primitive.center[0], arc.center[1] - primitive.center[1], arc.radius - primitive.radius)
    return max(map(abs, moved)) <= within
