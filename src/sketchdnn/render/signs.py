"""What the sign of each kind of constraint looks like: a few strokes, in a square from -1 to 1 with y up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from sketchdnn.geometry import Circle, ConstraintType, Line, Point, Primitive, Vec

from .marks import DIMENSIONS

Strokes = tuple[Primitive, ...]


def _path(*places: Vec) -> Strokes:
    return tuple(Line(p, q) for p, q in pairwise(places))


_SIGNS: Mapping[ConstraintType, Strokes] = {
    ConstraintType.COINCIDENT: (Point((0, 0)),),
    ConstraintType.POINT_ON_CURVE: (Circle((0, 0), 0.8),),
    ConstraintType.CONCENTRIC: (Circle((0, 0), 0.5), Circle((0, 0), 1.0)),
    ConstraintType.HORIZONTAL: (
        *_path((-0.6, -0.8), (-0.6, 0.8)),
        *_path((0.6, -0.8), (0.6, 0.8)),
        *_path((-0.6, 0), (0.6, 0)),
    ),
    ConstraintType.VERTICAL: _path((-0.65, 0.8), (0, -0.8), (0.65, 0.8)),
    ConstraintType.PARALLEL: (*_path((-0.7, -0.75), (-0.1, 0.75)), *_path((0.1, -0.75), (0.7, 0.75))),
    ConstraintType.PERPENDICULAR: (
        *_path((-0.8, 0.85), (-0.8, -0.75), (0.8, -0.75)),
        *_path((-0.8, -0.05), (-0.1, -0.05), (-0.1, -0.75)),
    ),
    ConstraintType.COLLINEAR: (*_path((-1, 0), (-0.35, 0)), *_path((0.35, 0), (1, 0)), Circle((0, 0), 0.08)),
    ConstraintType.TANGENT: (*_path((-0.75, 0.75), (0.75, 0.75)), *_path((0, 0.75), (0, -0.85))),
    ConstraintType.EQUAL: (*_path((-0.75, 0.32), (0.75, 0.32)), *_path((-0.75, -0.32), (0.75, -0.32))),
    ConstraintType.MIDPOINT: _path((-0.8, -0.6), (0.8, -0.6), (0, 0.8), (-0.8, -0.6)),
    ConstraintType.SYMMETRIC: (
        *_path((-1.3, 0), (-0.4, 0)),
        *_path((-0.8, 0.45), (-0.35, 0), (-0.8, -0.45)),
        *_path((1.3, 0), (0.4, 0)),
        *_path((0.8, 0.45), (0.35, 0), (0.8, -0.45)),
        *_path((0, -0.8), (0, 0.8)),
    ),
    ConstraintType.FIX: (
        *_path((0, 0.9), (0, 0.15)),
        *_path((-0.8, 0.15), (0.8, 0.15)),
        *_path((-0.5, -0.3), (0.5, -0.3)),
        *_path((-0.2, -0.75), (0.2, -0.75)),
    ),
}
# In what order a legend names them.
ORDER = tuple(_SIGNS)


def has_sign(kind: ConstraintType) -> bool:
    """Whether it is drawn at all."""
    return kind in _SIGNS or kind in DIMENSIONS


def sign(kind: ConstraintType, at: Vec, radius: float, along: float = 0.0) -> Strokes:
    """The strokes of a kind's sign, about a place; one with a direction is turned into it. Dimensions have words."""
    shapes = _SIGNS.get(kind, ())
    turn = along if kind is ConstraintType.SYMMETRIC else 0.0
    return tuple(_put(shape, at, radius, turn) for shape in shapes)


def corner(at: Vec, directions: tuple[float, float], size: float) -> Strokes:
    """The square in a right angle."""
    (ux, uy), (vx, vy) = ((size * math.cos(angle), size * math.sin(angle)) for angle in directions)
    x, y = at
    return _path((x + ux, y + uy), (x + ux + vx, y + uy + vy), (x + vx, y + vy))


def _put(shape: Primitive, at: Vec, radius: float, turn: float) -> Primitive:
    cos, sin = radius * math.cos(turn), radius * math.sin(turn)

    def place(p: Vec) -> Vec:
        return (at[0] + cos * p[0] - sin * p[1], at[1] + sin * p[0] + cos * p[1])

    match shape:
        case Line(start, end):
            return Line(place(start), place(end))
        case Circle(center, size):
            return Circle(place(center), radius * size)
        case Point(center, hollow):
            return Point(place(center), hollow)
        case _:
            return shape
