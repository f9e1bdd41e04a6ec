"""The profile of a sketch: its closed loops, how they are nested, and what prevents an extrusion.

Points and construction geometry are ignored. A loop bounds material at even depth and a hole at odd depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import NamedTuple

from .bounds import row_bounds
from .intersections import Curve, Extent, Meeting, Overlap, find_duplicates, find_overlap, meeting_points
from .loops import Graph, Outline, build_graph, nest_outlines, signed_area, trace_cycles
from .primitives import Arc, Circle, Line, Point, Primitive, Vec
from .proximity import MAX_PAIRS, MAX_RESULTS, TOLERANCE, absolute_tolerance, close_pairs
from .sketch import Sketch
from .table import sketches_to_table


@dataclass(frozen=True, slots=True)
class Edge:
    """A primitive in a loop or chain, from its start, or from its end if not `forward`."""

    primitive: int
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed loop of primitives. Outlines run counter-clockwise, holes clockwise.

    `area` is exact and has the sign of the direction, so that the areas of all loops add up to that of the profile.
    `parent` is the index of the smallest loop around it. A full circle is a loop of one edge.
    """

    edges: tuple[Edge, ...]
    area: float
    depth: int
    parent: int | None

    @property
    def is_hole(self) -> bool:
        return self.depth % 2 == 1


@dataclass(frozen=True, slots=True)
class Chain:
    """Primitives that are joined end to end but do not close, or lead from branch to branch."""

    edges: tuple[Edge, ...]
    length: float
    start: Vec
    end: Vec


@dataclass(frozen=True, slots=True)
class Branch:
    """A point where more than two ends meet, and their primitives."""

    at: Vec
    primitives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Loops, chains and defects. Every curve is in a loop or a chain, or is listed in `ignored`.

    At branches, loops are the regions that the curves bound, and a curve between two regions is part of both.
    `ignored` are duplicates of another curve, and curves shorter than the tolerance. If the search for meetings and
    overlaps reached its limits, loops are not nested, and `is_complete` is False.
    """

    loops: tuple[Loop, ...]
    chains: tuple[Chain, ...]
    branches: tuple[Branch, ...]
    meetings: tuple[Meeting, ...]
    overlaps: tuple[Overlap, ...]
    ignored: tuple[int, ...]
    is_complete: bool = True

    @property
    def outer(self) -> tuple[Loop, ...]:
        """The outlines: loops outside of all others, and islands within holes."""
        return tuple(loop for loop in self.loops if not loop.is_hole)

    @property
    def holes(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.is_hole)

    @property
    def area(self) -> float:
        """The area of the outlines without the holes."""
        return sum(loop.area for loop in self.loops)

    @property
    def is_extrudable(self) -> bool:
        """Whether the loops bound a solid: all are closed, and no curves cross, touch or overlap."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the profile is not extrudable, a sentence each; empty if it is."""
        reasons = []
        if not self.loops:
            reasons.append("Nothing closes to a loop.")
        if self.chains:
            names = _names(e.primitive for e in self.chains[0].edges)
            reasons.append(f"{_count(self.chains, 'chain')} left open, such as {names}.")
        if self.branches:
            names = _names(self.branches[0].primitives)
            reasons.append(f"More than two ends meet in {_count(self.branches, 'place')}, such as those of {names}.")
        for crosses, verb in ((True, "cross"), (False, "touch")):
            meetings = [m for m in self.meetings if m.crosses is crosses]
            if meetings:
                names = _names((meetings[0].first, meetings[0].second))
                reasons.append(f"Curves {verb} in {_count(meetings, 'place')}, such as {names}.")
        if self.overlaps:
            names = _names((self.overlaps[0].first, self.overlaps[0].second))
            reasons.append(f"{_count(self.overlaps, 'pair')} of curves overlap, such as {names}.")
        if not self.is_complete:
            reasons.append("So many curves come close to each other that not all were compared.")
        return tuple(reasons)


def profile(sketch: Sketch | Sequence[Primitive], tolerance: float = TOLERANCE) -> Profile:
    """Join ends that are close, and find loops, chains, crossings and overlaps.

    Args:
        sketch: The primitives; points and construction geometry are ignored.
        tolerance: The distance of joined ends, as a share of the size of the sketch.

    >>> from sketchdnn.geometry import Circle, Line
    >>> corners = [(0, 0), (4, 0), (4, 3), (0, 3)]
    >>> plate = [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])] + [Circle((1, 1), 0.5)]
    >>> profile(plate).is_extrudable, [round(loop.area, 3) for loop in profile(plate).loops]
    (True, [12.0, -0.785])
    >>> profile(plate[1:]).reasons
    ('1 chain left open, such as primitives 0, 1 and 2.',)
    """
    curves = {i: p for i, p in enumerate(sketch) if not isinstance(p, Point) and not p.construction}
    if not curves:
        return Profile((), (), (), (), (), ())
    pairs = _compare_pairs(curves, tolerance)
    duplicates = {overlap.second for overlap in pairs.overlaps if overlap.extent is Extent.DUPLICATE}
    numbers: list[int] = []
    open_curves: list[Line | Arc] = []
    rings: list[_Ring] = []
    for i, curve in curves.items():
        if i in duplicates:
            continue
        if isinstance(curve, Circle):
            rings.append(_Ring((Edge(i),), Outline([curve], [], math.pi * curve.radius**2)))
        else:
            numbers.append(i)
            open_curves.append(curve)
    graph = build_graph(open_curves, pairs.distance)
    cycles, paths = trace_cycles(graph)
    rings.extend(_ring(graph, numbers, cycle) for cycle in cycles)
    rings.sort(key=lambda ring: [edge.primitive for edge in ring.edges])
    short = set(range(len(numbers))) - {half_edge >> 1 for half_edges in graph.outgoing for half_edge in half_edges}
    return Profile(
        _nested(rings, pairs),
        tuple(_chain(graph, numbers, path) for path in paths),
        tuple(_branch(graph, numbers, half_edges) for half_edges in graph.outgoing if len(half_edges) > 2),
        tuple(pairs.meetings),
        tuple(pairs.overlaps),
        tuple(sorted(duplicates | {numbers[k] for k in short})),
        pairs.is_complete,
    )


class _Pairs(NamedTuple):
    """How pairs of curves meet and overlap, and the tolerance as a length."""

    distance: float
    meetings: list[Meeting]
    overlaps: list[Overlap]
    is_complete: bool


class _Ring(NamedTuple):
    """A loop before nesting, counter-clockwise."""

    edges: tuple[Edge, ...]
    outline: Outline


def _compare_pairs(curves: Mapping[int, Curve], tolerance: float) -> _Pairs:
    """Compare every pair of curves that come close."""
    overlaps, numbers = find_duplicates(curves.items())
    meetings: list[Meeting] = []
    table = sketches_to_table([[curves[i] for i in numbers]])
    low, high = row_bounds(table)
    distance = absolute_tolerance(tolerance, low, high)
    most = MAX_RESULTS + len(overlaps)
    pairs = close_pairs(table, low, high, distance)
    for a, b in islice(pairs, MAX_PAIRS):
        i, j = numbers[a], numbers[b]
        overlap = find_overlap(i, curves[i], j, curves[j], distance)
        if overlap is not None:
            overlaps.append(overlap)
        else:
            meetings.extend(Meeting(i, j, *met) for met in meeting_points(curves[i], curves[j], distance))
        if len(meetings) + len(overlaps) >= most:
            break
    is_complete = next(pairs, None) is None
    meetings.sort(key=lambda m: (m.first, m.second, m.at))
    overlaps.sort(key=lambda o: (o.first, o.second))
    return _Pairs(distance, meetings, overlaps, is_complete)


def _ring(graph: Graph, numbers: Sequence[int], cycle: list[int]) -> _Ring:
    """A cycle as a ring: counter-clockwise, from its lowest number."""
    area = signed_area(graph, cycle)
    if area < 0:
        cycle = [half_edge ^ 1 for half_edge in reversed(cycle)]
    lowest = cycle.index(min(cycle))
    cycle = cycle[lowest:] + cycle[:lowest]
    outline = Outline(
        [graph.curves[half_edge >> 1] for half_edge in cycle],
        [graph.starts[end] for half_edge in cycle for end in (half_edge, half_edge ^ 1)],
        abs(area),
        any(len(graph.outgoing[graph.vertices[half_edge]]) > 2 for half_edge in cycle),
    )
    return _Ring(_edges(numbers, cycle), outline)


def _nested(rings: Sequence[_Ring], pairs: _Pairs) -> tuple[Loop, ...]:
    """Rings as loops; those at odd depth are reversed."""
    rings_of: dict[int, list[int]] = {}
    for i, ring in enumerate(rings):
        for edge in ring.edges:
            rings_of.setdefault(edge.primitive, []).append(i)
    crossing: set[tuple[int, int]] = set()
    touching: set[tuple[int, int]] = set()
    both: Iterable[Meeting | Overlap] = chain(pairs.meetings, pairs.overlaps)
    for pair in both:
        indices = crossing if isinstance(pair, Meeting) and pair.crosses else touching
        for i, j in product(rings_of.get(pair.first, ()), rings_of.get(pair.second, ())):
            indices.add((min(i, j), max(i, j)))
    parents: list[int | None] = [None] * len(rings)
    if pairs.is_complete:
        parents = nest_outlines([ring.outline for ring in rings], crossing, touching, pairs.distance)
    loops: dict[int, Loop] = {}
    for i in sorted(range(len(rings)), key=lambda i: -rings[i].outline.area):
        (edges, outline), parent = rings[i], parents[i]
        depth = 0 if parent is None else loops[parent].depth + 1
        area = outline.area
        if depth % 2 == 1:
            edges, area = _reversed(edges), -area
        loops[i] = Loop(edges, area, depth, parent)
    return tuple(loops[i] for i in range(len(rings)))


def _chain(graph: Graph, numbers: Sequence[int], path: list[int]) -> Chain:
    length = sum(graph.curves[half_edge >> 1].length for half_edge in path)
    return Chain(_edges(numbers, path), length, graph.starts[path[0]], graph.starts[path[-1] ^ 1])


def _branch(graph: Graph, numbers: Sequence[int], half_edges: Sequence[int]) -> Branch:
    return Branch(graph.starts[half_edges[0]], tuple(sorted({numbers[half_edge >> 1] for half_edge in half_edges})))


def _edges(numbers: Sequence[int], half_edges: Iterable[int]) -> tuple[Edge, ...]:
    return tuple(Edge(numbers[half_edge >> 1], forward=not half_edge & 1) for half_edge in half_edges)


def _reversed(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The same edges in the other direction, from the same first primitive."""
    return tuple(Edge(edge.primitive, not edge.forward) for edge in (edges[0], *reversed(edges[1:])))


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _names(numbers: Iterable[int], most: int = 6) -> str:
    """A list of primitives in words."""
    names = [str(n) for n in numbers]
    if len(names) == 1:
        return f"primitive {names[0]}"
    if len(names) > most:
        return f"primitives {', '.join(names[:most])} and {len(names) - most} more"
    return f"primitives {', '.join(names[:-1])} and {names[-1]}"
