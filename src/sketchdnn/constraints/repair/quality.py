"""What a repair changed, and whether the sketch is at least as good as before.

An `Action` reports a change. `ProfileQuality` compares profiles before and after.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from sketchdnn.constraints.equation_set import constraint_residuals
from sketchdnn.constraints.variables import Constraints, Primitives
from sketchdnn.geometry import Arc, Circle, ConstraintType, Line, Part, Point, Primitive, Profile, Sketch
from sketchdnn.geometry.constraints import LENGTHS
from sketchdnn.geometry.intersections import distance_to_curve, endpoints, midpoint

_T = ConstraintType
# Differences below this share of the size are rounding.
ROUNDING = 1e-7
# Ends closer than this share of the size meet.
EXACT = 1e-6
# A curve that keeps less than this share of its length has become another one.
_MIN_LENGTH = 0.3
# The outcome of a constraint, where its type is not a word for it.
_OUTCOMES = {
    _T.POINT_ON_CURVE: "meet",
    _T.MIDPOINT: "meet halfway",
    **dict.fromkeys((*LENGTHS, _T.ANGLE), "the size that their dimension gives"),
}


class ActionKind(StrEnum):
    """The kinds of repair, and a sentence on each. The last two move nothing."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> Self:
        kind = str.__new__(cls, word)
        kind._value_, kind.sentence = word, sentence
        return kind

    DROP = "drop", "Dropped {names}: {detail}."
    MERGE = "merge", "Merged {names} into one."
    SNAP = "snap", "Joined ends of {names}, which moved by {share}."
    EXTEND = "extend", "Extended an end among {names} by {share}, onto the curve it stopped short of."
    TRIM = "trim", "Trimmed an end among {names} by {share}, back to the curve it stuck out of."
    TANGENT = "tangent", "Made {names} tangent, moving them by {share}."
    SQUARE = "square", "Squared up {names}, moving it by {share}."
    CONSTRAIN = "constrain", "Made {names} {detail}, moving by {share}."
    CLOSE = "close", "Added a line between open ends of {names}."
    CONSTRUCTION = "construction", "Made {names} construction: it closes to no outline."


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
        *most, last = ("", *map(str, self.primitives))
        names = f"primitives {', '.join(most[1:])} and {last}" if most[1:] else f"primitive {last}"
        names = names if last else "what was added"
        detail = self.detail or ("it was there already" if self.kind is ActionKind.DROP else "agree")
        share = f"{100 * self.moved:.2g} % of the size"
        return self.kind.sentence.format(names=names, share=share, detail=detail)

    def renumber(self, sources: Sequence[tuple[int, ...]]) -> Action:
        """The same action with the numbers of the primitives' sources."""
        primitives = tuple(sorted({source for k in self.primitives for source in sources[k]}))
        return Action(self.kind, primitives, self.moved, self.detail)


def constraint_actions(
    before: Sketch, after: Primitives, moves: Sequence[float], constraints: Constraints
) -> Iterator[Action]:
    """The actions of constraints that did not hold before."""
    for c, residual in zip(constraints, constraint_residuals(before, constraints), strict=True):
        if residual is None or residual <= ROUNDING:
            continue
        numbers = tuple(dict.fromkeys(ref.primitive for ref in c.refs if ref.primitive is not None))
        own_ends = [ref.primitive for ref in c.refs if ref.part in (Part.START, Part.END)]
        kind = ActionKind.CONSTRAIN
        if c.type is _T.COINCIDENT and len(own_ends) == 2:
            kind = ActionKind.SNAP
        elif c.type is _T.POINT_ON_CURVE and own_ends and own_ends[0] is not None:
            grows = after[own_ends[0]].length >= before.primitives[own_ends[0]].length
            kind = ActionKind.EXTEND if grows else ActionKind.TRIM
        elif c.type is _T.TANGENT:
            kind = ActionKind.TANGENT
        elif c.type in (_T.HORIZONTAL, _T.VERTICAL) and len(numbers) == 1:
            kind = ActionKind.SQUARE
        detail = _OUTCOMES.get(c.type, str(c.type)) if kind is ActionKind.CONSTRAIN else ""
        yield Action(kind, numbers, max((moves[i] for i in numbers), default=0.0), detail)


class ProfileQuality(NamedTuple):
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


def displacement(before: Primitives, after: Primitive) -> float:
    """The move of primitives that became one: of its ends, center and radius, or off the curve it is part of now."""
    if len(before) == 1 and before[0].kind == after.kind:
        return largest_move(before[0], after)
    if isinstance(after, Point):
        return max((math.dist(p.at, after.at) for p in before if isinstance(p, Point)), default=0.0)
    places = [place for p in before if not isinstance(p, Point) for place in (*endpoints(p), midpoint(p))]
    return max((distance_to_curve(after, place) for place in places), default=0.0)


def largest_move(a: Primitive, b: Primitive) -> float:
    """The largest move of a point or radius from one primitive to another of its kind."""
    if a is b:
        return 0.0
    if a.kind != b.kind:
        return math.inf
    if isinstance(a, Point) and isinstance(b, Point):
        return math.dist(a.at, b.at)
    if isinstance(a, Line) and isinstance(b, Line):
        return max(math.dist(a.start, b.start), math.dist(a.end, b.end))
    moves = []
    if isinstance(a, Circle | Arc) and isinstance(b, Circle | Arc):
        moves += [math.dist(a.center, b.center), abs(a.radius - b.radius)]
    if isinstance(a, Arc) and isinstance(b, Arc):
        moves += [math.dist(a.start, b.start), math.dist(a.end, b.end)]
    return max(moves)


def has_shrunk(before: Primitive, after: Primitive) -> bool:
    """Whether a curve lost so much of itself that it is another one."""
    if before is after or isinstance(before, Point) or isinstance(after, Point):
        return False
    if isinstance(before, Arc) and isinstance(after, Arc) and after.radius < _MIN_LENGTH * before.radius:
        return True
    return after.length < _MIN_LENGTH * before.length
