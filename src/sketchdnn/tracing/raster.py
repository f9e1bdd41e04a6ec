"""The small picture that a network takes: ink of a drawing in a square frame, without torch.

The frame is a square around the drawing. Its coordinates are those of a sketch, y up, from −`EXTENT` to `EXTENT`; the
larger side of the drawing goes from −`FILL` to `FILL`. Training pictures have the same frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .opencv import opencv
from .skeleton import Mask

# The half side of a picture, where a sketch lies within −1 to 1: strokes by hand leave that box.
EXTENT = 1.125
# The half side of a traced drawing: training sketches have half sides of 0.6 to 1.
FILL = 0.92
# Pixels of the warped mask for one of the raster. Their mean is the share of ink.
_OVERSAMPLED = 4


@dataclass(frozen=True, slots=True)
class Raster:
    """A drawing as a network takes it.

    Attributes:
        ink: The share of ink in each pixel, from 0 to 1, `size, size`.
        scale: Pixels of the mask for one unit of the frame.
        center: The pixel of the mask at the middle of the frame, y up.
    """

    ink: NDArray[np.float32]
    scale: float
    center: tuple[float, float]


def rasterize(mask: Mask, size: int = 128) -> Raster:
    """The raster of a mask of ink.

    Args:
        mask: 1 for ink; it must have some.
        size: Pixels a side of the raster.
    """
    cv2 = opencv()
    y, x = np.nonzero(mask)
    low, high = np.array([x.min(), y.min()], float), np.array([x.max(), y.max()], float)
    scale = max(float((high - low).max()), 1.0) / (2 * FILL)
    center = (low + high) / 2
    side = size * _OVERSAMPLED
    factor = side / (2 * EXTENT * scale)
    # Centers of pixels are whole numbers here.
    shift = side / 2 - 0.5 - factor * center
    matrix = np.array([[factor, 0, shift[0]], [0, factor, shift[1]]])
    source = (255 * mask).astype(np.uint8)
    if factor < 0.7:  # warping alone would skip pixels
        source = cv2.GaussianBlur(source, (0, 0), 0.4 / factor)
    warped = cv2.warpAffine(source, matrix, (side, side), flags=cv2.INTER_LINEAR)
    ink = cv2.resize(warped, (size, size), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    return Raster(ink, scale, (float(center[0]), -float(center[1])))
