"""Defects of structure: what is open, crosses, overlaps, is tiny, thin, misplaced or without purpose."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Vec, overlaps
from sketchdnn.geometry.intersections import carrier_distance, midpoint

from .anatomy import EXACT, JOINED, Anatomy, Floats, Shape, ends_of, share_end
from .defect import Defect, DefectKind, defect

# A curve below this length, or a shape below this size, is a speck.
SPECK = 0.025
# Curves nearer than this bound a thin strip.
THIN = 0.025
# Lines that meet at less than this angle (radians) are one line in two pieces.
STRAIGHT = math.radians(1.0)


def find_structural_defects(anatomy: Anatomy) -> Iterator[Defect]:
    """All defects of structure."""
    yield from _open_ends(anatomy)
    yield from _gaps(anatomy)
    yield from _meetings(anatomy)
    yield from _pieces(anatomy)
    yield from _specks(anatomy)
    yield from _strips(anatomy)
    yield from _misplaced_shapes(anatomy)
    yield from _strays(anatomy)


def names(anatomy: Anatomy, primitives: tuple[int, ...] | list[int], limit: int = 4) -> str:
    """Primitives in words: "line 3", "circles 4 and 7", "primitives 1, 2 and 5".

    Longer lists end with how many more there are.
    """
    kinds = {anatomy.primitives[i].kind.label for i in primitives}
    noun = kinds.pop() if len(kinds) == 1 else "primitive"
    numbers = [str(i) for i in primitives]
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    if len(numbers) > limit:
        numbers[limit - 1 :] = [f"{len(numbers) - limit + 1} more"]
    return f"{noun}s {', '.join(numbers[:-1])} and {numbers[-1]}"


def subject(anatomy: Anatomy, primitives: tuple[int, ...] | list[int], singular: str, plural: str) -> str:
    """Primitives in words, with the verb that agrees: "line 3 is", "circles 4 and 7 are"."""
    return f"{names(anatomy, primitives)} {singular if len(primitives) == 1 else plural}"


def _open_ends(anatomy: Anatomy) -> Iterator[Defect]:
    for chain in anatomy.profile.chains:
        members = [edge.primitive_index for edge in chain.edges]
        yield defect(DefectKind.OPEN, members, f"{subject(anatomy, members, 'does', 'do')} not close a loop")


def _gaps(anatomy: Anatomy) -> Iterator[Defect]:
    """Ends that are joined, but not exactly."""
    owners = [i for i in anatomy.curves for _ in ends_of(anatomy.primitives[i])]
    if len(owners) < 4:
        return
    ends = np.array([end for i in anatomy.curves for end in ends_of(anatomy.primitives[i])])
    owner = np.array(owners)
    distance = np.hypot(*np.moveaxis(ends[:, None] - ends, -1, 0))
    distance[owner[:, None] == owner] = math.inf
    nearest = distance.argmin(axis=1)
    gap = distance.min(axis=1)
    for k in np.flatnonzero((gap > EXACT) & (gap <= JOINED)).tolist():
        pair = (owners[k], owners[int(nearest[k])])
        sentence = f"the ends of {names(anatomy, sorted(pair))} nearly, not exactly, meet"
        yield defect(DefectKind.GAP, pair, sentence, float(gap[k]) / JOINED)


def _meetings(anatomy: Anatomy) -> Iterator[Defect]:
    for branch in anatomy.profile.branches:
        sentence = f"more than two ends of {names(anatomy, branch.primitives)} meet in one point"
        yield defect(DefectKind.BRANCH, branch.primitives, sentence)
    for contact in anatomy.profile.contacts:
        pair = (contact.first, contact.second)
        if contact.crosses:
            yield defect(DefectKind.CROSSING, pair, f"{names(anatomy, pair)} cross")
        else:
            yield defect(DefectKind.TOUCH, pair, f"{names(anatomy, pair)} touch")
    for overlap in anatomy.profile.overlaps:
        pair = (overlap.first, overlap.second)
        yield defect(DefectKind.OVERLAP, pair, f"{names(anatomy, pair)} lie on top of each other")
    rest = [i for i, p in enumerate(anatomy.primitives) if p.construction or isinstance(p, Point)]
    if len(rest) > 1:
        for overlap in overlaps([anatomy.primitives[i] for i in rest], EXACT):
            pair = (rest[overlap.first], rest[overlap.second])
            yield defect(DefectKind.OVERLAP, pair, f"{names(anatomy, pair)} lie on top of each other")


def _pieces(anatomy: Anatomy) -> Iterator[Defect]:
    """Joined lines in one direction, and joined arcs of one circle."""
    curves = [(i, anatomy.primitives[i]) for i in anatomy.curves]
    for n, (i, a) in enumerate(curves):
        for j, b in curves[:n]:
            if isinstance(a, Circle) or a.kind != b.kind or not share_end(a, b):
                continue
            if _is_continuation(a, b):
                what = "line" if isinstance(a, Line) else "arc"
                yield defect(DefectKind.SPLIT, (i, j), f"{names(anatomy, (j, i))} are one {what} in two pieces")


def _is_continuation(a: Primitive, b: Primitive) -> bool:
    if isinstance(a, Line) and isinstance(b, Line):
        (ax, ay), (bx, by) = _direction(a), _direction(b)
        return abs(ax * by - ay * bx) <= STRAIGHT and min(a.length, b.length) > JOINED
    if isinstance(a, Arc) and isinstance(b, Arc):
        return math.dist(a.center, b.center) <= 2 * EXACT and abs(a.radius - b.radius) <= 2 * EXACT
    return False


def _direction(line: Line) -> Vec:
    length = line.length
    return ((line.end[0] - line.start[0]) / length, (line.end[1] - line.start[1]) / length)


def _specks(anatomy: Anatomy) -> Iterator[Defect]:
    tiny: set[int] = set()
    for shape in anatomy.shapes:
        size = max(shape.width, shape.height)
        if size < SPECK:
            tiny.update(shape.primitives)
            sentence = f"{subject(anatomy, shape.primitives, 'is a speck', 'are a speck')} of {size:.1%} of the size"
            yield defect(DefectKind.SPECK, shape.primitives, sentence, 1 - size / SPECK)
    for i in anatomy.curves:
        p = anatomy.primitives[i]
        if i not in tiny and p.length < SPECK:
            sentence = f"{names(anatomy, (i,))} is only {p.length:.1%} of the size long"
            yield defect(DefectKind.SPECK, (i,), sentence, 1 - p.length / SPECK)


def _strips(anatomy: Anatomy) -> Iterator[Defect]:
    distance = anatomy.curve_distance
    meeting = set(anatomy.profile.meetings)
    for k, m in np.argwhere(np.triu(distance < THIN, 1)).tolist():
        pair = (anatomy.curves[k], anatomy.curves[m])
        if pair not in meeting:
            gap = float(distance[k, m])
            sentence = f"between {names(anatomy, pair)} is a strip of only {gap:.1%} of the size"
            yield defect(DefectKind.THIN, pair, sentence, 1 - gap / THIN)


def _misplaced_shapes(anatomy: Anatomy) -> Iterator[Defect]:
    """Shapes beside the outline, or inside a hole. Several equal shapes without any outline are a pattern of holes."""
    outer = [shape for shape in anatomy.shapes if shape.depth == 0]
    outline = anatomy.outline
    if outline is not None and len(outer) > 1 and not all(shape.is_copy(outline) for shape in outer):
        for shape in outer:
            if shape is not outline:
                sentence = f"{subject(anatomy, shape.primitives, 'lies', 'lie')} outside the outline"
                yield defect(DefectKind.OUTSIDE, shape.primitives, sentence, 1 / math.sqrt(len(outer) - 1))
    for shape in anatomy.shapes:
        if shape.depth > 1:
            sentence = f"{subject(anatomy, shape.primitives, 'lies', 'lie')} inside a hole"
            yield defect(DefectKind.NESTED, shape.primitives, sentence)


def _strays(anatomy: Anatomy) -> Iterator[Defect]:
    """Points and construction curves that refer to nothing else."""
    strays = [i for i, p in enumerate(anatomy.primitives) if p.construction or isinstance(p, Point)]
    if not strays:
        return
    anchors: dict[int, list[Vec]] = defaultdict(list)
    for i, p in enumerate(anatomy.primitives):
        match p:
            case Line() | Arc():
                anchors[i] += [p.start, p.end, midpoint(p)] + ([p.center] if isinstance(p, Arc) else [])
            case Circle(center):
                anchors[i].append(center)
            case Point(at):
                anchors[i].append(at)
    shape_centers = [shape.center for shape in anatomy.shapes]
    for i in strays:
        others = [at for j, places in anchors.items() if j != i for at in places] + shape_centers
        missing = 2 - _num_attachments(anatomy.primitives[i], _distinct(others))
        if missing > 0:
            sentence = f"{names(anatomy, (i,))} refers to nothing else of the sketch"
            yield defect(DefectKind.STRAY, (i,), sentence, missing / 2)


def _num_attachments(p: Primitive, anchors: Floats) -> int:
    """How many anchors a point or construction curve goes through; one is enough for a point and a center."""
    if not len(anchors):
        return 0
    tolerance = 2 * EXACT

    def near(at: Vec) -> bool:
        return bool((np.hypot(anchors[:, 0] - at[0], anchors[:, 1] - at[1]) <= tolerance).any())

    if isinstance(p, Point):
        return 2 * near(p.at)
    through = sum(carrier_distance(p, (x, y)) <= tolerance for x, y in anchors.tolist())
    if isinstance(p, Line):
        return through
    return through + 2 * near(p.center)


def _distinct(points: list[Vec]) -> Floats:
    """The points, each once."""
    return np.unique(np.round(np.array(points).reshape(-1, 2), 4), axis=0)


def copies_of(shape: Shape, shapes: list[Shape]) -> list[Shape]:
    """The shapes of the same size and number of primitives, itself included."""
    return [other for other in shapes if shape.is_copy(other)]
