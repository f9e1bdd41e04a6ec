"""Defects of regularity: shapes aligned with nothing, and near-misses of symmetry, rows, radii, levels and angles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sketchdnn.geometry import Arc, Circle, Line, Point, Vec

from .anatomy import EXACT, JOINED, Anatomy, Floats, Mask, Shape, ends_of
from .defect import Defect, DefectKind, defect
from .structure import copies_of, names, subject

# Beyond EXACT and below these, two numbers are nearly, not exactly, equal.
NEAR = 0.06
NEAR_LEVEL = 0.05
NEAR_RADIUS = 0.25  # of the larger radius
NEAR_ANGLE = math.radians(5.0)
# Symmetry is looked for in sketches of which at least this fraction has its mirror image.
MOSTLY = 0.5


def find_irregularities(anatomy: Anatomy) -> Iterator[Defect]:
    """All defects of regularity."""
    yield from _shape_positions(anatomy)
    yield from _radii(anatomy)
    yield from _rows(anatomy)
    yield from _levels(anatomy)
    yield from _angles(anatomy)
    yield from _mirror(anatomy)
    yield from _free_points(anatomy)


class _Anchor(NamedTuple):
    at: Vec
    primitives: tuple[int, ...]
    is_center: bool  # of a shape or arc, not an end
    exact: float  # differences up to this one count as none


def _anchors(anatomy: Anatomy) -> list[_Anchor]:
    anchors = [_Anchor(s.center, s.primitives, True, EXACT) for s in anatomy.shapes]
    for i, p in enumerate(anatomy.primitives):
        anchors += [_Anchor(end, (i,), False, EXACT) for end in ends_of(p)]
        if isinstance(p, Arc) and p.sweep > math.pi / 3:
            anchors.append(_Anchor(p.center, (i,), True, JOINED))  # sweeps are often rounded in files
        elif isinstance(p, Point):
            anchors.append(_Anchor(p.at, (i,), True, EXACT))
        elif isinstance(p, Circle) and p.construction:
            anchors.append(_Anchor(p.center, (i,), True, EXACT))
    return anchors


def _shape_positions(anatomy: Anatomy) -> Iterator[Defect]:
    """Each shape but the outline should be placed by something: a common center, level, pattern or equal distance."""
    anchors = _anchors(anatomy)
    for shape in anatomy.shapes:
        if shape is anatomy.outline and len(anatomy.shapes) == 1:
            continue
        members = set(shape.primitives)
        others = [anchor for anchor in anchors if members.isdisjoint(anchor.primitives)]
        if not others or shape is anatomy.outline:
            continue
        offset = np.abs(np.array([anchor.at for anchor in others]) - shape.center)
        exact = np.array([anchor.exact for anchor in others])
        fixed = offset <= exact[:, None]
        placed = [bool(fixed[:, axis].any()) for axis in (0, 1)]
        centers = np.array([anchor.is_center for anchor in others])
        yield from _near_centers(anatomy, shape, others, offset, centers, placed)
        missing = 2 - sum(placed)
        if missing and not _is_placed_otherwise(anatomy, shape):
            sentence = f"{subject(anatomy, shape.primitives, 'is', 'are')} in line with nothing else"
            yield defect(DefectKind.UNALIGNED, shape.primitives, sentence, 1.0 if missing == 2 else 0.3)


def _near_centers(
    anatomy: Anatomy, shape: Shape, others: list[_Anchor], offset: Floats, centers: Mask, placed: list[bool]
) -> Iterator[Defect]:
    """Near-misses of a common center, else of a common level of centers."""
    distance = np.where(centers, np.hypot(offset[:, 0], offset[:, 1]), math.inf)
    k = int(distance.argmin())
    if distance[k] <= 2 * others[k].exact:
        return
    if distance[k] < NEAR:
        pair = f"{names(anatomy, shape.primitives)} and {names(anatomy, others[k].primitives)}"
        sentence = f"{pair} nearly, not exactly, have one center"
        members = shape.primitives + others[k].primitives
        yield defect(DefectKind.NEAR_CENTER, members, sentence, 1 - float(distance[k]) / NEAR)
        return
    for axis in (0, 1):
        if placed[axis]:
            continue
        off = np.where(centers, offset[:, axis], math.inf)
        k = int(off.argmin())
        if off[k] < NEAR:
            pair = f"{names(anatomy, shape.primitives)} and {names(anatomy, others[k].primitives)}"
            sentence = f"the centers of {pair} are nearly, not exactly, {'below each other' if axis == 0 else 'level'}"
            members = shape.primitives + others[k].primitives
            yield defect(DefectKind.NEAR_LEVEL, members, sentence, 1 - float(off[k]) / NEAR)


def _is_placed_otherwise(anatomy: Anatomy, shape: Shape) -> bool:
    """By equal distances from two sides of the outline, or on a circle about its center with a copy."""
    outline = anatomy.outline
    if outline is None:
        return False
    dx, dy = (shape.center[axis] - outline.center[axis] for axis in (0, 1))
    margins = outline.width / 2 - abs(dx), outline.height / 2 - abs(dy)
    if abs(margins[0] - margins[1]) <= 2 * EXACT:
        return True
    return any(
        other is not shape and abs(math.dist(other.center, outline.center) - math.hypot(dx, dy)) <= 2 * EXACT
        for other in copies_of(shape, anatomy.shapes)
    )


def _radii(anatomy: Anatomy) -> Iterator[Defect]:
    """Circles of nearly equal radii, unless they are concentric."""
    circles = [(i, p) for i in anatomy.curves if isinstance(p := anatomy.primitives[i], Circle)]
    for n, (i, a) in enumerate(circles):
        for j, b in circles[:n]:
            off, largest = abs(a.radius - b.radius), max(a.radius, b.radius)
            if EXACT < off < NEAR_RADIUS * largest and math.dist(a.center, b.center) > largest:
                sentence = f"the radii of {names(anatomy, (j, i))} are nearly, not exactly, equal"
                yield defect(DefectKind.NEAR_RADIUS, (i, j), sentence, 1 - off / (NEAR_RADIUS * largest))


def _rows(anatomy: Anatomy) -> Iterator[Defect]:
    """A shape nearly, not exactly, half-way between two copies of it."""
    done: set[tuple[int, ...]] = set()
    for shape in anatomy.shapes:
        group = copies_of(shape, anatomy.shapes)
        if shape.primitives in done or len(group) < 3:
            continue
        done.update(other.primitives for other in group)
        center = np.array([other.center for other in group])
        middle = (center[:, None] + center) / 2
        apart = np.hypot(*np.moveaxis(center[:, None] - center, -1, 0))
        first, second = np.nonzero(np.triu(apart > 2 * NEAR, 1))
        for k, each in enumerate(group):
            keep = (first != k) & (second != k)
            a, b = first[keep], second[keep]
            if not len(a):
                continue
            off = np.hypot(*(middle[a, b] - center[k]).T)
            best = int(off.argmin())
            if 2 * EXACT < off[best] < NEAR:
                members = each.primitives + group[a[best]].primitives + group[b[best]].primitives
                sentence = f"{names(anatomy, sorted(members))} are nearly, not exactly, an even row"
                yield defect(DefectKind.NEAR_ROW, members, sentence, 1 - float(off[best]) / NEAR)


def _levels(anatomy: Anatomy) -> Iterator[Defect]:
    """Edges of one loop that face the same way, side by side, at nearly the same level: one shoulder is lower."""
    for axis in (0, 1):
        for loop in anatomy.profile.loops:
            edges = []
            for edge in loop.edges:
                p = anatomy.primitives[edge.primitive_index]
                if isinstance(p, Line) and abs(p.end[axis] - p.start[axis]) <= EXACT:
                    forward = (p.end[1 - axis] > p.start[1 - axis]) == edge.forward
                    along = sorted((p.start[1 - axis], p.end[1 - axis]))
                    edges.append((edge.primitive_index, forward, p.start[axis], along))
            yield from _shoulders(anatomy, edges)


def _shoulders(anatomy: Anatomy, edges: list[tuple[int, bool, float, list[float]]]) -> Iterator[Defect]:
    for n, (i, forward, level, along) in enumerate(edges):
        for j, other_forward, other_level, other_along in edges[:n]:
            off = abs(level - other_level)
            beside = along[0] >= other_along[1] + EXACT or other_along[0] >= along[1] + EXACT
            if forward == other_forward and beside and EXACT < off < NEAR_LEVEL:
                sentence = f"{names(anatomy, (j, i))} are nearly, not exactly, level"
                yield defect(DefectKind.NEAR_LEVEL, (i, j), sentence, 1 - off / NEAR_LEVEL)


def _angles(anatomy: Anatomy) -> Iterator[Defect]:
    """Lines that are nearly horizontal or vertical."""
    for i in anatomy.curves:
        p = anatomy.primitives[i]
        if not isinstance(p, Line):
            continue
        dx, dy = abs(p.end[0] - p.start[0]), abs(p.end[1] - p.start[1])
        angle = math.atan2(min(dx, dy), max(dx, dy))
        if min(dx, dy) > EXACT and angle < NEAR_ANGLE:
            direction = "horizontal" if dx > dy else "vertical"
            sentence = f"{names(anatomy, (i,))} is nearly, not exactly, {direction}"
            yield defect(DefectKind.NEAR_ANGLE, (i,), sentence, 1 - angle / NEAR_ANGLE)


def mirror_offset(anatomy: Anatomy) -> float:
    """The largest distance of a primitive from its mirror image, about the best upright or level axis."""
    axes = ((axis, place) for axis in (0, 1) for place in _axes(anatomy, axis))
    return min(float(_image_distance(anatomy, axis, place).max()) for axis, place in axes)


def _mirror(anatomy: Anatomy) -> Iterator[Defect]:
    """Primitives without a mirror image, or with one slightly off, in a sketch that is symmetric elsewhere."""
    best: tuple[float, int, Floats] | None = None
    for axis in (0, 1):
        for place in _axes(anatomy, axis):
            off = _image_distance(anatomy, axis, place)
            share = float((off <= 2 * EXACT).mean())
            near = float(np.clip(1 - off / NEAR, 0, 1).mean())
            if best is None or share + near > best[0]:
                best = (share + near, axis, off)
    if best is None:
        return
    off = best[2]
    share = float((off <= NEAR).mean())
    if share < MOSTLY:
        return
    direction = "vertical" if best[1] == 0 else "horizontal"
    for i in np.flatnonzero(off > 2 * EXACT).tolist():
        if off[i] <= NEAR:
            sentence = f"{names(anatomy, (i,))} is nearly, not exactly, mirrored about the {direction} axis"
            yield defect(DefectKind.NEAR_MIRROR, (i,), sentence, share)
        else:
            sentence = f"{names(anatomy, (i,))} has no mirror image about the {direction} axis"
            yield defect(DefectKind.ASYMMETRIC, (i,), sentence, share)


def _axes(anatomy: Anatomy, axis: int) -> list[float]:
    """Where axes of symmetry may be: at the center, at that of the outline, where most pairs of equal kind agree."""
    places = [0.0]
    if anatomy.outline is not None:
        places.append(anatomy.outline.center[axis])
    middle = anatomy.descriptor[:, 4:6]
    first, second = np.triu_indices(len(middle))
    alike = anatomy.label[first] == anatomy.label[second]
    alike &= np.abs(middle[first, 1 - axis] - middle[second, 1 - axis]) <= 2 * EXACT
    alike &= first != second
    if alike.any():
        voted = np.round((middle[first, axis] + middle[second, axis])[alike] / (4 * EXACT))
        values, counts = np.unique(voted, return_counts=True)
        best = voted == values[counts.argmax()]
        places.append(float(np.median((middle[first, axis] + middle[second, axis])[alike][best]) / 2))
    return list(dict.fromkeys(places))


def _image_distance(anatomy: Anatomy, axis: int, place: float) -> Floats:
    """`prim`: how far the nearest primitive of the same kind is from the mirror image of each."""
    values = anatomy.descriptor.T
    image = values.copy()
    image[axis:6:2] = 2 * place - image[axis:6:2]
    swapped = image[[2, 3, 0, 1, 4, 5, 6]]
    straight = np.abs(image[:, :, None] - values[:, None]).max(axis=0)
    reverse = np.abs(swapped[:, :, None] - values[:, None]).max(axis=0)
    distance = np.minimum(straight, reverse)
    distance[anatomy.label[:, None] != anatomy.label] = math.inf
    return np.asarray(distance.min(axis=1))


def _free_points(anatomy: Anatomy) -> Iterator[Defect]:
    """Corners that share neither coordinate with any other feature point."""
    corners: list[tuple[Vec, int]] = [(end, i) for i in anatomy.curves for end in ends_of(anatomy.primitives[i])]
    if not corners:
        return
    at = np.array([corner for corner, _ in corners])
    features = np.concatenate([at, np.array([shape.center for shape in anatomy.shapes]).reshape(-1, 2)])
    offset = np.abs(at[:, None] - features)
    elsewhere = offset.max(axis=-1) > JOINED
    shared = (offset.min(axis=-1) <= EXACT) & elsewhere
    free = ~shared.any(axis=1)
    owner = np.array([i for _, i in corners])
    for i in dict.fromkeys(owner[free].tolist()):
        amount = float(free[owner == i].sum()) / 2
        sentence = f"an end of {names(anatomy, (i,))} is in line with nothing else"
        yield defect(DefectKind.FREE, (i,), sentence, amount)
