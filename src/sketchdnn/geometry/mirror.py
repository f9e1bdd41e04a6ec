"""Mirror images of primitives in an upright or level line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError

from .primitives import Arc, Circle, Line, Point, Primitive, Vec


class Mirror(NamedTuple):
    """A line to mirror in: all points with one coordinate.

    Attributes:
        axis: The coordinate that changes its side: 0 for an upright line, 1 for a level one.
        at: That coordinate of the line.
    """

    axis: int
    at: float

    def point(self, p: Vec) -> Vec:
        """The image of a point."""
        x, y = p
        return (2 * self.at - x, float(y)) if self.axis == 0 else (float(x), 2 * self.at - y)

    def primitive(self, p: Primitive) -> Primitive:
        """The image of a primitive. A line keeps its start; an arc stays counter-clockwise.

        >>> Mirror(0, 0.0).primitive(Line((1, 2), (3, 2)))
        Line(start=(-1.0, 2.0), end=(-3.0, 2.0), construction=False)
        """
        match p:
            case Line():
                return replace(p, start=self.point(p.start), end=self.point(p.end))
            case Circle():
                return replace(p, center=self.point(p.center))
            case Arc():
                angle = math.pi - p.end_angle if self.axis == 0 else -p.end_angle
                return replace(p, center=self.point(p.center), start_angle=angle)
            case Point():
                return replace(p, at=self.point(p.at))


def missing_images(primitives: Sequence[Primitive], mirror: Mirror, distance: float) -> tuple[Primitive, ...]:
    """The mirror images that are not among the primitives themselves.

    Args:
        primitives: The primitives.
        mirror: Where to mirror.
        distance: An image within this distance of a primitive, in every end, middle and radius, is that primitive.

    >>> holes = [Circle((-3, 0), 1), Circle((3, 0), 1), Circle((5, 0), 1)]
    >>> missing_images(holes, Mirror(0, 0.0), 0.01)
    (Circle(center=(-5.0, 0.0), radius=1, construction=False),)
    """
    images = []
    for p in primitives:
        with suppress(GeometryError):  # so small that its ends are one, far from zero
            images.append(mirror.primitive(p))
    if not images:
        return ()
    here, there = _values(primitives), _values(images)
    turned = there[:, [0, 3, 4, 1, 2, 5, 6, 7]]  # from its other end
    off = np.minimum(*(np.abs(each[:, None] - here).max(axis=-1) for each in (there, turned))).min(axis=1)
    return tuple(image for image, nearest in zip(images, off, strict=True) if nearest > distance)


def _values(primitives: Sequence[Primitive]) -> NDArray[np.float64]:
    """`prim, 8`: kind and construction, far apart, both ends, the middle, and the radius of a circle."""
    rows = []
    for p in primitives:
        match p:
            case Line():
                places: tuple[Vec, Vec, Vec] = (p.start, p.end, p.at(0.5))
            case Arc():
                places = (p.start, p.end, p.mid)
            case Circle():
                places = (p.center, p.center, p.center)
            case Point():
                places = (p.at, p.at, p.at)
        radius = p.radius if isinstance(p, Circle) else 0.0
        rows.append((1e15 * (2 * p.kind + p.construction), *(x for place in places for x in place), radius))
    return np.array(rows, np.float64)
