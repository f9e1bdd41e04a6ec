"""The profile of a sketch: which of its curves close to loops, how those lie in one another, and what is wrong.

Points and construction play no part. A loop is material on its inside at even depth and a hole at odd depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import NamedTuple

from .bounds import row_bounds
from .intersect import Curve, Meeting, meet
from .near import MOST_FOUND, MOST_PAIRS, TOLERANCE, close_pairs, reach
from .nest import Outline, nest
from .overlaps import Extent, Overlap, compare, exact_copies
from .primitives import Arc, Circle, Line, Point, Primitive, Vec
from .sketch import Sketch
from .table import to_table
from .trace import Graph, make_graph, signed_area, trace


@dataclass(frozen=True, slots=True)
class Edge:
    """A primitive as part of a loop or chain, run through from its start or, if not `forward`, from its end."""

    primitive: int
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Loop:
    """Primitives that close. Outlines run counter-clockwise, holes clockwise.

    `area` has the sign of the direction, so that the areas of all loops add up to that of the profile; arcs count
    exactly. `parent` is the number of the loop just around it. A full circle is a loop of one edge.
    """

    edges: tuple[Edge, ...]
    area: float
    perimeter: float
    depth: int
    parent: int | None
    self_intersections: tuple[Meeting, ...]

    @property
    def is_hole(self) -> bool:
        return self.depth % 2 == 1


@dataclass(frozen=True, slots=True)
class Chain:
    """Primitives that join end to end but do not close, or lead from branch to branch."""

    edges: tuple[Edge, ...]
    length: float
    start: Vec
    end: Vec


@dataclass(frozen=True, slots=True)
class Branch:
    """A place where more than two ends meet, and whose they are."""

    at: Vec
    primitives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """All there is to know before extruding. Every curve is in a loop or a chain, or is listed in `set_aside`.

    Where ends branch, loops are the regions that the curves bound, and a curve between two regions is part of both.
    `set_aside` are duplicates of another curve, and curves shorter than the tolerance. In a hopeless tangle the search
    for meetings and overlaps stops before its end, loops are not nested, and `is_complete` is False.
    """

    loops: tuple[Loop, ...]
    chains: tuple[Chain, ...]
    branches: tuple[Branch, ...]
    meetings: tuple[Meeting, ...]
    overlaps: tuple[Overlap, ...]
    set_aside: tuple[int, ...]
    is_complete: bool = True

    @property
    def outer(self) -> tuple[Loop, ...]:
        """The outlines: loops in no other, and islands within holes."""
        return tuple(loop for loop in self.loops if not loop.is_hole)

    @property
    def holes(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.is_hole)

    @property
    def area(self) -> float:
        """Of the outlines, less the holes."""
        return sum(loop.area for loop in self.loops)

    @property
    def is_extrudable(self) -> bool:
        """Whether this bounds a solid without doubt: closed loops, and nothing that crosses, touches or overlaps."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not extrudable, a sentence each; empty when it is."""
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
            found = [m for m in self.meetings if m.crosses is crosses]
            if found:
                names = _names((found[0].first, found[0].second))
                reasons.append(f"Curves {verb} in {_count(found, 'place')}, such as {names}.")
        if self.overlaps:
            names = _names((self.overlaps[0].first, self.overlaps[0].second))
            reasons.append(f"{_count(self.overlaps, 'pair')} of curves overlap, such as {names}.")
        if not self.is_complete:
            reasons.append("So many curves come close to each other that not all could be looked at.")
        return tuple(reasons)


def profile(sketch: Sketch | Sequence[Primitive], tolerance: float = TOLERANCE) -> Profile:
    """Join ends that come within `tolerance`, a share of the size of what is drawn, and see what closes.

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
    found = _search(curves, tolerance)
    spare = {overlap.second for overlap in found.overlaps if overlap.extent is Extent.DUPLICATE}
    numbers: list[int] = []
    open_curves: list[Line | Arc] = []
    rings: list[_Ring] = []
    for i, curve in curves.items():
        if i in spare:
            continue
        if isinstance(curve, Circle):
            rings.append(_Ring((Edge(i),), Outline([curve], [], math.pi * curve.radius**2)))
        else:
            numbers.append(i)
            open_curves.append(curve)
    graph = make_graph(open_curves, found.within)
    cycles, paths = trace(graph)
    rings.extend(_ring(graph, numbers, cycle) for cycle in cycles)
    rings.sort(key=lambda ring: [edge.primitive for edge in ring.edges])
    short = set(range(len(numbers))) - {way >> 1 for ways in graph.leaving for way in ways}
    return Profile(
        _nested(rings, found),
        tuple(_chain(graph, numbers, path) for path in paths),
        tuple(_branch(graph, numbers, ways) for ways in graph.leaving if len(ways) > 2),
        tuple(found.meetings),
        tuple(found.overlaps),
        tuple(sorted(spare | {numbers[k] for k in short})),
        found.is_complete,
    )


class _Found(NamedTuple):
    """What pairs of curves do, and how close (a length) counts as together."""

    within: float
    meetings: list[Meeting]
    overlaps: list[Overlap]
    is_complete: bool


class _Ring(NamedTuple):
    """A loop in the making, counter-clockwise."""

    edges: tuple[Edge, ...]
    outline: Outline


def _search(curves: Mapping[int, Curve], tolerance: float) -> _Found:
    """Look at every pair of curves that come close."""
    overlaps, numbers = exact_copies(curves.items())
    meetings: list[Meeting] = []
    table = to_table([[curves[i] for i in numbers]])
    low, high = row_bounds(table)
    within = reach(tolerance, low, high)
    most = MOST_FOUND + len(overlaps)
    pairs = close_pairs(table, low, high, within)
    for a, b in islice(pairs, MOST_PAIRS):
        i, j = numbers[a], numbers[b]
        overlap = compare(i, curves[i], j, curves[j], within)
        if overlap is not None:
            overlaps.append(overlap)
        else:
            meetings.extend(Meeting(i, j, *met) for met in meet(curves[i], curves[j], within))
        if len(meetings) + len(overlaps) >= most:
            break
    is_complete = next(pairs, None) is None
    meetings.sort(key=lambda m: (m.first, m.second, m.at))
    overlaps.sort(key=lambda o: (o.first, o.second))
    return _Found(within, meetings, overlaps, is_complete)


def _ring(graph: Graph, numbers: Sequence[int], cycle: list[int]) -> _Ring:
    """A cycle turned counter-clockwise and begun at its lowest number."""
    area = signed_area(graph, cycle)
    if area < 0:
        cycle = [way ^ 1 for way in reversed(cycle)]
    lowest = cycle.index(min(cycle))
    cycle = cycle[lowest:] + cycle[:lowest]
    outline = Outline(
        [graph.curves[way >> 1] for way in cycle],
        [graph.begins[end] for way in cycle for end in (way, way ^ 1)],
        abs(area),
        any(len(graph.leaving[graph.vertices[way]]) > 2 for way in cycle),
    )
    return _Ring(_edges(numbers, cycle), outline)


def _nested(rings: Sequence[_Ring], found: _Found) -> tuple[Loop, ...]:
    """Rings as loops, each with the direction that its depth asks for."""
    rings_of: dict[int, list[int]] = {}
    for i, ring in enumerate(rings):
        for edge in ring.edges:
            rings_of.setdefault(edge.primitive, []).append(i)
    crossing: set[tuple[int, int]] = set()
    touching: set[tuple[int, int]] = set()
    own: dict[int, list[Meeting]] = {}
    both: Iterable[Meeting | Overlap] = chain(found.meetings, found.overlaps)
    for pair in both:
        pairs = crossing if isinstance(pair, Meeting) and pair.crosses else touching
        for i, j in product(rings_of.get(pair.first, ()), rings_of.get(pair.second, ())):
            pairs.add((min(i, j), max(i, j)))
            if i == j and isinstance(pair, Meeting):
                own.setdefault(i, []).append(pair)
    parents: list[int | None] = [None] * len(rings)
    if found.is_complete:
        parents = nest([ring.outline for ring in rings], crossing, touching, found.within)
    loops: dict[int, Loop] = {}
    for i in sorted(range(len(rings)), key=lambda i: -rings[i].outline.area):
        (edges, outline), parent = rings[i], parents[i]
        depth = 0 if parent is None else loops[parent].depth + 1
        area, perimeter = outline.area, sum(piece.length for piece in outline.pieces)
        if depth % 2 == 1:
            edges, area = _reversed(edges), -area
        loops[i] = Loop(edges, area, perimeter, depth, parent, tuple(own.get(i, ())))
    return tuple(loops[i] for i in range(len(rings)))


def _chain(graph: Graph, numbers: Sequence[int], path: list[int]) -> Chain:
    length = sum(graph.curves[way >> 1].length for way in path)
    return Chain(_edges(numbers, path), length, graph.begins[path[0]], graph.begins[path[-1] ^ 1])


def _branch(graph: Graph, numbers: Sequence[int], ways: Sequence[int]) -> Branch:
    return Branch(graph.begins[ways[0]], tuple(sorted({numbers[way >> 1] for way in ways})))


def _edges(numbers: Sequence[int], ways: Iterable[int]) -> tuple[Edge, ...]:
    return tuple(Edge(numbers[way >> 1], forward=not way & 1) for way in ways)


def _reversed(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The other way round from the same first primitive."""
    return tuple(Edge(edge.primitive, not edge.forward) for edge in (edges[0], *reversed(edges[1:])))


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _names(numbers: Iterable[int], most: int = 6) -> str:
    """Primitives by number, in words."""
    names = [str(n) for n in numbers]
    if len(names) == 1:
        return f"primitive {names[0]}"
    if len(names) > most:
        return f"primitives {', '.join(names[:most])} and {len(names) - most} more"
    return f"primitives {', '.join(names[:-1])} and {names[-1]}"
