"""Ideas that follow from the geometry of a part, without the model.

| goal | ideas |
|---|---|
| close | lines and corners between the open ends; the mirror image of a part that is one half |
| inside | mirror images that are missing; further holes of a row or a circle; holes at the centers of round corners |

They join the candidates of the model and are repaired, scored and sorted like them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from sketchdnn.geometry import (
    TAU,
    Arc,
    Chain,
    Circle,
    Line,
    Loop,
    Point,
    Primitive,
    Sketch,
    Vec,
    bounds,
    profile,
)
from sketchdnn.geometry.mirror import Mirror, missing_images
from sketchdnn.geometry.primitives import on_circle

from .conditions import CLOSE_TOLERANCE
from .goals import Goal
from .variants import Additions, share_space, symmetry_axes

# The most ideas for a part.
MAX_IDEAS = 12
# Directions whose sine is smaller than this are parallel.
_STRAIGHT = 0.02
# Corners that turn by less than this are no place for a hole (radians).
_ROUND_CORNER = 1.2
# A single arc gets a hole if it turns by at least this, as the end of a lug does (radians).
_ROUND_END = 2.6
# Of a hole at the center of a round corner: its radius over that of the corner, and the least as a share of the size.
_HOLE, _SMALLEST_HOLE = 0.5, 0.012
# The centers of a row keep this distance from the box of the part, in radii.
_MARGIN = 1.5
# More places on a circle are not taken for a pattern of holes.
_MAX_ON_CIRCLE = 12


def geometric_ideas(part: Sketch, goal: Goal) -> list[Additions]:
    """What may be added to a part without a model. Those that cannot stay are removed later, as for the model."""
    if goal == "extend":
        return []
    ideas = _features(part) if goal == "inside" else _closings(part)
    found: list[Additions] = []
    for idea in ideas:
        if idea and len(found) < MAX_IDEAS and idea not in found:
            found.append(idea)
    return found


# Closing an open part


def _closings(part: Sketch) -> Iterator[Additions]:
    """Ways to close an open part."""
    for closing in (*_other_sides(part), *_joins(part)):
        if closing and not profile(part.primitives + closing, CLOSE_TOLERANCE).chains:
            yield closing


def _joins(part: Sketch) -> Iterator[Additions]:
    """Lines between the ends of one chain, or of two chains in both ways, and corners."""
    for pairs in _pairings(part, profile(part, CLOSE_TOLERANCE).chains):
        yield tuple(Line(a, b) for (a, _), (b, _) in pairs if a != b)
        if len(pairs) == 1:
            yield from _corners(*pairs[0])


# A loose end, and the direction in which the part ends there.
_End = tuple[Vec, Vec]


def _pairings(part: Sketch, chains: Sequence[Chain]) -> list[list[tuple[_End, _End]]]:
    """The ends to join: of one chain, or of two chains in both ways."""
    ends = [_ends(part, chain) for chain in chains]
    match ends:
        case [(a, b)]:
            return [[(a, b)]]
        case [(a, b), (c, d)]:
            return [[(a, c), (b, d)], [(a, d), (b, c)]]
    return []


def _ends(part: Sketch, chain: Chain) -> tuple[_End, _End]:
    """Both ends of a chain."""
    first, last = chain.edges[0], chain.edges[-1]
    out_first = _direction(part.primitives[first.primitive_index], at_end=not first.forward)
    out_last = _direction(part.primitives[last.primitive_index], at_end=last.forward)
    return (chain.start, out_first), (chain.end, out_last)


def _direction(curve: Primitive, *, at_end: bool) -> Vec:
    """The outward direction of a line or arc at its start or its end."""
    sign = 1.0 if at_end else -1.0
    if isinstance(curve, Arc):
        angle = curve.end_angle if at_end else curve.start_angle
        return (-sign * math.sin(angle), sign * math.cos(angle))
    assert isinstance(curve, Line)  # noqa: S101 - only these are in chains
    (x0, y0), (x1, y1) = curve.start, curve.end
    return (sign * (x1 - x0) / curve.length, sign * (y1 - y0) / curve.length)


def _corners(first: _End, second: _End) -> Iterator[Additions]:
    """Two lines from end to end, each straight on or square to the part."""
    (a, u), (b, v) = first, second
    for straight, other_straight in product((False, True), repeat=2):
        p, q = u if straight else (-u[1], u[0]), v if other_straight else (-v[1], v[0])
        cross = p[0] * q[1] - p[1] * q[0]
        if abs(cross) < _STRAIGHT:
            continue
        dx, dy = b[0] - a[0], b[1] - a[1]
        s, t = (dx * q[1] - dy * q[0]) / cross, (dx * p[1] - dy * p[0]) / cross
        near = 2 * CLOSE_TOLERANCE * math.dist(a, b)
        # A line that goes straight on must lead away from the part.
        if (s if straight else abs(s)) > near and (t if other_straight else abs(t)) > near:
            corner = (a[0] + s * p[0], a[1] + s * p[1])
            yield (Line(a, corner), Line(corner, b))


def _other_sides(part: Sketch) -> Iterator[Additions]:
    """The mirror images that a part lacks, in the line of its open ends or the middle of what is symmetric."""
    shape, box = profile(part, CLOSE_TOLERANCE), bounds(part)
    ends = [end for chain in shape.chains for end in (chain.start, chain.end)]
    near = CLOSE_TOLERANCE * box.size
    curves = _curves(part)
    open_curves = [part.primitives[edge.primitive_index] for chain in shape.chains for edge in chain.edges]
    for axis in (0, 1):
        middles = [bounds([curve]).center[axis] for curve in open_curves]
        places = {round(at / near): at for at in (*middles, *(end[axis] for end in ends))}
        for at in places.values():
            images = missing_images(curves, Mirror(axis, at), near)
            if len(images) < len(curves) or all(abs(end[axis] - at) <= near for end in ends):
                yield images


def _curves(part: Sketch) -> list[Primitive]:
    """All but points and construction geometry."""
    return [p for p in part if not p.construction and not isinstance(p, Point)]


# Features inside a closed part


def _features(part: Sketch) -> Iterator[Additions]:
    """Features that a closed part seems to lack."""
    shape = profile(part, CLOSE_TOLERANCE)
    if not shape.loops:
        return
    outer = max(shape.loops, key=lambda loop: abs(loop.area))
    outline = _members(part, outer)
    mirrors = symmetry_axes(outline)
    near = CLOSE_TOLERANCE * bounds(part).size
    inner = [p for p in _curves(part) if p not in outline]
    holes = [p for p in inner if isinstance(p, Circle)]
    ideas: list[Additions] = []
    for ways in (mirrors[:1], mirrors[1:], mirrors):
        complete = tuple(inner)
        for mirror in ways:
            complete += missing_images(complete, mirror, near)
        ideas.append(complete[len(inner) :])
    for equal in _equal_circles(holes, near):
        ideas += _rectangles(equal, near)
        ideas += _rows(equal, part)
        ideas += _circular(equal, bounds(outline).center, near)
    ideas += _round_corners(part, outer)
    yield from (idea for idea in ideas if _has_room(idea, inner))


def _members(part: Sketch, loop: Loop) -> list[Primitive]:
    return [part.primitives[edge.primitive_index] for edge in loop.edges]


def _equal_circles(circles: Iterable[Circle], near: float) -> list[list[Circle]]:
    """The circles in groups of equal radius."""
    groups: list[list[Circle]] = []
    for circle in circles:
        for group in groups:
            if abs(group[0].radius - circle.radius) <= near:
                group.append(circle)
                break
        else:
            groups.append([circle])
    return groups


def _has_room(added: Additions, inner: Sequence[Primitive]) -> bool:
    """Whether added circles lie a radius from those inside the outline, and other additions share no space with it."""
    for p in added:
        for q in inner:
            if isinstance(p, Circle) and isinstance(q, Circle):
                if math.dist(p.center, q.center) < q.radius + 2 * p.radius:
                    return False
            elif share_space([p], [q]):
                return False
    return True


def _rectangles(equal: Sequence[Circle], near: float) -> Iterator[Additions]:
    """The fourth of three equal holes at corners of a rectangle."""
    centers = [circle.center for circle in equal]
    for x, _ in centers:
        for _, y in centers:
            if any(math.dist(at, (x, y)) <= near for at in centers):
                continue
            across = [at for at in centers if abs(at[0] - x) > near and abs(at[1] - y) > near]
            beside = [at for at in centers if abs(at[0] - x) <= near], [at for at in centers if abs(at[1] - y) <= near]
            if any(abs(a[0] - c[0]) <= near and abs(b[1] - c[1]) <= near for b, a, c in product(*beside, across)):
                yield (Circle((x, y), equal[0].radius),)


def _rows(equal: Sequence[Circle], part: Sketch) -> Iterator[Additions]:
    """Level and upright rows of equal holes: further ones at both ends, and one in each gap."""
    box = bounds(part)
    near = CLOSE_TOLERANCE * box.size
    for axis in (0, 1):
        rows: dict[int, list[Circle]] = {}
        for circle in equal:
            rows.setdefault(round(circle.center[1 - axis] / near), []).append(circle)
        for row in rows.values():
            row.sort(key=lambda circle: circle.center[axis])
            steps = [b.center[axis] - a.center[axis] for a, b in pairwise(row)]
            if not steps or max(steps) - min(steps) > near:
                continue
            step, radius = sum(steps) / len(steps), row[0].radius
            low, high = box.low[axis] + _MARGIN * radius, box.high[axis] - _MARGIN * radius
            places = [row[0].center[axis] - step * k for k in range(1, 9)]
            places += [row[-1].center[axis] + step * k for k in range(1, 9)]
            yield _copies(row[0], axis, [at for at in places if low <= at <= high])
            yield _copies(row[0], axis, [(a.center[axis] + b.center[axis]) / 2 for a, b in pairwise(row)])


def _copies(circle: Circle, axis: int, places: Iterable[float]) -> Additions:
    """Copies of a circle with other coordinates along an axis."""
    x, y = circle.center
    return tuple(Circle((at, y) if axis == 0 else (x, at), circle.radius) for at in places)


def _circular(equal: Sequence[Circle], center: Vec, near: float) -> Iterator[Additions]:
    """The holes that a circle of equal holes about a center lacks."""
    reach = math.dist(equal[0].center, center)
    if len(equal) < 2 or reach <= near or any(abs(math.dist(c.center, center) - reach) > near for c in equal):
        return
    angles = sorted(math.atan2(c.center[1] - center[1], c.center[0] - center[0]) for c in equal)
    steps = [b - a for a, b in pairwise([*angles, angles[0] + TAU])]
    number = round(TAU / min(steps))
    slack = near / reach
    if number > _MAX_ON_CIRCLE or any(abs(step * number / TAU - round(step * number / TAU)) > slack for step in steps):
        return
    places = [on_circle(center, reach, angles[0] + k * TAU / number) for k in range(number)]
    taken = [c.center for c in equal]
    yield tuple(Circle(at, equal[0].radius) for at in places if all(math.dist(at, other) > near for other in taken))


def _round_corners(part: Sketch, outer: Loop) -> Iterator[Additions]:
    """Holes at the centers of equal round corners, as large as one that is there."""
    arcs = [(part.primitives[edge.primitive_index], edge.forward) for edge in outer.edges]
    # Around an outline, counter-clockwise arcs are the convex ones.
    convex = [p for p, forward in arcs if forward and isinstance(p, Arc) and p.sweep > _ROUND_CORNER]
    near = CLOSE_TOLERANCE * bounds(part).size
    holes = [p for p in part if isinstance(p, Circle) and not p.construction]
    for arc_radius in sorted({round(arc.radius / near) for arc in convex}, reverse=True):
        corners = [arc for arc in convex if round(arc.radius / near) == arc_radius]
        present = [hole for hole in holes if any(math.dist(hole.center, arc.center) <= near for arc in corners)]
        radius = present[0].radius if present else _HOLE * corners[0].radius
        if radius < _SMALLEST_HOLE * bounds(part).size or (len(corners) == 1 and corners[0].sweep < _ROUND_END):
            continue
        centers = list(dict.fromkeys(arc.center for arc in corners))
        free = [at for at in centers if all(math.dist(hole.center, at) > near for hole in holes)]
        yield tuple(Circle(at, radius) for at in free)
