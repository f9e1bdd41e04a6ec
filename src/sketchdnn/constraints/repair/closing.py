"""Closing of profiles: add the lines that open outlines lack, and make other open curves construction."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Part, Primitive, Profile, Ref, Vec, profile
from sketchdnn.geometry.intersections import Curve, contact_points, distance_to_curve, find_overlap
from sketchdnn.geometry.profiles import Chain, profile_curves

from .quality import EXACT, Action, ActionKind

# A line is added only if it is shorter than this share of the chain it closes.
_MAX_LINK = 0.5
# Open curves become construction only if they are less than this share of the profile.
_MAX_OPEN = 0.5
# A drawing with more open ends is not one outline that lacks a line.
_MAX_ENDS = 40


def may_close(primitives: Sequence[Primitive]) -> bool:
    """Whether there are enough curves to form a closed outline."""
    curves = profile_curves(primitives).values()
    return len(curves) > 2 or any(isinstance(p, Circle) for p in curves)


@dataclass(frozen=True, slots=True)
class ClosedProfile:
    """Primitives, the new ones last, their constraints, the actions, and the profile."""

    primitives: list[Primitive]
    constraints: list[Constraint]
    actions: list[Action]
    profile: Profile


def close_profile(
    primitives: Sequence[Primitive],
    constraints: Sequence[Constraint],
    shape: Profile,
    tolerance: float,
    keep: Collection[int],
) -> ClosedProfile:
    """Add the lines that outlines lack, and make curves construction that close to nothing. Nothing moves.

    Where that does not make a profile that can be extruded, the sketch stays unchanged.
    """
    unchanged = ClosedProfile(list(primitives), list(constraints), [], shape)
    if len(shape.chains) > _MAX_ENDS or not shape.is_complete:
        return unchanged
    after, related = list(primitives), list(constraints)
    actions: list[Action] = []
    links = _links(after, shape, tolerance)
    if links:
        with_links = profile([*after, *(line for line, _, _ in links)], EXACT)
        looped = {edge.primitive_index for loop in with_links.loops for edge in loop.edges}
        links = [link for k, link in enumerate(links, len(after)) if k in looped]
    for line, a, b in links:
        for part, end in ((Part.START, a), (Part.END, b)):
            related.append(Constraint(ConstraintType.COINCIDENT, (Ref(len(after), part), end)))
        actions.append(Action(ActionKind.CLOSE, tuple(r.primitive for r in (a, b) if r.primitive is not None)))
        after.append(line)
    if links:
        shape = profile(after, EXACT)
    open_curves = sorted(_open_curves(after, shape, keep))
    for i in open_curves:
        after[i] = replace(after[i], construction=True)
        actions.append(Action(ActionKind.CONSTRUCTION, (i,)))
    closed = profile(after, EXACT) if open_curves else shape
    return ClosedProfile(after, related, actions, closed) if closed.is_extrudable else unchanged


def _links(primitives: Sequence[Primitive], shape: Profile, tolerance: float) -> list[tuple[Line, Ref, Ref]]:
    """Lines between open ends, shortest first, that neither overlap nor cross any curve."""
    curves = profile_curves(primitives)
    open_ends = [end for chain in shape.chains for end in _open_ends(chain, curves)]
    if len(open_ends) > _MAX_ENDS:
        return []
    links: list[tuple[Line, Ref, Ref]] = []
    used: set[Ref] = set()
    pairs = [(round(math.dist(a[0], b[0]), 9), a, b) for a, b in combinations(open_ends, 2)]
    for apart, (start, a, length), (end, b, other_length) in sorted(pairs, key=lambda pair: pair[0]):
        if a in used or b in used or not tolerance < apart <= _MAX_LINK * min(length, other_length):
            continue
        line = Line(start, end)
        others = [*curves.values(), *(link for link, _, _ in links)]
        if any(find_overlap(0, line, 1, curve, EXACT) or contact_points(line, curve, EXACT) for curve in others):
            continue
        used |= {a, b}
        links.append((line, a, b))
    return links


def _open_ends(chain: Chain, curves: Mapping[int, Curve]) -> Iterator[tuple[Vec, Ref, float]]:
    """The ends of a chain that no other curve touches: point, reference, and the length of the chain."""
    for at, edge, is_start in ((chain.start, chain.edges[0], True), (chain.end, chain.edges[-1], False)):
        own = edge.primitive_index
        if not any(i != own and distance_to_curve(p, at) <= 10 * EXACT for i, p in curves.items()):
            yield at, Ref(own, Part.START if edge.forward is is_start else Part.END), chain.length


def _open_curves(primitives: Sequence[Primitive], shape: Profile, keep: Collection[int]) -> set[int]:
    """Curves of open chains beside loops, if they are few."""
    curves = {edge.primitive_index for chain in shape.chains for edge in chain.edges}
    if not curves or not shape.loops or not curves.isdisjoint(keep):
        return set()
    length = {i: p.length for i, p in profile_curves(primitives).items()}
    return set() if sum(length[i] for i in curves) > _MAX_OPEN * sum(length.values()) else curves
