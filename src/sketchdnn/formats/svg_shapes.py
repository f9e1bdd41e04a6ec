"""Shapes, paths and lengths of SVG as primitives, elliptic arcs and Bézier curves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sketchdnn.errors import SketchError
from sketchdnn.geometry import TAU, Arc, Bezier, Circle, EllipticArc, Line, Point, Primitive, Vec, arc_from_sweep
from sketchdnn.geometry.approximation import quadratic_bezier

from .checks import short_reason
from .format import Note, Skipped

SHAPES = frozenset({"line", "circle", "ellipse", "path", "polyline", "polygon", "rect"})
_QUARTER = TAU / 4
# Possessive throughout (`++`), so that there is one way to match a text and time is linear in its length.
NUMBER = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_LENGTH = re.compile(rf"\s*+({NUMBER})\s*+([a-zA-Z%]*+)\s*+")
MM_PER_PIXEL = 25.4 / 96
_MM_PER_CSS_UNIT = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72, "pc": 25.4 / 6, "Q": 0.25, "px": MM_PER_PIXEL}
# The arguments of each command: n a number, f a flag, which needs no space before the next number. No text is a `?`.
_ARGUMENTS = {
    "m": "nn", "l": "nn", "h": "n", "v": "n", "z": "",
    "a": "nnnffnn", "c": "nnnnnn", "s": "nnnn", "q": "nnnn", "t": "nn",
}  # fmt: skip
_TOKENS = {"n": re.compile(rf"[\s,]*+({NUMBER})"), "f": re.compile(r"[\s,]*+([01])"), "?": re.compile("(?!)")}
_COMMAND = re.compile(r"[\s,]*+([a-zA-Z])")
# Ends this close, relative to the path, are one point written with few digits.
_CLOSED = 1e-6
_SAME_CIRCLE = 1e-4


@dataclass(frozen=True, slots=True)
class NamedCurve:
    """A curve that is not a primitive, and its name in messages."""

    curve: Bezier | EllipticArc
    name: str


def read_shape(tag: str, attributes: Mapping[str, str]) -> Iterator[Primitive | NamedCurve | Skipped]:
    """The curves of an element in its own coordinates. Class "point" marks our points, class "arc" our arcs."""
    classes = attributes.get("class", "").split()

    def length(name: str) -> float:
        return parse_length(attributes.get(name, "0"))

    match tag:
        case "line":
            yield Line((length("x1"), length("y1")), (length("x2"), length("y2")))
        case "circle":
            center = (length("cx"), length("cy"))
            yield Point(center) if "point" in classes else Circle(center, length("r"))
        case "ellipse" if length("rx") == length("ry"):
            yield Circle((length("cx"), length("cy")), length("rx"))
        case "ellipse":
            rx, ry = length("rx"), length("ry")
            if rx <= 0 or ry <= 0:
                raise SketchError("an ellipse's radii must be above zero")
            yield NamedCurve(EllipticArc((length("cx"), length("cy")), (rx, 0.0), (0.0, ry)), "an ellipse")
        case "path":
            yield from read_path(attributes.get("d", ""), circles="arc" not in classes)
        case "rect":
            yield from _rectangle(length("x"), length("y"), length("width"), length("height"), _corner(attributes))
        case "polyline" | "polygon":
            points = _parse_points(attributes.get("points", ""))
            yield from _chain([*points, *points[:1]] if tag == "polygon" else points)


def _rectangle(x: float, y: float, width: float, height: float, corner: Vec) -> Iterator[Primitive | NamedCurve]:
    """A rectangle with sharp corners, or with corners that are quarters of a circle or an ellipse."""
    if width <= 0 or height <= 0:
        raise SketchError("a rectangle of no size")
    left, right, top, bottom = x, x + width, y, y + height
    rx, ry = min(corner[0], width / 2), min(corner[1], height / 2)
    if is_round := corner[0] == corner[1]:
        rx = ry = min(rx, ry)
    if rx <= 0 or ry <= 0:
        yield from _chain([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])
        return
    x1, x2, y1, y2 = left + rx, right - rx, top + ry, bottom - ry
    quarters = (
        ((x2, y1), (x2, top), (right, y1)),
        ((x2, y2), (right, y2), (x2, bottom)),
        ((x1, y2), (x1, bottom), (left, y2)),
        ((x1, y1), (left, y1), (x1, top)),
    )
    corners: list[tuple[Primitive | NamedCurve, Vec, Vec]] = []
    for quarter, (center, *ends) in enumerate(quarters, start=-1):
        if is_round:
            arc = Arc(center, rx, quarter * _QUARTER, _QUARTER)
            corners.append((arc, arc.start, arc.end))
        else:
            curve = EllipticArc(center, (rx, 0.0), (0.0, ry), quarter * _QUARTER, _QUARTER, (ends[0], ends[1]))
            corners.append((NamedCurve(curve, "a rectangle's elliptical corner"), ends[0], ends[1]))
    for (piece, _, end), (_, start, _) in pairwise([*corners, corners[0]]):
        yield piece
        if math.dist(end, start) > (1e-9 * rx if is_round else 0.0):
            yield Line(end, start)


def _corner(attributes: Mapping[str, str]) -> Vec:
    """The radii of a rectangle's corners; a single one counts for both."""
    radii = [parse_length(attributes[name]) for name in ("rx", "ry") if attributes.get(name, "auto") != "auto"]
    return (radii[0], radii[-1]) if radii else (0.0, 0.0)


def _parse_points(text: str) -> list[Vec]:
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError as error:
        raise SketchError("a list of points we cannot read") from error
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def _chain(points: Sequence[Vec]) -> Iterator[Line]:
    for start, end in pairwise(points):
        if start != end:  # a repeated point draws nothing
            yield Line(start, end)


def read_path(data: str, *, circles: bool = True) -> Iterator[Primitive | NamedCurve | Skipped]:
    """The curves of path data. A full turn takes several arcs in SVG, so consecutive arcs of a circle are merged.

    Args:
        data: The attribute `d`.
        circles: Merge arcs of a full turn into a circle, not into one long arc.
    """
    waiting: Arc | None = None
    for piece in _read_commands(data):
        merged = _merge_arcs(waiting, piece, circles=circles) if waiting and isinstance(piece, Arc) else None
        if waiting and not merged:
            yield waiting
        piece = merged or piece
        waiting = piece if isinstance(piece, Arc) else None
        if not waiting:
            yield piece
    if waiting:
        yield waiting


def merge_circles(pieces: Iterable[Primitive | Skipped | Note]) -> Iterator[Primitive | Skipped | Note]:
    """Replace consecutive arcs that make up one full circle by that circle."""
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


def _read_commands(data: str) -> Iterator[Primitive | NamedCurve | Skipped]:
    at = first = (0.0, 0.0)
    reach = 0.0
    control = ("", at)  # the last command and its last control point, which S and T reflect
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
                curve, last = _bezier(letter, numbers, at, end, control)
                control = (command, last)
                yield NamedCurve(curve, "a curve in a path")
        except SketchError as error:
            yield Skipped(short_reason(error))
        if command not in "csqt":
            control = ("", end)
        at = end


def _bezier(letter: str, numbers: list[float], at: Vec, end: Vec, control: tuple[str, Vec]) -> tuple[Bezier, Vec]:
    """The curve of a C, S, Q or T, and its last control point."""
    x, y = at if letter.islower() else (0.0, 0.0)
    controls = [(x + a, y + b) for a, b in zip(numbers[:-2:2], numbers[1:-2:2], strict=True)]
    command, last = control
    if letter.lower() in "st":
        follows = command in ("c", "s") if letter.lower() == "s" else command in ("q", "t")
        controls.insert(0, (2 * at[0] - last[0], 2 * at[1] - last[1]) if follows else at)
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
        numbers: list[float] = []
        for token in _ARGUMENTS.get(letter.lower(), "?"):
            match = _TOKENS[token].match(data, position)
            if not match or not math.isfinite(number := float(match[1])):
                yield "?", []
                return
            numbers.append(number)
            position = match.end()
        yield letter, numbers


def _end(command: str, numbers: list[float], at: Vec, *, relative: bool) -> Vec:
    x, y = at if relative else (0.0, 0.0)
    if command == "h":
        return (x + numbers[0], at[1])
    if command == "v":
        return (at[0], y + numbers[0])
    return (x + numbers[-2], y + numbers[-1])


def _arc(start: Vec, end: Vec, numbers: list[float]) -> Iterator[Primitive | NamedCurve]:
    """An SVG arc: without a radius it is a line, and a radius that is too small is enlarged."""
    rx, ry, tilt, large, positive = (*map(abs, numbers[:2]), *numbers[2:5])
    chord = math.dist(start, end)
    if chord == 0:
        return  # nothing, as in SVG
    if rx == 0 or ry == 0:
        yield Line(start, end)
    elif not math.isclose(rx, ry, rel_tol=1e-6):
        curve = _elliptic_arc(start, end, (rx, ry), math.radians(tilt), large=bool(large), positive=bool(positive))
        yield NamedCurve(curve, "an elliptical arc in a path")
    else:
        minor = 2 * math.asin(min(1.0, chord / (2 * rx)))
        turn = TAU - minor if large else minor
        yield arc_from_sweep(start, end, turn if positive else -turn)


def _elliptic_arc(start: Vec, end: Vec, radii: Vec, tilt: float, *, large: bool, positive: bool) -> EllipticArc:
    """The arc of an ellipse between two ends, computed on the unit circle of the ellipse's own frame."""
    cos, sin = math.cos(tilt), math.sin(tilt)

    def to_unit(p: Vec) -> Vec:
        return ((cos * p[0] + sin * p[1]) / radii[0], (cos * p[1] - sin * p[0]) / radii[1])

    (ax, ay), (bx, by) = to_unit(start), to_unit(end)
    half = math.hypot(bx - ax, by - ay) / 2
    grown = max(1.0, half)  # an ellipse that is too small is enlarged
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


def _merge_arcs(a: Arc, b: Arc, *, circles: bool) -> Arc | Circle | None:
    """Two consecutive arcs of one circle, in either direction, as one arc or circle; None if they are not."""
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


def parse_length(text: str) -> float:
    """A length in user units, which are pixels."""
    match = _LENGTH.fullmatch(text)
    if match and match[2] in ("", "px"):
        return float(match[1])
    if (millimeters := physical_length(text)) is None:
        raise SketchError("a length we cannot read")
    return millimeters / MM_PER_PIXEL


def physical_length(text: str | None) -> float | None:
    """A length in millimeters if it has a physical unit, else None."""
    match = _LENGTH.fullmatch(text or "")
    if not match or match[2] not in _MM_PER_CSS_UNIT or match[2] == "px":
        return None
    return float(match[1]) * _MM_PER_CSS_UNIT[match[2]]
