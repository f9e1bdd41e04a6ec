"""Where in a sketch the places are that constraints speak of."""

from __future__ import annotations

from collections.abc import Sequence

from .constraints import Part, Ref
from .primitives import Point, Primitive, Vec


def place(ref: Ref, primitives: Sequence[Primitive]) -> Vec | None:
    """The place that a reference means; None for a whole curve, an axis, or what is outside the sketch.

    >>> from sketchdnn.geometry import Circle
    >>> place(Ref(0, Part.CENTER), [Circle((1, 2), 3)]), place(Ref(0), [Circle((1, 2), 3)])
    ((1, 2), None)
    """
    if ref.primitive is None:
        return (0.0, 0.0) if ref.part is Part.ORIGIN else None
    primitive = primitives[ref.primitive]
    if isinstance(primitive, Point):
        return primitive.at
    if ref.part is Part.WHOLE:
        return None
    at: Vec = getattr(primitive, ref.part.value)
    return at
