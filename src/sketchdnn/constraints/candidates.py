"""What might hold in a sketch: generous guesses, found with arrays over all pairs. Which of them hold is seen later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Part, Point, Ref

from .variables import OUTSIDE, Floats, Ints, Variables

# A line turned by more than this sine has another direction, however short it is; a larger bend between curves that
# meet is a corner. Sizes further apart than this share of the smaller are different, however small they are; of radii,
# which come in fewer sizes, more is believed.
MOST_TURN = 0.08
MOST_BEND = 0.3
MOST_STRETCH = 0.08
MOST_SWELLING = 0.25
# How far beyond its end a line may still lead to a point, as a share of the sketch.
FAR = 0.25
# Three places for each of many points would be too many to look at.
_MOST_MIDDLES = 64


class Looks:
    """A sketch as it stands: where its places, lines and circles are. `reach` is how far off something may be.

    One place of each class speaks for all that are one with it.
    """

    def __init__(self, variables: Variables, leaders: Ints, reach: float) -> None:
        self.variables, self.reach = variables, reach
        self.leader = leaders
        self.speakers = np.unique(self.leader)
        self.lines, self.rounds = variables.lines, variables.rounds
        self.line_index, self.round_index = np.array(self.lines, dtype=int), np.array(self.rounds, dtype=int)
        first = np.array(variables.first, dtype=int)
        self.starts, self.centers = first[self.line_index], first[self.round_index]
        points = [variables.first[i] for i, p in enumerate(variables.primitives) if isinstance(p, Point)]
        own = self.leader[points]
        self.is_point = np.isin(self.speakers, own) if len(own) else np.zeros(len(self.speakers), dtype=bool)
        self.radii = slice(2 * (variables.count + len(OUTSIDE)), None)

    def look(self, f: Floats) -> None:
        """See where things are now."""
        self.at = f[: 2 * self.variables.count].reshape(-1, 2)
        self.start = self.at[self.starts]
        self.along = self.at[self.starts + 1] - self.start
        self.length = np.maximum(np.hypot(self.along[:, 0], self.along[:, 1]), 1e-12)
        self.unit = self.along / self.length[:, None]
        self.is_long = self.length * MOST_TURN > self.reach / 4  # long enough to have a direction
        self.center = self.at[self.centers]
        self.radius = f[self.radii]

    def ref(self, place: int) -> Ref:
        return Ref(*self.variables.places[place])

    def holds(self, primitive: int, place: int) -> bool:
        """Whether a place is one of a circle's or arc's own."""
        k = self.variables.first[primitive]
        own = (k,) if isinstance(self.variables.primitives[primitive], Circle) else (k, k + 1, k + 2)
        return any(self.leader[q] == place for q in own)


def directions(looks: Looks, level: set[int]) -> Iterator[Constraint]:
    """Lines along each other or across; those along an axis have said so already."""
    free = np.array([i not in level for i in looks.lines], dtype=bool) & looks.is_long
    chosen = np.flatnonzero(free)
    if len(chosen) < 2:
        return
    unit = looks.unit[chosen]
    sine = np.abs(np.outer(unit[:, 0], unit[:, 1]) - np.outer(unit[:, 1], unit[:, 0]))
    cosine = np.abs(unit @ unit.T)
    for off, kind in ((sine, ConstraintType.PARALLEL), (cosine, ConstraintType.PERPENDICULAR)):
        for a, b in _pairs(off <= MOST_TURN):
            yield Constraint(kind, (Ref(looks.lines[chosen[a]]), Ref(looks.lines[chosen[b]])))


def smooth(contacts: Sequence[frozenset[int]], looks: Looks) -> Iterator[Constraint]:
    """Curves that share a place, one of them round."""
    for pair in contacts:
        a, b = sorted(pair)
        if a in looks.variables.radius or b in looks.variables.radius:
            yield Constraint(ConstraintType.TANGENT, (Ref(a), Ref(b)))


def touching(looks: Looks, shared: set[frozenset[int]]) -> Iterator[Constraint]:
    """Curves that touch without sharing a place, where both are drawn."""
    if not looks.rounds:
        return
    if looks.lines:
        offset = looks.center[:, None] - looks.start[None]
        along = np.sum(offset * looks.unit[None], axis=2)
        off = np.abs(np.abs(_cross(looks.unit[None], offset)) - looks.radius[:, None])
        inside = (along > 0) & (along < looks.length[None])
        for r, k in zip(*np.nonzero((off <= 2 * looks.reach) & inside), strict=True):
            i, j = looks.rounds[r], looks.lines[k]
            foot = looks.start[k] + along[r, k] * looks.unit[k]
            if frozenset((i, j)) not in shared and _drawn(looks, i, foot):
                yield Constraint(ConstraintType.TANGENT, (Ref(j), Ref(i)))
    apart = _lengths(looks.center[:, None] - looks.center[None])
    total, between = looks.radius[:, None] + looks.radius, np.abs(looks.radius[:, None] - looks.radius)
    near = np.minimum(np.abs(apart - total), np.abs(apart - between)) <= 2 * looks.reach
    for r, s in _pairs(near & (apart > 4 * looks.reach)):
        i, j = looks.rounds[r], looks.rounds[s]
        toward = (looks.center[s] - looks.center[r]) / apart[r, s]
        sign = 1.0 if abs(apart[r, s] - total[r, s]) <= 2 * looks.reach or looks.radius[r] > looks.radius[s] else -1.0
        place = looks.center[r] + sign * looks.radius[r] * toward
        if frozenset((i, j)) not in shared and _drawn(looks, i, place) and _drawn(looks, j, place):
            yield Constraint(ConstraintType.TANGENT, (Ref(i), Ref(j)))


def on_curves(looks: Looks) -> Iterator[Constraint]:
    """Places on a line between its ends, halfway along it, or on a circle; one place of each class speaks for it.

    A point of its own often marks where curves would meet, so it may also lie on what is not drawn of them.
    """
    speakers, is_point = looks.speakers, looks.is_point
    at = looks.at[speakers]
    if looks.lines:
        offset = at[:, None] - looks.start[None]
        along = np.sum(offset * looks.unit[None], axis=2)
        off = np.abs(_cross(looks.unit[None], offset))
        own = (speakers[:, None] == looks.leader[looks.starts]) | (speakers[:, None] == looks.leader[looks.starts + 1])
        between = (along > 0) & (along < looks.length[None])
        beyond = is_point[:, None] & looks.is_long & (along > -FAR) & (along < looks.length[None] + FAR)
        near = (off <= 2 * looks.reach) & ~own & (between | beyond)
        middle = near & (np.abs(along - looks.length / 2) <= np.minimum(2 * looks.reach, 0.2 * looks.length))
        for kind, found in ((ConstraintType.MIDPOINT, middle), (ConstraintType.POINT_ON_CURVE, near)):
            for p, k in zip(*np.nonzero(found), strict=True):
                yield Constraint(kind, (looks.ref(speakers[p]), Ref(looks.lines[k])))
    if looks.rounds:
        off = np.abs(_lengths(at[:, None] - looks.center[None]) - looks.radius)
        for p, k in zip(*np.nonzero(off <= 2 * looks.reach), strict=True):
            i = looks.rounds[k]
            if not looks.holds(i, speakers[p]) and (is_point[p] or _drawn(looks, i, at[p])):
                yield Constraint(ConstraintType.POINT_ON_CURVE, (looks.ref(speakers[p]), Ref(i)))


def collinear(looks: Looks) -> Iterator[Constraint]:
    """Lines on one line."""
    if len(looks.lines) < 2:
        return
    starts = _cross(looks.unit[:, None], looks.start[None] - looks.start[:, None])
    ends = _cross(looks.unit[:, None], looks.start[None] + looks.along[None] - looks.start[:, None])
    near = (np.maximum(np.abs(starts), np.abs(ends)) <= 2 * looks.reach) & looks.is_long[:, None] & looks.is_long
    for a, b in _pairs(near & near.T):
        yield Constraint(ConstraintType.COLLINEAR, (Ref(looks.lines[a]), Ref(looks.lines[b])))


def equals(looks: Looks) -> Iterator[Constraint]:
    """Lines of one length, circles and arcs of one radius: each and the next larger one."""
    for sizes, owners, most in (
        (looks.radius, looks.rounds, MOST_SWELLING),
        (looks.length, looks.lines, MOST_STRETCH),
    ):
        order = np.argsort(sizes, kind="stable")
        smaller, larger = sizes[order[:-1]], sizes[order[1:]]
        near = (larger - smaller <= 2 * looks.reach) & (larger - smaller <= most * smaller)
        for k in np.flatnonzero(near):
            a, b = sorted((owners[order[k]], owners[order[k + 1]]))
            yield Constraint(ConstraintType.EQUAL, (Ref(a), Ref(b)))


def aligned(looks: Looks) -> Iterator[Constraint]:
    """Centers and points beside or above each other."""
    places = looks.variables.places
    loose = [k for k in looks.speakers.tolist() if places[k][1] in (Part.CENTER, Part.POINT)]
    if len(loose) < 2:
        return
    at = looks.at[loose]
    apart = np.abs(at[:, None] - at[None])
    for axis, kind in ((1, ConstraintType.HORIZONTAL), (0, ConstraintType.VERTICAL)):
        near = (apart[..., axis] <= 2 * looks.reach) & (apart[..., axis] <= MOST_TURN * apart[..., 1 - axis])
        for a, b in _pairs(near):
            yield Constraint(kind, (looks.ref(loose[a]), looks.ref(loose[b])))


def middles(looks: Looks) -> Iterator[Constraint]:
    """Points halfway between two places."""
    speakers, points = looks.speakers, np.flatnonzero(looks.is_point)
    at = looks.at[speakers]
    for middle in points if max(len(points), len(speakers) / 4) <= _MOST_MIDDLES else ():
        off = np.abs(2 * at[middle] - at[:, None] - at[None]).max(axis=2)
        off[middle], off[:, middle] = np.inf, np.inf
        for a, b in _pairs(off <= 2 * looks.reach):
            refs = (looks.ref(speakers[middle]), looks.ref(speakers[a]), looks.ref(speakers[b]))
            yield Constraint(ConstraintType.MIDPOINT, refs)


def mirrored(looks: Looks) -> Iterator[Constraint]:
    """Places either side of a construction line, if two pairs agree, or of an axis, if most of the sketch does."""
    variables, speakers = looks.variables, looks.speakers
    at = looks.at[speakers]
    mirrors: list[tuple[Ref, Floats, Floats, float]] = [
        (Ref(i), looks.start[k], looks.unit[k], 4.0)
        for k, i in enumerate(looks.lines)
        if looks.is_long[k] and variables.primitives[i].construction
    ]
    origin = -np.array(variables.shift) / variables.scale
    mirrors += [
        (Ref(None, Part.X_AXIS), origin, np.array([1.0, 0.0]), 0.6 * len(speakers)),
        (Ref(None, Part.Y_AXIS), origin, np.array([0.0, 1.0]), 0.6 * len(speakers)),
    ]
    for ref, start, unit, least in mirrors:
        offset = at - start
        image = start + 2 * np.outer(offset @ unit, unit) - offset
        off = np.abs(image[:, None] - at[None]).max(axis=2)
        aside = np.abs(_cross(unit, offset)) > 2 * looks.reach
        near = (off <= 2 * looks.reach) & aside[:, None] & aside
        if near.any(axis=1).sum() < max(least, 4.0):
            continue
        for a, b in _pairs(near):
            yield Constraint(ConstraintType.SYMMETRIC, (looks.ref(speakers[a]), looks.ref(speakers[b]), ref))


def _drawn(looks: Looks, primitive: int, place: Floats) -> bool:
    """Whether a place near a circle lies beside what is drawn of it."""
    p = looks.variables.primitives[primitive]
    if not isinstance(p, Arc):
        return True
    center = looks.at[looks.variables.first[primitive]]
    angle = float(np.arctan2(place[1] - center[1], place[0] - center[0]))
    return (angle - p.start_angle) % TAU <= p.sweep


def _cross(a: Floats, b: Floats) -> Floats:
    product: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


def _lengths(a: Floats) -> Floats:
    lengths: Floats = np.hypot(a[..., 0], a[..., 1])
    return lengths


def _pairs(near: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Each two that are near, once."""
    return ((a, b) for a, b in zip(*map(np.ndarray.tolist, np.nonzero(near)), strict=True) if a < b)
