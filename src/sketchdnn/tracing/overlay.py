"""The traced sketch over the picture: the first thing to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch
from sketchdnn.render import PALETTE

from .opencv import opencv
from .reading import Picture
from .tracer import TraceResult

if TYPE_CHECKING:
    from PIL.Image import Image

# Positions are given to OpenCV in parts of 2⁻⁴ pixel.
_SHIFT = 4
_STEP = 2.0
_DASH, _GAP = 10.0, 6.0


def overlay(result: TraceResult, side_by_side: bool = False) -> Image:
    """The sketch in color over the paled picture; construction dashed.

    Args:
        result: The result of `trace`.
        side_by_side: Put the picture alone beside it.
    """
    from PIL import Image

    drawn = draw_over(result.picture, result.sketch, result.to_picture)
    return Image.fromarray(np.hstack((result.picture, drawn)) if side_by_side else drawn)


def draw_over(picture: Picture, sketch: Sketch, to_picture: NDArray[np.float64], width: int | None = None) -> Picture:
    """A picture, paled, with a sketch drawn over it.

    Args:
        picture: RGB pixels.
        sketch: The sketch.
        to_picture: Maps its coordinates to pixels, 3 by 3.
        width: Of the curves in pixels; by default it follows from the size of the picture.
    """
    cv2 = opencv()
    canvas = np.ascontiguousarray((0.45 * picture + 0.55 * 255).astype(np.uint8))
    width = width or max(1, round(max(picture.shape[:2]) / 300))
    scale = abs(float(to_picture[0, 0]))
    for number, p in enumerate(sketch):
        color = tuple(bytes.fromhex(PALETTE[number % len(PALETTE)][1:]))
        at = _places(p, _STEP / scale) @ to_picture[:2, :2].T + to_picture[:2, 2]
        if isinstance(p, Point):
            cv2.circle(canvas, tuple(np.round(at[0]).astype(int).tolist()), 2 * width + 1, color, -1, cv2.LINE_AA)
            continue
        for part in _dashes(at) if p.construction else [at]:
            fixed = np.round(part * 2**_SHIFT).astype(np.int32)
            cv2.polylines(canvas, [fixed], False, color, width, cv2.LINE_AA, _SHIFT)
    return canvas


def _places(p: Primitive, step: float) -> NDArray[np.float64]:
    match p:
        case Point(at):
            return np.array([at])
        case Line() | Circle() | Arc():
            return np.array([p.at(float(f)) for f in np.linspace(0, 1, max(2, int(p.length / step) + 2))])


def _dashes(at: NDArray[np.float64]) -> list[Any]:
    along = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(at, axis=0).T))))
    number = np.floor_divide(along, _DASH + _GAP)
    is_on = np.remainder(along, _DASH + _GAP) < _DASH
    return [at[(number == k) & is_on] for k in np.unique(number) if ((number == k) & is_on).sum() > 1]
