"""Curves that are no primitive: elliptic arcs and Béziers, as places and derivatives over a parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .primitives import TAU, Vec


class ParametricCurve(Protocol):
    """A curve over a parameter, smooth between two neighboring `breaks`; the first and last break are its ends."""

    @property
    def breaks(self) -> Sequence[float]: ...

    @property
    def ends(self) -> tuple[Vec, Vec]: ...

    def at(self, t: float) -> tuple[Vec, Vec]:
        """The place and the derivative there."""
        ...


@dataclass(frozen=True, slots=True)
class EllipticArc:
    """The places center + u·cos t + v·sin t for t from `start` through `sweep`; `given` are its ends where known."""

    center: Vec
    u: Vec
    v: Vec
    start: float = 0.0
    sweep: float = TAU
    given: tuple[Vec, Vec] | None = None

    @property
    def breaks(self) -> Sequence[float]:
        return (self.start, self.start + self.sweep)

    @property
    def ends(self) -> tuple[Vec, Vec]:
        if self.given is not None:
            return self.given
        first = self.at(self.start)[0]
        return first, first if abs(self.sweep) >= TAU else self.at(self.start + self.sweep)[0]

    def at(self, t: float) -> tuple[Vec, Vec]:
        (cx, cy), (ux, uy), (vx, vy) = self.center, self.u, self.v
        cos, sin = math.cos(t), math.sin(t)
        return (cx + ux * cos + vx * sin, cy + uy * cos + vy * sin), (vx * cos - ux * sin, vy * cos - uy * sin)


@dataclass(frozen=True, slots=True)
class Bezier:
    """A cubic Bézier curve with these four control points."""

    points: tuple[Vec, Vec, Vec, Vec]

    @property
    def breaks(self) -> Sequence[float]:
        return (0.0, 1.0)

    @property
    def ends(self) -> tuple[Vec, Vec]:
        return self.points[0], self.points[3]

    def at(self, t: float) -> tuple[Vec, Vec]:
        s = 1 - t
        place_weights = (s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t)
        slope_weights = (-3 * s * s, 3 * s * s - 6 * s * t, 6 * s * t - 3 * t * t, 3 * t * t)
        return _weighted(place_weights, self.points), _weighted(slope_weights, self.points)


def quadratic_bezier(start: Vec, control: Vec, end: Vec) -> Bezier:
    """The same curve as a cubic one."""
    inner = tuple(((a[0] + 2 * control[0]) / 3, (a[1] + 2 * control[1]) / 3) for a in (start, end))
    return Bezier((start, inner[0], inner[1], end))


def _weighted(weights: Sequence[float], points: Sequence[Vec]) -> Vec:
    x = sum(w * p[0] for w, p in zip(weights, points, strict=True))
    y = sum(w * p[1] for w, p in zip(weights, points, strict=True))
    return (x, y)
