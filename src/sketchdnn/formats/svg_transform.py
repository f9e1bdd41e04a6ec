"""Transforms and lengths of SVG, and what primitives and curves become under an affine map."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Arc, Bezier, Circle, EllipticArc, Line, Point, Primitive, Vec

# Possessive throughout (`++`), so that there is one way to read a text and the time grows with its length alone.
_NUMBER = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_LENGTH = re.compile(rf"\s*+({_NUMBER})\s*+([a-zA-Z%]*+)\s*+")
_CALL = re.compile(r"[\s,]*+([a-zA-Z]++)\s*+\(([^()]*+)\)")
MM_PER_PIXEL = 25.4 / 96
_MM_PER_CSS_UNIT = {
    "mm": 1.0,
    "cm": 10.0,
    "in": 25.4,
    "pt": 25.4 / 72,
    "pc": 25.4 / 6,
    "Q": 0.25,
    "px": MM_PER_PIXEL,
}


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
        """First `inner`, then this one."""
        e, f = self.place((inner.e, inner.f))
        return Affine(
            self.a * inner.a + self.c * inner.b,
            self.b * inner.a + self.d * inner.b,
            self.a * inner.c + self.c * inner.d,
            self.b * inner.c + self.d * inner.d,
            e,
            f,
        )

    def place(self, p: Vec) -> Vec:
        return (self.a * p[0] + self.c * p[1] + self.e, self.b * p[0] + self.d * p[1] + self.f)

    def curve(self, curve: Bezier | EllipticArc) -> Bezier | EllipticArc:
        """The curve after the map."""
        if isinstance(curve, Bezier):
            first, second, third, last = map(self.place, curve.points)
            return Bezier((first, second, third, last))
        ends = curve.exact_ends and (self.place(curve.exact_ends[0]), self.place(curve.exact_ends[1]))
        return replace(
            curve, center=self.place(curve.center), u=self._turned(curve.u), v=self._turned(curve.v), exact_ends=ends
        )

    def primitive(self, p: Primitive) -> Primitive | Bezier | EllipticArc:
        """The primitive after the map; a circle or arc may become part of an ellipse."""
        if isinstance(p, Circle | Arc) and not self._keeps_circles():
            turn = (p.start_angle, p.sweep) if isinstance(p, Arc) else (0.0, TAU)
            return self.curve(EllipticArc(p.center, (p.radius, 0.0), (0.0, p.radius), *turn))
        match p:
            case Line(start, end):
                return replace(p, start=self.place(start), end=self.place(end))
            case Point(at):
                return replace(p, at=self.place(at))
            case Circle(center, radius):
                return replace(p, center=self.place(center), radius=self._scale() * radius)
            case Arc(center, radius, start_angle):
                turned = math.atan2(self.b, self.a)
                mirrored = self.a * self.d - self.b * self.c < 0
                angle = turned - p.end_angle if mirrored else turned + start_angle
                return replace(p, center=self.place(center), radius=self._scale() * radius, start_angle=angle)

    def _scale(self) -> float:
        """By how much lengths grow along x; in every direction, where circles stay circles."""
        return math.hypot(self.a, self.b)

    def _keeps_circles(self) -> bool:
        x, y = math.hypot(self.a, self.b), math.hypot(self.c, self.d)
        return abs(x - y) <= 1e-6 * x and abs(self.a * self.c + self.b * self.d) <= 1e-6 * x * y

    def _turned(self, v: Vec) -> Vec:
        """A difference of two places after the map."""
        return (self.a * v[0] + self.c * v[1], self.b * v[0] + self.d * v[1])


def parse_transform(text: str) -> Affine:
    """The map that a `transform` attribute means."""
    text = text.rstrip(", \t\r\n")
    result, position = Affine(), 0
    while position < len(text):
        match = _CALL.match(text, position)
        if not match:
            raise SketchError("a transform we cannot read")
        numbers = [float(n) for n in re.findall(_NUMBER, match[2])]
        if not all(map(math.isfinite, numbers)):
            raise SketchError("a transform with a number that is too large")
        result = result @ _call(match[1], numbers)
        position = match.end()
    return result


def parse_length(text: str | None, default: float = 0.0) -> float:
    """A length in user units, which are pixels where a file names no other size."""
    if text is None:
        return default
    match = _LENGTH.fullmatch(text)
    if match and match[2] in ("", "px"):
        return float(match[1])
    if (millimeters := physical_length(text)) is None:
        raise SketchError("a length we cannot read")
    return millimeters / MM_PER_PIXEL


def physical_length(text: str | None) -> float | None:
    """Millimeters, where the length has a unit of the real world."""
    match = _LENGTH.fullmatch(text or "")
    if not match or match[2] not in _MM_PER_CSS_UNIT or match[2] == "px":
        return None
    return float(match[1]) * _MM_PER_CSS_UNIT[match[2]]


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
