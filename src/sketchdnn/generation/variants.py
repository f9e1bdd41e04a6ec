"""More regular variants of what the model added: symmetric like the part, and in line with it.

The model's noise is larger than what repair may move. A hole 2 % beside the middle is meant to be in the middle: the
variant is one more candidate, and the score decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive, Sketch, Vec, arc_from_bulge, bounds, bulge, profile
from sketchdnn.geometry.mirror import Mirror, missing_images

from .conditions import CLOSE_TOLERANCE, joint_tolerance, outlines_of
from .goals import additions, open_ends

Additions = tuple[Primitive, ...]
# Geometry and its mirror image are equal if they are nowhere farther apart than this fraction of the size.
SYMMETRIC = 0.002
# Centers of shapes this close to a level of the part, as a fraction of the size, are moved there.
_ALIGNED = 0.06


def regular_variants(sketch: Sketch, num_given: int) -> list[Additions]:
    """Additions made symmetric about each axis of the part and about both, and in line with the part."""
    part, size = Sketch(sketch.primitives[:num_given]), bounds(sketch).size
    added = sketch.primitives[num_given:]
    mirrors = symmetry_axes(part.primitives)
    ways = [[mirror] for mirror in mirrors] + ([mirrors] if len(mirrors) == 2 else [])
    variants: list[Additions] = [added]
    for way in ways:
        variant = added
        for mirror in way:
            variant = _made_symmetric(variant, part, mirror, size)
        variants.append(variant)
    variants += [_aligned(variants[0], part), _aligned(variants[-1], part)]
    return [each for n, each in enumerate(variants) if each not in variants[:n]][1:]


def share_space(first: Sequence[Primitive], second: Sequence[Primitive]) -> bool:
    """Whether the boxes of two sets of primitives overlap."""
    a, b = bounds(first), bounds(second)
    return all(a.low[axis] < b.high[axis] and b.low[axis] < a.high[axis] for axis in (0, 1))


def symmetry_axes(primitives: Sequence[Primitive]) -> list[Mirror]:
    """The upright and the level line through the center of the box, if the primitives are symmetric about it."""
    box = bounds(primitives)
    mirrors = [Mirror(0, box.center[0]), Mirror(1, box.center[1])]
    return [mirror for mirror in mirrors if not missing_images(primitives, mirror, SYMMETRIC * box.size)]


def _made_symmetric(added: Additions, part: Sketch, mirror: Mirror, size: float) -> Additions:
    """The groups of additions that are symmetric, and the others made so: on the axis, or with their mirror image."""
    whole = Sketch(part.primitives + added)
    ends = open_ends(part)
    result: list[Primitive] = []
    for group in sorted(additions(whole, len(part)), key=min):
        items = tuple(whole.primitives[i] for i in sorted(group))
        image = tuple(mirror.primitive(p) for p in items)
        if not missing_images(items, mirror, SYMMETRIC * size):
            result += items
        elif (path := _symmetric_path(items, mirror, ends, size)) is not None:
            result += path
        elif share_space(items, image):
            off = mirror.at - bounds(items).center[mirror.axis]
            result += Sketch(items).moved(by=(off, 0.0) if mirror.axis == 0 else (0.0, off)).primitives
        elif not any(share_space(items, [p]) for p in result):
            result += (*items, *image)
    return tuple(result)


def _symmetric_path(items: Additions, mirror: Mirror, ends: Sequence[Vec], size: float) -> Additions | None:
    """A path between two open ends of the part whose second half is the mirror image of the first.

    None if the items are no path of an odd number of curves between mirrored ends.
    """
    if any(isinstance(p, Circle | Point) or p.construction for p in items):
        return None
    chains = profile(Sketch(items), CLOSE_TOLERANCE).chains
    if len(chains) != 1 or len(chains[0].edges) != len(items) or len(items) % 2 == 0:
        return None
    (chain,) = chains
    near = CLOSE_TOLERANCE * size
    if math.dist(mirror.point(chain.start), chain.end) > 2 * near:
        return None
    if not all(any(math.dist(end, at) <= near for at in ends) for end in (chain.start, chain.end)):
        return None
    half = [items[edge.primitive_index] for edge in chain.edges[: len(items) // 2]]
    at = chain.start
    for edge in chain.edges[: len(half)]:
        at = _far_end(items[edge.primitive_index], forward=edge.forward)
    edge = chain.edges[len(half)]
    middle = items[edge.primitive_index]
    with suppress(GeometryError):
        if isinstance(middle, Arc):
            bend = bulge(middle) if edge.forward else -bulge(middle)
            middle = arc_from_bulge(at, mirror.point(at), bend)
        else:
            middle = Line(at, mirror.point(at))
        return (*half, middle, *(mirror.primitive(p) for p in half))
    return None


def _far_end(p: Primitive, *, forward: bool) -> Vec:
    assert isinstance(p, Line | Arc)  # noqa: S101 - only these are in chains
    return p.end if forward else p.start


def _aligned(added: Additions, part: Sketch) -> Additions:
    """Closed shapes moved so that their centers are level with the nearest of `_places`, if near."""
    whole = Sketch(part.primitives + added)
    near = _ALIGNED * bounds(part).size
    levels = [sorted({place[axis] for place in _places(part)}) for axis in (0, 1)]
    moved: list[Primitive] = []
    for group in sorted(additions(whole, len(part)), key=min):
        items = tuple(whole.primitives[number] for number in sorted(group))
        if any(p.construction for p in items) or not outlines_of(items, CLOSE_TOLERANCE).loops:
            moved += items
            continue
        center = bounds(items).center
        x, y = (_nearest(center[axis], levels[axis], near) for axis in (0, 1))
        moved += Sketch(items).moved(by=(x - center[0], y - center[1])).primitives
    return tuple(moved)


def _nearest(value: float, levels: Sequence[float], near: float) -> float:
    level = min(levels, key=lambda level: abs(level - value), default=value)
    return level if abs(level - value) <= near else value


def _places(part: Sketch) -> list[Vec]:
    """Places to align holes with: the centers of the part, its lines, its arcs and its closed shapes."""
    shape = outlines_of(part.primitives, joint_tolerance(part.primitives))
    places = [bounds(part).center]
    loops = [[part.primitives[edge.primitive_index] for edge in loop.edges] for loop in shape.loops]
    places += [bounds(loop).center for loop in loops]
    for p in part:
        if isinstance(p, Line) and not p.construction:
            places.append(p.at(0.5))
        elif isinstance(p, Arc):
            places.append(p.center)
    return places
