"""One canonical orientation of a sketch, whatever its rotation by quarter turns, mirroring, order and size.

What is decided about a sketch in canonical form cannot depend on how it was turned, mirrored, scaled or listed. Only a
sketch that is its own mirror image has several canonical forms: `Frame.symmetries` are the turns between them, and the
repair of such a sketch must look the same after each of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints.variables import Floats, Primitives
from sketchdnn.errors import SketchError
from sketchdnn.geometry import (
    TAU,
    Arc,
    Box,
    Circle,
    Constraint,
    ConstraintType,
    Kind,
    Line,
    Part,
    Point,
    Primitive,
    Vec,
)
from sketchdnn.geometry.constraints import LENGTHS, shared_ref
from sketchdnn.geometry.primitives import transformed

from .quality import ROUNDING

# Digits beyond this grid are ignored. A power of two, so that even numbers stay even.
_GRID = 2.0**34
# More primitives are not compared with their mirror image.
_MAX_MIRRORED = 400
# The moments of the drawing that tell its eight orientations apart, in this order.
_MOMENTS = ((1, 0), (0, 1), (2, 0), (1, 1), (3, 0), (0, 3), (2, 1), (1, 2), (4, 0), (3, 1), (1, 3), (5, 0), (0, 5))
_T = ConstraintType
_SWAPPED = {_T.HORIZONTAL: _T.VERTICAL, _T.HORIZONTAL_DISTANCE: _T.VERTICAL_DISTANCE}
_SWAPPED |= {b: a for a, b in _SWAPPED.items()}
_OTHER_AXIS = {Part.X_AXIS: Part.Y_AXIS, Part.Y_AXIS: Part.X_AXIS}
_OTHER_END = {Part.START: Part.END, Part.END: Part.START}


class Turn(NamedTuple):
    """One of the eight symmetries of a square: swap x and y, or not, then multiply by signs."""

    swap: bool
    sx: float
    sy: float

    @property
    def inverse(self) -> Turn:
        return Turn(True, self.sy, self.sx) if self.swap else self

    @property
    def mirrors(self) -> bool:
        return (self.sx * self.sy < 0) != self.swap

    def then(self, other: Turn) -> Turn:
        """This turn, and the other one after it."""
        sx, sy = (self.sy, self.sx) if other.swap else (self.sx, self.sy)
        return Turn(self.swap != other.swap, other.sx * sx, other.sy * sy)

    def point(self, p: Vec, scale: float) -> Vec:
        x, y = (p[1], p[0]) if self.swap else p
        return (scale * self.sx * x, scale * self.sy * y)

    def primitive(self, p: Primitive, scale: float = 1.0) -> Primitive:
        """Turned and scaled; a line keeps its start, an arc stays counter-clockwise."""
        start_angle = None
        if isinstance(p, Arc):
            east = math.atan2(self.sy, 0.0) if self.swap else math.atan2(0.0, self.sx)
            angle = east - p.end_angle if self.mirrors else east + p.start_angle
            start_angle = math.remainder(angle, TAU)
        return transformed(p, lambda at: self.point(at, scale), lambda radius: radius * scale, start_angle)


TURNS = tuple(Turn(swap, sx, sy) for swap in (False, True) for sx in (1.0, -1.0) for sy in (1.0, -1.0))


class Frame(NamedTuple):
    """The canonical form of a sketch: row k is its primitive `rows[k]`, whose ends are swapped where `reversed[k]`.

    `turned` are the primitives in the sketch's own order. `symmetries` are turns about `middle` that map the canonical
    form to itself.
    """

    turn: Turn
    scale: float
    turned: tuple[Primitive, ...]
    rows: tuple[int, ...]
    reversed: tuple[bool, ...]
    symmetries: tuple[Turn, ...]
    middle: Vec

    def to_canonical(self, exact: Collection[int] = ()) -> list[Primitive]:
        """The primitives, row by row. Digits that scaling and turning have changed are rounded off, except in rows
        that are to be `exact`.
        """
        rounded = [self.turned[i] if k in exact else _rounded(self.turned[i]) for k, i in enumerate(self.rows)]
        return [_swap_ends(p) if swap else p for p, swap in zip(rounded, self.reversed, strict=True)]

    def from_canonical(self, row: int | None, p: Primitive) -> Primitive:
        """A primitive in the sketch's own orientation and size; `row` is None for a new one."""
        if row is not None and self.reversed[row]:
            p = _swap_ends(p)
        return self.turn.inverse.primitive(p, self.scale)

    def constraint_to_canonical(self, constraint: Constraint, row_of: Mapping[int, int]) -> Constraint:
        """A constraint of the sketch on the canonical primitives."""
        turned = self.turn_constraint(constraint, row_of, row_of)
        if turned.value is None or turned.type not in LENGTHS:
            return turned
        return replace(turned, value=turned.value / self.scale)

    def turn_constraint(
        self, constraint: Constraint, numbers: Mapping[int, int], rows: Mapping[int, int]
    ) -> Constraint:
        """A constraint on turned primitives, either way; lengths are not scaled.

        Args:
            constraint: The constraint.
            numbers: The new number of each primitive.
            rows: The row, or the first row, that each primitive comes from.
        """
        refs = []
        swap = self.turn.swap
        for ref in constraint.refs:
            part = ref.part
            if ref.primitive is None:
                refs.append(shared_ref(None, _OTHER_AXIS.get(part, part) if swap else part))
                continue
            row = rows.get(ref.primitive)
            if row is not None and self.reversed[row]:
                part = _OTHER_END.get(part, part)
            refs.append(shared_ref(numbers[ref.primitive], part))
        kind = _SWAPPED.get(constraint.type, constraint.type) if swap else constraint.type
        return Constraint(kind, tuple(refs), constraint.value, constraint.name, constraint.extra)


def canonical_frame(primitives: Primitives, box: Box) -> Frame:
    """Choose the canonical form of primitives with a bounding box."""
    size = box.size
    turns = _best_turns(primitives, box)
    turn = turns[0]
    turned = tuple(_scaled(turn, p, size) for p in primitives)
    middle = turn.point(box.center, 1 / size)
    traits = _traits(turned, middle)
    order = np.lexsort(traits.round(6).T[::-1]).tolist()
    symmetries = []
    for other in turns[1:] if len(primitives) <= _MAX_MIRRORED else ():
        between = turn.inverse.then(other)
        if _alike(traits, _turn_traits(traits, between)):
            symmetries.append(between)
    # A mirrored arc runs from what was its end.
    swapped = tuple(turn.mirrors if isinstance(primitives[i], Arc) else _runs_backward(turned[i]) for i in order)
    return Frame(turn, size, turned, tuple(order), swapped, tuple(symmetries), middle)


def is_symmetric(primitives: Primitives, frame: Frame) -> bool:
    """Whether changed canonical primitives still look the same after each of the frame's symmetries."""
    if not frame.symmetries:
        return True
    traits = _traits(primitives, frame.middle)
    return all(_alike(traits, _turn_traits(traits, turn)) for turn in frame.symmetries)


def _scaled(turn: Turn, p: Primitive, size: float) -> Primitive:
    """A primitive turned, in a sketch of size one. A line so short that its ends would coincide keeps some length."""
    if isinstance(p, Line) and (start := turn.point(p.start, 1 / size)) == turn.point(p.end, 1 / size):
        return Line(start, (math.nextafter(start[0], math.inf), start[1]), p.construction)
    return turn.primitive(p, 1 / size)


def _rounded(p: Primitive) -> Primitive:
    """A primitive without its last digits, unless nothing would be left of it."""

    def near(x: float) -> float:
        return round(x * _GRID) / _GRID

    def point(at: Vec) -> Vec:
        return (near(at[0]), near(at[1]))

    try:
        if not isinstance(p, Arc):
            return transformed(p, point, near)
        size = near(p.radius) or p.radius
        angle, sweep = near(p.start_angle * size) / size, near(p.sweep * size) / size
        return Arc(point(p.center), size, angle, sweep, p.construction)
    except SketchError:
        return p


def _swap_ends(p: Primitive) -> Primitive:
    return Line(p.end, p.start, p.construction) if isinstance(p, Line) else p


def _runs_backward(p: Primitive) -> bool:
    """Whether a line runs from right to left, or straight down."""
    if not isinstance(p, Line):
        return False
    dx, dy = p.end[0] - p.start[0], p.end[1] - p.start[1]
    return dx < -ROUNDING or (dx <= ROUNDING and dy < 0)


def _best_turns(primitives: Primitives, box: Box) -> list[Turn]:
    """The turns with the largest moments, to within rounding."""
    at, weight = _weighted_points(primitives, box)
    (x, y), total = at.T, float(weight.sum())
    turns = list(TURNS)
    xs, ys = [weight], [np.ones_like(weight)]  # products with their powers
    for _ in range(max(map(max, _MOMENTS))):
        xs.append(xs[-1] * x)
        ys.append(ys[-1] * y)
    for p, q in _MOMENTS:
        if len(turns) == 1:
            break
        here, swapped = float(xs[p] @ ys[q]) / total, float(xs[q] @ ys[p]) / total
        values = [t.sx**p * t.sy**q * (swapped if t.swap else here) for t in turns]
        least = max(values) - ROUNDING
        turns = [t for t, value in zip(turns, values, strict=True) if value >= least]
    return turns


def _weighted_points(primitives: Primitives, box: Box) -> tuple[Floats, Floats]:
    """Points of a drawing in its own box, and their weights."""
    points: list[tuple[Vec, float]] = []
    for p in primitives:
        heavy = 1.0 + 0.37 * p.kind + 0.61 * p.construction
        match p:
            case Line(start, end):
                points += [(start, heavy), (end, heavy)]
            case Circle(center, radius):
                points.append((center, heavy + radius / box.size))
            case Arc():
                points += [(p.start, heavy), (p.end, heavy), (p.mid, heavy + 0.29)]
            case Point(at):
                points.append((at, heavy))
    at, weight = zip(*points, strict=True)
    return (np.array(at) - box.center) * (2 / box.size), np.array(weight)


def _traits(primitives: Primitives, middle: Vec) -> Floats:
    """Numbers that agree where primitives do, whichever way they run; points count from `middle`."""
    rows = []
    for p in primitives:
        label = p.kind * 2.0 + p.construction
        match p:
            case Line((x0, y0), (x1, y1)):
                dx, dy, length = x1 - x0, y1 - y0, p.length
                slope = (dx * dx - dy * dy) / length, 2 * dx * dy / length
                rows.append((label, (x0 + x1) / 2, (y0 + y1) / 2, *slope, 0.0))
            case Circle((x, y), radius):
                rows.append((label, x, y, 0.0, 0.0, radius))
            case Arc((x, y)):
                mx, my = p.mid
                rows.append((label, mx, my, mx - x, my - y, p.length))
            case Point((x, y)):
                rows.append((label, x, y, 0.0, 0.0, 0.0))
    traits = np.array(rows).reshape(-1, 6)
    traits[:, 1:3] -= middle
    return traits


def _turn_traits(traits: Floats, turn: Turn) -> Floats:
    """The traits after a turn about the middle."""
    turned = traits.copy()
    swapped = [2, 1] if turn.swap else [1, 2]
    turned[:, 1:3] = traits[:, swapped] * (turn.sx, turn.sy)
    is_line = traits[:, 0] // 2 == Kind.LINE
    # A line's slope is that of twice its angle.
    slope = (-1.0 if turn.swap else 1.0), turn.sx * turn.sy
    turned[is_line, 3:5] = traits[is_line, 3:5] * slope
    across = [4, 3] if turn.swap else [3, 4]
    turned[~is_line, 3:5] = traits[~is_line][:, across] * (turn.sx, turn.sy)
    return turned


def _alike(a: Floats, b: Floats) -> bool:
    """Whether each row of traits has a partner in the other set."""
    near = np.abs(a[:, None] - b[None]).max(axis=2) <= 5 * ROUNDING
    return bool(near.any(axis=0).all() and near.any(axis=1).all())
