"""Ideas that follow from the geometry of a part, without the model.

| goal | ideas |
|---|---|
| close | lines, corners and bridges between the open ends; the mirror image of a half; a copy of another loop |
| inside | mirror images that are missing; further holes of a row or a circle; holes at round corners, in free places |

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
    Profile,
    Sketch,
    Vec,
    arc_from_bulge,
    bounds,
    bulge,
    profile,
)
from sketchdnn.geometry.mirror import Mirror, missing_images
from sketchdnn.geometry.primitives import on_circle
from sketchdnn.geometry.profiles import Edge

from .conditions import CLOSE_TOLERANCE, joint_tolerance
from .free_places import FreePlace, free_places
from .goals import Goal
from .variants import Additions, share_space, symmetry_axes

# The most ideas for a part.
MAX_IDEAS = 12
# Directions whose sine is smaller than this are parallel.
_STRAIGHT = 0.02
# The height of a bridge over its width.
_BRIDGE = 0.5
# A chain of fewer curves is not taken for a piece of a copy; bulges this close are equal.
_MIN_COPIED, _SAME_BEND = 2, 0.02
# Corners that turn by less than this are no place for a hole (radians).
_ROUND_CORNER = 1.2
# A single arc gets a hole if it turns by at least this, as the end of a lug does (radians).
_ROUND_END = 2.6
# Of a hole at the center of a round corner: its radius over that of the corner, and the least as a share of the size.
_HOLE, _SMALLEST_HOLE = 0.5, 0.012
# A hole like one that is there fits where the nearest curve is so many radii from its center.
_LEAST_ROOM = 1.6
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
    for closing in (*_like_other_loops(part), *_other_sides(part), *_joins(part)):
        if closing and not profile(part.primitives + closing, joint_tolerance(part.primitives)).chains:
            yield closing


def _joins(part: Sketch) -> Iterator[Additions]:
    """Lines between the ends of each chain, or of two chains in both ways, and corners."""
    for pairs in _pairings(part, profile(part, joint_tolerance(part.primitives)).chains):
        yield tuple(Line(a, b) for (a, _), (b, _) in pairs if a != b)
        if len(pairs) == 1:
            yield from _corners(*pairs[0])
            yield from _bridges(part, *pairs[0])


# A loose end, and the direction in which the part ends there.
_End = tuple[Vec, Vec]


def _pairings(part: Sketch, chains: Sequence[Chain]) -> list[list[tuple[_End, _End]]]:
    """The ends to join: of each chain alone, and of two chains in both ways."""
    ends = [_ends(part, chain) for chain in chains]
    match ends:
        case [(a, b), (c, d)]:
            return [[(a, c), (b, d)], [(a, d), (b, c)], [*ends]]
    return [[*ends]] if ends else []


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


def _bridges(part: Sketch, first: _End, second: _End) -> Iterator[Additions]:
    """Three lines from end to end: level or upright to the edge of the part's box, along it, and back.

    Where both ends lie at the edge, the bridge is half as high as it is wide.
    """
    (a, _), (b, _) = first, second
    box = bounds(part)
    near = joint_tolerance(part.primitives) * box.size
    for axis, (edge, sign) in product((0, 1), ((box.low, -1.0), (box.high, 1.0))):
        level, width = edge[axis], abs(a[1 - axis] - b[1 - axis])
        if width <= near:
            continue
        if max(abs(a[axis] - level), abs(b[axis] - level)) <= near:
            level += sign * _BRIDGE * width
        corners = [(level, at[1]) if axis == 0 else (at[0], level) for at in (a, b)]
        path = [a, *(at for at, end in zip(corners, (a, b), strict=True) if math.dist(at, end) > near), b]
        if len(path) == 4:  # else it is a corner
            yield tuple(Line(p, q) for p, q in pairwise(path))


def _like_other_loops(part: Sketch) -> Iterator[Additions]:
    """What makes each open chain a copy of a loop of the part; lines where there is no such loop."""
    shape = profile(part, joint_tolerance(part.primitives))
    near = joint_tolerance(part.primitives) * bounds(part).size
    loops = [_path(part, loop.edges) for loop in shape.loops]
    rests = [_rest_of_loop(_path(part, chain.edges), loops, near) for chain in shape.chains]
    if any(rests):
        lines = [(Line(chain.start, chain.end),) if chain.start != chain.end else () for chain in shape.chains]
        yield tuple(p for rest, line in zip(rests, lines, strict=True) for p in rest or line)


# A segment of a path: its start, its end, and tan(sweep / 4) of an arc, negative if clockwise; 0 for a line.
_Segment = tuple[complex, complex, float]


def _path(part: Sketch, edges: Iterable[Edge]) -> list[_Segment]:
    """The segments of a chain or loop; none of one with a full circle."""
    segments: list[_Segment] = []
    for edge in edges:
        curve = part.primitives[edge.primitive_index]
        if not isinstance(curve, Line | Arc):
            return []
        bend = bulge(curve) if isinstance(curve, Arc) else 0.0
        start, end = complex(*curve.start), complex(*curve.end)
        segments.append((start, end, bend) if edge.forward else (end, start, -bend))
    return segments


def _rest_of_loop(chain: list[_Segment], loops: Iterable[list[_Segment]], near: float) -> Additions:
    """What the chain lacks to be a copy of one of the loops: moved, turned or mirrored; nothing if it is of none."""
    for loop in loops:
        ways = (loop, [(end, start, -bend) for start, end, bend in reversed(loop)])
        for way, shift, is_mirrored in product(ways, range(len(loop)), (False, True)):
            if not _MIN_COPIED <= len(chain) < len(loop):
                continue
            turned = [*way[shift:], *way[:shift]]
            if is_mirrored:
                turned = [(start.conjugate(), end.conjugate(), -bend) for start, end, bend in turned]
            same, rest = turned[: len(chain)], turned[len(chain) :]
            span, copied = chain[-1][1] - chain[0][0], same[-1][1] - same[0][0]
            if abs(copied) <= near or abs(abs(span) - abs(copied)) > near:
                continue
            turn = span / copied / abs(span / copied)
            by = chain[0][0] - turn * same[0][0]
            if all(
                abs(turn * other[0] + by - own[0]) <= near and abs(own[2] - other[2]) <= _SAME_BEND
                for own, other in zip(chain, same, strict=True)
            ):
                return _curves_through([(turn * start + by, turn * end + by, bend) for start, end, bend in rest], chain)
    return ()


def _curves_through(rest: list[_Segment], chain: list[_Segment]) -> Additions:
    """The curves of a path from the end of a chain to its start."""
    points = [chain[-1][1], *(segment[1] for segment in rest[:-1]), chain[0][0]]
    ends = [(at.real, at.imag) for at in points]
    return tuple(
        arc_from_bulge(a, b, bend) if bend else Line(a, b)
        for (a, b), (_, _, bend) in zip(pairwise(ends), rest, strict=True)
    )


def _other_sides(part: Sketch) -> Iterator[Additions]:
    """The mirror images that a part lacks, in the line of its open ends or the middle of what is symmetric."""
    shape, box = profile(part, joint_tolerance(part.primitives)), bounds(part)
    ends = [end for chain in shape.chains for end in (chain.start, chain.end)]
    near = joint_tolerance(part.primitives) * box.size
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
    shape = profile(part, joint_tolerance(part.primitives))
    if not shape.loops:
        return
    outer = max(shape.loops, key=lambda loop: abs(loop.area))
    outline = _members(part, outer)
    mirrors = symmetry_axes(outline)
    near = joint_tolerance(part.primitives) * bounds(part).size
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
    ideas += _holes_in_free_places(part, shape, holes)
    yield from (idea for idea in ideas if _has_room(idea, inner))


def _holes_in_free_places(part: Sketch, shape: Profile, holes: Sequence[Circle]) -> Iterator[Additions]:
    """A hole where there is most room in the largest outline, with its mirror images, and one in each outline."""
    places = free_places(part, shape)
    if not places:
        return
    new = _hole_at(max(places, key=lambda place: place.room), holes)
    images: Additions = (new,)
    for mirror in symmetry_axes(_curves(part)):
        images = (*images, *missing_images(images, mirror, new.radius))
    yield images
    if len(places) > 1:
        radius = min(_hole_at(place, holes).radius for place in places)
        yield tuple(Circle(place.at, radius) for place in places)


def _hole_at(place: FreePlace, holes: Sequence[Circle]) -> Circle:
    """A hole as large as one that is there, if it fits well; else half as large as fits."""
    present = [hole.radius for hole in holes if _LEAST_ROOM * hole.radius <= place.room]
    return Circle(place.at, max(present, default=_HOLE * place.room))


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
    near = joint_tolerance(part.primitives) * box.size
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
    near = joint_tolerance(part.primitives) * bounds(part).size
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
