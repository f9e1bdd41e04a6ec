"""Approximation of curves: primitives as polylines; elliptic arcs, Béziers and splines as lines and arcs.

`approximate` samples a curve until the chords follow it. Each smooth run is then fitted with one line, one arc or one
biarc (two arcs with a common tangent; Bolton 1975), and halved where the fit is too far off. Ends are kept exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from sketchdnn.errors import GeometryError

from .intersections import distance_to_curve
from .primitives import LARGEST_COORDINATE, TAU, Arc, Circle, Line, Point, Primitive, Vec, arc_from_sweep
from .table import Floats

# The largest angle of a step, so that a circle does not become a line at a coarse tolerance.
COARSEST_STEP = math.pi / 2
# More steps than this mean that the tolerance is a mistake.
MAX_STEPS = 1_000_000


def tessellate(primitive: Primitive, tolerance: float) -> Floats:
    """Points along a primitive, one a row; the polyline through them deviates from it by at most `tolerance`.

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
            points = _along(center, radius, 0.0, TAU, tolerance)
            points[-1] = points[0]
        case Arc(center, radius, start_angle, sweep):
            points = _along(center, radius, start_angle, sweep, tolerance)
            points[0], points[-1] = primitive.start, primitive.end
    return points


def _along(center: Vec, radius: float, start_angle: float, sweep: float, tolerance: float) -> Floats:
    """Equal steps. A step φ deviates by radius · (1 − cos φ/2) = radius · 2 sin² φ/4, which has no cancellation."""
    finest = 4 * math.asin(math.sqrt(min(1.0, tolerance / (2 * radius))))
    steps = sweep / min(finest, COARSEST_STEP) if finest > 0 else math.inf
    if steps > MAX_STEPS:
        raise GeometryError(f"a tolerance of {tolerance} is too fine for a radius of {radius}")
    # Rounding must not cost a whole step.
    angles = start_angle + np.linspace(0.0, sweep, max(1, math.ceil(steps * (1 - 1e-12))) + 1)
    return np.stack([center[0] + radius * np.cos(angles), center[1] + radius * np.sin(angles)], axis=1)


class ParametricCurve(Protocol):
    """A curve over a parameter, smooth between two neighboring `breaks`; the first and last break are its ends."""

    @property
    def breaks(self) -> Sequence[float]: ...

    @property
    def ends(self) -> tuple[Vec, Vec]: ...

    def at(self, t: float) -> tuple[Vec, Vec]:
        """The point and the derivative at t."""


@dataclass(frozen=True, slots=True)
class EllipticArc:
    """The points center + u·cos t + v·sin t for t from `start` through `sweep`; `exact_ends` overrides its ends."""

    center: Vec
    u: Vec
    v: Vec
    start: float = 0.0
    sweep: float = TAU
    exact_ends: tuple[Vec, Vec] | None = None

    @property
    def breaks(self) -> Sequence[float]:
        return (self.start, self.start + self.sweep)

    @property
    def ends(self) -> tuple[Vec, Vec]:
        if self.exact_ends is not None:
            return self.exact_ends
        first = self.at(self.start)[0]
        return first, first if abs(self.sweep) >= TAU else self.at(self.start + self.sweep)[0]

    def at(self, t: float) -> tuple[Vec, Vec]:
        (cx, cy), (ux, uy), (vx, vy) = self.center, self.u, self.v
        cos, sin = math.cos(t), math.sin(t)
        return (cx + ux * cos + vx * sin, cy + uy * cos + vy * sin), (vx * cos - ux * sin, vy * cos - uy * sin)


@dataclass(frozen=True, slots=True)
class Bezier:
    """A cubic Bézier curve with these four control points."""

    breaks: ClassVar[Sequence[float]] = (0.0, 1.0)
    points: tuple[Vec, Vec, Vec, Vec]

    @property
    def ends(self) -> tuple[Vec, Vec]:
        return self.points[0], self.points[3]

    def at(self, t: float) -> tuple[Vec, Vec]:
        s = 1 - t
        place_weights = (s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t)
        slope_weights = (-3 * s * s, 3 * s * s - 6 * s * t, 6 * s * t - 3 * t * t, 3 * t * t)
        return _weighted(place_weights, self.points), _weighted(slope_weights, self.points)


def quadratic_bezier(start: Vec, control: Vec, end: Vec) -> Bezier:
    """A quadratic Bézier curve as a cubic one."""
    inner = tuple(((a[0] + 2 * control[0]) / 3, (a[1] + 2 * control[1]) / 3) for a in (start, end))
    return Bezier((start, inner[0], inner[1], end))


def _weighted(weights: Sequence[float], points: Sequence[Vec]) -> Vec:
    x, y = (sum(w * p[axis] for w, p in zip(weights, points, strict=True)) for axis in (0, 1))
    return (x, y)


MAX_SAMPLES = 20_000
_MAX_HALVINGS = 14
# Curves that are small beside the tolerance keep their shape: the tolerance is at most this share of the extent.
_FINEST = 0.01
_CHORD_SHARE, _FIT_SHARE = 0.2, 0.8
_INSIDE = 1e-6  # where the direction at the end of a span is taken, as a share of the span
_CORNER = 1e-3  # radians
_SHARP = 1.0  # radians
_SAME_SLOPE = 0.01  # radians by which one arc may deviate from the end directions
_STRAIGHT = 1e-4
_MAX_TURN = 0.6 * math.pi  # of one biarc
_SAME_RADIUS = 1e-9
_ORIGIN = (0.0, 0.0)


def approximate(curve: ParametricCurve, tolerance: float) -> tuple[Line | Arc, ...]:
    """Lines and arcs within `tolerance` of a curve, each starting at the end of the one before.

    Args:
        curve: The curve.
        tolerance: The largest distance, in the curve's units; at most a hundredth of the curve's extent is used.

    Raises:
        GeometryError: The curve has no length, invalid numbers, or needs more than `MAX_SAMPLES` samples.

    >>> from sketchdnn.geometry import Bezier
    >>> quarter = Bezier(((1, 0), (1, 0.5523), (0.5523, 1), (0, 1)))
    >>> [(p.kind.label, round(p.radius, 3)) for p in approximate(quarter, 0.01)]
    [('arc', 1.0)]
    """
    rough = [curve.at(a + (b - a) * k / 4)[0] for a, b in pairwise(curve.breaks) for k in range(5)]
    if not all(abs(x) <= LARGEST_COORDINATE for point in rough for x in point):
        raise GeometryError("a curve has a coordinate that is not a number, or too large")
    extent = max(max(p[axis] for p in rough) - min(p[axis] for p in rough) for axis in (0, 1))
    if extent <= 0:
        raise GeometryError("a curve needs a length")
    tolerance = min(tolerance, _FINEST * extent)
    pieces: list[_Piece] = []
    runs = _smooth_runs(curve, _CHORD_SHARE * tolerance)
    for piece in chain.from_iterable(_fitted(run, _FIT_SHARE * tolerance) for run in runs):
        if pieces and (whole := _one_arc(pieces[-1], piece)):
            pieces[-1] = whole
        else:
            pieces.append(piece)
    return tuple(piece.primitive() for piece in pieces)


class _Sample(NamedTuple):
    t: float
    point: Vec
    direction: float  # angle of the tangent


class _Piece(NamedTuple):
    """A line or arc from `start` to `end`; a `sweep` of 0 is a line."""

    start: Vec
    end: Vec
    sweep: float = 0.0

    def primitive(self) -> Line | Arc:
        if self.sweep:
            with suppress(GeometryError):  # too small for floating point
                return arc_from_sweep(self.start, self.end, self.sweep)
        return Line(self.start, self.end)

    @property
    def radius(self) -> float:
        return math.dist(self.start, self.end) / (2 * math.sin(abs(self.sweep) / 2)) if self.sweep else math.inf


def _smooth_runs(curve: ParametricCurve, flatness: float) -> Iterator[list[_Sample]]:
    """Samples of a curve, dense enough that the chords follow it, split at its corners."""
    first, last = curve.ends
    spans = list(pairwise(curve.breaks))
    run: list[_Sample] = []
    total = 0
    for number, span in enumerate(spans):
        samples = list(islice(_samples(curve, *span, flatness), MAX_SAMPLES - total + 1))
        total += len(samples)
        if total > MAX_SAMPLES:
            raise GeometryError("a curve is too long or too intricate to approximate")
        if number == 0:
            samples[0] = samples[0]._replace(point=first)
        if number == len(spans) - 1:
            samples[-1] = samples[-1]._replace(point=last)
        if run and abs(_turn(run[-1].direction, samples[0].direction)) > _CORNER:
            yield run
            run = []
        run = run[:-1] + samples if run else samples
    yield run


def _samples(curve: ParametricCurve, start: float, end: float, flatness: float) -> Iterator[_Sample]:
    """Samples of a smooth span, both ends included."""
    width = end - start
    inner = [_sample(curve, start + width * k / 4) for k in (1, 2, 3)]
    first, last = _sample(curve, start, start + _INSIDE * width), _sample(curve, end, end - _INSIDE * width)
    yield first
    for left, right in pairwise([first, *inner, last]):
        yield from _between(curve, left, right, flatness)


def _sample(curve: ParametricCurve, t: float, near: float | None = None) -> _Sample:
    """The point at t, and the direction there or near it."""
    point, slope = curve.at(t)
    return _Sample(t, point, _direction(_ORIGIN, slope if near is None else curve.at(near)[1]))


def _between(
    curve: ParametricCurve, left: _Sample, right: _Sample, flatness: float, halvings: int = 0
) -> Iterator[_Sample]:
    """Samples after the left one, up to the right one."""
    middle = _sample(curve, (left.t + right.t) / 2)
    off = _from_chord(middle.point, left.point, right.point) / 4  # a chord of half the length is off by a quarter
    if abs(_turn(left.direction, right.direction)) > _SHARP:  # the curve may turn back between the samples
        off = max(off, math.dist(left.point, right.point), math.dist(left.point, middle.point))
    if halvings < _MAX_HALVINGS and off > flatness:
        yield from _between(curve, left, middle, flatness, halvings + 1)
        yield from _between(curve, middle, right, flatness, halvings + 1)
    else:
        yield from (middle, right)


def _fitted(run: Sequence[_Sample], tolerance: float) -> Iterator[_Piece]:
    if fit := _fit(run, tolerance):
        yield from fit
    elif len(run) > 2:
        middle = (len(run) - 1) // 2
        yield from _fitted(run[: middle + 1], tolerance)
        yield from _fitted(run[middle:], tolerance)
    elif run[0].point != run[-1].point:
        yield _Piece(run[0].point, run[-1].point)


def _fit(part: Sequence[_Sample], tolerance: float) -> list[_Piece]:
    """One line, one arc or one biarc through the ends of `part`; empty if none is within the tolerance."""
    start, end = part[0], part[-1]
    if start.point == end.point:
        return []
    chord = _direction(start.point, end.point)
    out, back = _turn(start.direction, chord), _turn(chord, end.direction)
    if max(abs(out), abs(back)) > _MAX_TURN / 2:
        return []
    if abs(out) + abs(back) <= _STRAIGHT:
        options = [[_Piece(start.point, end.point)]]
    else:
        one_arc = [[_Piece(start.point, end.point, out + back)]] if abs(out - back) <= _SAME_SLOPE else []
        options = [*one_arc, _biarc(start, end, out, back)]
    return next((pieces for pieces in options if pieces and _fits(pieces, part, tolerance)), [])


def _biarc(start: _Sample, end: _Sample, out: float, back: float) -> list[_Piece]:
    """Two arcs with the directions of the ends, and equal tangent lengths d on both sides of the joint."""
    (x0, y0), (x1, y1) = start.point, end.point
    chord = math.dist(start.point, end.point)
    # In the frame of the chord: 2·d²·(1 − cos(turn)) + 2·d·chord·(cos out + cos back) − chord² = 0.
    bend, reach = 2 * (1 - math.cos(out + back)), 2 * (math.cos(out) + math.cos(back))
    d = 2 * chord / (reach + math.sqrt(reach * reach + 4 * bend))
    joint = (
        (x0 + x1 + d * (math.cos(start.direction) - math.cos(end.direction))) / 2,
        (y0 + y1 + d * (math.sin(start.direction) - math.sin(end.direction))) / 2,
    )
    if joint in (start.point, end.point):
        return []
    to_joint, from_joint = _direction(start.point, joint), _direction(joint, end.point)
    sweeps = 2 * _turn(start.direction, to_joint), 2 * _turn(from_joint, end.direction)
    first, second = (0.0 if abs(sweep) <= _STRAIGHT else sweep for sweep in sweeps)
    return [_Piece(start.point, joint, first), _Piece(joint, end.point, second)]


def _fits(pieces: Sequence[_Piece], part: Sequence[_Sample], tolerance: float) -> bool:
    """Whether all samples are near the pieces, and the middle of each piece near the samples' chords."""
    shapes = [piece.primitive() for piece in pieces]
    for step in (max(2, len(part) // 8), 1):  # a coarse pass first: most fits fail there
        if any(min(_distance(sample.point, shape) for shape in shapes) > tolerance for sample in part[step:-1:step]):
            return False
    middles = [shape.mid for shape in shapes if isinstance(shape, Arc)] + [piece.end for piece in pieces[:-1]]
    return all(min(_from_chord(m, a.point, b.point) for a, b in pairwise(part)) <= tolerance for m in middles)


def _distance(point: Vec, shape: Line | Arc) -> float:
    return _from_chord(point, shape.start, shape.end) if isinstance(shape, Line) else distance_to_curve(shape, point)


def _from_chord(point: Vec, start: Vec, end: Vec) -> float:
    """The distance of a point from a segment."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    px, py = point[0] - start[0], point[1] - start[1]
    square = dx * dx + dy * dy
    along = min(1.0, max(0.0, (px * dx + py * dy) / square)) if square > 0 else 0.0
    return math.hypot(px - along * dx, py - along * dy)


def _one_arc(a: _Piece, b: _Piece) -> _Piece | None:
    """Two successive arcs of one circle as one; None if they differ, close the circle or form a corner."""
    if a.sweep * b.sweep <= 0 or abs(a.sweep + b.sweep) > 0.75 * TAU:
        return None
    if abs(a.radius - b.radius) > _SAME_RADIUS * a.radius:
        return None
    leaving = _direction(a.start, a.end) + a.sweep / 2
    entering = _direction(b.start, b.end) - b.sweep / 2
    if abs(_turn(leaving, entering)) > _SAME_RADIUS:
        return None
    return _Piece(a.start, b.end, a.sweep + b.sweep)


def _direction(start: Vec, end: Vec) -> float:
    return math.atan2(end[1] - start[1], end[0] - start[0])


def _turn(before: float, after: float) -> float:
    """The angle from one direction to another, within ±π."""
    return math.remainder(after - before, TAU)
