"""The marks of constraints: which symbol stands for a constraint, beside what, and its strokes.

Constraints of one kind that share primitives get one mark per primitive: three parallel lines have three marks, not
one for each pair. Groups of one kind are numbered. The positions are chosen by `mark_layout`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sketchdnn.geometry import Arc, Circle, Constraint, Line, Part, Point, Primitive, Sketch, Vec
from sketchdnn.geometry import ConstraintType as Type
from sketchdnn.geometry.constraints import LENGTHS, ref_point
from sketchdnn.geometry.intersections import endpoints, midpoint

DIMENSIONS = LENGTHS | {Type.ANGLE}
# Points nearer than this share of their distance are the ends of a line.
_SAME_ENDS = 1e-3
# Ends nearer to each other than this share of the shorter curve form a corner.
_SAME_CORNER = 0.02
_PREFIX = {Type.RADIUS: "R", Type.DIAMETER: "D"}
# Kinds that are marked on each primitive of a group where no single point shows them.
_GROUPED = frozenset(
    (Type.PARALLEL, Type.PERPENDICULAR, Type.COLLINEAR, Type.EQUAL, Type.TANGENT, Type.COINCIDENT, Type.CONCENTRIC)
)

Strokes = tuple[Primitive, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A symbol or text beside a curve or a point.

    Attributes:
        kind: The kind of constraint, which selects the symbol.
        beside: The curve or point that it belongs to.
        numbers: The indices of the constraints that it stands for.
        pinned: Whether it is drawn on its point, not beside it.
        text: The value of a dimension, or the number of a group.
        angle: The direction of symbols that have one, in radians.
        corner: The two directions of a right angle.
        ties: Pairs of related points that no curve joins.
    """

    kind: Type
    beside: Primitive
    numbers: tuple[int, ...]
    pinned: bool = False
    text: str = ""
    angle: float = 0.0
    corner: tuple[float, float] | None = None
    ties: tuple[tuple[Vec, Vec], ...] = ()


def constraint_marks(sketch: Sketch) -> list[Mark]:
    """The marks of all constraints that have a symbol."""
    marks: dict[tuple[object, ...], Mark] = {}
    groups: defaultdict[Type, list[tuple[int, list[int]]]] = defaultdict(list)
    lines = [p for p in sketch if isinstance(p, Line)]
    for number, constraint in enumerate(sketch.constraints):
        rule = _RULES.get(constraint.type)
        candidates = list(rule(_Subject.of(constraint, number, sketch, lines))) if rule else []
        for mark in candidates:
            # Several constraints of one kind at one point share a mark.
            key = (mark.kind, mark.beside, mark.text)
            if (known := marks.get(key)) is not None:
                mark = replace(known, numbers=(*known.numbers, *mark.numbers), ties=(*known.ties, *mark.ties))
            marks[key] = mark
        if not candidates and constraint.type in _GROUPED:
            groups[constraint.type].append((number, _whole_curves(constraint, sketch)))
    grouped = (mark for kind, members in groups.items() for mark in _group_marks(kind, members, sketch))
    return [*marks.values(), *grouped]


@dataclass(frozen=True, slots=True)
class _Subject:
    """A constraint with its points, its whole curves and the middle of each of its parts."""

    constraint: Constraint
    number: int
    points: tuple[Vec, ...]
    curves: tuple[Primitive, ...]
    middles: tuple[Vec, ...]
    lines: Sequence[Line]

    @staticmethod
    def of(constraint: Constraint, number: int, sketch: Sketch, lines: Sequence[Line]) -> _Subject:
        points, middles = [], []
        for ref in constraint.refs:
            if (at := ref_point(ref, sketch.primitives)) is not None:
                points.append(at)
                middles.append(at)
            elif ref.primitive is not None and not isinstance(curve := sketch.primitives[ref.primitive], Point):
                middles.append(curve.center if isinstance(curve, Circle) else midpoint(curve))
        curves = tuple(sketch.primitives[i] for i in _whole_curves(constraint, sketch))
        return _Subject(constraint, number, tuple(points), curves, tuple(middles), lines)

    def mark(self, beside: Primitive, kind: Type | None = None, **details: Any) -> Mark:
        return Mark(kind or self.constraint.type, beside, (self.number,), **details)

    def at_first_point(self, kind: Type | None = None, *, pinned: bool = False) -> Iterator[Mark]:
        if self.points:
            yield self.mark(Point(self.points[0]), kind, pinned=pinned)

    def between(self, a: Vec, b: Vec, text: str = "") -> Iterator[Mark]:
        """Beside the line that joins two points, if there is one, or between them."""
        near, angle = _SAME_ENDS * math.dist(a, b), _direction(a, b)
        for line in self.lines:
            same = max(math.dist(a, line.start), math.dist(b, line.end))
            reverse = max(math.dist(b, line.start), math.dist(a, line.end))
            if min(same, reverse) <= near:
                yield self.mark(line, text=text, angle=angle)
                return
        if a != b:
            yield self.mark(Line(a, b), text=text, angle=angle, ties=((a, b),))


def _mark_point(subject: _Subject) -> Iterator[Mark]:
    yield from subject.at_first_point(Type.POINT_ON_CURVE if subject.curves else None, pinned=True)


def _mark_center(subject: _Subject) -> Iterator[Mark]:
    centers = subject.points or tuple(c.center for c in subject.curves if isinstance(c, Circle | Arc))
    if centers:
        yield subject.mark(Point(centers[0]), pinned=True)


def _mark_alignment(subject: _Subject) -> Iterator[Mark]:
    yield from map(subject.mark, subject.curves)
    if len(subject.points) >= 2:
        yield from subject.between(subject.points[0], subject.points[1])


def _mark_right_angle(subject: _Subject) -> Iterator[Mark]:
    if len(subject.curves) == 2 and (corner := _corner(subject.curves[0], subject.curves[1])):
        yield subject.mark(Point(corner[0]), pinned=True, corner=corner[1])
    else:
        yield from subject.at_first_point()


def _mark_tangency(subject: _Subject) -> Iterator[Mark]:
    if len(subject.curves) == 2 and (at := _tangent_point(subject.curves[0], subject.curves[1])):
        yield subject.mark(Point(at))
    else:
        yield from subject.at_first_point()


def _mark_midpoint(subject: _Subject) -> Iterator[Mark]:
    if len(subject.points) == 3:  # the middle one of three, in whichever order the file has them
        a, b, c = subject.points
        middle, *ends = min(((a, b, c), (b, a, c), (c, a, b)), key=lambda three: _off_middle(*three))
        yield subject.mark(Point(middle), ties=((ends[0], ends[1]),))
    else:
        yield from subject.at_first_point()


def _off_middle(middle: Vec, a: Vec, b: Vec) -> float:
    return math.dist(middle, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))


def _mark_symmetry(subject: _Subject) -> Iterator[Mark]:
    if len(subject.middles) >= 2:
        yield from subject.between(subject.middles[0], subject.middles[1])


def _mark_fixed(subject: _Subject) -> Iterator[Mark]:
    for beside in [*map(Point, subject.points), *subject.curves]:
        yield subject.mark(beside)


def _mark_dimension(subject: _Subject) -> Iterator[Mark]:
    kind, value = subject.constraint.type, subject.constraint.value
    if value is None:
        return
    is_angle = kind is Type.ANGLE
    text = f"{math.degrees(value):.4g}°" if is_angle else f"{_PREFIX.get(kind, '')}{abs(value):.4g}"
    if len(subject.middles) >= 2 and subject.middles[0] != subject.middles[1] and not is_angle:
        yield from subject.between(subject.middles[0], subject.middles[1], text)
    elif beside := [*subject.curves, *map(Point, subject.points)]:
        yield subject.mark(beside[0], text=text)


_RULES: Mapping[Type, Callable[[_Subject], Iterator[Mark]]] = {
    Type.COINCIDENT: _mark_point,
    Type.POINT_ON_CURVE: _mark_point,
    Type.CONCENTRIC: _mark_center,
    Type.HORIZONTAL: _mark_alignment,
    Type.VERTICAL: _mark_alignment,
    Type.PERPENDICULAR: _mark_right_angle,
    Type.TANGENT: _mark_tangency,
    Type.MIDPOINT: _mark_midpoint,
    Type.SYMMETRIC: _mark_symmetry,
    Type.FIX: _mark_fixed,
    **dict.fromkeys(DIMENSIONS, _mark_dimension),
}


def _group_marks(kind: Type, members: list[tuple[int, list[int]]], sketch: Sketch) -> Iterator[Mark]:
    """One mark per primitive of each group; a group is what the constraints connect."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for number, primitives in members:
        for i in primitives:
            numbers[i].append(number)
    if not numbers:
        return
    index = {primitive: k for k, primitive in enumerate(numbers)}
    links = [(index[primitives[0]], index[i]) for _, primitives in members for i in primitives]
    rows, columns = zip(*links, strict=True)
    graph = coo_array(([1] * len(links), (rows, columns)), shape=(len(index), len(index)))
    count, labels = connected_components(graph, directed=False)
    for label, (i, constraint_numbers) in zip(labels, numbers.items(), strict=True):
        yield Mark(kind, sketch.primitives[i], tuple(constraint_numbers), text=str(label + 1) if count > 1 else "")


def _whole_curves(constraint: Constraint, sketch: Sketch) -> list[int]:
    wholes = [ref.primitive for ref in constraint.refs if ref.primitive is not None and ref.part is Part.WHOLE]
    return [i for i in wholes if not isinstance(sketch.primitives[i], Point)]


def _corner(a: Primitive, b: Primitive) -> tuple[Vec, tuple[float, float]] | None:
    """Where two lines join, and the directions in which they leave that point."""
    if not (isinstance(a, Line) and isinstance(b, Line)):
        return None
    near = _SAME_CORNER * min(a.length, b.length)
    for p, p_far in ((a.start, a.end), (a.end, a.start)):
        for q, q_far in ((b.start, b.end), (b.end, b.start)):
            if math.dist(p, q) <= near:
                return p, (_direction(p, p_far), _direction(q, q_far))
    return None


def _tangent_point(a: Primitive, b: Primitive) -> Vec | None:
    """Where two curves touch: at a shared end, or where the circle comes nearest to the other curve."""
    if isinstance(a, Point) or isinstance(b, Point):
        return None
    pairs = [(math.dist(p, q), p) for p in endpoints(a) for q in endpoints(b)]
    if pairs and min(pairs)[0] <= _SAME_CORNER * min(a.length, b.length):
        return min(pairs)[1]
    if isinstance(b, Line):
        a, b = b, a
    if isinstance(b, Line):
        return None
    if isinstance(a, Line):
        (x0, y0), (x1, y1) = a.start, a.end
        ux, uy = (x1 - x0) / a.length, (y1 - y0) / a.length
        along = (b.center[0] - x0) * ux + (b.center[1] - y0) * uy
        return (x0 + along * ux, y0 + along * uy)
    distance = math.dist(a.center, b.center)
    if distance == 0:
        return None
    # From the larger circle's center through the other's.
    large, small = (a, b) if a.radius >= b.radius else (b, a)
    share = large.radius / distance
    (x, y), (x1, y1) = large.center, small.center
    return (x + share * (x1 - x), y + share * (y1 - y))


def _direction(a: Vec, b: Vec) -> float:
    return math.atan2(b[1] - a[1], b[0] - a[0])


def _path(*points: Vec) -> Strokes:
    return tuple(Line(p, q) for p, q in pairwise(points))


# Strokes in a square from -1 to 1 with y up.
_SYMBOLS: Mapping[Type, Strokes] = {
    Type.COINCIDENT: (Point((0, 0)),),
    Type.POINT_ON_CURVE: (Circle((0, 0), 0.8),),
    Type.CONCENTRIC: (Circle((0, 0), 0.5), Circle((0, 0), 1.0)),
    Type.HORIZONTAL: (*_path((-0.6, -0.8), (-0.6, 0.8)), *_path((0.6, -0.8), (0.6, 0.8)), *_path((-0.6, 0), (0.6, 0))),
    Type.VERTICAL: _path((-0.65, 0.8), (0, -0.8), (0.65, 0.8)),
    Type.PARALLEL: (*_path((-0.7, -0.75), (-0.1, 0.75)), *_path((0.1, -0.75), (0.7, 0.75))),
    Type.PERPENDICULAR: (
        *_path((-0.8, 0.85), (-0.8, -0.75), (0.8, -0.75)),
        *_path((-0.8, -0.05), (-0.1, -0.05), (-0.1, -0.75)),
    ),
    Type.COLLINEAR: (*_path((-1, 0), (-0.35, 0)), *_path((0.35, 0), (1, 0)), Circle((0, 0), 0.08)),
    Type.TANGENT: (*_path((-0.75, 0.75), (0.75, 0.75)), *_path((0, 0.75), (0, -0.85))),
    Type.EQUAL: (*_path((-0.75, 0.32), (0.75, 0.32)), *_path((-0.75, -0.32), (0.75, -0.32))),
    Type.MIDPOINT: _path((-0.8, -0.6), (0.8, -0.6), (0, 0.8), (-0.8, -0.6)),
    Type.SYMMETRIC: (
        *_path((-1.3, 0), (-0.4, 0)),
        *_path((-0.8, 0.45), (-0.35, 0), (-0.8, -0.45)),
        *_path((1.3, 0), (0.4, 0)),
        *_path((0.8, 0.45), (0.35, 0), (0.8, -0.45)),
        *_path((0, -0.8), (0, 0.8)),
    ),
    Type.FIX: (
        *_path((0, 0.9), (0, 0.15)),
        *_path((-0.8, 0.15), (0.8, 0.15)),
        *_path((-0.5, -0.3), (0.5, -0.3)),
        *_path((-0.2, -0.75), (0.2, -0.75)),
    ),
}
# The order in a legend.
SYMBOL_ORDER = tuple(_SYMBOLS)


def has_symbol(kind: Type) -> bool:
    """Whether constraints of this kind are drawn."""
    return kind in _SYMBOLS or kind in DIMENSIONS


def symbol(kind: Type, at: Vec, radius: float, angle: float = 0.0) -> Strokes:
    """The strokes of a symbol around a point. Dimensions have a text instead, and no strokes."""
    turn = angle if kind is Type.SYMMETRIC else 0.0
    cos, sin = radius * math.cos(turn), radius * math.sin(turn)

    def move(p: Vec) -> Vec:
        return (at[0] + cos * p[0] - sin * p[1], at[1] + sin * p[0] + cos * p[1])

    moved: list[Primitive] = []
    for shape in _SYMBOLS.get(kind, ()):
        match shape:
            case Line(start, end):
                moved.append(Line(move(start), move(end)))
            case Circle(center, size):
                moved.append(Circle(move(center), radius * size))
            case Point(center, hollow):
                moved.append(Point(move(center), hollow))
    return tuple(moved)


def corner_symbol(at: Vec, directions: tuple[float, float], size: float) -> Strokes:
    """The square in a right angle."""
    (ux, uy), (vx, vy) = ((size * math.cos(angle), size * math.sin(angle)) for angle in directions)
    x, y = at
    return _path((x + ux, y + uy), (x + ux + vx, y + uy + vy), (x + vx, y + vy))
