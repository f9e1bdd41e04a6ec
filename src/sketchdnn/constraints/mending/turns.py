"""The eight ways to lay a square on itself: quarter turns and mirrors, of places and primitives."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec


@dataclass(frozen=True, slots=True)
class Turn:
    """One of the eight ways to lay a square on itself: swap x and y, or not, then multiply by signs."""

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

    def place(self, p: Vec, scale: float) -> Vec:
        x, y = (p[1], p[0]) if self.swap else p
        return (scale * self.sx * x, scale * self.sy * y)

    def primitive(self, p: Primitive, scale: float = 1.0) -> Primitive:
        """Turned and scaled; a line keeps its start, an arc stays counter-clockwise."""
        match p:
            case Line(start, end):
                return Line(self.place(start, scale), self.place(end, scale), p.construction)
            case Circle(center, radius):
                return Circle(self.place(center, scale), radius * scale, p.construction)
            case Point(at):
                return Point(self.place(at, scale), p.construction)
            case Arc(center, radius, start_angle, sweep):
                east = math.atan2(0.0 if not self.swap else self.sy, self.sx if not self.swap else 0.0)
                angle = east - p.end_angle if self.mirrors else east + start_angle
                angle = math.remainder(angle, TAU)
                return Arc(self.place(center, scale), radius * scale, angle, sweep, p.construction)


TURNS = tuple(Turn(swap, sx, sy) for swap in (False, True) for sx in (1.0, -1.0) for sy in (1.0, -1.0))
