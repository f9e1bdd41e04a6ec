"""Which marks show the constraints of a sketch, and beside what they belong; where exactly is `arrange`'s to find.

What constraints say together gets one mark a primitive: of three parallel lines each has one, not one for each pair.
Groups of one kind are told apart by numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Sketch, Vec
from sketchdnn.geometry.constraints import ref_point

from .anchors import corner, middle, touch

DIMENSIONS = frozenset(
    {
        ConstraintType.DISTANCE,
        ConstraintType.HORIZONTAL_DISTANCE,
        ConstraintType.VERTICAL_DISTANCE,
        ConstraintType.LENGTH,
        ConstraintType.RADIUS,
        ConstraintType.DIAMETER,
        ConstraintType.ANGLE,
    }
)
# Places nearer than this share of their distance are those of a line.
_SAME = 1e-3
_PREFIX = {ConstraintType.RADIUS: "R", ConstraintType.DIAMETER: "D"}


@dataclass(frozen=True, slots=True)
class Mark:
    """The sign of a kind of constraint, beside a curve or a place; `numbers` are the constraints that it stands for.

    A `pinned` one stands on its place. `along` is the direction of signs that have one, in radians; `corner` the two
    directions of a right angle; `ties` the pairs of places that it speaks of if no curve
    joins them.
    """

    sign: ConstraintType
    beside: Primitive
    numbers: tuple[int, ...]
    pinned: bool = False
    words: str = ""
    along: float = 0.0
    corner: tuple[float, float] | None = None
    ties: tuple[tuple[Vec, Vec], ...] = ()

    def joined(self, other: Mark) -> Mark:
        """One mark for what both say."""
        return replace(self, numbers=(*self.numbers, *other.numbers), ties=(*self.ties, *other.ties))


def marks(sketch: Sketch) -> list[Mark]:
    """The marks of all constraints that have a sign."""
    found: dict[tuple[object, ...], Mark] = {}
    groups: defaultdict[ConstraintType, list[tuple[int, list[int]]]] = defaultdict(list)
    lines = [p for p in sketch if isinstance(p, Line)]
    for number, constraint in enumerate(sketch.constraints):
        rule = _RULES.get(constraint.type)
        these = list(rule(_said(constraint, number, sketch, lines))) if rule else []
        for mark in these:
            # Several constraints may say the same of a place.
            key = (mark.sign, mark.beside, mark.words)
            known = found.get(key)
            found[key] = mark if known is None else known.joined(mark)
        if not these and constraint.type in _TOGETHER:
            groups[constraint.type].append((number, _curves(constraint, sketch)))
    return [*found.values(), *(mark for kind, said in groups.items() for mark in _grouped(kind, said, sketch))]


_TOGETHER = frozenset(
    {
        ConstraintType.PARALLEL,
        ConstraintType.PERPENDICULAR,
        ConstraintType.COLLINEAR,
        ConstraintType.EQUAL,
        ConstraintType.TANGENT,
        ConstraintType.COINCIDENT,
        ConstraintType.CONCENTRIC,
    }
)


@dataclass(frozen=True, slots=True)
class _Said:
    """A constraint, its number, and what of the sketch it speaks of: places, whole curves, and the middle of each."""

    constraint: Constraint
    number: int
    places: tuple[Vec, ...]
    curves: tuple[Primitive, ...]
    middles: tuple[Vec, ...]
    lines: Sequence[Line]

    def mark(self, beside: Primitive, sign: ConstraintType | None = None, **more: Any) -> Mark:
        return Mark(sign or self.constraint.type, beside, (self.number,), **more)

    def between(self, a: Vec, b: Vec, words: str = "") -> Iterator[Mark]:
        """Beside the line that joins two places, if one does, or on the way from one to the other."""
        near = _SAME * math.dist(a, b)
        for line in self.lines:
            if min(_apart((a, b), (line.start, line.end)), _apart((b, a), (line.start, line.end))) <= near:
                yield self.mark(line, words=words, along=_direction(a, b))
                return
        if a != b:
            yield self.mark(Line(a, b), words=words, along=_direction(a, b), ties=((a, b),))


def _apart(these: tuple[Vec, Vec], those: tuple[Vec, Vec]) -> float:
    return max(math.dist(these[0], those[0]), math.dist(these[1], those[1]))


def _direction(a: Vec, b: Vec) -> float:
    return math.atan2(b[1] - a[1], b[0] - a[0])


def _said(constraint: Constraint, number: int, sketch: Sketch, lines: Sequence[Line]) -> _Said:
    places = [at for ref in constraint.refs if (at := ref_point(ref, sketch.primitives)) is not None]
    curves = [sketch.primitives[i] for i in _curves(constraint, sketch)]
    middles = [at for ref in constraint.refs if (at := middle(ref, sketch)) is not None]
    return _Said(constraint, number, tuple(places), tuple(curves), tuple(middles), lines)


def _one_place(said: _Said) -> Iterator[Mark]:
    if said.places:
        sign = ConstraintType.POINT_ON_CURVE if said.curves else None
        yield said.mark(Point(said.places[0]), sign, pinned=True)


def _one_center(said: _Said) -> Iterator[Mark]:
    centers = said.places or tuple(c.center for c in said.curves if isinstance(c, Circle | Arc))
    if centers:
        yield said.mark(Point(centers[0]), pinned=True)


def _level(said: _Said) -> Iterator[Mark]:
    yield from map(said.mark, said.curves)
    if len(said.places) >= 2:
        yield from said.between(said.places[0], said.places[1])


def _across(said: _Said) -> Iterator[Mark]:
    if len(said.curves) == 2 and (found := corner(said.curves[0], said.curves[1])):
        yield said.mark(Point(found[0]), pinned=True, corner=found[1])
    elif said.places:
        yield said.mark(Point(said.places[0]))


def _touching(said: _Said) -> Iterator[Mark]:
    if len(said.curves) == 2 and (at := touch(said.curves[0], said.curves[1])):
        yield said.mark(Point(at))
    elif said.places:
        yield said.mark(Point(said.places[0]))


def _halfway(said: _Said) -> Iterator[Mark]:
    if len(said.places) == 3:  # whichever is in the middle: files disagree on the order
        a, b, c = said.places
        middle, *ends = min(((a, b, c), (b, a, c), (c, a, b)), key=lambda three: _off_middle(*three))
        yield said.mark(Point(middle), ties=((ends[0], ends[1]),))
    elif said.places:
        yield said.mark(Point(said.places[0]))


def _off_middle(middle: Vec, a: Vec, b: Vec) -> float:
    return math.dist(middle, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))


def _mirrored(said: _Said) -> Iterator[Mark]:
    if len(said.middles) >= 2:
        yield from said.between(said.middles[0], said.middles[1])


def _fixed(said: _Said) -> Iterator[Mark]:
    for beside in [*map(Point, said.places), *said.curves]:
        yield said.mark(beside)


def _dimension(said: _Said) -> Iterator[Mark]:
    kind, value = said.constraint.type, said.constraint.value
    if value is None:
        return
    is_angle = kind is ConstraintType.ANGLE
    words = f"{math.degrees(value):.4g}°" if is_angle else f"{_PREFIX.get(kind, '')}{abs(value):.4g}"
    if len(said.middles) >= 2 and said.middles[0] != said.middles[1] and not is_angle:
        yield from said.between(said.middles[0], said.middles[1], words)
    elif beside := [*said.curves, *map(Point, said.places)]:
        yield said.mark(beside[0], words=words)


_RULES: Mapping[ConstraintType, Callable[[_Said], Iterator[Mark]]] = {
    ConstraintType.COINCIDENT: _one_place,
    ConstraintType.POINT_ON_CURVE: _one_place,
    ConstraintType.CONCENTRIC: _one_center,
    ConstraintType.HORIZONTAL: _level,
    ConstraintType.VERTICAL: _level,
    ConstraintType.PERPENDICULAR: _across,
    ConstraintType.TANGENT: _touching,
    ConstraintType.MIDPOINT: _halfway,
    ConstraintType.SYMMETRIC: _mirrored,
    ConstraintType.FIX: _fixed,
    **dict.fromkeys(DIMENSIONS, _dimension),
}


def _grouped(kind: ConstraintType, said: list[tuple[int, list[int]]], sketch: Sketch) -> Iterator[Mark]:
    """One mark a primitive of each group that the constraints make."""
    leader: dict[int, int] = {}

    def find(i: int) -> int:
        while leader.setdefault(i, i) != i:
            i = leader[i]
        return i

    of: defaultdict[int, list[int]] = defaultdict(list)
    for number, primitives in said:
        for i in primitives:
            of[i].append(number)
            leader[find(i)] = find(primitives[0])
    heads = list(dict.fromkeys(find(i) for i in of))
    for i, numbers in of.items():
        words = str(heads.index(find(i)) + 1) if len(heads) > 1 else ""
        yield Mark(kind, sketch.primitives[i], tuple(numbers), words=words)


def _curves(constraint: Constraint, sketch: Sketch) -> list[int]:
    """Which curves it speaks of as a whole."""
    wholes = [ref.primitive for ref in constraint.refs if ref.primitive is not None and ref.part is Part.WHOLE]
    return [i for i in wholes if not isinstance(sketch.primitives[i], Point)]
