"""Ink in a picture: the page is found and straightened, light is evened out, and ink is separated from paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import SketchError

from .opencv import opencv
from .reading import Picture
from .skeleton import Mask

Gray = NDArray[np.float32]

# The larger side of the drawing in the working picture, in pixels.
SIDE = 640
_BORDER = 24
# A page takes up at least this share of the picture.
_MIN_PAGE = 0.2
# Its edge is at most so wide, and at least so dark, in pixels of a picture of 400 and in gray levels.
_EDGE, _MIN_DROP = 5, 20
# Less perspective does not tell the proportions of a page.
_MIN_TILT = 0.05
# Ink covers at most this share of the box of a drawing.
_MAX_INK = 0.4
_NOTHING = "no drawing was found in the picture: dark strokes on light paper, or the reverse, are needed"


@dataclass(frozen=True, slots=True)
class Ink:
    """The ink of a drawing.

    Attributes:
        picture: The straightened picture, cropped to the drawing.
        darkness: From 0, paper, to 1, the darkest ink.
        thresholds: Values of darkness that separate ink from paper, the likeliest first.
        to_source: Maps its pixels to those of the picture as it was read, 3 by 3.
    """

    picture: Picture
    darkness: Gray
    thresholds: tuple[float, ...]
    to_source: NDArray[np.float64]

    def mask(self, threshold: float) -> Mask:
        """Pixels of ink: those above the threshold, and paler ones beside them."""
        cv2 = opencv()
        strong = (self.darkness >= threshold).astype(np.uint8)
        weak = (self.darkness >= 0.7 * threshold).astype(np.uint8)
        count, labels = cv2.connectedComponents(weak, connectivity=8)
        hit = np.zeros(count, np.uint8)
        hit[labels[strong == 1]] = 1
        hit[0] = 0
        return np.ascontiguousarray(hit[labels])


def find_ink(picture: Picture, turn: float = 0.0) -> Ink:
    """Find the drawing in a picture.

    Args:
        picture: RGB pixels.
        turn: The drawing is turned back by this angle in radians, clockwise as seen.

    Raises:
        SketchError: If there is none.
    """
    cv2 = opencv()
    matrix = np.eye(3)
    corners = _page_corners(picture)
    page = picture
    if corners is not None:
        page, matrix = _straighten(picture, corners)
    if turn:
        page, back = _turned(page, turn)
        matrix = matrix @ back
    darkness = _darkness(page)
    low, high = _drawing_box(darkness)
    scale = SIDE / max(high - low)
    size = np.ceil((high - low) * scale).astype(int) + 2 * _BORDER
    # Centers of pixels are whole numbers here.
    to_working = np.array([[scale, 0, _BORDER - low[0] * scale], [0, scale, _BORDER - low[1] * scale], [0, 0, 1]])
    options = {"flags": cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC, "borderMode": cv2.BORDER_REPLICATE}
    if scale < 0.7:  # warping alone would skip pixels
        page = cv2.GaussianBlur(page, (0, 0), 0.4 / scale)
        darkness = cv2.GaussianBlur(darkness, (0, 0), 0.4 / scale)
    options["flags"] = cv2.INTER_LINEAR if scale < 1 else cv2.INTER_CUBIC
    cropped = cv2.warpAffine(page, to_working[:2], tuple(size.tolist()), **options)
    dark = np.clip(cv2.warpAffine(darkness, to_working[:2], tuple(size.tolist()), **options), 0, 1)
    if scale > 1.5:
        dark = cv2.GaussianBlur(dark, (0, 0), 0.35 * scale)
    top = float(np.quantile(dark[dark > 0.15], 0.9)) if (dark > 0.15).any() else 1.0
    dark = np.clip(dark / max(top, 0.15), 0, 1).astype(np.float32)
    return Ink(cropped, dark, _thresholds(dark), matrix @ np.linalg.inv(to_working))


def _page_corners(picture: Picture) -> NDArray[np.float32] | None:
    """The corners of a light page on a darker ground; None if the page fills the picture."""
    cv2 = opencv()
    gray = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    scale = 400 / max(gray.shape)
    small = cv2.resize(gray, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    small = cv2.morphologyEx(small, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    level, mask = cv2.threshold(cv2.GaussianBlur(small, (5, 5), 0), 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    light, dark = small[small > level], small[small <= level]
    if not len(light) or not len(dark) or float(np.median(light)) - float(np.median(dark)) < 30:
        return None
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    contour = max(contours, key=cv2.contourArea, default=None)
    if contour is None or cv2.contourArea(contour) < _MIN_PAGE * small.size:
        return None
    hull = cv2.convexHull(contour)
    shapes = (cv2.approxPolyDP(hull, e * cv2.arcLength(hull, True), True) for e in (0.02, 0.03, 0.05, 0.08))
    quad = next((shape for shape in shapes if len(shape) == 4), None)
    if quad is None:
        return None
    area = cv2.contourArea(quad)
    # A page is a full quadrilateral with dark on the outside; a light patch of uneven light is neither.
    if area > 0.97 * small.size or cv2.contourArea(contour) < 0.9 * area:
        return None
    outside = np.ones(small.shape, np.uint8)
    cv2.fillConvexPoly(outside, quad.astype(np.int32), 0)
    if float((mask[outside == 1] > 0).mean()) > 0.15 or float((mask[outside == 0] > 0).mean()) < 0.8:
        return None
    corners = quad[:, 0].astype(np.float32)
    middle = corners.mean(axis=0)
    corners = corners[np.argsort(np.arctan2(*(corners - middle).T[::-1]))]
    return np.asarray(corners / scale, np.float32) if _has_edges(small, corners) else None


def _has_edges(gray: NDArray[np.uint8], corners: NDArray[np.float32]) -> bool:
    """Whether the picture gets darker at once beyond the sides of a page; light fades slowly."""
    drops = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        along = (b - a) / max(float(np.linalg.norm(b - a)), 1e-9)
        outward = _EDGE * np.array([along[1], -along[0]])
        at = a + (b - a) * np.linspace(0.1, 0.9, 33)[:, None]
        inner, outer = (np.round(at + side * outward).astype(int) for side in (-1, 1))
        limit = np.array(gray.shape[::-1])
        is_inside = ((inner >= 0) & (inner < limit) & (outer >= 0) & (outer < limit)).all(axis=1)
        if is_inside.sum() > 10:
            values = [gray[p[is_inside, 1], p[is_inside, 0]].astype(float) for p in (inner, outer)]
            drops.append(float(np.median(values[0] - values[1])))
    return len(drops) >= 2 and min(drops) > _MIN_DROP


def _straighten(picture: Picture, corners: NDArray[np.float32]) -> tuple[Picture, NDArray[np.float64]]:
    """The page as seen from above, a little inside its edge; and the map from its pixels to the picture."""
    cv2 = opencv()
    sides = [float(np.linalg.norm(corners[k] - corners[(k + 1) % 4])) for k in range(4)]
    width, height = max(sides[0], sides[2]), max(sides[1], sides[3])
    ratio = _page_ratio(corners, (picture.shape[1] / 2, picture.shape[0] / 2))
    if ratio is not None:
        width, height = (width, width / ratio) if width > height * ratio else (height * ratio, height)
    inset = 0.025 * max(width, height)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32) - np.float32(inset)
    matrix = cv2.getPerspectiveTransform(corners, target)
    size = (max(2, round(width - 2 * inset)), max(2, round(height - 2 * inset)))
    page = cv2.warpPerspective(picture, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return page, np.linalg.inv(matrix)


def _page_ratio(corners: NDArray[np.float32], middle: tuple[float, float]) -> float | None:
    """Width over height of a page in perspective (Zhang and He); None where the view is too straight to tell.

    The camera has square pixels, and its axis goes through the middle of the picture.
    """
    m1, m2, m4, m3 = (np.array([*(corner - middle), 1.0]) for corner in corners.astype(float))
    k2 = np.cross(m1, m4) @ m3 / (np.cross(m2, m4) @ m3)
    k3 = np.cross(m1, m4) @ m2 / (np.cross(m3, m4) @ m2)
    across, down = k2 * m2 - m1, k3 * m3 - m1
    if min(abs(across[2]), abs(down[2])) < _MIN_TILT:
        return None
    focal2 = -(across[0] * down[0] + across[1] * down[1]) / (across[2] * down[2])
    if not 0.1 < focal2 / (middle[0] ** 2 + middle[1] ** 2) < 100:
        return None
    weight = np.array([1 / focal2, 1 / focal2, 1.0])
    ratio = float(np.sqrt((across**2 @ weight) / (down**2 @ weight)))
    return ratio if 0.3 < ratio < 3.5 else None


def _turned(page: Picture, turn: float) -> tuple[Picture, NDArray[np.float64]]:
    """The page turned on paper of its own color; and the map from its pixels to those before."""
    cv2 = opencv()
    height, width = page.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), np.degrees(turn), 1.0)
    cos, sin = abs(matrix[0, 0]), abs(matrix[0, 1])
    size = (int(width * cos + height * sin) + 1, int(height * cos + width * sin) + 1)
    matrix[:, 2] += (np.array(size) - (width, height)) / 2
    options = {"flags": cv2.INTER_CUBIC, "borderMode": cv2.BORDER_REPLICATE}
    turned = cv2.warpAffine(page, matrix, size, **options)
    return turned, np.linalg.inv(np.vstack((matrix, (0, 0, 1))))


def _darkness(page: Picture) -> Gray:
    """Darkness relative to the paper around, from 0 to 1; of light strokes on dark ground the reverse."""
    cv2 = opencv()
    gray = cv2.cvtColor(page, cv2.COLOR_RGB2GRAY)
    if float(np.median(gray)) < 100:
        gray = 255 - gray
    side = max(gray.shape)
    # Closing removes strokes, which are thinner than its window.
    window = max(5, round(0.03 * side)) | 1
    paper = cv2.morphologyEx(gray, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (window, window)))
    paper = cv2.GaussianBlur(paper, (0, 0), window / 2).astype(np.float32)
    values = gray.astype(np.float32)
    values = cv2.GaussianBlur(values, (0, 0), 0.0007 * side) if side > 800 else values
    # The median of paper is its gray, not its lightest grain.
    dark = 1 - values / np.maximum(paper, 16)
    dark -= float(np.median(dark))
    return np.asarray(np.clip(dark, 0, 1), np.float32)


def _drawing_box(darkness: Gray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The box of the ink, without specks."""
    cv2 = opencv()
    noise = 1.4826 * float(np.median(np.abs(darkness - np.median(darkness))))
    peak = float(np.quantile(darkness, 0.999))
    level = max(0.12, 0.4 * peak, 5 * noise)
    if peak < 0.12 or peak < 4 * noise:
        raise SketchError(_NOTHING)
    mask = (darkness > level).astype(np.uint8)
    side = max(darkness.shape)
    reach = max(3, round(0.02 * side)) | 1
    joined = cv2.dilate(mask, np.ones((reach, reach), np.uint8))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    ink = np.bincount(labels[mask == 1], minlength=count).astype(float)
    ink[0] = 0
    extent = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]) - reach + 1
    least = 0.006 if noise < 0.004 else 0.03
    kept = (ink > 0) & ((extent > least * side) | (ink > 0.1 * ink.max()))
    y, x = np.nonzero(mask & kept[labels])
    if len(x) < 12:
        raise SketchError(_NOTHING)
    low, high = np.array([x.min(), y.min()], float), np.array([x.max(), y.max()], float)
    if max(high - low) < 8 or len(x) > _MAX_INK * np.prod(np.maximum(high - low, 0.15 * max(high - low))):
        raise SketchError(_NOTHING)
    return low, np.maximum(high, low + 1)


def _thresholds(dark: Gray) -> tuple[float, ...]:
    """Thresholds by Otsu's method over all pixels, and over those that are not plain paper."""
    cv2 = opencv()

    def otsu(values: Any) -> float:
        level, _ = cv2.threshold(np.round(255 * values).astype(np.uint8).reshape(-1, 1), 0, 255, cv2.THRESH_OTSU)
        return float(level) / 255

    first = otsu(dark)
    found = [first]
    above = dark[dark > 0.5 * first]
    if len(above) > 100:
        found.append(otsu(above))
    bounded = [float(np.clip(value, 0.22, 0.75)) for value in found]
    return tuple(dict.fromkeys(bounded if abs(bounded[0] - bounded[-1]) > 0.08 else bounded[:1]))
