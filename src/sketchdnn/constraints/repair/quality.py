"""What a repair changed, whether the sketch is at least as good as before, and what its profile still lacks.

An `Action` reports a change. `ProfileQuality` compares profiles before and after. `close_profile` adds the lines that
open outlines lack.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.geometry import (
    Arc,
    Chain,
    Circle,
    Constraint,
    ConstraintType,
    Line,
    Part,
    Point,
    Primitive,
    Profile,
    Ref,
    Sketch,
    Vec,
    profile,
)
from sketchdnn.geometry.constraints import LENGTHS
from sketchdnn.geometry.intersections import (
    contact_points,
    distance_to_curve,
    endpoints,
    find_overlap,
    midpoint,
)

_T = ConstraintType
# Differences below this share of the size are rounding.
ROUNDING = 1e-7
# Ends closer than this share of the size meet.
EXACT = 1e-6
# A curve that keeps less than this share of its length has become another one.
_MIN_LENGTH = 0.3
# A line is added only if it is shorter than this share of the chain it closes.
_MAX_LINK = 0.5
# Open curves become construction only if they are less than this share of the profile.
_MAX_OPEN = 0.5
# A drawing with more open ends is not one outline that lacks a line.
_MAX_ENDS = 40
# The outcome of a constraint, where its type is not a word for it.
_OUTCOMES = {
    _T.POINT_ON_CURVE: "meet",
    _T.MIDPOINT: "meet halfway",
    **dict.fromkeys((*LENGTHS, _T.ANGLE), "the size that their dimension gives"),
}


class ActionKind(StrEnum):
    """The kinds of repair. The last two move nothing."""

    DROP = "drop"  # something too small, or a duplicate
    MERGE = "merge"  # overlapping lines or arcs became one
    SNAP = "snap"  # ends that nearly met
    EXTEND = "extend"  # an end was extended to a curve
    TRIM = "trim"  # an end that overshot a curve was trimmed
    TANGENT = "tangent"  # curves that met almost smoothly
    SQUARE = "square"  # lines that were almost horizontal or vertical
    CONSTRAIN = "constrain"  # anything else that almost held
    CLOSE = "close"  # a line was added where an outline was open
    CONSTRUCTION = "construction"  # an open curve became construction


_SENTENCES = {
    ActionKind.DROP: "Dropped {names}: {detail}.",
    ActionKind.MERGE: "Merged {names} into one.",
    ActionKind.SNAP: "Joined ends of {names}, which moved by {share}.",
    ActionKind.EXTEND: "Extended an end among {names} by {share}, onto the curve it stopped short of.",
    ActionKind.TRIM: "Trimmed an end among {names} by {share}, back to the curve it stuck out of.",
    ActionKind.TANGENT: "Made {names} tangent, moving them by {share}.",
    ActionKind.SQUARE: "Squared up {names}, moving it by {share}.",
    ActionKind.CONSTRAIN: "Made {names} {detail}, moving by {share}.",
    ActionKind.CLOSE: "Added a line between open ends of {names}.",
    ActionKind.CONSTRUCTION: "Made {names} construction: it closes to no outline.",
}


@dataclass(frozen=True, slots=True)
class Action:
    """A change of some primitives, by their input numbers; `moved` is the largest move as a share of the size.

    >>> str(Action(ActionKind.SNAP, (2, 5), 0.0042))
    'Joined ends of primitives 2 and 5, which moved by 0.42 % of the size.'
    """

    kind: ActionKind
    primitives: tuple[int, ...]
    moved: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        *most, last = map(str, self.primitives or ("",))
        names = (
            f"primitives {', '.join(most)} and {last}" if most else f"primitive {last}" if last else "what was added"
        )
        detail = self.detail or ("it was there already" if self.kind is ActionKind.DROP else "agree")
        share = f"{100 * self.moved:.2g} % of the size"
        return _SENTENCES[self.kind].format(names=names, share=share, detail=detail)

    def renumber(self, sources: Sequence[tuple[int, ...]]) -> Action:
        """The same action with the numbers of the primitives' sources."""
        return replace(self, primitives=tuple(sorted({source for k in self.primitives for source in sources[k]})))


def constraint_actions(
    before: Sketch, after: Sequence[Primitive], moves: Sequence[float], constraints: Sequence[Constraint]
) -> Iterator[Action]:
    """The actions of constraints that did not hold before."""
    for constraint, residual in zip(constraints, constraint_residuals(before, constraints), strict=True):
        if residual is not None and residual > ROUNDING:
            yield _constraint_action(constraint, before.primitives, after, moves)


def _constraint_action(
    c: Constraint, before: Sequence[Primitive], after: Sequence[Primitive], moves: Sequence[float]
) -> Action:
    numbers = tuple(dict.fromkeys(ref.primitive for ref in c.refs if ref.primitive is not None))
    by = max((moves[i] for i in numbers), default=0.0)
    own_ends = [ref.primitive for ref in c.refs if ref.part in (Part.START, Part.END)]
    kind, detail = ActionKind.CONSTRAIN, _OUTCOMES.get(c.type, str(c.type))
    if c.type is _T.COINCIDENT and len(own_ends) == 2:
        kind, detail = ActionKind.SNAP, ""
    elif c.type is _T.POINT_ON_CURVE and own_ends and own_ends[0] is not None:
        grows = after[own_ends[0]].length >= before[own_ends[0]].length
        kind, detail = ActionKind.EXTEND if grows else ActionKind.TRIM, ""
    elif c.type is _T.TANGENT:
        kind, detail = ActionKind.TANGENT, ""
    elif c.type in (_T.HORIZONTAL, _T.VERTICAL) and len(numbers) == 1:
        kind, detail = ActionKind.SQUARE, ""
    return Action(kind, numbers, by, detail)


@dataclass(frozen=True, slots=True)
class ProfileQuality:
    """How good a sketch is as a profile."""

    is_extrudable: bool
    loops: tuple[frozenset[int], ...]
    num_crossings: int

    @classmethod
    def of(cls, shape: Profile) -> ProfileQuality:
        loops = tuple(frozenset(edge.primitive_index for edge in loop.edges) for loop in shape.loops)
        return cls(shape.is_extrudable, loops, sum(contact.crosses for contact in shape.contacts))

    def is_worse_than(self, before: ProfileQuality, dropped: Collection[int]) -> bool:
        """Whether something was lost; a loop of dropped primitives only was a duplicate, and is no loss."""
        if before.is_extrudable and not self.is_extrudable:
            return True
        loops = [loop for loop in before.loops if not loop <= set(dropped)]
        return len(self.loops) < len(loops) or self.num_crossings > before.num_crossings


def may_close(primitives: Sequence[Primitive]) -> bool:
    """Whether there are enough curves to form a closed outline."""
    curves = [p for p in primitives if not isinstance(p, Point) and not p.construction]
    return len(curves) > 2 or any(isinstance(p, Circle) for p in curves)


def displacement(before: Sequence[Primitive], after: Primitive) -> float:
    """The move of primitives that became one: of its ends, center and radius, or off the curve it is part of now."""
    if len(before) == 1 and before[0].kind == after.kind:
        return largest_move(before[0], after)
    if isinstance(after, Point):
        return max((math.dist(p.at, after.at) for p in before if isinstance(p, Point)), default=0.0)
    places = [place for p in before if not isinstance(p, Point) for place in (*endpoints(p), midpoint(p))]
    return max((distance_to_curve(after, place) for place in places), default=0.0)


def largest_move(a: Primitive, b: Primitive) -> float:
    """The largest move of a point or radius from one primitive to another of its kind."""
    match a, b:
        case Line(), Line():
            return max(math.dist(a.start, b.start), math.dist(a.end, b.end))
        case Point(), Point():
            return math.dist(a.at, b.at)
        case Circle(), Circle():
            return max(math.dist(a.center, b.center), abs(a.radius - b.radius))
        case Arc(), Arc():
            points = ((a.start, b.start), (a.end, b.end), (a.center, b.center))
            return max(*(math.dist(p, q) for p, q in points), abs(a.radius - b.radius))
    return math.inf


def has_shrunk(before: Primitive, after: Primitive) -> bool:
    """Whether a curve lost so much of itself that it is another one."""
    if isinstance(before, Point) or isinstance(after, Point):
        return False
    return after.length < _MIN_LENGTH * before.length or (
        isinstance(before, Arc) and isinstance(after, Arc) and after.radius < _MIN_LENGTH * before.radius
    )


@dataclass(frozen=True, slots=True)
class ClosedProfile:
    """Primitives, the new ones last, their constraints, the actions, and the profile."""

    primitives: list[Primitive]
    constraints: list[Constraint]
    actions: list[Action]
    profile: Profile


@dataclass(frozen=True, slots=True)
class _OpenEnd:
    """An open end of a chain."""

    at: Vec
    ref: Ref
    chain: int


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
            related.append(Constraint(_T.COINCIDENT, (Ref(len(after), part), end)))
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
    curves = [p for p in primitives if not isinstance(p, Point) and not p.construction]
    open_ends = [end for k, chain in enumerate(shape.chains) for end in _open_ends(k, chain, primitives)]
    if len(open_ends) > _MAX_ENDS:
        return []
    links: list[tuple[Line, Ref, Ref]] = []
    used: set[Ref] = set()
    pairs = [(round(math.dist(a.at, b.at), 9), a, b) for a, b in combinations(open_ends, 2)]
    for apart, a, b in sorted(pairs, key=lambda pair: pair[0]):
        length = min(shape.chains[a.chain].length, shape.chains[b.chain].length)
        if a.ref in used or b.ref in used or not tolerance < apart <= _MAX_LINK * length:
            continue
        line = Line(a.at, b.at)
        others = [*curves, *(link for link, _, _ in links)]
        if any(find_overlap(0, line, 1, curve, EXACT) or contact_points(line, curve, EXACT) for curve in others):
            continue
        used |= {a.ref, b.ref}
        links.append((line, a.ref, b.ref))
    return links


def _open_ends(number: int, chain: Chain, primitives: Sequence[Primitive]) -> list[_OpenEnd]:
    """The ends of a chain that no other curve touches."""
    first, last = chain.edges[0], chain.edges[-1]
    start = _OpenEnd(chain.start, Ref(first.primitive_index, Part.START if first.forward else Part.END), number)
    end = _OpenEnd(chain.end, Ref(last.primitive_index, Part.END if last.forward else Part.START), number)
    curves = [(i, p) for i, p in enumerate(primitives) if not isinstance(p, Point) and not p.construction]
    return [
        e
        for e in (start, end)
        if not any(i != e.ref.primitive and distance_to_curve(p, e.at) <= 10 * EXACT for i, p in curves)
    ]


def _open_curves(primitives: Sequence[Primitive], shape: Profile, keep: Collection[int]) -> set[int]:
    """Curves of open chains beside loops, if they are few."""
    curves = {edge.primitive_index for chain in shape.chains for edge in chain.edges}
    if not curves or not shape.loops or not curves.isdisjoint(keep):
        return set()
    length = {i: p.length for i, p in enumerate(primitives) if not isinstance(p, Point) and not p.construction}
    return set() if sum(length[i] for i in curves) > _MAX_OPEN * sum(length.values()) else curves
