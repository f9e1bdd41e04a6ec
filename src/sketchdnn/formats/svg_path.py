"""The `d` of an SVG path as straight pieces, circular arcs, elliptic arcs and Bézier curves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sketchdnn.errors import SketchError
from sketchdnn.formats.format import Note, Skipped, short_reason
from sketchdnn.geometry import (
    TAU,
    Arc,
    Bezier,
    Circle,
    EllipticArc,
    Line,
    Primitive,
    Vec,
    arc_from_sweep,
    quadratic_bezier,
)

# What follows each command: n a number, f a flag, which may stand without a space before the next number.
_ARGUMENTS = {"m": "nn", "l": "nn", "h": "n", "v": "n", "a": "nnnffnn", "z": ""}
_ARGUMENTS |= {"c": "nnnnnn", "s": "nnnn", "q": "nnnn", "t": "nn"}
_TOKENS = {
    "n": re.compile(r"[\s,]*+([+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?)"),
    "f": re.compile(r"[\s,]*+([01])"),
}
_COMMAND = re.compile(r"[\s,]*+([a-zA-Z])")
# Ends this close, relative to the path, are one place written with few digits.
_CLOSED = 1e-6
_SAME_CIRCLE = 1e-4


@dataclass(frozen=True, slots=True)
class Curved:
    """A curve that is no primitive, and what a person would call it."""

    curve: Bezier | EllipticArc
    what: str


def path_pieces(data: str, *, circles: bool = True) -> Iterator[Primitive | Curved | Skipped]:
    """The pieces of a path in its own coordinates. A path cannot say a full turn in one arc, so arcs are joined.

    Without `circles`, arcs that come back to where they began stay one long arc.
    """
    waiting: Arc | None = None
    for piece in _pieces(data):
        if waiting and isinstance(piece, Arc):
            joined = _joined(waiting, piece, circles=circles)
            if isinstance(joined, Circle):
                yield joined
                waiting = None
            elif joined:
                waiting = joined
            else:
                yield waiting
                waiting = piece
            continue
        if waiting:
            yield waiting
        waiting = piece if isinstance(piece, Arc) else None
        if waiting is None:
            yield piece
    if waiting:
        yield waiting


def with_circles(pieces: Iterable[Primitive | Skipped | Note]) -> Iterator[Primitive | Skipped | Note]:
    """The same pieces, but neighboring arcs that go once round one circle as that circle."""
    run: list[Arc] = []
    for piece in pieces:
        if isinstance(piece, Skipped | Note):
            yield piece
            continue
        if not isinstance(piece, Arc) or (run and not _on_one_circle(run[0], piece)):
            yield from run
            run = []
        if not isinstance(piece, Arc):
            yield piece
            continue
        run.append(piece)
        turn = sum(arc.sweep for arc in run)
        if len(run) > 1 and abs(turn - TAU) < _SAME_CIRCLE * len(run):
            yield Circle(run[0].center, run[0].radius)
            run = []
    yield from run


def _pieces(data: str) -> Iterator[Primitive | Curved | Skipped]:
    at = first = (0.0, 0.0)
    reach = 0.0
    steered = ("", at)  # the last command and its last control point, which S and T mirror
    for letter, numbers in _commands(data):
        command = letter.lower()
        if command == "?":
            yield Skipped("a path with an error in its data")
            return
        end = first if command == "z" else _end(command, numbers, at, relative=letter.islower())
        reach = max(reach, math.dist(at, end))
        try:
            if command == "m":
                first = end
            elif command == "z":
                if math.dist(at, end) > _CLOSED * reach:
                    yield Line(at, end)
            elif command == "a":
                yield from _arc(at, end, numbers)
            elif command in "lhv":
                yield Line(at, end)
            else:
                curve, control = _bezier(letter, numbers, at, end, steered)
                steered = (command, control)
                yield Curved(curve, "a curve in a path")
        except SketchError as error:
            yield Skipped(short_reason(error))
        if command not in "csqt":
            steered = ("", end)
        at = end


def _bezier(letter: str, numbers: list[float], at: Vec, end: Vec, steered: tuple[str, Vec]) -> tuple[Bezier, Vec]:
    """The curve of a C, S, Q or T, and its last control point."""
    x, y = at if letter.islower() else (0.0, 0.0)
    controls = [(x + a, y + b) for a, b in zip(numbers[:-2:2], numbers[1:-2:2], strict=True)]
    command, before = steered
    if letter.lower() in "st":
        follows = command in ("c", "s") if letter.lower() == "s" else command in ("q", "t")
        controls.insert(0, (2 * at[0] - before[0], 2 * at[1] - before[1]) if follows else at)
    if len(controls) == 1:
        return quadratic_bezier(at, controls[0], end), controls[0]
    return Bezier((at, controls[0], controls[1], end)), controls[1]


def _commands(data: str) -> Iterator[tuple[str, list[float]]]:
    """Each command with its numbers, repeated ones spelt out; "?" where the data stops making sense."""
    data = data.strip()
    position, letter = 0, ""
    while position < len(data):
        if match := _COMMAND.match(data, position):
            # A path starts with a move; anything else there is an error.
            letter = match[1] if position or match[1] in "mM" else "?"
            position = match.end()
        else:
            # Numbers without a command repeat the last one; after a move they are lines, after a close an error.
            letter = {"m": "l", "M": "L", "z": "?", "Z": "?", "": "?"}.get(letter, letter)
        numbers = _numbers(data, position, _ARGUMENTS.get(letter.lower()))
        if numbers is None:
            yield "?", []
            return
        values, position = numbers
        yield letter, values


def _numbers(data: str, position: int, tokens: str | None) -> tuple[list[float], int] | None:
    """The arguments that stand at a position, and where they end; None where they do not."""
    if tokens is None:
        return None
    values = []
    for token in tokens:
        if not (match := _TOKENS[token].match(data, position)) or not math.isfinite(value := float(match[1])):
            return None
        values.append(value)
        position = match.end()
    return values, position


def _end(command: str, numbers: list[float], at: Vec, *, relative: bool) -> Vec:
    x, y = at if relative else (0.0, 0.0)
    if command == "h":
        return (x + numbers[0], at[1])
    if command == "v":
        return (at[0], y + numbers[0])
    return (x + numbers[-2], y + numbers[-1])


def _arc(start: Vec, end: Vec, numbers: list[float]) -> Iterator[Primitive | Curved]:
    """By the rules of SVG: no radius is a line, too small a radius grows until it reaches."""
    rx, ry, tilt, large, positive = (*map(abs, numbers[:2]), *numbers[2:5])
    chord = math.dist(start, end)
    if chord == 0:
        return  # SVG draws nothing either
    if rx == 0 or ry == 0:
        yield Line(start, end)
    elif not math.isclose(rx, ry, rel_tol=1e-6):
        oval = _elliptic_arc(start, end, (rx, ry), math.radians(tilt), large=bool(large), positive=bool(positive))
        yield Curved(oval, "an elliptical arc in a path")
    else:
        minor = 2 * math.asin(min(1.0, chord / (2 * rx)))
        turn = TAU - minor if large else minor
        yield arc_from_sweep(start, end, turn if positive else -turn)


def _elliptic_arc(start: Vec, end: Vec, radii: Vec, tilt: float, *, large: bool, positive: bool) -> EllipticArc:
    """The arc of an ellipse between two ends: on the unit circle of the ellipse's own frame it is a circular one."""
    cos, sin = math.cos(tilt), math.sin(tilt)

    def to_unit(p: Vec) -> Vec:
        return ((cos * p[0] + sin * p[1]) / radii[0], (cos * p[1] - sin * p[0]) / radii[1])

    (ax, ay), (bx, by) = to_unit(start), to_unit(end)
    half = math.hypot(bx - ax, by - ay) / 2
    grown = max(1.0, half)  # too small an ellipse grows until it reaches
    height = math.sqrt(max(0.0, grown * grown - half * half))
    side = height / half if large == positive else -height / half
    cx, cy = (ax + bx) / 2 + side * (by - ay) / 2, (ay + by) / 2 - side * (bx - ax) / 2
    first, last = math.atan2(ay - cy, ax - cx), math.atan2(by - cy, bx - cx)
    sweep = (last - first) % TAU if positive else -((first - last) % TAU)
    rx, ry = radii[0] * grown, radii[1] * grown
    center = (cos * cx * radii[0] - sin * cy * radii[1], sin * cx * radii[0] + cos * cy * radii[1])
    return EllipticArc(center, (cos * rx, sin * rx), (-sin * ry, cos * ry), first, sweep, (start, end))


def _on_one_circle(a: Arc, b: Arc) -> bool:
    near = _SAME_CIRCLE * a.radius
    return math.dist(a.center, b.center) <= near and abs(a.radius - b.radius) <= near


def _joined(a: Arc, b: Arc, *, circles: bool) -> Arc | Circle | None:
    """Two arcs of one circle, one after the other in either direction, as what they draw together."""
    if not _on_one_circle(a, b):
        return None
    near = _SAME_CIRCLE * a.radius
    gap, other_gap = math.dist(a.end, b.start), math.dist(b.end, a.start)
    turn = a.sweep + b.sweep
    if circles and max(gap, other_gap) <= near and abs(turn - TAU) < _SAME_CIRCLE:
        return Circle(a.center, a.radius)
    if min(gap, other_gap) > near or turn >= TAU:
        return None
    first = a if gap <= other_gap else b
    return Arc(a.center, a.radius, first.start_angle, turn)
