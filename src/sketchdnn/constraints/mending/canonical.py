"""One way to lay a sketch down, whichever way round, in whichever order and at whichever size it came.

What is decided about a sketch laid down like this cannot depend on how it was turned, mirrored, scaled or listed. Only
a sketch that is its own mirror image can be laid down in several ways; `Frame.symmetries` are the turns between them,
and what is done to such a sketch must look the same after each of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.constraints.variables import Floats
from sketchdnn.errors import GeometryError, SketchError
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Vec
from sketchdnn.geometry.bounds import Box
from sketchdnn.geometry.constraints import LENGTHS

from .turns import TURNS, Turn

# Differences below this share of the size are rounding.
SAME = 1e-7
# Digits beyond this are not looked at. A power of two, so that what is even stays so.
_GRID = 2.0**34
# More primitives than this are not compared with their mirror image.
_MOST_MIRRORED = 400
# Which moments of where the drawing is tell its eight ways round apart, in this order.
_MOMENTS = ((1, 0), (0, 1), (2, 0), (1, 1), (3, 0), (0, 3), (2, 1), (1, 2), (4, 0), (3, 1), (1, 3), (5, 0), (0, 5))


_SWAPPED = {
    ConstraintType.HORIZONTAL: ConstraintType.VERTICAL,
    ConstraintType.HORIZONTAL_DISTANCE: ConstraintType.VERTICAL_DISTANCE,
}
_SWAPPED |= {b: a for a, b in _SWAPPED.items()}
_OTHER_AXIS = {Part.X_AXIS: Part.Y_AXIS, Part.Y_AXIS: Part.X_AXIS}
_OTHER_END = {Part.START: Part.END, Part.END: Part.START}


@dataclass(frozen=True, slots=True)
class Frame:
    """How a sketch is laid down: row k is its primitive `rows[k]`, whose start is now its end where `reversed[k]`.

    `symmetries` turn what is laid down about `middle` into itself.
    """

    turn: Turn
    scale: float
    rows: tuple[int, ...]
    reversed: tuple[bool, ...]
    symmetries: tuple[Turn, ...]
    middle: Vec

    def lay(self, primitives: Sequence[Primitive], exact: Collection[int] = ()) -> list[Primitive]:
        """The primitives, row by row. The last digits, which scaling and turning have changed, are rounded off, except
        in rows that are to be `exact`.
        """
        turned = [_scaled(self.turn, primitives[i], self.scale) for i in self.rows]
        laid = [p if k in exact else _rounded(p) for k, p in enumerate(turned)]
        return [_turn_round(p) if turned else p for p, turned in zip(laid, self.reversed, strict=True)]

    def lift(self, row: int | None, p: Primitive) -> Primitive:
        """Back to where it came from; `row` tells which way it ran, None for what is new."""
        if row is not None and self.reversed[row]:
            p = _turn_round(p)
        return self.turn.inverse.primitive(p, self.scale)

    def laid(self, constraint: Constraint, row_of: Mapping[int, int]) -> Constraint:
        """A constraint of the sketch, as one of what is laid down."""
        laid = self._renamed(constraint, row_of, row_of)
        return laid if laid.value is None or laid.type not in LENGTHS else replace(laid, value=laid.value / self.scale)

    def lifted(
        self,
        constraint: Constraint,
        number_of: Mapping[int, int],
        origin: Mapping[int, int],
        values: Mapping[tuple[ConstraintType, float | None], float | None],
    ) -> Constraint:
        """The other way: `number_of` each row in the sketch to be, `origin` the row that each came from first, `values`
        what each value had been before it was laid down: scaled back, it would differ in its last digit.
        """
        value = values.get((constraint.type, constraint.value), constraint.value)
        return replace(self._renamed(constraint, number_of, origin), value=value)

    def _renamed(self, constraint: Constraint, names: Mapping[int, int], rows: Mapping[int, int]) -> Constraint:
        refs = []
        for ref in constraint.refs:
            part = ref.part
            if ref.primitive is None:
                refs.append(Ref(None, _OTHER_AXIS.get(part, part) if self.turn.swap else part))
                continue
            row = rows.get(ref.primitive)
            if row is not None and self.reversed[row]:
                part = _OTHER_END.get(part, part)
            refs.append(Ref(names[ref.primitive], part))
        kind = _SWAPPED.get(constraint.type, constraint.type) if self.turn.swap else constraint.type
        return replace(constraint, type=kind, refs=tuple(refs))


def frame_of(primitives: Sequence[Primitive], box: Box) -> Frame:
    """Choose how to lay a sketch of some extent down."""
    size = box.size
    turns = _turns(primitives, box)
    turn = turns[0]
    laid = [_scaled(turn, p, size) for p in primitives]
    flips = tuple(_runs_back(p) for p in laid)
    middle = turn.place(box.center, 1 / size)
    traits = _traits(laid, middle)
    order = np.lexsort(traits.round(6).T[::-1]).tolist()
    symmetries = []
    if len(turns) > 1 and len(primitives) <= _MOST_MIRRORED:
        for other in turns[1:]:
            between = turn.inverse.then(other)
            if _alike(traits, _turned_traits(laid, between, middle)):
                symmetries.append(between)
    # An arc that was mirrored runs from what was its end.
    swapped = tuple(flips[i] if not isinstance(primitives[i], Arc) else turn.mirrors for i in order)
    return Frame(turn, size, tuple(order), swapped, tuple(symmetries), middle)


def is_symmetric(primitives: Sequence[Primitive], frame: Frame) -> bool:
    """Whether what was laid down and changed still looks the same after each of its frame's symmetries."""
    if not frame.symmetries:
        return True
    traits = _traits(primitives, frame.middle)
    return all(_alike(traits, _turned_traits(primitives, turn, frame.middle)) for turn in frame.symmetries)


def _scaled(turn: Turn, p: Primitive, size: float) -> Primitive:
    """A primitive turned, in a sketch of size one. A line so short that its ends would become one keeps some length."""
    try:
        return turn.primitive(p, 1 / size)
    except GeometryError:
        if not isinstance(p, Line):
            raise
        x, y = turn.place(p.start, 1 / size)
        return Line((x, y), (math.nextafter(x, math.inf), y), p.construction)


def _rounded(p: Primitive) -> Primitive:
    """Without its last digits, unless it is nothing without them."""
    try:
        return _round(p)
    except SketchError:
        return p


def _round(p: Primitive) -> Primitive:
    def near(x: float) -> float:
        return round(x * _GRID) / _GRID

    def place(at: Vec) -> Vec:
        return (near(at[0]), near(at[1]))

    match p:
        case Line(start, end):
            return Line(place(start), place(end), p.construction)
        case Circle(center, radius):
            return Circle(place(center), near(radius), p.construction)
        case Point(at):
            return Point(place(at), p.construction)
        case Arc(center, radius):
            size = near(radius) or radius
            angle, sweep = near(p.start_angle * size) / size, near(p.sweep * size) / size
            return Arc(place(center), size, angle, sweep, p.construction)


def _turn_round(p: Primitive) -> Primitive:
    return replace(p, start=p.end, end=p.start) if isinstance(p, Line) else p


def _runs_back(p: Primitive) -> bool:
    """Whether a line runs from right to left, or straight down."""
    if not isinstance(p, Line):
        return False
    dx, dy = p.end[0] - p.start[0], p.end[1] - p.start[1]
    return dx < -SAME or (dx <= SAME and dy < 0)


def _turns(primitives: Sequence[Primitive], box: Box) -> list[Turn]:
    """The turns that no moment tells from the best one, to within rounding."""
    at, weight = _masses(primitives, box)
    x, y = at.T
    powers_x = np.stack([x**k for k in range(6)])
    powers_y = np.stack([y**k for k in range(6)])
    moments = (powers_x * weight) @ powers_y.T / weight.sum()
    turns = list(TURNS)
    for p, q in _MOMENTS:
        seen = [t.sx**p * t.sy**q * (moments[q, p] if t.swap else moments[p, q]) for t in turns]
        most = max(seen)
        turns = [t for t, value in zip(turns, seen, strict=True) if value >= most - SAME]
        if len(turns) == 1:
            break
    return turns


def _masses(primitives: Sequence[Primitive], box: Box) -> tuple[Floats, Floats]:
    """Places of a drawing in its own box, and how much each counts."""
    at: list[Vec] = []
    weight: list[float] = []
    for p in primitives:
        heavy = 1.0 + 0.37 * p.kind + 0.61 * p.construction
        match p:
            case Line(start, end):
                at += [start, end]
                weight += [heavy, heavy]
            case Circle(center, radius):
                at.append(center)
                weight.append(heavy + radius / box.size)
            case Arc():
                at += [p.start, p.end, p.mid]
                weight += [heavy, heavy, heavy + 0.29]
            case Point(place):
                at.append(place)
                weight.append(heavy)
    return (np.array(at) - box.center) * (2 / box.size), np.array(weight)


def _traits(primitives: Sequence[Primitive], middle: Vec) -> Floats:
    """Numbers that agree where primitives do, whichever way they run; places count from `middle`."""
    rows = []
    for p in primitives:
        label = p.kind * 2.0 + p.construction
        match p:
            case Line((x0, y0), (x1, y1)):
                dx, dy, length = x1 - x0, y1 - y0, p.length
                rows.append(
                    (label, (x0 + x1) / 2, (y0 + y1) / 2, (dx * dx - dy * dy) / length, 2 * dx * dy / length, 0.0)
                )
            case Circle((x, y), radius):
                rows.append((label, x, y, 0.0, 0.0, radius))
            case Arc((x, y), radius):
                mx, my = p.mid
                rows.append((label, mx, my, mx - x, my - y, p.length))
            case Point((x, y)):
                rows.append((label, x, y, 0.0, 0.0, 0.0))
    found = np.array(rows).reshape(-1, 6)
    found[:, 1:3] -= middle
    return found


def _turned_traits(primitives: Sequence[Primitive], turn: Turn, middle: Vec) -> Floats:
    """The traits after a turn about `middle`. No place is shifted for it: a very short line would become none."""
    return _traits([turn.primitive(p) for p in primitives], turn.place(middle, 1.0))


def _alike(a: Floats, b: Floats) -> bool:
    """Whether two sets of traits have a partner for each in the other."""
    if len(a) != len(b):
        return False
    near = np.abs(a[:, None] - b[None]).max(axis=2) <= 5 * SAME
    return bool(near.any(axis=0).all() and near.any(axis=1).all())
