"""What procedural parts are built from: outlines whose lines and arcs join exactly, and patterns of holes.

Outlines run counter-clockwise around the origin unless they say otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sketchdnn.geometry import TAU, Arc, Circle, Line, Point, Primitive, Vec, arc_from_sweep

Disc = tuple[Vec, float]


def outline(corners: Sequence[Vec], fillets: float | Sequence[float] = 0.0) -> list[Primitive]:
    """A closed polygon with its corners rounded: one radius for all of them, or one each, 0 for a sharp corner."""
    radii = [fillets] * len(corners) if isinstance(fillets, int | float) else list(fillets)
    bends = [
        _bend(before, corner, after, radius)
        for before, corner, after, radius in zip(
            [corners[-1], *corners[:-1]], corners, [*corners[1:], corners[0]], radii, strict=True
        )
    ]
    parts: list[Primitive] = []
    for (_, leave, arc), (enter, _, _) in zip(bends, [*bends[1:], bends[0]], strict=True):
        if arc:
            parts.append(arc)
        if math.dist(leave, enter) > 1e-9:  # two fillets may use up a whole side
            parts.append(Line(leave, enter))
    return parts


def chamfered(corners: Sequence[Vec], cut: float) -> list[Vec]:
    """The polygon with each corner cut off, `cut` along both of its sides."""
    cuts = []
    for before, corner, after in zip([corners[-1], *corners[:-1]], corners, [*corners[1:], corners[0]], strict=True):
        cuts += [_towards(corner, before, cut), _towards(corner, after, cut)]
    return cuts


def belt(discs: Sequence[Disc]) -> list[Primitive]:
    """The outline of a belt stretched around discs, named counter-clockwise: arcs and the tangents between them.

    A disc that touches the belt on both sides is named twice.
    """
    following = [*discs[1:], discs[0]]
    normals = [_tangent_normal(a, b) for a, b in zip(discs, following, strict=True)]
    parts: list[Primitive] = []
    for (center, radius), entered, left, (other, other_radius) in zip(
        discs, [normals[-1], *normals[:-1]], normals, following, strict=True
    ):
        parts.append(Arc(center, radius, entered, (left - entered) % TAU))
        parts.append(Line(polar(radius, left, center), polar(other_radius, left, other)))
    return parts


def slot(a: Vec, b: Vec, radius: float) -> list[Primitive]:
    """Two semicircles and two lines."""
    return belt([(a, radius), (b, radius)])


def curved_slot(pitch_radius: float, radius: float, angle: float, sweep: float) -> list[Primitive]:
    """A slot bent around the origin: two concentric arcs, closed by semicircles."""
    end = angle + sweep
    return [
        Arc((0.0, 0.0), pitch_radius + radius, angle, sweep),
        Arc(polar(pitch_radius, end), radius, end, math.pi),
        Arc((0.0, 0.0), pitch_radius - radius, angle, sweep),
        Arc(polar(pitch_radius, angle), radius, angle + math.pi, math.pi),
    ]


def rectangle(width: float, height: float, center: Vec = (0.0, 0.0)) -> list[Vec]:
    """The corners, from the lower left."""
    x, y = center
    w, h = width / 2, height / 2
    return [(x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h)]


def around(count: int, radius: float, phase: float = 0.0, center: Vec = (0.0, 0.0)) -> list[Vec]:
    """Places evenly spaced on a circle."""
    return [polar(radius, phase + TAU * k / count, center) for k in range(count)]


def holes(centers: Iterable[Vec], radius: float) -> list[Primitive]:
    return [Circle(center, radius) for center in centers]


def center_lines(width: float, height: float) -> list[Primitive]:
    """A construction cross through the origin that stands out a little beyond a part of this size."""
    x, y = 0.58 * width, 0.58 * height
    return [Line((-x, 0.0), (x, 0.0), construction=True), Line((0.0, -y), (0.0, y), construction=True)]


def polar(radius: float, angle: float, center: Vec = (0.0, 0.0)) -> Vec:
    return (center[0] + radius * math.cos(angle), center[1] + radius * math.sin(angle))


def mirrored(primitive: Primitive) -> Primitive:
    """Left and right exchanged."""

    def flip(p: Vec) -> Vec:
        return (-p[0], p[1])

    match primitive:
        case Line(start, end):
            return replace(primitive, start=flip(start), end=flip(end))
        case Circle(center):
            return replace(primitive, center=flip(center))
        case Arc(center):
            return replace(primitive, center=flip(center), start_angle=math.pi - primitive.end_angle)
        case Point(at):
            return replace(primitive, at=flip(at))


def turned(primitive: Primitive, angle: float) -> Primitive:
    """Rotated about the origin; quarter turns are exact."""
    cos, sin = (round(f(angle)) if angle % (TAU / 4) == 0 else f(angle) for f in (math.cos, math.sin))

    def turn(p: Vec) -> Vec:
        return (cos * p[0] - sin * p[1], sin * p[0] + cos * p[1])

    match primitive:
        case Line(start, end):
            return replace(primitive, start=turn(start), end=turn(end))
        case Circle(center):
            return replace(primitive, center=turn(center))
        case Arc(center):
            return replace(primitive, center=turn(center), start_angle=(primitive.start_angle + angle) % TAU)
        case Point(at):
            return replace(primitive, at=turn(at))


def _bend(before: Vec, corner: Vec, after: Vec, radius: float) -> tuple[Vec, Vec, Arc | None]:
    """Where the rounded corner begins and ends, and its arc."""
    if radius <= 0:
        return corner, corner, None
    (x1, y1), (x2, y2) = (corner[0] - before[0], corner[1] - before[1]), (after[0] - corner[0], after[1] - corner[1])
    turn = math.atan2(x1 * y2 - y1 * x2, x1 * x2 + y1 * y2)
    reach = radius * math.tan(abs(turn) / 2)
    enter, leave = _towards(corner, before, reach), _towards(corner, after, reach)
    return enter, leave, arc_from_sweep(enter, leave, turn)


def _towards(p: Vec, q: Vec, distance: float) -> Vec:
    part = distance / math.dist(p, q)
    return (p[0] + part * (q[0] - p[0]), p[1] + part * (q[1] - p[1]))


def _tangent_normal(a: Disc, b: Disc) -> float:
    """The direction in which the tangent from disc a to disc b lies, on the right of the way between them."""
    (x1, y1), (x2, y2) = a[0], b[0]
    along = math.atan2(y2 - y1, x2 - x1)
    return along - math.acos((a[1] - b[1]) / math.dist(a[0], b[0]))
