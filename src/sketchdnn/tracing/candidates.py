"""Candidates for one picture, and how well each explains it.

The score of a candidate is minus the logarithm of the squared distance between ink and curves, both ways. Parameters,
loose ends and assumed noise lower it; the design score and level lines raise it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sketchdnn.design import score_design
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Line, Sketch

from .curves import Costs, Floats, fit_line
from .opencv import opencv
from .pieces import Piece, find_pieces
from .polish import Curve, Levels, find_joints, polish, to_curve
from .skeleton import Mask, Places, StrokeGraph, stroke_graph, stroke_width, thin

# The noise of a candidate and how far ends that meet may be apart, as shares of the size: print to free drawing.
NOISES = ((0.0015, 0.012), (0.003, 0.014), (0.007, 0.028), (0.012, 0.05), (0.018, 0.07))
# Strokes with less tremor are exact, and only so many of the noises are assumed.
_MAX_EXACT_TREMOR, _NUM_EXACT = 0.00045, 2
# Distances beyond this share of the size count as this.
_FAR = 0.05
# The finest distance that counts, as a share of the size; lines this close to level are level, ends this far loose.
_FINEST = 0.0005
_LEVEL, _LOOSE = 0.005, 0.01


class _Prices(NamedTuple):
    """Weights of the score, set on sketches of the validation split (docs/tracing.md)."""

    parameter: float = 0.11
    noise: float = 0.4
    loose: float = 0.03
    design: float = 1.5
    level: float = 4.0
    # Of a proposal for a drawing by hand: strokes alone are explained best by curves that follow the tremor.
    proposal: float = 1.0


_PRICES = _Prices()
_MAX_POINTS = 64
# A crowd of curves, most of which meet none, is no drawing.
_CROWD, _MAX_LOOSE = 24, 0.3
# Lines longer than this share of the size show the skew, if so much of their length agrees; between these angles.
_SKEW_LINE, _SKEW_SHARE = 0.15, 0.75
_MIN_SKEW, _MAX_SKEW = math.radians(0.6), math.radians(15)


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
        is_tangle: Whether it is a crowd of loose curves, as edges in a photograph are.
        forward: Root mean squared distance of curves to ink, as a share of the size.
        backward: Root mean squared distance of ink to curves.
        is_proposal: Whether a network proposed it (`proposals`).
    """

    sketch: Sketch
    score: float
    noise: float
    is_tangle: bool
    forward: float
    backward: float
    is_proposal: bool = False


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
    size = max(float(np.ptp(x)), float(np.ptp(y)), 1.0)
    return Strokes(skeleton, stroke_graph(skeleton, width), width, dots, size)


def _take_dots(mask: Mask, width: float) -> tuple[Places, Mask]:
    """Centers of dots, and the mask without those that stand alone; specks are removed too."""
    cv2 = opencv()
    _, labels, stats, centers = cv2.connectedComponentsWithStats(mask, connectivity=8)
    boxes = stats[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]].astype(float)
    area = stats[:, cv2.CC_STAT_AREA].astype(float)
    is_round = (boxes.max(1) < 1.6 * boxes.min(1)) & (area > 0.6 * boxes.prod(1))
    is_dot = is_round & (boxes.max(1) <= 4 * width + 2) & (boxes.min(1) >= 1.35 * width)
    is_speck = (boxes.max(1) < 1.5 * width) & ~is_dot
    is_dot[0] = is_speck[0] = False
    rest = np.where((is_dot | is_speck)[labels], 0, mask).astype(np.uint8)
    dots = [centers[k] for k in np.flatnonzero(is_dot)]
    return np.array(dots[:_MAX_POINTS]).reshape(-1, 2), rest


def find_skew(strokes: Strokes) -> float:
    """The angle in radians by which most lines are off level and upright, counter-clockwise as seen; 0 if unclear."""
    lines = [p for p in _rough_pieces(strokes) if p.fit.is_line and p.length > _SKEW_LINE * strokes.size]
    # Directions times four are equal for lines that are parallel or at right angles.
    turned = sum(p.length * complex(p.fit.direction[0], -p.fit.direction[1]) ** 4 for p in lines)
    total = sum(p.length for p in lines)
    if len(lines) < 2 or abs(turned) < _SKEW_SHARE * total:
        return 0.0
    skew = math.atan2(turned.imag, turned.real) / 4
    return skew if _MIN_SKEW < abs(skew) < _MAX_SKEW else 0.0


def find_tremor(strokes: Strokes) -> float:
    """The deviation of long strokes from lines and arcs, as a share of the size: the median by length.

    It is far below a thousandth in print, and about a thousandth or more in a drawing by hand. Ends are left out, since
    small features are there.
    """
    found = []
    for piece in _rough_pieces(strokes):
        if piece.length > _SKEW_LINE * strokes.size:
            ends = len(piece.at) // 8
            at = piece.at[ends : len(piece.at) - ends]
            fit = fit_line(at) if piece.fit.is_line else piece.fit
            found.append((float(np.sqrt((fit.distance(at) ** 2).mean())) / strokes.size, piece.length))
    if not found:
        return 0.0
    found.sort()
    reached = np.cumsum([length for _, length in found])
    return found[int(np.searchsorted(reached, reached[-1] / 2))][0]


def _rough_pieces(strokes: Strokes) -> list[Piece]:
    noise, _ = NOISES[len(NOISES) // 2]
    return find_pieces(strokes.graph, strokes.width, _costs(strokes, noise))


def candidates(strokes: Strokes) -> Iterator[Candidate]:
    """A candidate for each assumed noise that the tremor of the strokes allows."""
    is_exact = find_tremor(strokes) < _MAX_EXACT_TREMOR
    for noise, apart in NOISES[:_NUM_EXACT] if is_exact else NOISES[_NUM_EXACT - 1 :]:
        costs = _costs(strokes, noise)
        pieces = find_pieces(strokes.graph, strokes.width, costs)
        if not pieces and not len(strokes.dots):
            continue
        curves = _polished(pieces, strokes, apart)
        sketch = to_sketch(curves)
        if len(sketch):
            yield score(sketch, strokes, noise)


def proposal_bonus(strokes: Strokes) -> float:
    """What a proposal scores beside how it explains the ink; nothing in exact drawings, where the ink decides."""
    return 0.0 if find_tremor(strokes) < _MAX_EXACT_TREMOR else _PRICES.proposal


def _costs(strokes: Strokes, noise: float) -> Costs:
    """Prices for an assumed noise. A trembling hand repeats itself along a stroke; errors of pixels do not."""
    repeats = min(20.0, max(4.0, 0.06 / noise))
    in_pixels = max(noise * strokes.size, 0.18 * strokes.width)
    return Costs(strokes.size, in_pixels, length=repeats, min_radius=1.25 * strokes.width)


def _polished(pieces: list[Piece], strokes: Strokes, apart: float) -> list[Curve]:
    curves = [to_curve(piece) for piece in pieces]
    curves += [Curve(at * (1, -1), at[None] * (1, -1), "point") for at in strokes.dots]
    reach = max(apart * strokes.size, 1.6 * strokes.width)
    joints, touches = find_joints(curves, reach)
    return polish(curves, joints, touches, Levels(0.6 * apart * strokes.size, 1.2 * apart))


def to_sketch(curves: list[Curve]) -> Sketch:
    """The primitives of curves, without those that are none."""
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
    value = -math.log(sum(errors) + _FINEST**2) - _PRICES.noise * math.log(noise)
    value -= _PRICES.parameter * sum(_PARAMETERS[p.kind.label] for p in sketch)
    value += _PRICES.design * score_design(sketch).value + _PRICES.level * _level_share(sketch, size)
    loose = _count_loose(sketch, size)
    value -= _PRICES.loose * loose
    is_tangle = len(sketch) > _CROWD and loose > _MAX_LOOSE * 2 * len(sketch)
    return Candidate(sketch, value, noise, is_tangle, errors[0] ** 0.5, errors[1] ** 0.5)


def _level_share(sketch: Sketch, size: float) -> float:
    """The share of lines that are upright or level."""
    off = [np.abs(np.subtract(p.start, p.end)).min() for p in sketch if isinstance(p, Line)]
    return float(np.mean(np.array(off) < _LEVEL * size)) if off else 1.0


def _count_loose(sketch: Sketch, size: float) -> int:
    """How many ends meet no other end."""
    ends = np.array([end for p in sketch if isinstance(p, Line | Arc) for end in (p.start, p.end)])
    if len(ends) < 2:
        return 0
    gaps = np.linalg.norm(ends[:, None] - ends[None], axis=-1)
    np.fill_diagonal(gaps, np.inf)
    return int((gaps.min(axis=1) > _LOOSE * size).sum())


_PARAMETERS = {"line": 4, "circle": 3, "arc": 5, "point": 2}


def sample(sketch: Sketch, step: float) -> Floats:
    """Places along all curves at about equal steps."""
    found = []
    for p in sketch:
        if p.kind.label == "point":
            found.append(np.array([p.at]))
            continue
        fractions = np.linspace(0, 1, max(2, int(p.length / step) + 1))
        found.append(np.array([p.at(float(f)) for f in fractions]))  # type: ignore[operator]
    return np.concatenate(found) if found else np.zeros((0, 2))
