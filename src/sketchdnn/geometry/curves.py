"""Curves that are no primitive (elliptic arcs, Béziers, splines), approximated by lines and arcs within a tolerance.

A curve is sampled until the chords follow it. Then each smooth run is fitted with one line, one arc or one biarc (two
arcs with a common tangent; Bolton 1975), and halved where the fit is too far off. Ends are kept exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sketchdnn.errors import GeometryError

from .arcs import arc_from_sweep
from .parametric import ParametricCurve
from .primitives import LARGEST_COORDINATE, TAU, Arc, Line, Vec

MAX_SAMPLES = 20_000
_MAX_HALVINGS = 14
# A curve that is small beside the tolerance still keeps its shape: it is followed to this part of its own extent.
_FINEST = 0.01
_CHORD_SHARE, _FIT_SHARE = 0.2, 0.8
_INSIDE = 1e-6  # how far into a span, as a part of it, the direction at its end is taken
_CORNER = 1e-3  # radians
_SHARP = 1.0  # radians
_SAME_SLOPE = 0.01  # radians by which one arc may leave the end directions
_STRAIGHT = 1e-4
_MAX_TURN = 0.6 * math.pi  # of one biarc
_SAME_RADIUS = 1e-9


def approximate(curve: ParametricCurve, tolerance: float) -> tuple[Line | Arc, ...]:
    """Lines and arcs that follow a curve within `tolerance`, each beginning where the one before it ends.

    Args:
        curve: what to follow.
        tolerance: largest distance, in the curve's own units; at most a hundredth of the curve's extent is used.

    Raises:
        GeometryError: for a curve of no length, with impossible numbers, or that takes more than `MAX_SAMPLES` samples.

    >>> from sketchdnn.geometry import Bezier
    >>> quarter = Bezier(((1, 0), (1, 0.5523), (0.5523, 1), (0, 1)))
    >>> [(p.kind.label, round(p.radius, 3)) for p in approximate(quarter, 0.01)]
    [('arc', 1.0)]
    """
    rough = [curve.at(a + (b - a) * k / 4)[0] for a, b in pairwise(curve.breaks) for k in range(5)]
    if not all(abs(x) <= LARGEST_COORDINATE for place in rough for x in place):
        raise GeometryError("a curve has a coordinate that is not a number, or too large")
    extent = max(max(p[axis] for p in rough) - min(p[axis] for p in rough) for axis in (0, 1))
    if extent <= 0:
        raise GeometryError("a curve needs a length")
    tolerance = min(tolerance, _FINEST * extent)
    pieces: list[_Piece] = []
    for run in _smooth_runs(curve, _CHORD_SHARE * tolerance):
        for piece in _fitted(run, _FIT_SHARE * tolerance):
            if pieces and (whole := _one_arc(pieces[-1], piece)):
                pieces[-1] = whole
            else:
                pieces.append(piece)
    return tuple(piece.primitive() for piece in pieces)


@dataclass(frozen=True, slots=True)
class _Sample:
    place: Vec
    direction: float  # angle of the tangent


@dataclass(frozen=True, slots=True)
class _Piece:
    """The way from `start` to `end` that turns through `sweep`; a sweep of 0 is straight."""

    start: Vec
    end: Vec
    sweep: float = 0.0

    def primitive(self) -> Line | Arc:
        if self.sweep:
            try:
                return arc_from_sweep(self.start, self.end, self.sweep)
            except GeometryError:  # so small that its numbers run together
                pass
        return Line(self.start, self.end)

    @property
    def radius(self) -> float:
        return math.dist(self.start, self.end) / (2 * math.sin(abs(self.sweep) / 2)) if self.sweep else math.inf


def _smooth_runs(curve: ParametricCurve, flatness: float) -> Iterator[list[_Sample]]:
    """The curve as samples so close that the chords follow it, cut at its corners."""
    first, last = curve.ends
    spans = list(pairwise(curve.breaks))
    run: list[_Sample] = []
    total = 0
    for number, span in enumerate(spans):
        samples = list(_samples(curve, *span, flatness, MAX_SAMPLES - total))
        total += len(samples)
        if number == 0:
            samples[0] = _Sample(first, samples[0].direction)
        if number == len(spans) - 1:
            samples[-1] = _Sample(last, samples[-1].direction)
        if run and abs(_turn(run[-1].direction, samples[0].direction)) > _CORNER:
            yield run
            run = []
        run = run[:-1] + samples if run else samples
    yield run


def _samples(curve: ParametricCurve, start: float, end: float, flatness: float, limit: int) -> Iterator[_Sample]:
    """Samples of a smooth span, both ends included."""
    width = end - start
    marks = [start + width * k / 4 for k in range(4)] + [end]
    inside = [start + _INSIDE * width, *marks[1:4], end - _INSIDE * width]
    known = [_Sample(curve.at(t)[0], _direction(curve.at(near)[1])) for t, near in zip(marks, inside, strict=True)]
    yield known[0]
    stack = [(marks[k], known[k], marks[k + 1], known[k + 1], 0) for k in (3, 2, 1, 0)]
    count = 1
    while stack:
        t0, left, t1, right, halvings = stack.pop()
        middle = (t0 + t1) / 2
        place, slope = curve.at(middle)
        between = _Sample(place, _direction(slope))
        off = _from_chord(place, left.place, right.place) / 4  # a chord of half the length is off by a quarter
        if abs(_turn(left.direction, right.direction)) > _SHARP:  # it may turn back between the samples
            off = max(off, math.dist(left.place, right.place), math.dist(left.place, place))
        if halvings < _MAX_HALVINGS and off > flatness:
            stack += [(middle, between, t1, right, halvings + 1), (t0, left, middle, between, halvings + 1)]
            continue
        yield between
        yield right
        count += 2
        if count > limit:
            raise GeometryError("a curve is too long or too intricate to approximate")


def _fitted(run: Sequence[_Sample], tolerance: float) -> Iterator[_Piece]:
    stack = [(0, len(run) - 1)]
    while stack:
        first, last = stack.pop()
        part = run[first : last + 1]
        if fit := _fit(part, tolerance):
            yield from fit
        elif last - first > 1:
            middle = (first + last) // 2
            stack += [(middle, last), (first, middle)]
        elif part[0].place != part[-1].place:
            yield _Piece(part[0].place, part[-1].place)


def _fit(part: Sequence[_Sample], tolerance: float) -> list[_Piece]:
    """One line, one arc or one biarc through the ends of `part`; none where it would be too far off."""
    start, end = part[0], part[-1]
    if start.place == end.place:
        return []
    chord = _direction((end.place[0] - start.place[0], end.place[1] - start.place[1]))
    out, back = _turn(start.direction, chord), _turn(chord, end.direction)
    if max(abs(out), abs(back)) > _MAX_TURN / 2:
        return []
    if abs(out) + abs(back) <= _STRAIGHT:
        options = [[_Piece(start.place, end.place)]]
    else:
        options = [_biarc(start, end, out, back)]
        if abs(out - back) <= _SAME_SLOPE:
            options.insert(0, [_Piece(start.place, end.place, out + back)])
    for pieces in options:
        if pieces and _follow(pieces, part, tolerance):
            return pieces
    return []


def _biarc(start: _Sample, end: _Sample, out: float, back: float) -> list[_Piece]:
    """Two arcs with the end directions given, and equal tangent lengths d on both sides of the joint."""
    (x0, y0), (x1, y1) = start.place, end.place
    chord = math.dist(start.place, end.place)
    # In the frame of the chord: 2·d²·(1 − cos(turn)) + 2·d·chord·(cos out + cos back) − chord² = 0.
    bend, reach = 2 * (1 - math.cos(out + back)), 2 * (math.cos(out) + math.cos(back))
    d = 2 * chord / (reach + math.sqrt(reach * reach + 4 * bend))
    joint = (
        (x0 + x1 + d * (math.cos(start.direction) - math.cos(end.direction))) / 2,
        (y0 + y1 + d * (math.sin(start.direction) - math.sin(end.direction))) / 2,
    )
    if joint in (start.place, end.place):
        return []
    to_joint = _direction((joint[0] - x0, joint[1] - y0))
    from_joint = _direction((x1 - joint[0], y1 - joint[1]))
    sweeps = 2 * _turn(start.direction, to_joint), 2 * _turn(from_joint, end.direction)
    first, second = (0.0 if abs(sweep) <= _STRAIGHT else sweep for sweep in sweeps)
    return [_Piece(start.place, joint, first), _Piece(joint, end.place, second)]


def _follow(pieces: Sequence[_Piece], part: Sequence[_Sample], tolerance: float) -> bool:
    """Whether all samples are near the pieces, and the middle of each piece near the samples' chords."""
    shapes = [piece.primitive() for piece in pieces]
    for step in (max(2, len(part) // 8), 1):  # a few first: most fits fail at one of them
        for sample in part[step:-1:step]:
            if min(_distance(sample.place, shape) for shape in shapes) > tolerance:
                return False
    middles = [shape.mid for shape in shapes if isinstance(shape, Arc)] + [piece.end for piece in pieces[:-1]]
    return all(min(_from_chord(m, a.place, b.place) for a, b in pairwise(part)) <= tolerance for m in middles)


def _distance(place: Vec, shape: Line | Arc) -> float:
    if isinstance(shape, Line):
        return _from_chord(place, shape.start, shape.end)
    dx, dy = place[0] - shape.center[0], place[1] - shape.center[1]
    if (math.atan2(dy, dx) - shape.start_angle) % TAU <= shape.sweep:
        return abs(math.hypot(dx, dy) - shape.radius)
    return min(math.dist(place, shape.start), math.dist(place, shape.end))


def _from_chord(place: Vec, start: Vec, end: Vec) -> float:
    """The distance of a place from a segment."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    px, py = place[0] - start[0], place[1] - start[1]
    square = dx * dx + dy * dy
    along = min(1.0, max(0.0, (px * dx + py * dy) / square)) if square > 0 else 0.0
    return math.hypot(px - along * dx, py - along * dy)


def _one_arc(a: _Piece, b: _Piece) -> _Piece | None:
    """Two neighboring pieces of one circle as one, unless they close it or the corner between them is one."""
    if a.sweep * b.sweep <= 0 or abs(a.sweep + b.sweep) > 0.75 * TAU:
        return None
    if abs(a.radius - b.radius) > _SAME_RADIUS * a.radius:
        return None
    leaving = _direction((a.end[0] - a.start[0], a.end[1] - a.start[1])) + a.sweep / 2
    entering = _direction((b.end[0] - b.start[0], b.end[1] - b.start[1])) - b.sweep / 2
    if abs(_turn(leaving, entering)) > _SAME_RADIUS:
        return None
    return _Piece(a.start, b.end, a.sweep + b.sweep)


def _direction(vector: Vec) -> float:
    return math.atan2(vector[1], vector[0])


def _turn(before: float, after: float) -> float:
    """The angle from one direction to another, within ±π."""
    return math.remainder(after - before, TAU)
