"""Design intent beyond single relations: mirror symmetry about an upright or a level axis.

A sketch whose outline is its own mirror image to within a small distance is taken as meant to be symmetric. The
distance is larger than the noise of single points: designers' sketches hardly ever miss symmetry by so little
(`docs/constraints.md`). Only a sketch that was drawn with noise is changed: in an exact one, a small difference was
meant.

All lengths refer to a sketch that is scaled to size one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import numpy as np

from sketchdnn.constraints.variables import Bools, Constraints, Floats, Ints, Primitives
from sketchdnn.geometry import (
    Arc,
    Circle,
    Constraint,
    ConstraintType,
    Kind,
    Line,
    Part,
    Point,
    Primitive,
    Ref,
    Sketch,
    Vec,
)
from sketchdnn.geometry.constraints import shared_ref
from sketchdnn.geometry.proximity import component_roots

from .joins import noise_estimate

_T = ConstraintType
# A sketch whose ends meet to within less was drawn exactly: files keep five digits, and models are ten times worse.
DRAWN_WITH_NOISE = 1e-4
# How far a primitive may be from the mirror image of its partner. Each of them moves half of that.
_REACH = 0.0125
# An axis at most this far from one of the sketch's own axes is meant to be that axis.
_OWN_AXIS = 0.0025
# Images of primitives that stay are exact to within this.
_EXACT = 1e-6
# Fewer primitives are no evidence of symmetry; more are too many to compare.
_LEAST, _MOST = 4, 64
_AXIS_PARTS = (Part.Y_AXIS, Part.X_AXIS)
_OTHER_END = {Part.START: Part.END, Part.END: Part.START}


class Intent(NamedTuple):
    """Constraints that make a sketch symmetric about its axes, once it is moved by `shift`."""

    shift: Vec
    constraints: tuple[Constraint, ...]

    def restore(self, sketch: Sketch, before: Primitives, held: Collection[int]) -> Sketch:
        """A solved sketch back in its place, without constraints on axes that it has there no longer."""
        if self.shift == (0.0, 0.0):
            return sketch
        moved = sketch.moved(1.0, (-self.shift[0], -self.shift[1]))
        primitives = tuple(before[i] if i in held else p for i, p in enumerate(moved))
        gone = [part for part, by in zip(_AXIS_PARTS, self.shift, strict=True) if by]
        constraints = tuple(c for c in sketch.constraints if not c.refers_to(Part.ORIGIN, *gone))
        return replace(moved, primitives=primitives, constraints=constraints)


def drawn_noise(primitives: tuple[Primitive, ...], tolerance: float) -> float:
    """The noise that a sketch was drawn with; 0 where it is unknown, or as small as the rounding of files."""
    noise = noise_estimate(primitives, tolerance)
    return noise if noise is not None and noise > DRAWN_WITH_NOISE else 0.0


def find_intent(primitives: Primitives, constraints: Constraints, noise: float, held: Collection[int]) -> Intent | None:
    """The mirror symmetry that a sketch of size one was meant to have; None if it has none.

    Args:
        primitives: The primitives.
        constraints: The sketch's own constraints and its joins.
        noise: That of `drawn_noise`.
        held: Indices of primitives that must not move.
    """
    if not noise or not _LEAST <= len(primitives) <= _MOST:
        return None
    points = _Points(primitives, constraints)
    if not points.outline.any():
        return None
    may_shift = not any(ref.primitive is None for c in constraints for ref in c.refs)
    shift = [0.0, 0.0]
    found: list[Constraint] = []
    for axis in (0, 1):
        symmetry = _find_symmetry(points, axis, held, may_shift=may_shift)
        if symmetry is not None:
            shift[axis] = -symmetry.at
            found += _symmetric_constraints(points, symmetry, axis, held)
    return Intent((shift[0], shift[1]), tuple(dict.fromkeys(found))) if found else None


class _Points:
    """The primitives as arrays.

    Attributes:
        primitives: The primitives.
        rows: `prim, 3, 2`: two ends and the middle of each; all three are the center of a circle.
        places: The same as `2, 3, prim`.
        radius: The radius of a circle, 0 of others.
        label: Equal for primitives of one kind, construction or not.
        component: Equal for primitives that are joined.
        cluster: Equal for points that coincide.
        outline: Which primitives are the outline.
        unlike: The difference in radius of each two primitives, infinite if they are of two kinds.
        is_arc: Which primitives are arcs.
    """

    def __init__(self, primitives: Primitives, constraints: Constraints) -> None:
        self.primitives = primitives
        self.rows = np.array([_row(p) for p in primitives])
        self.places = np.ascontiguousarray(self.rows.transpose(2, 1, 0))
        self.radius = np.array([p.radius if isinstance(p, Circle) else 0.0 for p in primitives])
        self.label = np.array([2 * p.kind + p.construction for p in primitives])
        joins = [c.refs for c in constraints if c.type is _T.COINCIDENT]
        numbers = [[ref.primitive for ref in refs if ref.primitive is not None] for refs in joins]
        self.component = component_roots(len(primitives), [group for group in numbers if group])
        refs = [shared_ref(i, part) for i, p in enumerate(primitives) for part in _parts(p)]
        index = {ref: k for k, ref in enumerate(refs)}
        same = [[index[ref] for ref in group if ref in index] for group in joins]
        roots = component_roots(len(refs), [group for group in same if len(group) > 1])
        self.cluster = dict(zip(refs, roots.tolist(), strict=True))
        self.outline = self._find_outline()
        self.unlike = np.abs(self.radius[:, None] - self.radius)
        self.unlike[self.label[:, None] != self.label] = np.inf
        self.is_arc = self.label // 2 == Kind.ARC
        self.matches: dict[tuple[int, float], tuple[_Symmetry, Floats]] = {}

    def match(self, axis: int, place: float) -> tuple[_Symmetry, Floats]:
        """As `_match`, once for each axis and place."""
        if (axis, place) not in self.matches:
            self.matches[axis, place] = _match(self, axis, place)
        return self.matches[axis, place]

    def _find_outline(self) -> Bools:
        """The joined primitives of the largest extent, construction not counted; none if all is construction."""
        drawn = np.array([not p.construction and not isinstance(p, Point) for p in self.primitives])
        best: tuple[float, int] = (0.0, -1)
        for root in np.unique(self.component[drawn]).tolist():
            members = drawn & (self.component == root)
            places, radius = self.rows[members], self.radius[members][:, None, None]
            width, height = (places + radius).max(axis=(0, 1)) - (places - radius).min(axis=(0, 1))
            best = max(best, (round(float(width * height), 6), -root))
        return np.asarray(drawn & (self.component == -best[1]))


class _Symmetry(NamedTuple):
    """A mirror axis: its coordinate, the partner of each primitive (−1 for none), and whether its ends are swapped."""

    at: float
    partner: Ints
    swapped: Bools


def _find_symmetry(points: _Points, axis: int, held: Collection[int], *, may_shift: bool) -> _Symmetry | None:
    """The symmetry about the axis with the most mirrored primitives; None if the outline is not mirrored."""
    best: tuple[tuple[int, float], _Symmetry] | None = None
    for place in _places(points, axis, held) if may_shift else [0.0]:
        symmetry, off = points.match(axis, place)
        if held:
            fixed = [i for i in held if symmetry.partner[i] in held and off[i] <= _EXACT]
            if len(fixed) < min(_LEAST, len(held)):
                continue
        mirrored = symmetry.partner >= 0
        if mirrored.sum() < _LEAST or not mirrored[points.outline].all():
            continue
        rank = (int(mirrored.sum()), -round(float(off[mirrored].mean()), 6))
        if best is None or rank > best[0]:
            best = (rank, symmetry)
    return None if best is None else best[1]


def _places(points: _Points, axis: int, held: Collection[int]) -> list[float]:
    """Where the axis may be: in the middle of the outline, or where most pairs agree."""
    numbers = sorted(held) or list(range(len(points.primitives)))
    label, middle = points.label[numbers], points.rows[numbers, 2]
    along, across = middle[:, axis], middle[:, 1 - axis]
    alike = (label[:, None] == label) & (np.abs(across[:, None] - across) <= _REACH)
    first, second = np.nonzero(np.triu(alike, 1))
    votes = np.sort((along[first] + along[second]) / 2)
    outline = points.rows[points.outline][..., axis]
    starts = [] if held else [(float(outline.min()) + float(outline.max())) / 2]
    if len(votes):
        near = np.searchsorted(votes, votes + _REACH) - np.searchsorted(votes, votes - _REACH)
        starts.append(median(votes[near == near.max()].tolist()))
    places = []
    for start in starts:
        refined = _refined(points, axis, start) if not held else start
        places.append(0.0 if abs(refined) <= _OWN_AXIS and not held else refined)
    return list(dict.fromkeys(places))


def _refined(points: _Points, axis: int, place: float) -> float:
    """The mean of the middles of all pairs about an axis."""
    symmetry, _ = points.match(axis, place)
    mirrored = np.flatnonzero(symmetry.partner >= 0)
    if not len(mirrored):
        return place
    both = np.concatenate([mirrored, symmetry.partner[mirrored]])
    return float(points.rows[both, :, axis].mean())


def _match(points: _Points, axis: int, place: float) -> tuple[_Symmetry, Floats]:
    """The partners about an axis, and how far each primitive is from the image of its nearest one.

    A joined group has partners only if the primitives of one joined group are partners of all of it.
    """
    places = points.places
    image = places.copy()
    image[axis] = 2 * place - image[axis]
    both = np.stack([image, image[:, [1, 0, 2]]])  # an image whose ends are in order, and one whose ends are swapped
    x, y = np.moveaxis(both[..., None] - places[:, :, None], 1, 0)
    off = np.hypot(x, y).max(axis=1) + points.unlike
    off[0, points.is_arc] = np.inf  # an image runs the other way
    is_swapped = off[1] < off[0]
    least = off.min(axis=0)
    number = np.arange(len(least))
    partner = least.argmin(axis=1)
    nearest = least[number, partner]
    partner = np.where((nearest <= _REACH) & (partner[partner] == number), partner, -1)
    component = points.component.tolist()
    while (partner >= 0).any():
        images: dict[int, set[int]] = {root: set() for root in component}
        for i, j in enumerate(partner.tolist()):
            images[component[i]].add(component[j] if j >= 0 else -1)
        whole = {root for root, others in images.items() if len(others) == 1 and -1 not in others}
        is_broken = (partner >= 0) & [root not in whole for root in component]
        if not is_broken.any():
            break
        partner[is_broken] = -1
    return _Symmetry(place, partner, is_swapped[number, partner] & (partner >= 0)), nearest


def _symmetric_constraints(
    points: _Points, symmetry: _Symmetry, axis: int, held: Collection[int]
) -> Iterator[Constraint]:
    """The constraints of all pairs, each pair of coinciding points once."""
    mirror = Ref(None, _AXIS_PARTS[axis])
    done: set[frozenset[int]] = set()
    for i, j in enumerate(symmetry.partner.tolist()):
        if j < i or (i in held and j in held):
            continue
        p = points.primitives[i]
        if isinstance(p, Circle) and i != j:
            yield Constraint(_T.EQUAL, (Ref(i), Ref(j)))
        for part in _parts(p):
            other = _OTHER_END.get(part, part) if symmetry.swapped[i] else part
            a, b = shared_ref(i, part), shared_ref(j, other)
            pair = frozenset((points.cluster[a], points.cluster[b]))
            if pair in done:
                continue
            done.add(pair)
            if len(pair) == 1:
                yield Constraint(_T.POINT_ON_CURVE, (a, mirror))
            else:
                yield Constraint(_T.SYMMETRIC, (a, b, mirror))


def _parts(p: Primitive) -> tuple[Part, ...]:
    match p:
        case Line():
            return (Part.START, Part.END)
        case Arc():
            return (Part.START, Part.END, Part.CENTER)
        case Circle():
            return (Part.CENTER,)
        case Point():
            return (Part.POINT,)


def _row(p: Primitive) -> list[Vec]:
    match p:
        case Line((x0, y0), (x1, y1)):
            return [(x0, y0), (x1, y1), ((x0 + x1) / 2, (y0 + y1) / 2)]
        case Arc():
            return [p.start, p.end, p.mid]
        case Circle(center):
            return [center] * 3
        case Point(at):
            return [at] * 3
