"""Curves as polylines, as fine as asked for."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError

from .primitives import TAU, Arc, Circle, Line, Point, Primitive

# However coarse the tolerance, a step turns no further: a circle stays a shape and does not become a line.
COARSEST_STEP = math.pi / 2
# However fine, one curve gets no more steps: beyond this the tolerance is a mistake.
MOST_STEPS = 1_000_000


def tessellate(primitive: Primitive, tolerance: float) -> NDArray[np.float64]:
    """Places along a primitive, one a row; the polyline through them strays from it by at most `tolerance`.

    The ends are exact, a circle ends where it began, and a point is a single row.

    >>> tessellate(Circle((0, 0), 1), tolerance=0.5).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -1.0], [1.0, 0.0]]
    """
    if not 0 < tolerance < math.inf:
        raise GeometryError(f"a tolerance must be above zero, not {tolerance}")
    match primitive:
        case Point(at):
            return np.array([at], dtype=np.float64)
        case Line(start, end):
            return np.array([start, end], dtype=np.float64)
        case Circle(center, radius):
            places = _along(center, radius, 0.0, TAU, tolerance)
            places[-1] = places[0]
            return places
        case Arc(center, radius, start_angle, sweep):
            places = _along(center, radius, start_angle, sweep, tolerance)
            places[0], places[-1] = primitive.start, primitive.end
            return places


def _along(
    center: tuple[float, float], radius: float, start_angle: float, sweep: float, tolerance: float
) -> NDArray[np.float64]:
    """Equal steps. A step φ strays by radius · (1 − cos φ/2) = radius · 2 sin² φ/4, which has no cancellation."""
    finest = 4 * math.asin(math.sqrt(min(1.0, tolerance / (2 * radius))))
    steps = sweep / min(finest, COARSEST_STEP) if finest > 0 else math.inf
    if steps > MOST_STEPS:
        raise GeometryError(f"a tolerance of {tolerance} is too fine for a radius of {radius}")
    # The smallest surplus would cost a whole step more.
    angles = start_angle + np.linspace(0.0, sweep, max(1, math.ceil(steps * (1 - 1e-12))) + 1)
    return np.stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)], axis=1)
