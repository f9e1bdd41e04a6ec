"""Sketches that another source proposes for a picture, such as a network: fitted to the strokes like all candidates.

A proposal has the right primitives at about the right places. Each pixel of the skeleton is assigned to the nearest
primitive, the ends of curves move to the ends of their pixels, and the polish of `polish` does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch

from .candidates import NOISES, Candidate, Strokes, proposal_bonus, sample, score, to_sketch
from .curves import Floats
from .polish import Curve, Levels, find_joints, polish
from .raster import Raster
from .skeleton import Places

# Sketches in the frame of a raster.
Propose = Callable[[Raster], Sequence[Sketch]]

# Pixels farther from every curve than this share of the size belong to none; ends move at most as far.
_NEAR = 0.05
# Ends this close meet, as a share of the size.
_APART = 0.03
# Curves are assigned and polished so often, with at most so many pixels.
_ROUNDS, _MAX_PIXELS = 2, 1500
_STEP = 0.008
# Fewer pixels do not move the ends of a curve.
_FEW = 6


def proposed(sketches: Sequence[Sketch], raster: Raster, strokes: Strokes) -> Iterator[Candidate]:
    """A candidate for each proposal that has any curves. The assumed noise is the distance of the ink that is left.

    Args:
        sketches: Sketches in the frame of the raster.
        raster: The raster that they were proposed for.
        strokes: The strokes of the same mask.
    """
    bonus = proposal_bonus(strokes)
    for sketch in sketches:
        placed = sketch.moved(raster.scale, raster.center)
        fitted = fit_to_strokes(placed, strokes)
        if len(fitted):
            found = score(fitted, strokes, NOISES[0][0])
            noise = min(max(found.backward, NOISES[0][0]), NOISES[-1][0])
            found = score(fitted, strokes, noise)
            yield replace(found, score=found.score + bonus, is_proposal=True)


def fit_to_strokes(sketch: Sketch, strokes: Strokes) -> Sketch:
    """A sketch in pixels, y up, fitted to strokes that are near its curves."""
    y, x = np.nonzero(strokes.skeleton)
    pixels = np.column_stack((x, -y)).astype(float)
    pixels = pixels[:: max(1, len(pixels) // _MAX_PIXELS)]
    for _ in range(_ROUNDS):
        curves = [curve for curve in map(_to_curve, sketch) if curve is not None]
        if not curves or not len(pixels):
            break
        _assign(curves, pixels, strokes)
        reach = max(_APART * strokes.size, 1.6 * strokes.width)
        joints, touches = find_joints(curves, reach)
        try:
            curves = polish(curves, joints, touches, Levels(0.6 * _APART * strokes.size, 1.2 * _APART))
        except np.linalg.LinAlgError:
            break
        if not all(np.isfinite(curve.values).all() for curve in curves):
            break
        sketch = to_sketch(curves)
    return sketch


def _to_curve(p: Primitive) -> Curve | None:
    nothing = np.zeros((0, 2))
    match p:
        case Line(start, end):
            return Curve(np.array([*start, *end], float), nothing, "line", p.construction)
        case Circle(center, radius):
            return Curve(np.array([*center, radius], float), nothing, "circle", p.construction)
        case Arc(center, radius, start_angle, sweep):
            values = np.array([*center, radius, start_angle, start_angle + sweep], float)
            return Curve(values, nothing, "arc", p.construction)
        case Point(at):
            return Curve(np.array(at, float), nothing, "point", p.construction)
    return None


def _assign(curves: list[Curve], pixels: Places, strokes: Strokes) -> None:
    """Give each curve its pixels, and curves without any places of their own, so that they stay."""
    places = [_places(curve, _STEP * strokes.size) for curve in curves]
    nearest = np.array([_nearest(pixels, at) for at in places])
    owner = nearest.argmin(axis=0)
    near = nearest.min(axis=0) < _NEAR * strokes.size
    for number, curve in enumerate(curves):
        if curve.kind == "point":
            curve.values = _dot(curve.values, strokes).copy()
            curve.at = curve.values[None]
            continue
        own = pixels[(owner == number) & near]
        curve.at = own if len(own) >= 3 else places[number]
        if len(own) >= _FEW:
            _move_ends(curve, _NEAR * strokes.size)


def _places(curve: Curve, step: float) -> Places:
    try:
        return sample(Sketch((curve.primitive(),)), step)
    except GeometryError:
        return curve.values[None, :2]


def _nearest(pixels: Places, at: Places) -> Floats:
    """The distance of each pixel to the nearest of some places."""
    squared = (pixels**2).sum(axis=1)[:, None] - 2 * pixels @ at.T + (at**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squared.min(axis=1), 0)))


def _dot(at: Floats, strokes: Strokes) -> Floats:
    """The nearest dot, if it is near."""
    dots = strokes.dots * (1, -1)
    if not len(dots):
        return at
    apart = np.linalg.norm(dots - at, axis=1)
    return np.asarray(dots[apart.argmin()] if apart.min() < _NEAR * strokes.size else at)


def _move_ends(curve: Curve, most: float) -> None:
    """Move the ends of a line or an arc to the ends of its pixels, by at most so many pixels."""
    if curve.kind == "line":
        start, end = curve.values[:2].copy(), curve.values[2:].copy()
        length = max(math.dist(start, end), 1e-9)
        direction = (end - start) / length
        along = (curve.at - start) @ direction
        curve.values[:2] = start + float(np.clip(along.min(), -most, most)) * direction
        curve.values[2:] = start + float(np.clip(along.max(), length - most, length + most)) * direction
    elif curve.kind == "arc":
        x, y, radius, first, last = curve.values
        middle = (first + last) / 2
        angle = np.arctan2(curve.at[:, 1] - y, curve.at[:, 0] - x) - middle
        angle = middle + np.remainder(angle + math.pi, 2 * math.pi) - math.pi
        most = most / max(float(radius), 1e-9)
        curve.values[3] = np.clip(angle.min(), first - most, first + most)
        curve.values[4] = np.clip(angle.max(), last - most, last + most)
