"""Where two curves meet other than by joining their ends.

Each line, arc or circle lies on a *carrier*, the endless line or whole circle it is part of. Two curves meet at a place
when each of their parts, followed away from it, leaves the other's carrier by more than the tolerance. So a fillet that
runs into its line, or two lines on top of each other, do not meet: they join, or overlap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .primitives import TAU, Arc, Circle, Line, Vec

Curve = Line | Arc | Circle


@dataclass(frozen=True, slots=True)
class Meeting:
    """Primitives number `first` < `second` meet `at` a place: their interiors cross there, or else they only touch."""

    first: int
    second: int
    at: Vec
    crosses: bool


def intersections(a: Curve, b: Curve, tolerance: float) -> list[Vec]:
    """Where the interiors of two curves cross, `tolerance` being a length.

    >>> intersections(Line((-2, 0), (2, 0)), Circle((0, 0), 1), 1e-6)
    [(-1.0, 0.0), (1.0, 0.0)]
    """
    return [place for place, crosses in meet(a, b, tolerance) if crosses]


def meet(a: Curve, b: Curve, tolerance: float) -> list[tuple[Vec, bool]]:
    """Places where two curves cross (True) or touch (False): in a tangent point, or with an end inside the other."""
    places, crosses = _common_places(a, b, tolerance)
    inside_both = [
        (place, crosses)
        for place in places
        if _beside(a, place)
        and _beside(b, place)
        and all(_leaves(part, b, tolerance) for part in _parts(a, place))
        and all(_leaves(part, a, tolerance) for part in _parts(b, place))
    ]
    return inside_both + _ends_inside(a, b, tolerance) + _ends_inside(b, a, tolerance)


def off_carrier(curve: Curve, place: Vec) -> float:
    """How far a place is from the endless line or whole circle that a curve is part of."""
    if isinstance(curve, Line):
        (x0, y0), (x1, y1) = curve.start, curve.end
        dx, dy = x1 - x0, y1 - y0
        return abs(dx * (place[1] - y0) - dy * (place[0] - x0)) / math.hypot(dx, dy)
    return abs(math.dist(place, curve.center) - curve.radius)


def distance(curve: Curve, place: Vec) -> float:
    """How far a place is from a curve."""
    if _beside(curve, place):
        return off_carrier(curve, place)
    return min(math.dist(end, place) for end in ends(curve))


def ends(curve: Curve) -> tuple[Vec, ...]:
    """Both ends, or none for a circle."""
    return () if isinstance(curve, Circle) else (curve.start, curve.end)


def middle(curve: Curve) -> Vec:
    """A place half-way along a curve."""
    match curve:
        case Line((x0, y0), (x1, y1)):
            return ((x0 + x1) / 2, (y0 + y1) / 2)
        case Arc():
            return curve.mid
        case Circle():
            return _on_circle(curve, math.pi)


def _common_places(a: Curve, b: Curve, tolerance: float) -> tuple[list[Vec], bool]:
    """Where the carriers meet, and whether they cross there rather than touch to within the tolerance."""
    if isinstance(a, Line):
        return _line_line(a, b) if isinstance(b, Line) else _line_circle(a, b, tolerance)
    return _line_circle(b, a, tolerance) if isinstance(b, Line) else _circle_circle(a, b, tolerance)


def _line_line(a: Line, b: Line) -> tuple[list[Vec], bool]:
    ax, ay = a.end[0] - a.start[0], a.end[1] - a.start[1]
    bx, by = b.end[0] - b.start[0], b.end[1] - b.start[1]
    cross = ax * by - ay * bx
    if cross == 0:
        return [], False
    along = ((b.start[0] - a.start[0]) * by - (b.start[1] - a.start[1]) * bx) / cross
    return [(a.start[0] + along * ax, a.start[1] + along * ay)] if 0 < along < 1 else [], True


def _line_circle(line: Line, circle: Arc | Circle, tolerance: float) -> tuple[list[Vec], bool]:
    (x0, y0), (x1, y1), (cx, cy) = line.start, line.end, circle.center
    length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / length, (y1 - y0) / length
    along = (cx - x0) * ux + (cy - y0) * uy
    off = abs((cx - x0) * uy - (cy - y0) * ux)
    foot, depth = (x0 + along * ux, y0 + along * uy), circle.radius - off
    if depth <= tolerance:
        return [foot] if depth >= -tolerance else [], False
    return _either_side(foot, (ux, uy), off, circle.radius), True


def _circle_circle(a: Arc | Circle, b: Arc | Circle, tolerance: float) -> tuple[list[Vec], bool]:
    apart = math.dist(a.center, b.center)
    if apart <= tolerance:
        return [], False
    ux, uy = (b.center[0] - a.center[0]) / apart, (b.center[1] - a.center[1]) / apart
    outside, inside = a.radius + b.radius - apart, apart - abs(a.radius - b.radius)
    depth = min(outside, inside)  # of the lens between them, or of what sticks out of the larger one
    if depth <= tolerance:
        towards = -a.radius if inside < outside and a.radius < b.radius else a.radius
        return [(a.center[0] + towards * ux, a.center[1] + towards * uy)] if depth >= -tolerance else [], False
    along = (apart + (a.radius - b.radius) * (a.radius + b.radius) / apart) / 2
    foot = (a.center[0] + along * ux, a.center[1] + along * uy)
    return _either_side(foot, (-uy, ux), abs(along), a.radius), True


def _either_side(foot: Vec, direction: Vec, off: float, radius: float) -> list[Vec]:
    """The ends of the chord of a circle that runs in a direction through its foot, `off` from the center."""
    half = math.sqrt(max(0.0, (radius - off) * (radius + off)))
    dx, dy = half * direction[0], half * direction[1]
    return [(foot[0] - dx, foot[1] - dy), (foot[0] + dx, foot[1] + dy)]


def _ends_inside(a: Curve, b: Curve, tolerance: float) -> list[tuple[Vec, bool]]:
    """The ends of a that lie on b, away from its ends (of joined ends the parts would tell too, more slowly)."""
    return [
        (end, False)
        for end in ends(a)
        if off_carrier(b, end) <= tolerance
        and _beside(b, end)
        and all(math.dist(end, other) > tolerance for other in ends(b))
        and all(_leaves(part, a, tolerance) for part in _parts(b, end))
        and any(_leaves(part, b, tolerance) for part in _parts(a, end))
    ]


def _beside(curve: Curve, place: Vec) -> bool:
    """Whether the nearest place of the carrier belongs to the curve."""
    match curve:
        case Line((x0, y0), (x1, y1)):
            dx, dy = x1 - x0, y1 - y0
            return 0 <= dx * (place[0] - x0) + dy * (place[1] - y0) <= dx * dx + dy * dy
        case Arc():
            return (_angle(curve, place) - curve.start_angle) % TAU <= curve.sweep
        case Circle():
            return True


def _parts(curve: Curve, place: Vec) -> tuple[tuple[Vec, Vec], tuple[Vec, Vec]]:
    """The two ways along a curve from a place on it, each by its half-way and its last place."""
    if isinstance(curve, Line):
        (x, y), start, end = place, curve.start, curve.end
        return (
            (((x + start[0]) / 2, (y + start[1]) / 2), start),
            (((x + end[0]) / 2, (y + end[1]) / 2), end),
        )
    angle = _angle(curve, place)
    if isinstance(curve, Circle):
        back, ahead = math.pi, math.pi
    else:
        back = (angle - curve.start_angle) % TAU
        if back > curve.sweep:  # rounded past an end: take the nearer one
            back = 0.0 if TAU - back < back - curve.sweep else curve.sweep
        ahead = curve.sweep - back
    return (
        (_on_circle(curve, angle - back / 2), _on_circle(curve, angle - back)),
        (_on_circle(curve, angle + ahead / 2), _on_circle(curve, angle + ahead)),
    )


def _leaves(part: tuple[Vec, Vec], other: Curve, tolerance: float) -> bool:
    return off_carrier(other, part[1]) > tolerance or off_carrier(other, part[0]) > tolerance


def _angle(curve: Arc | Circle, place: Vec) -> float:
    return math.atan2(place[1] - curve.center[1], place[0] - curve.center[0])


def _on_circle(curve: Arc | Circle, angle: float) -> Vec:
    return (curve.center[0] + curve.radius * math.cos(angle), curve.center[1] + curve.radius * math.sin(angle))
