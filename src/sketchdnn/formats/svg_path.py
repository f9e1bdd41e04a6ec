"""The `d` of an SVG path: M L H V A Z as straight pieces and circular arcs; what is a curve is named, not drawn."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from sketchdnn.geometry import TAU, Arc, Circle, Line, Primitive, SketchError, Vec, arc_from_sweep

from .found import Skipped, reason_of

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


def path_primitives(data: str, *, circles: bool = True) -> Iterator[Primitive | Skipped]:
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


def _pieces(data: str) -> Iterator[Primitive | Skipped]:
    at = first = (0.0, 0.0)
    reach = 0.0
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
                yield Skipped("a curve in a path")
        except SketchError as error:
            yield Skipped(reason_of(error))
        at = end


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


def _arc(start: Vec, end: Vec, numbers: list[float]) -> Iterator[Primitive | Skipped]:
    """By the rules of SVG: no radius is a line, too small a radius grows until it reaches."""
    rx, ry, _, large, positive = (*map(abs, numbers[:2]), *numbers[2:5])
    chord = math.dist(start, end)
    if chord == 0:
        return  # SVG draws nothing either
    if rx == 0 or ry == 0:
        yield Line(start, end)
    elif not math.isclose(rx, ry, rel_tol=1e-6):
        yield Skipped("an elliptical arc in a path")
    else:
        minor = 2 * math.asin(min(1.0, chord / (2 * rx)))
        turn = TAU - minor if large else minor
        yield arc_from_sweep(start, end, turn if positive else -turn)


def _joined(a: Arc, b: Arc, *, circles: bool) -> Arc | Circle | None:
    """Two arcs of one circle, one after the other in either direction, as what they draw together."""
    near = _SAME_CIRCLE * a.radius
    if math.dist(a.center, b.center) > near or abs(a.radius - b.radius) > near:
        return None
    gap, other_gap = math.dist(a.end, b.start), math.dist(b.end, a.start)
    turn = a.sweep + b.sweep
    if circles and max(gap, other_gap) <= near and abs(turn - TAU) < _SAME_CIRCLE:
        return Circle(a.center, a.radius)
    if min(gap, other_gap) > near or turn >= TAU:
        return None
    first = a if gap <= other_gap else b
    return Arc(a.center, a.radius, first.start_angle, turn)
