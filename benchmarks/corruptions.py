"""Real sketches with one deliberate defect, of the kinds that bad completions have, to calibrate scores of design.

Each kind is a function of a sketch and random numbers. It gives nothing if the sketch has no place for the defect, such
as a sketch without holes. All defects are clearly larger than drawing noise: lengths change by 1 % of the size or more.
The functions use only the geometry of the sketch, not the score that is measured with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec, arc_from_sweep, bounds, profile
from sketchdnn.geometry.intersections import distance_to_curve
from sketchdnn.geometry.primitives import transformed

Rng = np.random.Generator
T = TypeVar("T")

# As fractions of the size: ends that are joined, and numbers that are equal, in real sketches.
JOINED, EQUAL = 1e-3, 2e-3
# A random place or direction is tried so often.
_TRIES = 12
_SAMPLES = np.linspace(0.0, 1.0, 33)


class CorruptionKind(StrEnum):
    """The kinds of defects."""

    MOVED_HOLE = "moved hole"
    SHIFTED_IMAGE = "shifted mirror image"
    REMOVED_HOLE = "removed hole of a symmetric plate"
    UNEVEN_ROW = "uneven row"
    OFF_CENTER = "nearly concentric"
    UNEQUAL_RADIUS = "nearly equal radius"
    LONE_HOLE = "hole in line with nothing"
    TOUCHING_HOLE = "hole nearly touching"
    THIN_RIM = "thin rim"
    CIRCLE_ACROSS = "circle across an edge"
    LINE_ACROSS = "line across the plate"
    LINE_ON_EDGE = "line on an edge"
    SHAPE_BESIDE = "shape beside the plate"
    SHAPE_IN_HOLE = "shape inside a hole"
    SHIFTED_EDGE = "shifted edge of a symmetric outline"
    MOVED_CORNER = "moved corner"
    DROPPED_SIDE = "dropped side"
    GAP = "gap"
    SPLIT_EDGE = "split edge"
    DOUBLED_SHAPE = "doubled shape"
    SPECK = "speck"
    FOREIGN_PRIMITIVE = "foreign primitive"
    STRAY_CONSTRUCTION = "stray construction line"


def corrupt(sketch: Sketch, kind: CorruptionKind | str, rng: Rng, num_given: int = 0) -> Sketch | None:
    """A sketch with a defect of some kind, without constraints; None if it has no place for one.

    Args:
        sketch: A real sketch.
        kind: The kind of defect.
        rng: Chooses the place and the size of the defect.
        num_given: The first primitives that must not change, as in a completion. Something else remains beside them.

    >>> from sketchdnn.geometry import Circle, Line
    >>> corners = [(0, 0), (4, 0), (4, 3), (0, 3)]
    >>> plate = Sketch((*(Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])), Circle((2, 1.5), 0.5)))
    >>> [len(corrupt(plate, kind, np.random.default_rng(0))) for kind in ("moved hole", "dropped side", "speck")]
    [5, 4, 6]
    """
    view = _view(sketch, num_given)
    if view.size == 0:
        return None
    try:
        changed = _CORRUPTIONS[CorruptionKind(kind)](view, rng)
    except (_NoPlaceError, GeometryError):  # a random primitive may be impossible
        return None
    if changed is None or len(changed) <= num_given:
        return None
    return replace(sketch, primitives=tuple(changed), constraints=())


class _NoPlaceError(Exception):
    """The sketch has no place for the defect."""


class _Loop(NamedTuple):
    members: tuple[int, ...]
    center: Vec
    width: float
    height: float
    area: float
    depth: int
    parent: int | None

    @property
    def extent(self) -> float:
        return max(self.width, self.height)


class _View:
    """A sketch, its closed loops, and which of them may change."""

    def __init__(self, sketch: Sketch, num_given: int) -> None:
        self.primitives, self.num_given = list(sketch.primitives), num_given
        self.box = bounds(sketch)
        self.size = self.box.size
        outlines = profile(sketch, JOINED)
        self.meetings, self.num_overlaps = frozenset(outlines.meetings), len(outlines.overlaps)
        self.branched = bool(outlines.branches)
        self.loops: list[_Loop] = []
        for loop in outlines.loops:
            members = tuple(edge.primitive_index for edge in loop.edges)
            box = bounds([self.primitives[i] for i in members])
            self.loops.append(
                _Loop(members, box.center, box.width, box.height, abs(loop.area), loop.depth, loop.parent)
            )

    @property
    def outline(self) -> _Loop | None:
        return max(self.loops, key=lambda loop: loop.area, default=None)

    @property
    def holes(self) -> list[_Loop]:
        """The loops inside material that may change."""
        return [] if self.branched else [loop for loop in self.own_loops if loop.depth % 2 == 1]

    @property
    def own_loops(self) -> list[_Loop]:
        return [loop for loop in self.loops if min(loop.members) >= self.num_given]

    @property
    def own_lines(self) -> dict[int, Line]:
        """The lines that may change and are no construction."""
        own = dict(enumerate(self.primitives[self.num_given :], self.num_given))
        return {i: p for i, p in own.items() if isinstance(p, Line) and not p.construction}

    def near(self, a: float, b: float, tolerance: float = EQUAL) -> bool:
        return abs(a - b) <= tolerance * self.size

    def copies(self, loop: _Loop) -> list[_Loop]:
        """The other loops of the same width, height and number of primitives."""
        return [
            other
            for other in self.loops
            if other is not loop
            and len(other.members) == len(loop.members)
            and self.near(other.width, loop.width)
            and self.near(other.height, loop.height)
        ]

    def has_mirror_image(self, loop: _Loop) -> bool:
        """Whether a copy lies at the mirror image of a loop about an axis of the outline."""
        if self.outline is None or loop is self.outline:
            return False
        middle = self.outline.center
        return any(
            self.near(loop.center[axis] + other.center[axis], 2 * middle[axis])
            and self.near(loop.center[1 - axis], other.center[1 - axis])
            for other in self.copies(loop)
            for axis in (0, 1)
        )

    def is_placed(self, loop: _Loop) -> bool:
        """Whether the center of a loop shares a coordinate with the center of another loop or of the sketch."""
        others = [other.center for other in self.loops if other is not loop] + [self.box.center]
        return any(self.near(loop.center[axis], other[axis]) for other in others for axis in (0, 1))

    def moved(self, loop: _Loop, by: Vec) -> list[Primitive]:
        return [_moved(p, by) if i in loop.members else p for i, p in enumerate(self.primitives)]

    def is_clear(self, changed: Sequence[Primitive], depth: int | None = None, member: int = -1) -> bool:
        """Whether a change made no curves meet, and left the loop of a member at its depth."""
        outlines = profile(changed, JOINED)
        if len(outlines.meetings) > len(self.meetings):
            return False
        member %= len(changed)
        found = [loop for loop in outlines.loops if any(edge.primitive_index == member for edge in loop.edges)]
        return depth is None or any(loop.depth == depth for loop in found)


@lru_cache(maxsize=1)
def _view(sketch: Sketch, num_given: int) -> _View:
    return _View(sketch, num_given)


def _moved_hole(view: _View, rng: Rng) -> list[Primitive] | None:
    return _move_any(view, rng, [hole for hole in view.holes if view.is_placed(hole)], 0.02, 0.08)


def _shifted_image(view: _View, rng: Rng) -> list[Primitive] | None:
    mirrored = [hole for hole in view.holes if view.has_mirror_image(hole)]
    return _move_any(view, rng, mirrored, 0.01, 0.05, oblique=rng.random() < 0.5)


def _removed_hole(view: _View, rng: Rng) -> list[Primitive] | None:
    hole = _pick([hole for hole in view.holes if view.has_mirror_image(hole)], rng)
    return [p for i, p in enumerate(view.primitives) if i not in hole.members]


def _uneven_row(view: _View, rng: Rng) -> list[Primitive] | None:
    """A hole half-way between two copies moves along the row."""
    rows = []
    for hole in view.own_loops:
        copies = [other.center for other in view.copies(hole)]
        for n, (ax, ay) in enumerate(copies):
            for bx, by in copies[:n]:
                apart = math.hypot(bx - ax, by - ay)
                if apart > EQUAL and all(
                    view.near(2 * c, a + b) for c, a, b in zip(hole.center, (ax, ay), (bx, by), strict=True)
                ):
                    rows.append((hole, ((bx - ax) / apart, (by - ay) / apart)))
    hole, (ux, uy) = _pick([] if view.branched else rows, rng)
    for _ in range(_TRIES):
        length = rng.uniform(0.015, 0.05) * view.size * rng.choice([-1, 1])
        changed = view.moved(hole, (length * ux, length * uy))
        if view.is_clear(changed, hole.depth, hole.members[0]):
            return changed
    return None


def _off_center(view: _View, rng: Rng) -> list[Primitive] | None:
    centers = {i: p.center for i, p in enumerate(view.primitives) if isinstance(p, Circle | Arc)}
    concentric = [
        hole
        for hole in view.holes
        if any(
            math.dist(center, hole.center) <= EQUAL * view.size
            for i, center in centers.items()
            if i not in hole.members
        )
    ]
    return _move_any(view, rng, concentric, 0.01, 0.04, oblique=False)


def _unequal_radius(view: _View, rng: Rng) -> list[Primitive] | None:
    circles = [
        (loop.members[0], circle)
        for loop in view.own_loops
        if isinstance(circle := view.primitives[loop.members[0]], Circle) and view.copies(loop)
    ]
    number, circle = _pick(circles, rng)
    for _ in range(_TRIES):
        change = circle.radius * rng.uniform(0.12, 0.3) * rng.choice([-1, 1])
        changed = view.primitives.copy()
        changed[number] = replace(circle, radius=circle.radius + change)
        if abs(change) >= 0.005 * view.size and view.is_clear(changed):
            return changed
    return None


def _lone_hole(view: _View, rng: Rng) -> list[Primitive] | None:
    """A circle inside material, at a random place away from all curves."""
    for _ in range(_TRIES):
        circle = Circle(_place_in(view, rng), rng.uniform(0.02, 0.08) * view.size)
        changed = [*view.primitives, circle]
        if _gap(circle, view.primitives) >= 0.015 * view.size and view.is_clear(changed, 1):
            return changed
    return None


def _touching_hole(view: _View, rng: Rng) -> list[Primitive] | None:
    """A hole moves towards another curve until only a very thin wall is left."""
    hole = _pick(view.holes, rng)
    own = _points(view.primitives[i] for i in hole.members)
    others = _points(p for i, p in enumerate(view.primitives) if i not in hole.members and not p.construction)
    if not len(others):
        return None
    between = others - own[:, None]
    distance = np.hypot(between[..., 0], between[..., 1])
    nearest = distance.min(axis=1)
    first = int(rng.choice(np.argsort(nearest)[: max(1, len(own) // 4)]))
    gap = float(nearest[first])
    target = rng.uniform(0.002, 0.008) * view.size
    if not 0.03 * view.size <= gap <= 0.5 * view.size:
        return None
    x, y = (between[first, distance[first].argmin()] * (1 - target / gap)).tolist()
    changed = view.moved(hole, (x, y))
    is_thin = _gap_between([changed[i] for i in hole.members], _others(changed, hole.members)) < 0.01 * view.size
    return changed if is_thin and view.is_clear(changed, hole.depth, hole.members[0]) else None


def _thin_rim(view: _View, rng: Rng) -> list[Primitive] | None:
    """A circle around another one, or inside it, with a very thin ring between."""
    circles = [
        p for p in view.primitives if isinstance(p, Circle) and not p.construction and p.radius > 0.03 * view.size
    ]
    circle = _pick(circles, rng)
    for _ in range(_TRIES):
        gap = rng.uniform(0.004, 0.01) * view.size * rng.choice([-1, 1])
        changed = [*view.primitives, replace(circle, radius=circle.radius + gap)]
        if view.is_clear(changed):
            return changed
    return None


def _circle_across(view: _View, rng: Rng) -> list[Primitive] | None:
    """A circle with an edge of another shape running through it; in half of the cases in line with the edge."""
    curves = [
        p for p in view.primitives if not isinstance(p, Point) and not p.construction and p.length > 0.1 * view.size
    ]
    curve = _pick(curves, rng)
    for _ in range(_TRIES):
        radius = rng.uniform(0.03, 0.12) * view.size
        if rng.random() < 0.5:
            (x, y), (dx, dy) = curve.at(float(rng.choice([0.0, 0.25, 0.5]))), (0.0, 0.0)
        else:
            (x, y), (dx, dy) = curve.at(rng.uniform(0.1, 0.9)), _direction(rng, 0.6 * radius * rng.random())
        changed = [*view.primitives, Circle((x + dx, y + dy), radius)]
        if len(profile(changed, JOINED).meetings) > len(view.meetings):
            return changed
    return None


def _line_across(view: _View, rng: Rng) -> list[Primitive] | None:
    """A line between two corners, or two middles of edges, that are not next to each other."""
    lines = [p for p in view.primitives if isinstance(p, Line) and not p.construction]
    places = [line.start if rng.random() < 0.5 else line.at(0.5) for line in lines]
    for _ in range(_TRIES):
        start, end = _pick(places, rng), _pick(places, rng)
        if math.dist(start, end) < 0.1 * view.size:
            continue
        changed = [*view.primitives, Line(start, end)]
        outlines = profile(changed, JOINED)
        if len(outlines.overlaps) == view.num_overlaps and len(outlines.meetings) + len(outlines.branches) > len(
            view.meetings
        ):
            return changed
    return None


def _line_on_edge(view: _View, rng: Rng) -> list[Primitive] | None:
    """A line on top of a part of another one, and beyond its end."""
    lines = [p for p in view.primitives if isinstance(p, Line) and not p.construction and p.length > 0.1 * view.size]
    line = _pick(lines, rng)
    return [*view.primitives, Line(line.at(rng.uniform(-0.3, 0.3)), line.at(rng.uniform(0.6, 1.3)))]


def _shape_beside(view: _View, rng: Rng) -> list[Primitive] | None:
    """A circle or rectangle outside the box of the sketch; in half of the cases in line with its center."""
    if view.outline is None:
        return None
    extent = rng.uniform(0.06, 0.3) * view.size
    gap = rng.uniform(0.03, 0.15) * view.size + extent / 2
    axis, side = int(rng.integers(2)), rng.choice([-1, 1])
    half = (view.box.width / 2, view.box.height / 2)
    center = [0.0, 0.0] if rng.random() < 0.5 else [rng.uniform(-half[0], half[0]), rng.uniform(-half[1], half[1])]
    center[axis] = side * (half[axis] + gap)
    return [*view.primitives, *_shape((view.box.center[0] + center[0], view.box.center[1] + center[1]), extent, rng)]


def _shape_in_hole(view: _View, rng: Rng) -> list[Primitive] | None:
    """A circle or rectangle inside a hole, not at its center."""
    holes = [loop for loop in view.loops if loop.depth == 1 and loop.extent > 0.1 * view.size]
    hole = _pick(holes, rng)
    for _ in range(_TRIES):
        smaller = min(hole.width, hole.height)
        dx, dy = _direction(rng, rng.uniform(0.1, 0.3) * smaller)
        shape = _shape((hole.center[0] + dx, hole.center[1] + dy), rng.uniform(0.2, 0.45) * smaller, rng)
        if view.is_clear(changed := [*view.primitives, *shape], 2):
            return changed
    return None


def _shifted_edge(view: _View, rng: Rng) -> list[Primitive] | None:
    """An edge of a loop between two edges at right angles moves sideways; its mirror image stays."""
    candidates = []
    for loop in view.loops:
        lines = {i: p for i in loop.members if isinstance(p := view.primitives[i], Line)}
        for i, p in lines.items():
            axis = _level_axis(p, view)
            if axis is None or i < view.num_given:
                continue
            neighbors = [j for j, q in lines.items() if j != i and _shares_end(p, q, view)]
            at_right_angles = [j for j in neighbors if _level_axis(lines[j], view) == 1 - axis]
            if len(at_right_angles) == 2 and min(neighbors) >= view.num_given and _has_image(i, lines, loop, view):
                candidates.append((i, p, {j: lines[j] for j in at_right_angles}, axis))
    number, line, sides, axis = _pick(candidates, rng)
    for _ in range(_TRIES):
        shift = rng.uniform(0.015, 0.06) * view.size * rng.choice([-1, 1])
        by = (0.0, shift) if axis == 0 else (shift, 0.0)
        changed = view.primitives.copy()
        changed[number] = _moved(line, by)
        for j, neighbor in sides.items():
            changed[j] = _with_moved_ends(neighbor, (line.start, line.end), by, view)
        if view.is_clear(changed):
            return changed
    return None


def _moved_corner(view: _View, rng: Rng) -> list[Primitive] | None:
    """A corner of two lines moves, so that a level or upright line gets a slope."""
    lines = view.own_lines
    level = {i: line for i, line in lines.items() if _level_axis(line, view) is not None}
    corners = [
        (i, j, end)
        for i, line in level.items()
        for j, other in lines.items()
        if i != j
        for end in _common_ends(line, other, view)
    ]
    i, j, corner = _pick(corners, rng)
    for _ in range(_TRIES):
        by = _oblique(rng, rng.uniform(0.02, 0.06) * view.size)
        changed = view.primitives.copy()
        for number in (i, j):
            changed[number] = _with_moved_ends(lines[number], (corner,), by, view)
        if view.is_clear(changed):
            return changed
    return None


def _dropped_side(view: _View, rng: Rng) -> list[Primitive] | None:
    sides = [i for i in _edges(view) if view.primitives[i].length > 0.05 * view.size]
    side = _pick(sides, rng)
    return [p for i, p in enumerate(view.primitives) if i != side]


def _gap_in_loop(view: _View, rng: Rng) -> list[Primitive] | None:
    """A line of a loop ends early, or late."""
    edges = set(_edges(view))
    number, line = _pick([(i, p) for i, p in view.own_lines.items() if i in edges and p.length > 0.1 * view.size], rng)
    extra = rng.uniform(0.02, 0.06) * view.size * rng.choice([-1, 1]) / line.length
    changed = view.primitives.copy()
    changed[number] = replace(line, end=line.at(1 + extra))
    return changed


def _split_edge(view: _View, rng: Rng) -> list[Primitive] | None:
    number, line = _pick([(i, p) for i, p in view.own_lines.items() if p.length > 0.15 * view.size], rng)
    fraction = rng.uniform(0.2, 0.8)
    changed = view.primitives.copy()
    changed[number] = replace(line, end=line.at(fraction))
    return [*changed, replace(line, start=line.at(fraction))]


def _doubled_shape(view: _View, rng: Rng) -> list[Primitive] | None:
    """A copy of a loop or curve, slightly moved."""
    groups = [loop.members for loop in view.loops] or [(i,) for i in view.own_lines]
    members = _pick(groups, rng)
    by = _direction(rng, rng.uniform(0.01, 0.03) * view.size)
    return [*view.primitives, *(_moved(view.primitives[i], by) for i in members)]


def _speck(view: _View, rng: Rng) -> list[Primitive] | None:
    return [*view.primitives, *_shape(_place_in(view, rng), rng.uniform(0.006, 0.016) * view.size, rng)]


def _foreign_primitive(view: _View, rng: Rng) -> list[Primitive] | None:
    """A line, circle or arc at a random place."""
    start, turn = _place_in(view, rng), rng.uniform(0, math.tau)
    length = rng.uniform(0.15, 0.7) * view.size
    end = (start[0] + length * math.cos(turn), start[1] + length * math.sin(turn))
    choices = (Line(start, end), Circle(start, length / 4), arc_from_sweep(start, end, rng.uniform(0.5, 5.0)))
    return [*view.primitives, choices[int(rng.integers(3))]]


def _stray_construction(view: _View, rng: Rng) -> list[Primitive] | None:
    """A sloping construction line, partly outside the box."""
    (x, y), half = view.box.center, view.size / 2
    turn = rng.uniform(0, math.tau)
    start = (x + rng.uniform(1.1, 1.4) * half * math.cos(turn), y + rng.uniform(1.1, 1.4) * half * math.sin(turn))
    dx, dy = _oblique(rng, rng.uniform(0.3, 1.0) * view.size)
    return [*view.primitives, Line(start, (start[0] + dx, start[1] + dy), construction=True)]


_CORRUPTIONS: dict[CorruptionKind, Callable[[_View, Rng], list[Primitive] | None]] = {
    CorruptionKind.MOVED_HOLE: _moved_hole,
    CorruptionKind.SHIFTED_IMAGE: _shifted_image,
    CorruptionKind.REMOVED_HOLE: _removed_hole,
    CorruptionKind.UNEVEN_ROW: _uneven_row,
    CorruptionKind.OFF_CENTER: _off_center,
    CorruptionKind.UNEQUAL_RADIUS: _unequal_radius,
    CorruptionKind.LONE_HOLE: _lone_hole,
    CorruptionKind.TOUCHING_HOLE: _touching_hole,
    CorruptionKind.THIN_RIM: _thin_rim,
    CorruptionKind.CIRCLE_ACROSS: _circle_across,
    CorruptionKind.LINE_ACROSS: _line_across,
    CorruptionKind.LINE_ON_EDGE: _line_on_edge,
    CorruptionKind.SHAPE_BESIDE: _shape_beside,
    CorruptionKind.SHAPE_IN_HOLE: _shape_in_hole,
    CorruptionKind.SHIFTED_EDGE: _shifted_edge,
    CorruptionKind.MOVED_CORNER: _moved_corner,
    CorruptionKind.DROPPED_SIDE: _dropped_side,
    CorruptionKind.GAP: _gap_in_loop,
    CorruptionKind.SPLIT_EDGE: _split_edge,
    CorruptionKind.DOUBLED_SHAPE: _doubled_shape,
    CorruptionKind.SPECK: _speck,
    CorruptionKind.FOREIGN_PRIMITIVE: _foreign_primitive,
    CorruptionKind.STRAY_CONSTRUCTION: _stray_construction,
}


def _move_any(
    view: _View, rng: Rng, loops: Sequence[_Loop], least: float, most: float, *, oblique: bool = True
) -> list[Primitive] | None:
    """One of the loops moves by a fraction of the size, meets nothing, and stays where it is nested."""
    loop = _pick(loops, rng)
    for _ in range(_TRIES):
        length = rng.uniform(least, most) * view.size
        changed = view.moved(loop, _oblique(rng, length) if oblique else _direction(rng, length))
        if view.is_clear(changed, loop.depth, loop.members[0]):
            return changed
    return None


def _pick(items: Sequence[T], rng: Rng) -> T:
    if not items:
        raise _NoPlaceError
    return items[int(rng.integers(len(items)))]


def _direction(rng: Rng, length: float) -> Vec:
    """A level or upright step, or one in a random direction."""
    angle = float(rng.integers(4)) * math.pi / 2 if rng.random() < 0.5 else rng.uniform(0, math.tau)
    return (length * math.cos(angle), length * math.sin(angle))


def _oblique(rng: Rng, length: float) -> Vec:
    """A step at 20 degrees or more to both axes."""
    angle = math.radians(rng.uniform(20, 70)) + float(rng.integers(4)) * math.pi / 2
    return (length * math.cos(angle), length * math.sin(angle))


def _moved(p: Primitive, by: Vec) -> Primitive:
    return transformed(p, lambda v: (v[0] + by[0], v[1] + by[1]), lambda radius: radius)


def _place_in(view: _View, rng: Rng) -> Vec:
    (x, y), (width, height) = view.box.low, (view.box.width, view.box.height)
    return (x + rng.uniform(0.05, 0.95) * width, y + rng.uniform(0.05, 0.95) * height)


def _shape(center: Vec, extent: float, rng: Rng) -> list[Primitive]:
    """A circle or a rectangle."""
    if rng.random() < 0.5:
        return [Circle(center, extent / 2)]
    (x, y), dx, dy = center, extent / 2, extent / 2 * rng.uniform(0.4, 1.0)
    corners = [(x - dx, y - dy), (x + dx, y - dy), (x + dx, y + dy), (x - dx, y + dy)]
    return [Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1], strict=True)]


def _edges(view: _View) -> list[int]:
    """The curves that may change and are in a loop with others."""
    members = {i for loop in view.loops if len(loop.members) > 1 for i in loop.members}
    return sorted(i for i in members if i >= view.num_given)


def _others(primitives: Sequence[Primitive], members: Iterable[int]) -> list[Primitive]:
    return [p for i, p in enumerate(primitives) if i not in set(members) and not p.construction]


def _points(curves: Iterable[Primitive]) -> NDArray[np.float64]:
    """Points along curves."""
    return np.array([c.at(f) for c in curves if not isinstance(c, Point) for f in _SAMPLES]).reshape(-1, 2)


def _gap_between(some: Sequence[Primitive], others: Sequence[Primitive]) -> float:
    points = [(float(x), float(y)) for x, y in _points(some)]
    curves = [p for p in others if not isinstance(p, Point)]
    return min((distance_to_curve(curve, point) for curve in curves for point in points), default=math.inf)


def _gap(circle: Circle, others: Sequence[Primitive]) -> float:
    return _gap_between([circle], [p for p in others if not p.construction])


def _level_axis(line: Line, view: _View) -> int | None:
    """0 of a level line, 1 of an upright one, else None."""
    for axis in (0, 1):
        if view.near(line.start[1 - axis], line.end[1 - axis]):
            return axis
    return None


def _common_ends(a: Line, b: Line, view: _View) -> Iterator[Vec]:
    for p in (a.start, a.end):
        if any(math.dist(p, q) <= JOINED * view.size for q in (b.start, b.end)):
            yield p


def _shares_end(a: Line, b: Line, view: _View) -> bool:
    return any(True for _ in _common_ends(a, b, view))


def _with_moved_ends(line: Line, ends: Sequence[Vec], by: Vec, view: _View) -> Line:
    """A line whose ends at given places move."""

    def move(end: Vec) -> Vec:
        at_end = any(math.dist(end, other) <= JOINED * view.size for other in ends)
        return (end[0] + by[0], end[1] + by[1]) if at_end else end

    return replace(line, start=move(line.start), end=move(line.end))


def _has_image(number: int, lines: dict[int, Line], loop: _Loop, view: _View) -> bool:
    """Whether another line is the mirror image of a line about a middle axis of its loop."""
    line = lines[number]
    for axis in (0, 1):
        image = [list(line.start), list(line.end)]
        for end in image:
            end[axis] = 2 * loop.center[axis] - end[axis]
        for j, other in lines.items():
            ends = [other.start, other.end]
            same = any(
                all(math.dist(p, q) <= EQUAL * view.size for p, q in zip(image, order, strict=True))
                for order in (ends, ends[::-1])
            )
            # Opposite sides of a rectangle are images, but it stays a rectangle if one of them moves.
            if j != number and same and len(loop.members) > 4 and _level_axis(line, view) != 1 - axis:
                return True
    return False
