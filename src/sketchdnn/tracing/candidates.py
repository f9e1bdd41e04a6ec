"""Candidates for one picture, and how well each explains it.

The score of a candidate counts unexplained ink and invented curves by squared distances both ways, as shares of the
noise, and a price for each parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Sketch

from .curves import Costs, Floats
from .opencv import opencv
from .pieces import Piece, find_pieces
from .polish import Curve, find_joints, polish, to_curve
from .skeleton import Mask, Places, StrokeGraph, stroke_graph, stroke_width, thin

# The noise of a candidate, as a share of the size: printed, careful and free drawing.
NOISES = (0.003, 0.007, 0.014)
# Distances beyond this share of the size count as this.
_FAR = 0.05
# What a unit of noise is in the score, as a share of the size.
_UNIT = 0.006
_PER_PARAMETER = 0.012
_MAX_POINTS = 64


@dataclass(frozen=True, slots=True)
class Strokes:
    """The strokes of a picture at one threshold.

    Attributes:
        skeleton: The skeleton, without dots.
        graph: Its graph.
        width: The width of a stroke in pixels.
        dots: The centers of dots.
        size: The larger side of the drawing in pixels.
    """

    skeleton: Mask
    graph: StrokeGraph
    width: float
    dots: Places
    size: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sketch in pixels with y up, and its score: the larger, the better.

    Attributes:
        sketch: The sketch.
        score: The score.
        noise: The noise that was assumed, as a share of the size.
        forward: Root mean squared distance of curves to ink, as a share of the size.
        backward: Root mean squared distance of ink to curves.
    """

    sketch: Sketch
    score: float
    noise: float
    forward: float
    backward: float


def find_strokes(mask: Mask) -> Strokes | None:
    """The strokes of a mask of ink; None if it is no line drawing."""
    cv2 = opencv()
    skeleton = thin(mask)
    if int(np.count_nonzero(skeleton)) < 8:
        return None
    width = stroke_width(mask, skeleton)
    dots, mask = _take_dots(mask, width)
    skeleton = thin(mask)
    y, x = np.nonzero(cv2.dilate(mask, np.ones((2, 2), np.uint8)))
    if not len(x):
        return None
    size = float(max(np.ptp(x), np.ptp(y), 1))
    return Strokes(skeleton, stroke_graph(skeleton, width), width, dots, size)


def _take_dots(mask: Mask, width: float) -> tuple[Places, Mask]:
    """Centers of dots, and the mask without those that stand alone; specks are removed too."""
    cv2 = opencv()
    count, labels, stats, centers = cv2.connectedComponentsWithStats(mask, connectivity=8)
    boxes = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]].astype(float)
    area = stats[:, cv2.CC_STAT_AREA].astype(float)
    is_round = (boxes.max(1) < 1.6 * boxes.min(1)) & (area > 0.6 * boxes.prod(1))
    is_dot = is_round & (boxes.max(1) <= 4 * width + 2) & (boxes.min(1) >= 1.35 * width)
    is_speck = (boxes.max(1) < 1.5 * width) & ~is_dot
    is_dot[0] = is_speck[0] = False
    rest = np.where((is_dot | is_speck)[labels], 0, mask).astype(np.uint8)
    dots = [centers[k] for k in np.flatnonzero(is_dot)]
    # Dots on strokes are thicker than these.
    distance = cv2.distanceTransform(np.pad(rest, 1), cv2.DIST_L2, 5)[1:-1, 1:-1]
    thick = (distance > 0.8 * width + 0.5).astype(np.uint8)
    number, _, extents, middles = cv2.connectedComponentsWithStats(thick, connectivity=8)
    for k in range(1, number):
        box = extents[k, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]].astype(float)
        if box.max() <= 2.5 * width and box.max() <= 2 * box.min() + 2:
            dots.append(middles[k])
    return np.array(dots[:_MAX_POINTS]).reshape(-1, 2), rest


def candidates(strokes: Strokes) -> Iterator[Candidate]:
    """A candidate for each assumed noise."""
    for noise in NOISES:
        costs = Costs(strokes.size, max(noise * strokes.size, 0.16 * strokes.width))
        pieces = find_pieces(strokes.graph, strokes.width, costs)
        if not pieces and not len(strokes.dots):
            continue
        curves = _polished(pieces, strokes, costs)
        sketch = _to_sketch(curves)
        if len(sketch):
            yield score(sketch, strokes, noise)


def _polished(pieces: list[Piece], strokes: Strokes, costs: Costs) -> list[Curve]:
    curves = [to_curve(piece) for piece in pieces]
    curves += [Curve(at * (1, -1), at[None] * (1, -1), "point") for at in strokes.dots]
    reach = max(3.2 * costs.noise, 1.6 * strokes.width, 0.012 * strokes.size)
    joints, touches = find_joints(curves, reach)
    return polish(curves, joints, touches, 1.6 * costs.noise)


def _to_sketch(curves: list[Curve]) -> Sketch:
    primitives = []
    for curve in curves:
        try:
            primitives.append(curve.primitive())
        except GeometryError:  # a stroke that shrank to nothing
            continue
    return Sketch(tuple(primitives))


def score(sketch: Sketch, strokes: Strokes, noise: float) -> Candidate:
    """Compare a sketch with the skeleton by distance transforms both ways."""
    cv2 = opencv()
    size, skeleton = strokes.size, strokes.skeleton
    height, width = skeleton.shape
    at = sample(sketch, 0.004 * size) * (1, -1)
    inside = np.clip(np.round(at), 0, (width - 1, height - 1)).astype(int)
    to_ink = cv2.distanceTransform(1 - skeleton, cv2.DIST_L2, 5)
    far = _FAR * size
    forward = np.minimum(to_ink[inside[:, 1], inside[:, 0]], far)
    drawn = np.ones_like(skeleton)
    drawn[inside[:, 1], inside[:, 0]] = 0
    to_curve_ = cv2.distanceTransform(drawn, cv2.DIST_L2, 5)
    backward = np.minimum(to_curve_[skeleton == 1], far)
    errors = [float((d**2).mean()) / size**2 if len(d) else 0.0 for d in (forward, backward)]
    parameters = sum(_PARAMETERS[p.kind.label] for p in sketch)
    value = -sum(errors) / _UNIT**2 - _PER_PARAMETER * parameters
    return Candidate(sketch, value, noise, errors[0] ** 0.5, errors[1] ** 0.5)


_PARAMETERS = {"line": 4, "circle": 3, "arc": 5, "point": 2}


def sample(sketch: Sketch, step: float) -> Floats:
    """Places along all curves at about equal steps."""
    found = []
    for p in sketch:
        if p.kind.label == "point":
            found.append(np.array([p.at]))  # type: ignore[union-attr]
            continue
        fractions = np.linspace(0, 1, max(2, int(p.length / step) + 1))
        found.append(np.array([p.at(float(f)) for f in fractions]))  # type: ignore[operator]
    return np.concatenate(found) if found else np.zeros((0, 2))
