"""The profile of a sketch: its closed loops, how they are nested, and the defects that prevent an extrusion.

Points and construction geometry are not part of a profile. The depth of a loop is the number of loops around it. A loop
at even depth (0, 2, …) is the outer boundary of material, and a loop at odd depth is the boundary of a hole.

A `Loop` consists of primitives of the sketch; a cycle is a closed list of half-edges of the graph (see `loops`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from .intersections import Contact, Curve, Extent, Overlap, contact_points, distinct_pairs, find_overlap
from .loops import ClosedCurve, build_graph, closed_curve, nest_closed_curves, trace_cycles
from .primitives import Circle, Point, Primitive, Vec
from .proximity import MAX_PAIRS, MAX_RESULTS, TOLERANCE
from .sketch import Sketch


@dataclass(frozen=True, slots=True)
class Edge:
    """A primitive in a loop or chain.

    Attributes:
        primitive_index: Its index in the sketch.
        forward: True if the loop or chain follows the primitive from its start to its end, False for the reverse.
    """

    primitive_index: int
    forward: bool = True


@dataclass(frozen=True, slots=True)
class Loop:
    """A closed loop of primitives. A full circle is a loop of one edge.

    Attributes:
        edges: The primitives in order: counter-clockwise at even depth, clockwise for holes.
        area: The exact area inside, negative for holes. So the areas of all loops add up to the area of the profile.
        depth: The number of loops around it.
        parent: The index of the smallest loop around it; None at depth 0.
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
    """Primitives that are joined end to end but are in no loop. A chain ends at a loose end or at a branch.

    Attributes:
        edges: The primitives in order.
        length: The sum of their lengths.
        start: The point where the chain starts.
        end: The point where the chain ends.
    """

    edges: tuple[Edge, ...]
    length: float
    start: Vec
    end: Vec


@dataclass(frozen=True, slots=True)
class Branch:
    """A point where more than two ends meet.

    Attributes:
        at: The point.
        primitives: The indices of the primitives with an end there.
    """

    at: Vec
    primitives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """The loops, chains and defects of a sketch. Every curve is in a loop, in a chain or in `unused`.

    If curves branch, each region that they enclose has a loop, and a curve between two regions is in both loops.

    Attributes:
        loops: The closed loops.
        chains: Curves that are joined end to end but are in no loop.
        branches: The points where more than two ends meet.
        contacts: The points where curves cross or touch.
        overlaps: The pairs of curves that coincide at least partly.
        unused: Indices of duplicates of another curve, and of curves shorter than the tolerance.
        is_complete: False if the search for contacts and overlaps was stopped at its limits. The loops are then not
            nested: all have depth 0.
    """

    loops: tuple[Loop, ...]
    chains: tuple[Chain, ...]
    branches: tuple[Branch, ...]
    contacts: tuple[Contact, ...]
    overlaps: tuple[Overlap, ...]
    unused: tuple[int, ...]
    is_complete: bool = True

    @property
    def outer(self) -> tuple[Loop, ...]:
        """The loops that bound material from outside: those at even depth, islands within holes included."""
        return tuple(loop for loop in self.loops if not loop.is_hole)

    @property
    def holes(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.is_hole)

    @property
    def meetings(self) -> tuple[tuple[int, int], ...]:
        """The pairs of curves that cross, touch or overlap, other than at joined ends."""
        overlaps = ((overlap.first, overlap.second) for overlap in self.overlaps)
        return (*((contact.first, contact.second) for contact in self.contacts), *overlaps)

    @property
    def area(self) -> float:
        """The area of the material: outer loops minus holes."""
        return sum(loop.area for loop in self.loops)

    @property
    def is_extrudable(self) -> bool:
        """Whether the loops bound a solid: all are closed, and no curves cross, touch or overlap."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why the profile cannot be extruded, one sentence each; empty if it can."""
        reasons = [] if self.loops else ["There is no closed loop."]
        if self.chains:
            verb, edges = "is" if len(self.chains) == 1 else "are", self.chains[0].edges
            names = _names(edge.primitive_index for edge in edges)
            reasons.append(f"{_count(self.chains, 'chain')} {verb} left open, such as {names}.")
        if self.branches:
            places, names = _count(self.branches, "place"), _names(self.branches[0].primitives)
            reasons.append(f"More than two ends meet in {places}, such as the ends of {names}.")
        for crosses, verb in ((True, "cross"), (False, "touch")):
            if contacts := [contact for contact in self.contacts if contact.crosses is crosses]:
                names = _names((contacts[0].first, contacts[0].second))
                reasons.append(f"Curves {verb} in {_count(contacts, 'place')}, such as {names}.")
        if self.overlaps:
            pairs, verb = _count(self.overlaps, "pair"), "overlaps" if len(self.overlaps) == 1 else "overlap"
            names = _names((self.overlaps[0].first, self.overlaps[0].second))
            reasons.append(f"{pairs} of curves {verb}, such as {names}.")
        if not self.is_complete:
            reasons.append("So many curves come close to each other that not all were compared.")
        return tuple(reasons)


def profile(sketch: Sketch | Sequence[Primitive], tolerance: float = TOLERANCE) -> Profile:
    """Join ends that are close, and return the loops, chains, contacts and overlaps.

    Args:
        sketch: The primitives. Points and construction geometry are left out.
        tolerance: The largest distance between ends that are joined, relative to the size of the sketch.

    >>> from sketchdnn.geometry import Circle, Line
    >>> corners = [(0, 0), (4, 0), (4, 3), (0, 3)]
    >>> plate = [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])] + [Circle((1, 1), 0.5)]
    >>> profile(plate).is_extrudable, [round(loop.area, 3) for loop in profile(plate).loops]
    (True, [12.0, -0.785])
    >>> profile(plate[1:]).reasons
    ('1 chain is left open, such as primitives 0, 1 and 2.',)
    """
    curves = profile_curves(sketch)
    distance, contacts, overlaps, is_complete = _compare_pairs(curves, tolerance)
    duplicates = {overlap.second for overlap in overlaps if overlap.extent is Extent.DUPLICATE}
    unique = {i: curve for i, curve in curves.items() if i not in duplicates}
    graph = build_graph({i: curve for i, curve in unique.items() if not isinstance(curve, Circle)}, distance)
    cycles, paths = trace_cycles(graph)
    closed_curves = [closed_curve(graph, cycle) for cycle in cycles]
    circles = ((i, curve) for i, curve in unique.items() if isinstance(curve, Circle))
    closed_curves += [ClosedCurve([2 * i], [circle], [], math.pi * circle.radius**2) for i, circle in circles]
    closed_curves.sort(key=lambda closed: [half_edge >> 1 for half_edge in closed.half_edges])
    chains = (
        Chain(
            _edges(path),
            sum(curves[half_edge >> 1].length for half_edge in path),
            graph.starts[path[0]],
            graph.starts[path[-1] ^ 1],
        )
        for path in paths
    )
    branches = (
        Branch(graph.starts[half_edges[0]], tuple(sorted({half_edge >> 1 for half_edge in half_edges})))
        for half_edges in graph.outgoing
        if len(half_edges) > 2
    )
    # The graph leaves out curves that are shorter than the tolerance.
    too_short = graph.curves.keys() - {half_edge >> 1 for half_edges in graph.outgoing for half_edge in half_edges}
    return Profile(
        loops=_nest(closed_curves, [*contacts, *overlaps], distance if is_complete else None),
        chains=tuple(chains),
        branches=tuple(branches),
        contacts=tuple(contacts),
        overlaps=tuple(overlaps),
        unused=tuple(sorted(duplicates | too_short)),
        is_complete=is_complete,
    )


def profile_curves(sketch: Iterable[Primitive]) -> dict[int, Curve]:
    """The curves that are part of a profile, by index: all but points and construction geometry."""
    return {i: p for i, p in enumerate(sketch) if not isinstance(p, Point) and not p.construction}


def _compare_pairs(curves: Mapping[int, Curve], tolerance: float) -> tuple[float, list[Contact], list[Overlap], bool]:
    """Find the tolerance as a length, the contacts and overlaps of pairs of curves, and whether all were compared."""
    overlaps, distance, pairs = distinct_pairs(curves, tolerance)
    contacts: list[Contact] = []
    # Duplicates were found without comparing pairs, so they do not count.
    max_results = MAX_RESULTS + len(overlaps)
    for i, j in islice(pairs, MAX_PAIRS):
        overlap = find_overlap(i, curves[i], j, curves[j], distance)
        if overlap is not None:
            overlaps.append(overlap)
        else:
            points = contact_points(curves[i], curves[j], distance)
            contacts += [Contact(i, j, point, crosses) for point, crosses in points]
        if len(contacts) + len(overlaps) >= max_results:
            break
    # The search is complete if no pair is left in the iterator.
    is_complete = next(pairs, None) is None
    contacts.sort(key=lambda contact: (contact.first, contact.second, contact.at))
    overlaps.sort(key=lambda overlap: (overlap.first, overlap.second))
    return distance, contacts, overlaps, is_complete


def _nest(
    closed_curves: Sequence[ClosedCurve], pairs: Iterable[Contact | Overlap], distance: float | None
) -> tuple[Loop, ...]:
    """Find the parent and the depth of each closed curve, and reverse those at odd depth.

    `pairs` are the curves that meet within a `distance`; None of those that were not all compared: none is nested.
    """
    loops_with: dict[int, list[int]] = {}  # the closed curves that contain each primitive
    for i, closed in enumerate(closed_curves):
        for half_edge in closed.half_edges:
            loops_with.setdefault(half_edge >> 1, []).append(i)
    crossing: set[tuple[int, int]] = set()
    touching: set[tuple[int, int]] = set()
    for pair in pairs:
        loop_pairs = crossing if isinstance(pair, Contact) and pair.crosses else touching
        for i, j in product(loops_with.get(pair.first, ()), loops_with.get(pair.second, ())):
            loop_pairs.add((min(i, j), max(i, j)))
    parents: list[int | None] = [None] * len(closed_curves)
    if distance is not None:
        parents = nest_closed_curves(closed_curves, crossing, touching, distance)
    loops: dict[int, Loop] = {}
    # From the largest to the smallest, since a parent is larger than its children.
    for i in sorted(range(len(closed_curves)), key=lambda i: -closed_curves[i].area):
        half_edges, area, parent = closed_curves[i].half_edges, closed_curves[i].area, parents[i]
        depth = 0 if parent is None else loops[parent].depth + 1
        if depth % 2 == 1:  # in the other direction, from the same primitive
            half_edges, area = [half_edge ^ 1 for half_edge in (half_edges[0], *reversed(half_edges[1:]))], -area
        loops[i] = Loop(_edges(half_edges), area, depth, parent)
    return tuple(loops[i] for i in range(len(closed_curves)))


def _edges(half_edges: Iterable[int]) -> tuple[Edge, ...]:
    """Return the edges of half-edges; odd half-edges run backward."""
    return tuple(Edge(half_edge >> 1, forward=not half_edge & 1) for half_edge in half_edges)


def _count(items: Sequence[object], noun: str) -> str:
    """Return the number of items with the noun, in the plural if needed."""
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _names(primitive_indices: Iterable[int], limit: int = 6) -> str:
    """Return a list of primitives in words: at most `limit` of them, and how many more there are."""
    names = [str(i) for i in primitive_indices]
    if len(names) == 1:
        return f"primitive {names[0]}"
    if len(names) > limit:
        names[limit:] = [f"{len(names) - limit} more"]
    return f"primitives {', '.join(names[:-1])} and {names[-1]}"
