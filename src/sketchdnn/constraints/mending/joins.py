"""Which ends belong together, and which belong on a curve: decided for the whole sketch at once, nearest first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from sketchdnn.constraints.variables import Floats
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref

# Two ends that have nothing else to go to may each come half of this many tolerances.
_FAR = 2.0
# Exactly at the tolerance is within it, whatever rounding says.
_SLACK = 1 + 1e-9
# So many gaps tell how shaky a hand was, the worst of them aside.
_FEW = 6
_ALL_BUT_WORST = 0.9
_THE_REST = 2.0


@dataclass(frozen=True, slots=True)
class End:
    """An end of a line or arc, by the primitive's number."""

    primitive: int
    part: Part

    @property
    def ref(self) -> Ref:
        return Ref(self.primitive, self.part)


def joins(
    primitives: Sequence[Primitive], given: Sequence[Constraint], tolerance: float, keep: Collection[int]
) -> list[Constraint]:
    """Coincidences and contacts that a sketch of size one lacks, beyond those given."""
    ends = [
        End(i, part) for i, p in enumerate(primitives) if isinstance(p, Line | Arc) for part in (Part.START, Part.END)
    ]
    if not ends:
        return []
    at = np.array([place for p in primitives if isinstance(p, Line | Arc) for place in (p.start, p.end)])
    clusters = _Clusters(ends, at, given)
    owner = np.array([end.primitive for end in ends])
    held = np.isin(owner, list(keep))
    found: list[Constraint] = []
    for a, b in _near(at, owner, held, tolerance * _SLACK):
        if clusters.join(a, b, tolerance):
            found.append(Constraint(ConstraintType.COINCIDENT, (ends[a].ref, ends[b].ref)))
    lying = {ref for c in given if c.type in _ON_CURVES for ref in c.refs}
    alone = [k for k in clusters.alone() if ends[k].ref not in lying and not held[k]]
    curves = _Curves(primitives)
    loose = []
    for k in alone:
        curve = curves.nearest(at[k], ends[k].primitive, tolerance * _SLACK)
        if curve is None:
            loose.append(k)
        else:
            found.append(Constraint(ConstraintType.POINT_ON_CURVE, (ends[k].ref, Ref(curve))))
    for a, b in _mutual(at, owner, loose, _FAR * tolerance):
        if clusters.join(a, b, _FAR * tolerance):
            found.append(Constraint(ConstraintType.COINCIDENT, (ends[a].ref, ends[b].ref)))
    return found


def shakiness(primitives: Sequence[Primitive], tolerance: float) -> float | None:
    """How far off things are in a drawing, by the gaps between ends that were meant to meet; None where few are.

    A hand that makes ends meet draws the rest as well, if not quite: the eye is on the ends.
    """
    at = np.array([place for p in primitives if isinstance(p, Line | Arc) for place in (p.start, p.end)])
    if len(at) < _FEW:
        return None
    gap, other = map(np.asarray, cKDTree(at).query(at, k=[2, 3]))
    own = other // 2 == (np.arange(len(at)) // 2)[:, None]
    nearest = np.where(own[:, 0], gap[:, 1], gap[:, 0])
    close = nearest[nearest <= tolerance * _SLACK]
    return _THE_REST * float(np.quantile(close, _ALL_BUT_WORST)) if len(close) >= _FEW else None


_ON_CURVES = frozenset({ConstraintType.POINT_ON_CURVE, ConstraintType.COINCIDENT, ConstraintType.MIDPOINT})


class _Clusters:
    """Ends that are one place: never both ends of one primitive, and none further from their middle than allowed."""

    def __init__(self, ends: Sequence[End], at: Floats, given: Sequence[Constraint]) -> None:
        self.at, self.owner = at, [end.primitive for end in ends]
        self.of = list(range(len(ends)))
        self.members = [[k] for k in range(len(ends))]
        number = {end.ref: k for k, end in enumerate(ends)}
        others: dict[Ref, int] = {}
        for c in given:
            if c.type is not ConstraintType.COINCIDENT or len(c.refs) != 2:
                continue
            known = [number[ref] for ref in c.refs if ref in number]
            if len(known) == 2:
                self._unite(*known)
            elif len(known) == 1:  # two ends on one point, or center, are one place as well
                other = next(ref for ref in c.refs if ref not in number)
                if other in others:
                    self._unite(known[0], others[other])
                others[other] = known[0]

    def join(self, a: int, b: int, most: float) -> bool:
        """Make two ends one place, unless they are or cannot be."""
        a, b = self.of[a], self.of[b]
        if a == b:
            return False
        both = self.members[a] + self.members[b]
        owners = [self.owner[k] for k in both]
        if len(set(owners)) < len(owners):
            return False
        off = self.at[both] - self.at[both].mean(axis=0)
        if np.hypot(*off.T).max() > most:
            return False
        self._unite(a, b)
        return True

    def alone(self) -> list[int]:
        return [members[0] for members in self.members if len(members) == 1]

    def _unite(self, a: int, b: int) -> None:
        a, b = sorted((self.of[a], self.of[b]))
        if a == b:
            return
        for k in self.members[b]:
            self.of[k] = a
        self.members[a] += self.members[b]
        self.members[b] = []


def _near(
    at: Floats,
    owner: np.ndarray[tuple[int], np.dtype[np.int_]],
    held: np.ndarray[tuple[int], np.dtype[np.bool_]],
    within: float,
) -> list[tuple[int, int]]:
    """Pairs of ends of different primitives, one of which may move, nearest first."""
    pairs = cKDTree(at).query_pairs(within, output_type="ndarray")
    pairs = pairs[(owner[pairs[:, 0]] != owner[pairs[:, 1]]) & ~(held[pairs[:, 0]] & held[pairs[:, 1]])]
    pairs = np.sort(pairs, axis=1)
    apart = np.hypot(*(at[pairs[:, 0]] - at[pairs[:, 1]]).T).round(9)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], apart))
    return [(int(a), int(b)) for a, b in pairs[order]]


def _mutual(
    at: Floats, owner: np.ndarray[tuple[int], np.dtype[np.int_]], loose: Sequence[int], within: float
) -> list[tuple[int, int]]:
    """Pairs of ends, each the nearest to the other."""
    if len(loose) < 2:
        return []
    places, owners = at[list(loose)], owner[list(loose)]
    if len(loose) > 2000:
        return []
    apart = np.hypot(*np.moveaxis(places[:, None] - places[None], -1, 0))
    apart[owners[:, None] == owners] = np.inf
    nearest = apart.argmin(axis=1)
    return [
        (loose[a], loose[int(b)]) for a, b in enumerate(nearest) if a < b and nearest[b] == a and apart[a, b] <= within
    ]


class _Curves:
    """All curves as arrays, to measure the way from a place to each at once."""

    def __init__(self, primitives: Sequence[Primitive]) -> None:
        self.lines = [i for i, p in enumerate(primitives) if isinstance(p, Line)]
        self.rounds = [i for i, p in enumerate(primitives) if isinstance(p, Circle | Arc)]
        lines = [primitives[i] for i in self.lines]
        rounds = [primitives[i] for i in self.rounds]
        self.start = np.array([p.start for p in lines if isinstance(p, Line)]).reshape(-1, 2)
        self.along = np.array([p.end for p in lines if isinstance(p, Line)]).reshape(-1, 2) - self.start
        self.center = np.array([p.center for p in rounds if isinstance(p, Circle | Arc)]).reshape(-1, 2)
        self.radius = np.array([p.radius for p in rounds if isinstance(p, Circle | Arc)])
        self.first = np.array([p.start_angle if isinstance(p, Arc) else 0.0 for p in rounds])
        self.sweep = np.array([p.sweep if isinstance(p, Arc) else TAU for p in rounds])

    def nearest(self, place: Floats, owner: int, within: float) -> int | None:
        """The curve that comes nearest to a place, other than its owner, if one passes it that close."""
        offset = place - self.start
        share = np.sum(offset * self.along, axis=1) / np.maximum(np.sum(self.along**2, axis=1), 1e-300)
        length = np.hypot(*self.along.T)
        off = np.abs(self.along[:, 0] * offset[:, 1] - self.along[:, 1] * offset[:, 0]) / length
        off[(share < 0) | (share > 1)] = np.inf
        out = place - self.center
        rim = np.abs(np.hypot(*out.T) - self.radius)
        rim[(np.arctan2(out[:, 1], out[:, 0]) - self.first) % TAU > self.sweep] = np.inf
        numbers = np.array([*self.lines, *self.rounds])
        both = np.concatenate([off, rim])
        both[numbers == owner] = np.inf
        best = int(both.argmin())
        return int(numbers[best]) if both[best] <= within else None
