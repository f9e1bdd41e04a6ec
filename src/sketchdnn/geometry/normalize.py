"""Center a sketch and scale it to a standard size, keeping what is needed to undo it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace

from sketchdnn.errors import GeometryError

from .bounds import bounds
from .primitives import Vec
from .sketch import Sketch


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a normalized sketch came from: true place = center + scale · normalized place, measured in `units`."""

    center: Vec
    scale: float
    units: str | None = None

    def restore(self, sketch: Sketch) -> Sketch:
        """The inverse of `normalize`: true size, place and units."""
        return replace(sketch.moved(self.scale, self.center), units=self.units)


def normalize(sketch: Sketch, half_extent: float = 1.0) -> tuple[Sketch, Placement]:
    """Center the tight box on the origin with its larger side 2·half_extent, and say where the sketch was.

    >>> from sketchdnn.geometry import Circle
    >>> small, placement = normalize(Sketch((Circle((30, 0), 5),), units="mm"))
    >>> small.primitives[0].radius, placement.restore(small).primitives[0]
    (1.0, Circle(center=(30.0, 0.0), radius=5.0, construction=False))
    """
    box = bounds(sketch)
    if not 0 < half_extent < math.inf:
        raise GeometryError(f"a sketch cannot be scaled to half extent {half_extent}")
    scale = box.size / (2 * half_extent)
    if box.size == 0 or scale < sys.float_info.min:
        raise GeometryError("a sketch of no extent cannot be scaled to a standard size")
    placed = sketch.moved(1 / scale, (-box.center[0] / scale, -box.center[1] / scale))
    return replace(placed, units=None), Placement(box.center, scale, sketch.units)
