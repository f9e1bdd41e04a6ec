"""Follow curves from end to end: closed cycles, open paths, and the places where more than two ends meet.

A curve can be followed both ways: `2 * i` is curve number i from its start, `2 * i + 1` from its end, and `way ^ 1` the
same curve the other way round. Numbers here count the curves handed in, not the primitives of a sketch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .near import join
from .primitives import Arc, Line, Vec


@dataclass(frozen=True, slots=True)
class Graph:
    """Curves as edges between the numbered places where their ends join. `leaving[v]` are the ways out of place v.

    A curve that is nothing but a place at this tolerance is left out of `leaving`.
    """

    curves: Sequence[Line | Arc]
    begins: Sequence[Vec]  # the exact place where each way begins, so that way ^ 1 begins where it ends
    vertices: Sequence[int]  # the number of that place
    leaving: Sequence[Sequence[int]]


def make_graph(curves: Sequence[Line | Arc], distance: float) -> Graph:
    """Link curves whose ends come within a distance of each other."""
    begins = [end for curve in curves for end in (curve.start, curve.end)]
    vertices = join(begins, distance)
    leaving: list[list[int]] = [[] for _ in range(max(vertices, default=-1) + 1)]
    for i, curve in enumerate(curves):
        start, end = vertices[2 * i : 2 * i + 2]
        if start != end or (isinstance(curve, Arc) and curve.sweep > math.pi):  # almost a full circle is a cycle
            leaving[start].append(2 * i)
            leaving[end].append(2 * i + 1)
    return Graph(curves, begins, vertices, leaving)


def trace(graph: Graph) -> tuple[list[list[int]], list[list[int]]]:
    """Simple cycles and open paths, each a list of ways; together they use every curve that is more than a place.

    A curve is open when no cycle passes it. Where cycles branch, they are the smallest ones, around the regions that
    the curves bound: a wall between two rooms is part of both. Paths end at branches.
    """
    open_ways = _bridges(graph)
    cycles: list[list[int]] = []
    known: set[frozenset[int]] = set()
    turns = _left_turns(graph, open_ways)
    ways_out = Counter(graph.vertices[way] for way in turns)
    for walk in _walks(turns):
        branching = any(ways_out[graph.vertices[way]] > 2 for way in walk)
        if branching and signed_area(graph, walk) <= 0:
            continue  # the outside of the whole cluster
        for cycle in _simple_cycles(graph, walk) if branching else [walk]:
            edges = frozenset(way >> 1 for way in cycle)
            if edges not in known and len(edges) == len(cycle):
                known.add(edges)
                cycles.append(cycle)
    # Where curves cross, regions may fail to take up every curve; none is lost.
    used = {way >> 1 for cycle in cycles for way in cycle}
    rest = {way for ways in graph.leaving for way in ways if way >> 1 not in used}
    return cycles, list(_paths(graph, rest))


def signed_area(graph: Graph, cycle: Sequence[int]) -> float:
    """The exact area a cycle of ways encloses, positive when it runs counter-clockwise (Green's theorem).

    Gaps between ends that join count as closed by straight lines, so that the area does not depend on where it lies.
    """
    begins = graph.begins
    ox, oy = begins[cycle[0]]
    total, previous = 0.0, begins[cycle[-1] ^ 1]
    for way in cycle:
        start, end = begins[way], begins[way ^ 1]
        total += (previous[0] - ox) * (start[1] - oy) - (start[0] - ox) * (previous[1] - oy)
        total += (start[0] - ox) * (end[1] - oy) - (end[0] - ox) * (start[1] - oy)
        curve = graph.curves[way >> 1]
        if isinstance(curve, Arc):  # the segment between the chord and the arc, on the chord's right
            segment = curve.radius**2 * _less_sine(curve.sweep)
            total += -segment if way & 1 else segment
        previous = end
    return total / 2


def _less_sine(x: float) -> float:
    """x − sin x, also where the two are nearly equal."""
    return x - math.sin(x) if x > 0.1 else x**3 / 6 * (1 - x**2 / 20 * (1 - x**2 / 42 * (1 - x**2 / 72)))


def _bridges(graph: Graph) -> set[int]:
    """Ways, both directions, whose curve is on no cycle: those whose removal would cut the graph (Tarjan)."""
    order = [0] * len(graph.leaving)  # of discovery; 0 is not yet
    lowest = [0] * len(graph.leaving)
    found: set[int] = set()
    clock = 0
    for root, ways in enumerate(graph.leaving):
        if order[root] or not ways:
            continue
        clock += 1
        order[root] = lowest[root] = clock
        stack: list[tuple[int, int, Iterator[int]]] = [(root, -1, iter(ways))]
        while stack:
            vertex, arrived, remaining = stack[-1]
            for way in remaining:
                if way == arrived ^ 1:
                    continue
                to = graph.vertices[way ^ 1]
                if order[to]:
                    lowest[vertex] = min(lowest[vertex], order[to])
                else:
                    clock += 1
                    order[to] = lowest[to] = clock
                    stack.append((to, way, iter(graph.leaving[to])))
                    break
            else:
                stack.pop()
                if stack:
                    parent = stack[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[vertex])
                    if lowest[vertex] > order[parent]:
                        found |= {arrived, arrived ^ 1}
    return found


def _left_turns(graph: Graph, without: set[int]) -> dict[int, int]:
    """For each way, the one that follows it when always turning left as sharply as possible."""
    turns: dict[int, int] = {}
    for ways in graph.leaving:
        here = [way for way in ways if way not in without]
        if len(here) > 2:
            ring = min(_ring(graph.curves[way >> 1]) for way in here)
            here.sort(key=lambda way: _direction(graph.curves[way >> 1], way & 1, ring))
        for k, way in enumerate(here):
            turns[way ^ 1] = here[k - 1]
    return turns


def _ring(curve: Line | Arc) -> float:
    """How large a ring around its end a curve is sure to cross once."""
    return curve.length / 2 if isinstance(curve, Line) else curve.radius * min(1.0, curve.sweep / 2)


def _direction(curve: Line | Arc, backwards: int, ring: float) -> float:
    """The angle, seen from its end, at which a curve crosses a ring: tells tangent curves apart by how they bend."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = (curve.end, curve.start) if backwards else (curve.start, curve.end)
        return math.atan2(y1 - y0, x1 - x0)
    bend = math.asin(min(1.0, ring / (2 * curve.radius)))
    angle = curve.end_angle - math.pi / 2 - bend if backwards else curve.start_angle + math.pi / 2 + bend
    return math.remainder(angle, math.tau)


def _walks(turns: dict[int, int]) -> Iterator[list[int]]:
    """Follow the turns round and round until every way is used."""
    seen: set[int] = set()
    for first in turns:
        walk, way = [], first
        while way not in seen:
            seen.add(way)
            walk.append(way)
            way = turns[way]
        if walk:
            yield walk


def _simple_cycles(graph: Graph, walk: list[int]) -> Iterator[list[int]]:
    """A closed walk cut wherever it comes back to a place."""
    trail: list[int] = []
    position: dict[int, int] = {}  # of each place on the trail
    for way in walk:
        position[graph.vertices[way]] = len(trail)
        trail.append(way)
        back = position.get(graph.vertices[way ^ 1])
        if back is not None:
            cycle, trail = trail[back:], trail[:back]
            for used in cycle:
                del position[graph.vertices[used]]
            yield cycle


def _paths(graph: Graph, ways: set[int]) -> Iterator[list[int]]:
    """Open curves strung together as far as they go without a choice."""
    used: set[int] = set()
    for first in sorted(ways, key=lambda way: (len(graph.leaving[graph.vertices[way]]) == 2, way)):
        if first >> 1 in used:
            continue
        path, way = [first], first
        used.add(first >> 1)
        while len(onward := graph.leaving[graph.vertices[way ^ 1]]) == 2:
            way = onward[0] if onward[1] == way ^ 1 else onward[1]
            if way not in ways or way >> 1 in used:
                break
            path.append(way)
            used.add(way >> 1)
        yield path
