"""The shapes of SVG as primitives and curves, each in the coordinates of its own element."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from sketchdnn.errors import SketchError
from sketchdnn.formats.format import Skipped
from sketchdnn.geometry import TAU, Arc, Circle, EllipticArc, Line, Point, Primitive, Vec

from .svg_path import Curved, path_pieces
from .svg_transform import parse_length

SHAPES = frozenset({"line", "circle", "ellipse", "path", "polyline", "polygon", "rect"})
_QUARTER = TAU / 4


def shape_pieces(tag: str, attributes: Mapping[str, str]) -> Iterator[Primitive | Curved | Skipped]:
    """What one element draws. As we write it, a circle of class "point" is a point, a path of class "arc" one arc."""
    words = attributes.get("class", "").split()

    def length(name: str) -> float:
        return parse_length(attributes.get(name))

    match tag:
        case "line":
            yield Line((length("x1"), length("y1")), (length("x2"), length("y2")))
        case "circle" if "point" in words:
            yield Point((length("cx"), length("cy")))
        case "circle":
            yield Circle((length("cx"), length("cy")), length("r"))
        case "ellipse" if length("rx") == length("ry"):
            yield Circle((length("cx"), length("cy")), length("rx"))
        case "ellipse":
            rx, ry = length("rx"), length("ry")
            if rx <= 0 or ry <= 0:
                raise SketchError("an ellipse's radii must be above zero")
            yield Curved(EllipticArc((length("cx"), length("cy")), (rx, 0.0), (0.0, ry)), "an ellipse")
        case "path":
            yield from path_pieces(attributes.get("d", ""), circles="arc" not in words)
        case "rect":
            yield from _rectangle(length("x"), length("y"), length("width"), length("height"), _corner(attributes))
        case "polyline" | "polygon":
            places = _places(attributes.get("points", ""))
            yield from _chain([*places, *places[:1]] if tag == "polygon" else places)


def _rectangle(x: float, y: float, width: float, height: float, corner: Vec) -> Iterator[Primitive | Curved]:
    """Four sides; a round corner shortens the two sides that meet there."""
    if width <= 0 or height <= 0:
        raise SketchError("a rectangle of no size")
    left, right, top, bottom = x, x + width, y, y + height
    rx, ry = corner
    if rx != ry:
        yield from _oval_corners((left, top), (right, bottom), min(rx, width / 2), min(ry, height / 2))
        return
    r = min(rx, width / 2, height / 2)
    if r <= 0:
        yield from _chain([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])
        return
    corners = ((right - r, top + r), (right - r, bottom - r), (left + r, bottom - r), (left + r, top + r))
    arcs = [Arc(center, r, (turn - 1) * _QUARTER, _QUARTER) for turn, center in enumerate(corners)]
    for arc, following in pairwise([*arcs, arcs[0]]):
        yield arc
        if math.dist(arc.end, following.start) > 1e-9 * r:
            yield Line(arc.end, following.start)


def _oval_corners(low: Vec, high: Vec, rx: float, ry: float) -> Iterator[Primitive | Curved]:
    """A rectangle whose corners are quarters of an ellipse; none where a radius is nothing, as SVG has it."""
    (left, top), (right, bottom) = low, high
    if rx <= 0 or ry <= 0:
        yield from _chain([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)])
        return
    ends = (
        ((right - rx, top), (right, top + ry)),
        ((right, bottom - ry), (right - rx, bottom)),
        ((left + rx, bottom), (left, bottom - ry)),
        ((left, top + ry), (left + rx, top)),
    )
    centers = ((right - rx, top + ry), (right - rx, bottom - ry), (left + rx, bottom - ry), (left + rx, top + ry))
    for turn, (center, pair) in enumerate(zip(centers, ends, strict=True)):
        oval = EllipticArc(center, (rx, 0.0), (0.0, ry), (turn - 1) * _QUARTER, _QUARTER, pair)
        yield Curved(oval, "a rectangle's elliptical corner")
        yield from _chain([pair[1], ends[(turn + 1) % 4][0]])


def _corner(attributes: Mapping[str, str]) -> Vec:
    """The radii of a rectangle's corners; one alone counts for both."""
    given = [parse_length(attributes[name]) for name in ("rx", "ry") if attributes.get(name, "auto") != "auto"]
    return (given[0], given[-1]) if given else (0.0, 0.0)


def _places(text: str) -> list[Vec]:
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError as error:
        raise SketchError("a list of points we cannot read") from error
    return list(zip(numbers[::2], numbers[1::2], strict=False))


def _chain(places: Sequence[Vec]) -> Iterator[Line]:
    for start, end in pairwise(places):
        if start != end:  # a place given twice draws nothing
            yield Line(start, end)
