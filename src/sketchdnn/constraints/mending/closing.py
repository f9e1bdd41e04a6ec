"""What a profile still lacks once its ends meet: a line where an outline is open, no strays beside closed ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from sketchdnn.geometry import (
    Chain,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Profile,
    Ref,
    Vec,
    profile,
)
from sketchdnn.geometry.intersections import distance_to_curve, find_overlap, meeting_points

from .actions import Action, ActionKind
from .worth import EXACT

# A line is added only if it is shorter than this share of what it closes.
_SHORT = 0.5
# Strays are set aside only if they are less than this share of the profile.
_LITTLE = 0.5
# A drawing with more open ends is not one outline that lacks a line.
_MOST_ENDS = 40


@dataclass(frozen=True, slots=True)
class Closed:
    """Primitives, the new ones last, their constraints, what was done, and the profile that this makes."""

    primitives: list[Primitive]
    constraints: list[Constraint]
    actions: list[Action]
    profile: Profile


@dataclass(frozen=True, slots=True)
class _Loose:
    """An open end of a chain."""

    at: Vec
    ref: Ref
    chain: int


def closed(
    primitives: Sequence[Primitive],
    constraints: Sequence[Constraint],
    found: Profile,
    tolerance: float,
    keep: Collection[int],
) -> Closed:
    """Add the lines that outlines lack, and make construction what closes to nothing. Nothing moves.

    All or nothing: where that does not make a profile that can be extruded, the sketch is left as it is.
    """
    as_it_is = Closed(list(primitives), list(constraints), [], found)
    if len(found.chains) > _MOST_ENDS or not found.is_complete:
        return as_it_is
    now, told = list(primitives), list(constraints)
    actions: list[Action] = []
    links = _links(now, found, tolerance)
    if links:
        with_links = profile([*now, *(line for line, _, _ in links)], EXACT)
        looped = {edge.primitive for loop in with_links.loops for edge in loop.edges}
        links = [link for k, link in enumerate(links, len(now)) if k in looped]
    for line, a, b in links:
        told.append(Constraint(ConstraintType.COINCIDENT, (Ref(len(now), Part.START), a)))
        told.append(Constraint(ConstraintType.COINCIDENT, (Ref(len(now), Part.END), b)))
        actions.append(Action(ActionKind.CLOSE, tuple(r.primitive for r in (a, b) if r.primitive is not None)))
        now.append(line)
    if links:
        found = profile(now, EXACT)
    strays = sorted(_strays(now, found, keep))
    for i in strays:
        now[i] = replace(now[i], construction=True)
        actions.append(Action(ActionKind.ASIDE, (i,)))
    after = profile(now, EXACT) if strays else found
    return Closed(now, told, actions, after) if after.is_extrudable else as_it_is


def _links(primitives: Sequence[Primitive], found: Profile, tolerance: float) -> list[tuple[Line, Ref, Ref]]:
    """Lines between open ends, shortest first, that run free of everything drawn."""
    curves = [p for p in primitives if not isinstance(p, Point) and not p.construction]
    loose = [end for k, chain in enumerate(found.chains) for end in _loose(k, chain, primitives, found)]
    if len(loose) > _MOST_ENDS:
        return []
    links: list[tuple[Line, Ref, Ref]] = []
    used: set[Ref] = set()
    pairs = [(round(math.dist(a.at, b.at), 9), a, b) for a, b in combinations(loose, 2)]
    for apart, a, b in sorted(pairs, key=lambda pair: pair[0]):
        length = min(found.chains[a.chain].length, found.chains[b.chain].length)
        if a.ref in used or b.ref in used or not tolerance < apart <= _SHORT * length:
            continue
        line = Line(a.at, b.at)
        others = [*curves, *(link for link, _, _ in links)]
        if any(find_overlap(0, line, 1, curve, EXACT) or meeting_points(line, curve, EXACT) for curve in others):
            continue
        used |= {a.ref, b.ref}
        links.append((line, a.ref, b.ref))
    return links


def _loose(number: int, chain: Chain, primitives: Sequence[Primitive], found: Profile) -> list[_Loose]:
    """Those ends of a chain that nothing else touches."""
    first, last = chain.edges[0], chain.edges[-1]
    ends = [
        _Loose(chain.start, Ref(first.primitive, Part.START if first.forward else Part.END), number),
        _Loose(chain.end, Ref(last.primitive, Part.END if last.forward else Part.START), number),
    ]
    return [end for end in ends if not _is_met(end, primitives)]


def _is_met(end: _Loose, primitives: Sequence[Primitive]) -> bool:
    return any(
        i != end.ref.primitive and distance_to_curve(p, end.at) <= 10 * EXACT
        for i, p in enumerate(primitives)
        if not isinstance(p, Point) and not p.construction
    )


def _strays(primitives: Sequence[Primitive], found: Profile, keep: Collection[int]) -> set[int]:
    """Curves of open chains beside loops, if they are few."""
    strays = {edge.primitive for chain in found.chains for edge in chain.edges}
    if not strays or not found.loops or not strays.isdisjoint(keep):
        return set()
    length = {i: p.length for i, p in enumerate(primitives) if not isinstance(p, Point) and not p.construction}
    if sum(length[i] for i in strays) > _LITTLE * sum(length.values()):
        return set()
    return strays
