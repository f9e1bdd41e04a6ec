"""Transforms of SVG: affine maps of primitives and curves, and the text of a `transform` attribute."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Arc, Bezier, Circle, EllipticArc, Line, Point, Primitive, Vec

from .svg_shapes import NUMBER

_CALL = re.compile(r"[\s,]*+([a-zA-Z]++)\s*+\(([^()]*+)\)")


@dataclass(frozen=True, slots=True)
class Affine:
    """x' = a·x + c·y + e, y' = b·x + d·y + f."""

    a: float = 1.0
    b: float = 0.0
    c: float = 0.0
    d: float = 1.0
    e: float = 0.0
    f: float = 0.0

    def __matmul__(self, inner: Affine) -> Affine:
        """The composition: first `inner`, then this transform."""
        x, y = self._vector((inner.a, inner.b)), self._vector((inner.c, inner.d))
        return Affine(*x, *y, *self.point((inner.e, inner.f)))

    def point(self, p: Vec) -> Vec:
        return (self.a * p[0] + self.c * p[1] + self.e, self.b * p[0] + self.d * p[1] + self.f)

    def curve(self, curve: Bezier | EllipticArc) -> Bezier | EllipticArc:
        """The transformed curve."""
        if isinstance(curve, Bezier):
            first, second, third, last = map(self.point, curve.points)
            return Bezier((first, second, third, last))
        center, u, v = self.point(curve.center), self._vector(curve.u), self._vector(curve.v)
        ends = curve.exact_ends and (self.point(curve.exact_ends[0]), self.point(curve.exact_ends[1]))
        return replace(curve, center=center, u=u, v=v, exact_ends=ends)

    def primitive(self, p: Primitive) -> Primitive | Bezier | EllipticArc:
        """The transformed primitive; a circle or arc may become part of an ellipse."""
        if isinstance(p, Line):
            return replace(p, start=self.point(p.start), end=self.point(p.end))
        if isinstance(p, Point):
            return replace(p, at=self.point(p.at))
        x, y = math.hypot(self.a, self.b), math.hypot(self.c, self.d)
        keeps_circles = abs(x - y) <= 1e-6 * x and abs(self.a * self.c + self.b * self.d) <= 1e-6 * x * y
        if not keeps_circles:
            turn = (p.start_angle, p.sweep) if isinstance(p, Arc) else (0.0, TAU)
            return self.curve(EllipticArc(p.center, (p.radius, 0.0), (0.0, p.radius), *turn))
        center, radius = self.point(p.center), x * p.radius
        if isinstance(p, Circle):
            return replace(p, center=center, radius=radius)
        rotation = math.atan2(self.b, self.a)
        mirrored = self.a * self.d - self.b * self.c < 0
        start_angle = rotation - p.end_angle if mirrored else rotation + p.start_angle
        return replace(p, center=center, radius=radius, start_angle=start_angle)

    def _vector(self, v: Vec) -> Vec:
        """A transformed difference of two points."""
        return (self.a * v[0] + self.c * v[1], self.b * v[0] + self.d * v[1])


def parse_transform(text: str) -> Affine:
    """The transform of a `transform` attribute."""
    text = text.rstrip(", \t\r\n")
    result, position = Affine(), 0
    while position < len(text):
        if not (match := _CALL.match(text, position)):
            raise SketchError("a transform we cannot read")
        numbers = [float(n) for n in re.findall(NUMBER, match[2])]
        if not all(map(math.isfinite, numbers)):
            raise SketchError("a transform with a number that is too large")
        result = result @ _call(match[1], numbers)
        position = match.end()
    return result


def _call(name: str, n: list[float]) -> Affine:
    match name, len(n):
        case "matrix", 6:
            return Affine(*n)
        case "translate", 1 | 2:
            return Affine(e=n[0], f=n[1] if len(n) == 2 else 0.0)
        case "scale", 1 | 2:
            return Affine(a=n[0], d=n[-1])
        case "rotate", 1 | 3:
            cos, sin = math.cos(math.radians(n[0])), math.sin(math.radians(n[0]))
            x, y = n[1:] if len(n) == 3 else (0.0, 0.0)
            return Affine(e=x, f=y) @ Affine(cos, sin, -sin, cos) @ Affine(e=-x, f=-y)
        case "skewX", 1:
            return Affine(c=math.tan(math.radians(n[0])))
        case "skewY", 1:
            return Affine(b=math.tan(math.radians(n[0])))
    raise SketchError("a transform we cannot read")
