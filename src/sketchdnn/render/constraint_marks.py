"""The marks of constraints: which symbol stands for a constraint, its strokes, and a place for it on free paper.

Constraints of one kind that share primitives get one mark per primitive: three parallel lines have three marks, not
one for each pair. Groups of one kind are numbered. The layout is greedy: marks beside short curves come first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sketchdnn.geometry import TAU, Arc, Circle, Constraint, Line, Part, Point, Primitive, Sketch, Vec, tessellate
from sketchdnn.geometry import ConstraintType as Type
from sketchdnn.geometry.constraints import LENGTHS, ref_point
from sketchdnn.geometry.intersections import endpoints, midpoint
from sketchdnn.geometry.primitives import transformed
from sketchdnn.geometry.proximity import component_roots

from .style import Frame

DIMENSIONS = LENGTHS | {Type.ANGLE}
# Points nearer than this share of their distance are the ends of a line.
_SAME_ENDS = 1e-3
# Ends nearer to each other than this share of the shorter curve form a corner.
_SAME_CORNER = 0.02
_PREFIX = {Type.RADIUS: "R", Type.DIAMETER: "D"}
# Kinds that are marked on each primitive of a group where no single point shows them.
_GROUPED = {Type.PARALLEL, Type.PERPENDICULAR, Type.COLLINEAR, Type.EQUAL, Type.TANGENT}
_GROUPED |= {Type.COINCIDENT, Type.CONCENTRIC}

Strokes = tuple[Primitive, ...]


class Mark(NamedTuple):
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
        candidates = list(_Subject(constraint, number, sketch, lines).marks())
        for mark in candidates:
            # Several constraints of one kind at one point share a mark.
            key = (mark.kind, mark.beside, mark.text)
            if (known := marks.get(key)) is not None:
                mark = known._replace(numbers=(*known.numbers, *mark.numbers), ties=(*known.ties, *mark.ties))
            marks[key] = mark
        if not candidates and constraint.type in _GROUPED:
            groups[constraint.type].append((number, _whole_curves(constraint, sketch)))
    grouped = (mark for kind, members in groups.items() for mark in _group_marks(kind, members, sketch))
    return [*marks.values(), *grouped]


class _Subject:
    """A constraint with its points, its whole curves and the middle of each of its parts."""

    def __init__(self, constraint: Constraint, number: int, sketch: Sketch, lines: Sequence[Line]) -> None:
        self.constraint, self.number, self.lines = constraint, number, lines
        self.curves = [sketch.primitives[i] for i in _whole_curves(constraint, sketch)]
        self.points: list[Vec] = []
        self.middles: list[Vec] = []
        for ref in constraint.refs:
            if (at := ref_point(ref, sketch.primitives)) is not None:
                self.points.append(at)
                self.middles.append(at)
            elif ref.primitive is not None and not isinstance(curve := sketch.primitives[ref.primitive], Point):
                self.middles.append(curve.center if isinstance(curve, Circle) else midpoint(curve))

    def marks(self) -> Iterator[Mark]:
        """The marks of the constraint; none where it has to be marked on each of its curves."""
        points, curves, middles = self.points, self.curves, self.middles
        match self.constraint.type:
            case Type.COINCIDENT | Type.POINT_ON_CURVE if points:
                kind = Type.POINT_ON_CURVE if curves else self.constraint.type
                yield self.mark(Point(points[0]), pinned=True)._replace(kind=kind)
            case Type.CONCENTRIC:
                centers = points or [c.center for c in curves if isinstance(c, Circle | Arc)]
                yield from (self.mark(Point(center), pinned=True) for center in centers[:1])
            case Type.HORIZONTAL | Type.VERTICAL:
                yield from map(self.mark, curves)
                yield from self.between(points)
            case Type.PERPENDICULAR if len(curves) == 2 and (corner := _corner(*curves)):
                yield self.mark(Point(corner[0]), pinned=True, corner=corner[1])
            case Type.TANGENT if len(curves) == 2 and (at := _tangent_point(*curves)):
                yield self.mark(Point(at))
            case Type.MIDPOINT if len(points) == 3:  # the middle one of three, in whichever order the file has them
                a, b, c = points
                middle, *ends = min(((a, b, c), (b, a, c), (c, a, b)), key=lambda three: _off_middle(*three))
                yield self.mark(Point(middle), ties=((ends[0], ends[1]),))
            case Type.PERPENDICULAR | Type.TANGENT | Type.MIDPOINT if points:
                yield self.mark(Point(points[0]))
            case Type.SYMMETRIC:
                yield from self.between(middles)
            case Type.FIX:
                yield from map(self.mark, [*map(Point, points), *curves])
            case kind if kind in DIMENSIONS and self.constraint.value is not None:
                yield from self._dimension(kind, self.constraint.value)

    def _dimension(self, kind: Type, value: float) -> Iterator[Mark]:
        is_angle = kind is Type.ANGLE
        if is_angle and len(self.curves) == 1:
            value %= math.pi  # a line has no direction in a picture
        text = f"{math.degrees(value):.4g}°" if is_angle else f"{_PREFIX.get(kind, '')}{abs(value):.4g}"
        if len(set(self.middles[:2])) == 2 and not is_angle:
            a, b = self.middles[:2]
            corner = {Type.HORIZONTAL_DISTANCE: (b[0], a[1]), Type.VERTICAL_DISTANCE: (a[0], b[1])}.get(kind, b)
            yield from self._along(a, corner if corner != a else b, b, text)
        elif beside := [*self.curves, *map(Point, self.points)]:
            yield self.mark(beside[0], text=text)

    def _along(self, a: Vec, corner: Vec, b: Vec, text: str) -> Iterator[Mark]:
        """Beside the first leg of the path from `a` over the corner to `b`: the direction that is measured."""
        for mark in self.between((a, corner), text):
            yield mark._replace(ties=(*mark.ties, (corner, b))) if corner != b else mark

    def mark(self, beside: Primitive, **details: Any) -> Mark:
        return Mark(self.constraint.type, beside, (self.number,), **details)

    def between(self, points: Sequence[Vec], text: str = "") -> Iterator[Mark]:
        """Beside the line that joins the first two points, if there is one, or between them."""
        if len(points) < 2:
            return
        a, b = points[:2]
        near, angle = _SAME_ENDS * math.dist(a, b), _direction(a, b)
        for line in self.lines:
            same = max(math.dist(a, line.start), math.dist(b, line.end))
            reverse = max(math.dist(b, line.start), math.dist(a, line.end))
            if min(same, reverse) <= near:
                yield self.mark(line, text=text, angle=angle)
                return
        if a != b:
            yield self.mark(Line(a, b), text=text, angle=angle, ties=((a, b),))


def _off_middle(middle: Vec, a: Vec, b: Vec) -> float:
    return math.dist(middle, ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2))


def _group_marks(kind: Type, members: list[tuple[int, list[int]]], sketch: Sketch) -> Iterator[Mark]:
    """One mark per primitive of each group; a group is what the constraints connect."""
    numbers: defaultdict[int, list[int]] = defaultdict(list)
    for number, primitives in members:
        for i in primitives:
            numbers[i].append(number)
    roots = component_roots(len(sketch), [primitives for _, primitives in members])
    labels: dict[int, int] = {}
    for i in numbers:
        labels.setdefault(int(roots[i]), len(labels) + 1)
    for i, constraint_numbers in numbers.items():
        text = str(labels[int(roots[i])]) if len(labels) > 1 else ""
        yield Mark(kind, sketch.primitives[i], tuple(constraint_numbers), text=text)


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


def _paths(*paths: Sequence[Vec]) -> Strokes:
    return tuple(Line(p, q) for points in paths for p, q in pairwise(points))


# Strokes in a square from -1 to 1 with y up.
_SYMBOLS: Mapping[Type, Strokes] = {
    Type.COINCIDENT: (Point((0, 0)),),
    Type.POINT_ON_CURVE: (Circle((0, 0), 0.8),),
    Type.CONCENTRIC: (Circle((0, 0), 0.5), Circle((0, 0), 1.0)),
    Type.HORIZONTAL: _paths([(-0.6, -0.8), (-0.6, 0.8)], [(0.6, -0.8), (0.6, 0.8)], [(-0.6, 0), (0.6, 0)]),
    Type.VERTICAL: _paths([(-0.65, 0.8), (0, -0.8), (0.65, 0.8)]),
    Type.PARALLEL: _paths([(-0.7, -0.75), (-0.1, 0.75)], [(0.1, -0.75), (0.7, 0.75)]),
    Type.PERPENDICULAR: _paths(
        [(-0.8, 0.85), (-0.8, -0.75), (0.8, -0.75)], [(-0.8, -0.05), (-0.1, -0.05), (-0.1, -0.75)]
    ),
    Type.COLLINEAR: (*_paths([(-1, 0), (-0.35, 0)], [(0.35, 0), (1, 0)]), Circle((0, 0), 0.08)),
    Type.TANGENT: _paths([(-0.75, 0.75), (0.75, 0.75)], [(0, 0.75), (0, -0.85)]),
    Type.EQUAL: _paths([(-0.75, 0.32), (0.75, 0.32)], [(-0.75, -0.32), (0.75, -0.32)]),
    Type.MIDPOINT: _paths([(-0.8, -0.6), (0.8, -0.6), (0, 0.8), (-0.8, -0.6)]),
    Type.SYMMETRIC: _paths(
        *([(-1.3, 0), (-0.4, 0)], [(-0.8, 0.45), (-0.35, 0), (-0.8, -0.45)]),
        *([(1.3, 0), (0.4, 0)], [(0.8, 0.45), (0.35, 0), (0.8, -0.45)], [(0, -0.8), (0, 0.8)]),
    ),
    Type.FIX: _paths(
        *([(0, 0.9), (0, 0.15)], [(-0.8, 0.15), (0.8, 0.15)]),
        *([(-0.5, -0.3), (0.5, -0.3)], [(-0.2, -0.75), (0.2, -0.75)]),
    ),
}
# The order in a legend.
SYMBOL_ORDER = tuple(_SYMBOLS)


def symbol(kind: Type, at: Vec, radius: float, angle: float = 0.0) -> Strokes:
    """The strokes of a symbol around a point. Dimensions have a text instead, and no strokes."""
    turn = angle if kind is Type.SYMMETRIC else 0.0
    cos, sin = radius * math.cos(turn), radius * math.sin(turn)

    def move(p: Vec) -> Vec:
        return (at[0] + cos * p[0] - sin * p[1], at[1] + sin * p[0] + cos * p[1])

    return tuple(transformed(shape, move, lambda size: radius * size) for shape in _SYMBOLS.get(kind, ()))


def corner_symbol(at: Vec, directions: tuple[float, float], size: float) -> Strokes:
    """The square in a right angle."""
    (ux, uy), (vx, vy) = ((size * math.cos(angle), size * math.sin(angle)) for angle in directions)
    x, y = at
    return _paths([(x + ux, y + uy), (x + ux + vx, y + uy + vy), (x + vx, y + vy)])


# The positions of marks: beside their primitives, on free paper.

# The side of a cell of the occupancy grid, in pixels.
_CELL = 2.0
# The cost of covering a stroke, of covering another mark or the edge, and of each later candidate.
_INK, _TAKEN, _DEFERRED_COST = 2.5, 12.0, 0.02
_POSITIONS_AROUND_POINT = 8


class PlacedMark(NamedTuple):
    """A mark and the pixel of its middle, y down; half its width and height."""

    mark: Mark
    at: Vec
    half: Vec


def arrange_marks(sketch: Sketch, view: Frame, radius: float) -> list[PlacedMark]:
    """The marks of a sketch with their positions: pinned ones on their point, each other one where it covers least."""
    paper = _Occupancy(view)
    for primitive in sketch:
        paper.draw(primitive)
    placed = []
    for mark in sorted(constraint_marks(sketch), key=lambda mark: (not mark.pinned, mark.beside.length)):
        half = _half(mark, radius)
        if mark.pinned and isinstance(mark.beside, Point):
            at = view.to_pixel(mark.beside.at)
        else:
            positions = enumerate(_positions(mark, view, radius))
            at = min((paper.cost(at, half) + _DEFERRED_COST * k, at) for k, at in positions)[1]
        paper.take(at, half)
        placed.append(PlacedMark(mark, at, half))
    return placed


def text_width(text: str, radius: float) -> float:
    """The approximate width of a text beside a symbol."""
    return 0.95 * radius * len(text)


def _half(mark: Mark, radius: float) -> Vec:
    if mark.pinned:
        size = 0.7 * radius if mark.corner is None else 2.2 * radius
        return (size, size)
    width = text_width(mark.text, radius) / 2
    return (width if mark.text and mark.kind in DIMENSIONS else radius + width, radius)


class _Occupancy:
    """The cells of the picture that hold strokes, and those that hold marks."""

    def __init__(self, view: Frame) -> None:
        shape = (math.ceil(view.height / _CELL) + 1, math.ceil(view.width / _CELL) + 1)
        self.ink, self.taken = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
        self.view = view

    def draw(self, primitive: Primitive) -> None:
        view = self.view
        stops = tessellate(primitive, 0.5 / view.scale)
        if len(stops) > 1:
            steps = np.hypot(*np.diff(stops, axis=0).T) * view.scale
            at = np.concatenate([[0.0], np.cumsum(steps)])
            stretch = np.linspace(0.0, at[-1], max(2, math.ceil(at[-1] / _CELL)))
            stops = np.stack([np.interp(stretch, at, stops[:, k]) for k in (0, 1)], axis=1)
        x = view.width / 2 + view.scale * (stops[:, 0] - view.center[0])
        y = view.height / 2 - view.scale * (stops[:, 1] - view.center[1])
        rows, columns = (y / _CELL).astype(int), (x / _CELL).astype(int)
        inside = (rows >= 0) & (columns >= 0) & (rows < self.ink.shape[0]) & (columns < self.ink.shape[1])
        self.ink[rows[inside], columns[inside]] = 1.0

    def cost(self, at: Vec, half: Vec) -> float:
        (x, y), (w, h) = at, half
        outside = max(w - x, x + w - self.view.width, h - y, y + h - self.view.height, 0.0)
        cells = self._cells(at, half)
        ink, taken = self.ink[cells], self.taken[cells]
        if not ink.size:
            return math.inf
        # A stroke straight through covers one cell in each row or column.
        covered = float(ink.sum()) / float(max(ink.shape))
        return _INK * covered + _TAKEN * (float(taken.mean()) + outside / max(half))

    def take(self, at: Vec, half: Vec) -> None:
        self.taken[self._cells(at, half)] = 1.0

    def _cells(self, at: Vec, half: Vec) -> tuple[slice, slice]:
        (x, y), (w, h) = at, half
        rows = slice(max(0, int((y - h) / _CELL)), max(0, int((y + h) / _CELL) + 1))
        return rows, slice(max(0, int((x - w) / _CELL)), max(0, int((x + w) / _CELL) + 1))


def _positions(mark: Mark, view: Frame, radius: float) -> Iterator[Vec]:
    """Candidate positions of a mark in pixels, the best first."""
    half = _half(mark, radius)
    match mark.beside:
        case Line(start, end):
            yield from _beside_line(view.to_pixel(start), view.to_pixel(end), half, radius, centered=bool(mark.ties))
        case Circle(center, size) | Arc(center, size) as curve:
            yield from _beside_circle(view.to_pixel(center), size * view.scale, curve, half, radius)
        case Point(at):
            x, y = view.to_pixel(at)
            for distance in (1.6 * radius, 2.6 * radius, 3.8 * radius):
                for k in range(_POSITIONS_AROUND_POINT):
                    angle = TAU * (k + 0.5) / _POSITIONS_AROUND_POINT
                    yield x + (distance + half[0] - radius) * math.cos(angle), y - distance * math.sin(angle)


def _beside_line(p: Vec, q: Vec, half: Vec, radius: float, *, centered: bool) -> Iterator[Vec]:
    """Either side of a line, from its middle outwards; on it if nothing is drawn there."""
    length = max(math.dist(p, q), 1e-9)
    nx, ny = (q[1] - p[1]) / length, (p[0] - q[0]) / length
    if ny > 0 or (ny == 0 and nx < 0):  # above or to the right first
        nx, ny = -nx, -ny
    clear = abs(nx) * half[0] + abs(ny) * half[1] + 0.45 * radius
    steps = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9)
    for share in (0.0, 1.0, -1.0) if centered else (1.0, -1.0, 1.8, -1.8, 2.8, -2.8):
        for f in steps:
            off = share * clear
            yield (p[0] + f * (q[0] - p[0]) + off * nx, p[1] + f * (q[1] - p[1]) + off * ny)


def _beside_circle(center: Vec, size: float, curve: Circle | Arc, half: Vec, radius: float) -> Iterator[Vec]:
    """Outside and inside a circle or arc; its center and radius are given in pixels."""
    start, sweep, steps = 0.0, TAU, tuple((k + 0.5) / 8 for k in (0, 3, 4, 7, 1, 2, 5, 6))
    if isinstance(curve, Arc):
        start, sweep, steps = curve.start_angle, curve.sweep, (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
    for off in (1.0, -1.0, 1.9, -1.9, 2.9):
        for f in steps:
            cos, sin = math.cos(start + f * sweep), math.sin(start + f * sweep)
            clear = abs(cos) * half[0] + abs(sin) * half[1] + 0.45 * radius
            distance = size + off * clear
            if distance > 0:
                yield (center[0] + distance * cos, center[1] - distance * sin)
    yield (center[0] + size + half[0] + radius, center[1])
