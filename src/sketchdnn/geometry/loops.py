"""Closed loops of curves: trace curves from end to end, and find which closed curve lies inside which.

A half-edge is a curve together with a direction. Half-edge `2 * i` is curve i from its start to its end, and
`2 * i + 1` is curve i from its end to its start. So `half_edge >> 1` is the index of the curve, and `half_edge ^ 1` is
the same curve in the other direction. Curves have the indices of their primitives in the sketch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from .bounds import Box, bounds
from .intersections import Curve, distance_to_curve
from .primitives import Arc, Circle, Line, Vec
from .proximity import box_pairs, cluster_points


@dataclass(frozen=True, slots=True)
class Graph:
    """Curves as edges between vertices, the clusters of ends that join.

    `starts` and `vertices` hold the exact start and the vertex of each half-edge. `outgoing[v]` are the half-edges that
    start at vertex v; curves shorter than the tolerance are left out.
    """

    curves: Mapping[int, Line | Arc]
    starts: Mapping[int, Vec]
    vertices: Mapping[int, int]
    outgoing: Sequence[Sequence[int]]


def build_graph(curves: Mapping[int, Line | Arc], distance: float) -> Graph:
    """Join curves whose ends come within a distance of each other."""
    starts = {half_edge: end for i, c in curves.items() for half_edge, end in ((2 * i, c.start), (2 * i + 1, c.end))}
    vertices = dict(zip(starts, cluster_points(list(starts.values()), distance), strict=True))
    outgoing: list[list[int]] = [[] for _ in range(max(vertices.values(), default=-1) + 1)]
    for i, curve in curves.items():
        start, end = vertices[2 * i], vertices[2 * i + 1]
        if start != end or (isinstance(curve, Arc) and curve.sweep > math.pi):  # almost a full circle is a cycle
            outgoing[start].append(2 * i)
            outgoing[end].append(2 * i + 1)
    return Graph(curves, starts, vertices, outgoing)


def trace_cycles(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    """Split a graph into simple cycles and open paths, each a list of half-edges.

    A curve is open when no cycle contains it. At branches, cycles are the smallest ones, around the regions that the
    curves bound: a curve between two regions is part of both. Paths end at branches.
    """
    cycles: list[list[int]] = []
    seen: set[frozenset[int]] = set()
    turns = _left_turns(graph, _bridges(graph))
    degree = Counter(graph.vertices[half_edge] for half_edge in turns)
    for face in _faces(turns):
        branching = any(degree[graph.vertices[half_edge]] > 2 for half_edge in face)
        if branching and signed_area(graph, face) <= 0:
            continue  # the unbounded face
        for cycle in _simple_cycles(graph, face) if branching else [face]:
            edges = frozenset(half_edge >> 1 for half_edge in cycle)
            if edges not in seen and len(edges) == len(cycle):
                seen.add(edges)
                cycles.append(cycle)
    # Where curves cross, some may belong to no face: they become paths.
    used = {half_edge >> 1 for cycle in cycles for half_edge in cycle}
    rest = {half_edge for half_edges in graph.outgoing for half_edge in half_edges if half_edge >> 1 not in used}
    return cycles, list(_paths(graph, rest))


def signed_area(graph: Graph, cycle: Sequence[int]) -> float:
    """The exact area inside a cycle of half-edges, positive when it runs counter-clockwise (Green's theorem).

    Gaps between joined ends are closed by straight lines, so that the area does not depend on the position.
    """
    starts = graph.starts
    ox, oy = starts[cycle[0]]
    total, previous = 0.0, starts[cycle[-1] ^ 1]
    for half_edge in cycle:
        start, end = starts[half_edge], starts[half_edge ^ 1]
        total += (previous[0] - ox) * (start[1] - oy) - (start[0] - ox) * (previous[1] - oy)
        total += (start[0] - ox) * (end[1] - oy) - (end[0] - ox) * (start[1] - oy)
        curve = graph.curves[half_edge >> 1]
        if isinstance(curve, Arc):  # the segment between the chord and the arc, on the chord's right
            segment = curve.radius**2 * _x_minus_sin(curve.sweep)
            total += -segment if half_edge & 1 else segment
        previous = end
    return total / 2


def _x_minus_sin(x: float) -> float:
    """x − sin x without cancellation."""
    return x - math.sin(x) if x > 0.1 else x**3 / 6 * (1 - x**2 / 20 * (1 - x**2 / 42 * (1 - x**2 / 72)))


def _bridges(graph: Graph) -> set[int]:
    """The half-edges of curves that are on no cycle: their removal would cut the graph (Schmidt 2013)."""
    arrivals: dict[int, int] = {}  # the half-edge that discovers each vertex, depth first; -1 at a root
    for root in range(len(graph.outgoing)):
        stack = [(root, -1)]
        while stack:
            vertex, arrival = stack.pop()
            if vertex not in arrivals:
                arrivals[vertex] = arrival
                stack += [(graph.vertices[onward ^ 1], onward) for onward in graph.outgoing[vertex]]
    bridges = {half_edge for half_edges in graph.outgoing for half_edge in half_edges}
    tree = {arrival >> 1 for arrival in arrivals.values()}
    visited: set[int] = set()
    # Every other curve closes a cycle with the path of discovery from one of its ends to the other.
    for vertex in arrivals:
        for half_edge in graph.outgoing[vertex]:
            if half_edge >> 1 in tree:
                continue
            visited.add(vertex)
            bridges -= {half_edge, half_edge ^ 1}
            to = graph.vertices[half_edge ^ 1]
            while to not in visited:
                visited.add(to)
                bridges -= {arrivals[to], arrivals[to] ^ 1}
                to = graph.vertices[arrivals[to]]
    return bridges


def _left_turns(graph: Graph, excluded: set[int]) -> dict[int, int]:
    """The half-edge that follows each one when turning left as sharply as possible."""
    turns: dict[int, int] = {}
    for half_edges in graph.outgoing:
        candidates = [half_edge for half_edge in half_edges if half_edge not in excluded]
        if len(candidates) > 2:
            ring = min(_ring(graph.curves[half_edge >> 1]) for half_edge in candidates)
            candidates.sort(key=lambda half_edge: _direction(graph.curves[half_edge >> 1], half_edge & 1, ring))
        for k, half_edge in enumerate(candidates):
            turns[half_edge ^ 1] = candidates[k - 1]
    return turns


def _ring(curve: Line | Arc) -> float:
    """The radius of a circle around its end that a curve crosses exactly once."""
    return curve.length / 2 if isinstance(curve, Line) else curve.radius * min(1.0, curve.sweep / 2)


def _direction(curve: Line | Arc, backwards: int, ring: float) -> float:
    """The angle, seen from its end, at which a curve crosses a ring; it separates tangent curves by curvature."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = (curve.end, curve.start) if backwards else (curve.start, curve.end)
        return math.atan2(y1 - y0, x1 - x0)
    bend = math.asin(min(1.0, ring / (2 * curve.radius)))
    angle = curve.end_angle - math.pi / 2 - bend if backwards else curve.start_angle + math.pi / 2 + bend
    return math.remainder(angle, math.tau)


def _faces(turns: dict[int, int]) -> Iterator[list[int]]:
    """The closed walks that follow the turns; each half-edge is in one of them."""
    seen: set[int] = set()
    for first in turns:
        face, half_edge = [], first
        while half_edge not in seen:
            seen.add(half_edge)
            face.append(half_edge)
            half_edge = turns[half_edge]
        if face:
            yield face


def _simple_cycles(graph: Graph, face: list[int]) -> Iterator[list[int]]:
    """A closed walk, cut wherever it returns to a vertex."""
    trail: list[int] = []
    position: dict[int, int] = {}  # of each vertex on the trail
    for half_edge in face:
        position[graph.vertices[half_edge]] = len(trail)
        trail.append(half_edge)
        back = position.get(graph.vertices[half_edge ^ 1])
        if back is not None:
            cycle, trail = trail[back:], trail[:back]
            for used in cycle:
                del position[graph.vertices[used]]
            yield cycle


def _paths(graph: Graph, half_edges: set[int]) -> Iterator[list[int]]:
    """Chains of open curves that end at free ends and branches."""
    used: set[int] = set()
    for first in sorted(half_edges, key=lambda edge: (len(graph.outgoing[graph.vertices[edge]]) == 2, edge)):
        if first >> 1 in used:
            continue
        path, half_edge = [first], first
        used.add(first >> 1)
        while len(onward := graph.outgoing[graph.vertices[half_edge ^ 1]]) == 2:
            half_edge = onward[0] if onward[1] == half_edge ^ 1 else onward[1]
            if half_edge not in half_edges or half_edge >> 1 in used:
                break
            path.append(half_edge)
            used.add(half_edge >> 1)
        yield path


# Where on a curve a point is tested for being inside another: the golden section, a fraction that drawings rarely use.
# Middles and quarters often lie on the chord of another curve, where rounding decides the side.
_ALONG = 0.381966
# The boxes of more closed curves are compared as arrays.
_FEW = 16


@dataclass(frozen=True, slots=True)
class ClosedCurve:
    """The geometry of a loop.

    Attributes:
        half_edges: Its curves in order, counter-clockwise.
        pieces: The same curves.
        corners: The start and the end of each piece, in order; empty for a full circle.
        area: The area inside, always positive.
        branches: Whether more than two ends meet at one of its corners. It may then share pieces or corners with
            another closed curve.
    """

    half_edges: Sequence[int]
    pieces: Sequence[Curve]
    corners: Sequence[Vec]
    area: float
    branches: bool = False


def closed_curve(graph: Graph, cycle: list[int]) -> ClosedCurve:
    """The closed curve of a cycle of half-edges: counter-clockwise, from its lowest half-edge."""
    area = signed_area(graph, cycle)
    if area < 0:
        cycle = [half_edge ^ 1 for half_edge in reversed(cycle)]
    lowest = cycle.index(min(cycle))
    cycle = cycle[lowest:] + cycle[:lowest]
    return ClosedCurve(
        cycle,
        [graph.curves[half_edge >> 1] for half_edge in cycle],
        [graph.starts[end] for half_edge in cycle for end in (half_edge, half_edge ^ 1)],
        abs(area),
        any(len(graph.outgoing[graph.vertices[half_edge]]) > 2 for half_edge in cycle),
    )


def nest_closed_curves(
    closed_curves: Sequence[ClosedCurve], crossing: set[tuple[int, int]], touching: set[tuple[int, int]], slack: float
) -> list[int | None]:
    """Return the index of the smallest closed curve around each one, or None.

    Args:
        closed_curves: The closed curves.
        crossing: Pairs i < j that cross; neither is inside the other.
        touching: Pairs i < j that touch.
        slack: How far the inner one may stick out.
    """
    parents: list[int | None] = [None] * len(closed_curves)
    if len(closed_curves) < 2:
        return parents
    boxes = [bounds(curve.pieces) for curve in closed_curves]
    area = [curve.area for curve in closed_curves]
    for inner, outer in _nested_boxes(boxes, area, slack):
        parent, pair = parents[inner], (min(inner, outer), max(inner, outer))
        if (parent is not None and area[parent] <= area[outer]) or pair in crossing:
            continue
        on_boundary = pair in touching or (closed_curves[inner].branches and closed_curves[outer].branches)
        if is_inside(closed_curves[inner], closed_curves[outer], on_boundary=on_boundary):
            parents[inner] = outer
    return parents


def _nested_boxes(boxes: Sequence[Box], areas: Sequence[float], slack: float) -> Iterator[tuple[int, int]]:
    """Pairs (inner, outer) by area, where the box of the inner one is inside that of the outer one."""
    if len(boxes) <= _FEW:
        for inner, outer in permutations(range(len(boxes)), 2):
            if areas[inner] < areas[outer] and boxes[inner].is_within(boxes[outer], slack):
                yield inner, outer
        return
    low, high, area = np.array([b.low for b in boxes]), np.array([b.high for b in boxes]), np.array(areas)
    for a, b in box_pairs(low, high):
        inner, outer = np.where(area[a] < area[b], (a, b), (b, a))
        boxed = (low[inner] >= low[outer] - slack) & (high[inner] <= high[outer] + slack)
        keep = boxed.all(axis=1) & (area[inner] < area[outer])
        yield from zip(inner[keep].tolist(), outer[keep].tolist(), strict=True)


def is_inside(inner: ClosedCurve, outer: ClosedCurve, *, on_boundary: bool) -> bool:
    """Whether a closed curve is inside another that it does not cross.

    Any of its points decides. If the two may share a boundary, the point farthest from the outer one is taken.
    """
    points = [piece.at(_ALONG) for piece in inner.pieces]
    if not on_boundary:
        return contains_point(outer, points[0])
    farthest = max(points, key=lambda point: min(distance_to_curve(piece, point) for piece in outer.pieces))
    return contains_point(outer, farthest)


def contains_point(closed_curve: ClosedCurve, point: Vec) -> bool:
    """Even-odd test: the polygon of chords, toggled by each circular segment that contains the point."""
    x, y = point
    inside = False
    px, py = closed_curve.corners[-1] if closed_curve.corners else point
    for cx, cy in closed_curve.corners:
        if (py > y) != (cy > y) and x < px + (y - py) / (cy - py) * (cx - px):
            inside = not inside
        px, py = cx, cy
    for piece in closed_curve.pieces:
        if isinstance(piece, Line) or math.dist(point, piece.center) >= piece.radius:
            continue
        if isinstance(piece, Circle):
            inside = not inside
        else:
            (x0, y0), (x1, y1) = piece.start, piece.end
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):  # right of the chord, where a counter-clockwise arc bulges
                inside = not inside
    return inside
