"""The core of a repair attempt: join ends that nearly meet, infer further constraints, and solve them.

Which ends belong together is decided for the whole sketch at once, nearest first. Constraints that would move something
too far are left out. A sketch too large to be examined as a whole is repaired piece by piece, where constraints connect
the primitives of a piece.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sketchdnn.constraints.equation_set import Freedom, constraint_residuals
from sketchdnn.constraints.infer import MAX_PARAMETERS, infer, renumber
from sketchdnn.constraints.solve import HOLDS, solve
from sketchdnn.constraints.variables import Floats, Ints, component_roots
from sketchdnn.errors import GeometryError
from sketchdnn.geometry import TAU, Arc, Circle, Constraint, ConstraintType, Line, Part, Primitive, Ref, Sketch, bounds

from .budget import Budget, infer_cost, num_parameters, solve_cost
from .quality import has_shrunk, largest_move

_T = ConstraintType
_LISTS = ("constraints", "redundant", "conflicting", "unsupported")
# Two ends without another partner may each move half of this many tolerances.
_MUTUAL_REACH = 2.0
# More ends without a partner are not compared with each other.
_MAX_MUTUAL = 2000
# A distance equal to the tolerance is within it, whatever rounding says.
_SLACK = 1 + 1e-9
# The noise is twice this quantile of the gaps between ends, if there are enough gaps.
_MIN_GAPS = 6
_GAP_QUANTILE = 0.9
_NOISE_PER_GAP = 2.0
# A constraint with a smaller residual, as a share of the size, holds already.
_HOLDS_ALREADY = 1e-6
# The largest tolerance of inference, as a share of a piece, however small it is.
_MAX_NOISE = 0.03
# Attempts to solve, each time without what moves something too far.
_MAX_ATTEMPTS = 6
# Constraints that are guessed rather than seen are dropped first where something would move too far.
_SUBTLE = frozenset({_T.EQUAL, _T.SYMMETRIC, _T.MIDPOINT, _T.PARALLEL, _T.PERPENDICULAR, _T.COLLINEAR})
_TWO_EQUATIONS = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.COLLINEAR, _T.MIDPOINT, _T.SYMMETRIC})
_OBVIOUS = frozenset({_T.COINCIDENT, _T.CONCENTRIC, _T.HORIZONTAL, _T.VERTICAL})
_ON_CURVES = frozenset({_T.POINT_ON_CURVE, _T.COINCIDENT, _T.MIDPOINT})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an attempt.

    Attributes:
        noise: How far off things may be drawn; None to infer nothing.
        subtle: Infer also what is not obvious: only coincident points, level lines and smooth joints without.
        tolerance: How far anything may move.
        keep: Indices of primitives that do not move.
        budget: The work that is left.
    """

    noise: float | None
    subtle: bool
    tolerance: float
    keep: Collection[int]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Solved:
    """The primitives moved so that the constraints hold, except for redundant, conflicting and unsupported ones.

    `freedom` is empty where it is unknown. `is_fresh` is False where nothing was solved, as an earlier solution holds.
    """

    primitives: list[Primitive]
    constraints: list[Constraint]
    redundant: list[Constraint]
    conflicting: list[Constraint]
    unsupported: list[Constraint]
    dof: int
    freedom: list[Freedom]
    warnings: list[str]
    is_fresh: bool = True


def infer_and_solve(
    sketch: Sketch, own: Sequence[Constraint], joins: Sequence[Constraint], limits: Limits, *, is_solved: bool
) -> Solved | None:
    """Infer constraints beyond `own` and `joins`, and solve; None where something would move too far.

    `is_solved` tells that the sketch's own constraints were solved before.
    """
    if num_parameters(sketch.primitives) <= MAX_PARAMETERS:
        return _infer_and_solve(sketch, own, joins, limits, is_solved=is_solved)
    pieces = _pieces(len(sketch), (*own, *joins))
    by_first = [_by_first_primitive(some) for some in (own, joins)]
    primitives = list(sketch.primitives)
    freedom = [Freedom.FREE] * len(primitives)
    parts: list[Solved] = []
    skipped = 0
    for piece in pieces:
        number = {i: k for k, i in enumerate(piece)}
        part = Sketch(tuple(primitives[i] for i in piece))
        related = [[c for i in piece for c in some.get(i, ())] for some in by_first]
        local = [[renumber(c, number) for c in some] for some in related]
        # In a piece that is too large itself, only ends are joined.
        noise = limits.noise if num_parameters(part.primitives) <= MAX_PARAMETERS else None
        held = {number[i] for i in limits.keep if i in number}
        solved = _infer_and_solve(part, local[0], local[1], replace(limits, noise=noise, keep=held), is_solved=False)
        if solved is None:
            skipped += len(piece)
            continue
        for i, p, free in zip(piece, solved.primitives, solved.freedom or [Freedom.FREE] * len(piece), strict=True):
            primitives[i], freedom[i] = p, free
        back = dict(enumerate(piece))
        same = {id(new): old for new, old in zip((*local[0], *local[1]), (*related[0], *related[1]), strict=True)}
        lists: dict[str, Any] = {
            name: [same.get(id(c)) or renumber(c, back) for c in getattr(solved, name)] for name in _LISTS
        }
        parts.append(replace(solved, **lists))
    if skipped == len(sketch):
        return None
    warning = (
        "it is so large that only its ends were joined"
        if len(pieces) == 1
        else f"it is so large that its {len(pieces):,} pieces were repaired one by one"
    )
    if skipped:
        warning += f", and {skipped:,} primitives were left as they were"
    constraints, redundant, conflicting, unsupported = (
        [c for part in parts for c in getattr(part, name)] for name in _LISTS
    )
    dof = sum(part.dof for part in parts)
    return Solved(primitives, constraints, redundant, conflicting, unsupported, dof, freedom, [warning])


@np.errstate(all="ignore")  # the outcome is checked for what is too large or not a number
def _infer_and_solve(
    sketch: Sketch, own: Sequence[Constraint], joins: Sequence[Constraint], limits: Limits, *, is_solved: bool
) -> Solved | None:
    warnings = []
    inferred: list[Constraint] = []
    size = bounds(sketch).size
    uncertain, holds = _uncertainty(sketch, own)
    if size > 0 and limits.noise is not None and limits.budget.spend(infer_cost(sketch.primitives)):
        noise = max(limits.noise * uncertain, _HOLDS_ALREADY)
        try:
            inferred = list(infer(sketch, min(noise / size, _MAX_NOISE), given=[*own, *joins], fixed=limits.keep))
        except GeometryError as error:
            warnings.append(str(error))
    if not limits.subtle:
        inferred = _obvious([*own, *joins], inferred)
    if is_solved and holds and not joins and not inferred:
        return Solved(list(sketch.primitives), list(own), [], [], [], 0, [], warnings, is_fresh=False)
    joins = list(joins)
    for _ in range(_MAX_ATTEMPTS):
        constraints = [*own, *joins, *inferred]
        if not limits.budget.spend(solve_cost(sketch.primitives, constraints)):
            return None
        solution = solve(sketch, constraints, max_move=math.inf, fixed=limits.keep)
        if solution.warning:
            far = set(range(len(sketch)))
        else:
            both = enumerate(zip(sketch, solution.sketch, strict=True))
            far = {i for i, (p, q) in both if largest_move(p, q) > limits.tolerance or has_shrunk(p, q)}
            if not far:
                return Solved(
                    list(solution.sketch.primitives),
                    constraints,
                    list(solution.redundant),
                    list(solution.conflicting),
                    list(solution.unsupported),
                    solution.dof,
                    [] if solution.redundant or solution.conflicting else list(solution.freedom),
                    warnings,
                )
        fewer = _without_some(inferred, far)
        if len(fewer) < len(inferred):
            inferred = fewer
            continue
        fewer = _without_some(joins, far)
        if len(fewer) == len(joins):
            return None
        joins = fewer
    return None


def _pieces(count: int, constraints: Sequence[Constraint]) -> list[list[int]]:
    """Primitives that constraints connect."""
    groups = [[ref.primitive for ref in c.refs if ref.primitive is not None] for c in constraints]
    pieces: defaultdict[int, list[int]] = defaultdict(list)
    for i, root in enumerate(component_roots(count, [group for group in groups if group]).tolist()):
        pieces[root].append(i)
    return list(pieces.values())


def _by_first_primitive(constraints: Sequence[Constraint]) -> dict[int, list[Constraint]]:
    groups: defaultdict[int, list[Constraint]] = defaultdict(list)
    for c in constraints:
        first = next((ref.primitive for ref in c.refs if ref.primitive is not None), None)
        if first is not None:
            groups[first].append(c)
    return groups


def _uncertainty(sketch: Sketch, given: Sequence[Constraint]) -> tuple[float, bool]:
    """The share of a sketch's parameters that may be off, roughly, and whether all given constraints hold exactly.

    Constraints that hold already were not drawn with noise, so the more hold, the less is inferred of the rest.
    """
    residuals = [(c, by) for c, by in zip(given, constraint_residuals(sketch, given), strict=True) if by is not None]
    if not residuals:
        return 1.0, True
    exact = sum(1 + (c.type in _TWO_EQUATIONS) for c, by in residuals if by <= _HOLDS_ALREADY)
    return max(0.0, 1 - exact / num_parameters(sketch.primitives)), max(by for _, by in residuals) <= HOLDS


def _obvious(given: Sequence[Constraint], inferred: Sequence[Constraint]) -> list[Constraint]:
    """The inferred coincident points, level lines, and tangents where curves join."""

    def pair(c: Constraint) -> frozenset[int | None]:
        return frozenset(ref.primitive for ref in c.refs)

    joined = {pair(c) for c in (*given, *inferred) if c.type is _T.COINCIDENT}
    return [c for c in inferred if c.type in _OBVIOUS or (c.type is _T.TANGENT and pair(c) in joined)]


def _without_some(constraints: list[Constraint], far: set[int]) -> list[Constraint]:
    """Fewer constraints on what would move too far: first without the subtle ones, then without any."""

    def concerns(c: Constraint) -> bool:
        return any(ref.primitive in far for ref in c.refs)

    fewer = [c for c in constraints if c.type not in _SUBTLE or not concerns(c)]
    return fewer if len(fewer) < len(constraints) else [c for c in constraints if not concerns(c)]


def find_joins(
    primitives: Sequence[Primitive], given: Sequence[Constraint], tolerance: float, keep: Collection[int]
) -> list[Constraint]:
    """The coincidences of ends, and ends on curves, that a sketch of size one lacks beyond the given constraints."""
    curves = [i for i, p in enumerate(primitives) if isinstance(p, Line | Arc)]
    ends = [Ref(i, part) for i in curves for part in (Part.START, Part.END)]
    if not ends:
        return []
    at = _end_points(primitives)
    clusters = _EndClusters(ends, at, given)
    owner = np.array(clusters.owner)
    held = np.isin(owner, list(keep))
    joins: list[Constraint] = []
    for a, b in _near_ends(at, owner, held, tolerance * _SLACK):
        if clusters.join(a, b, tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    placed = {ref for c in given if c.type in _ON_CURVES for ref in c.refs}
    arrays = _CurveArrays(primitives)
    loose = []
    for k in clusters.singles():
        if ends[k] in placed or held[k]:
            continue
        curve = arrays.nearest(at[k], clusters.owner[k], tolerance * _SLACK)
        if curve is None:
            loose.append(k)
        else:
            joins.append(Constraint(_T.POINT_ON_CURVE, (ends[k], Ref(curve))))
    for a, b in _mutually_nearest(at, owner, loose, _MUTUAL_REACH * tolerance):
        if clusters.join(a, b, _MUTUAL_REACH * tolerance):
            joins.append(Constraint(_T.COINCIDENT, (ends[a], ends[b])))
    return joins


def noise_estimate(primitives: Sequence[Primitive], tolerance: float) -> float | None:
    """How far off things are drawn, from the gaps between ends that were meant to meet; None where there are few."""
    at = _end_points(primitives)
    if len(at) < _MIN_GAPS:
        return None
    gap, other = map(np.asarray, cKDTree(at).query(at, k=[2, 3]))
    own = other // 2 == (np.arange(len(at)) // 2)[:, None]
    nearest = np.where(own[:, 0], gap[:, 1], gap[:, 0])
    close = nearest[nearest <= tolerance * _SLACK]
    return _NOISE_PER_GAP * float(np.quantile(close, _GAP_QUANTILE)) if len(close) >= _MIN_GAPS else None


def _end_points(primitives: Sequence[Primitive]) -> Floats:
    return np.array([place for p in primitives if isinstance(p, Line | Arc) for place in (p.start, p.end)])


class _EndClusters:
    """Ends that coincide: never both ends of one primitive, and none further from their mean than allowed."""

    def __init__(self, ends: Sequence[Ref], at: Floats, given: Sequence[Constraint]) -> None:
        self.at, self.owner = at, [end.primitive or 0 for end in ends]
        self.cluster = list(range(len(ends)))
        self.members = [[k] for k in range(len(ends))]
        number = {end: k for k, end in enumerate(ends)}
        others: dict[Ref, int] = {}
        for c in given:
            if c.type is not _T.COINCIDENT or len(c.refs) != 2:
                continue
            known = [number[ref] for ref in c.refs if ref in number]
            if len(known) == 2:
                self._unite(*known)
            elif len(known) == 1:  # two ends on one point or center coincide as well
                other = next(ref for ref in c.refs if ref not in number)
                if other in others:
                    self._unite(known[0], others[other])
                others[other] = known[0]

    def join(self, a: int, b: int, most: float) -> bool:
        """Unite the clusters of two ends, unless they are one or cannot be."""
        a, b = self.cluster[a], self.cluster[b]
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

    def singles(self) -> list[int]:
        return [members[0] for members in self.members if len(members) == 1]

    def _unite(self, a: int, b: int) -> None:
        a, b = sorted((self.cluster[a], self.cluster[b]))
        if a == b:
            return
        for k in self.members[b]:
            self.cluster[k] = a
        self.members[a] += self.members[b]
        self.members[b] = []


def _near_ends(at: Floats, owner: Ints, held: NDArray[np.bool_], tolerance: float) -> list[tuple[int, int]]:
    """Pairs of ends of different primitives, one of which may move, nearest first."""
    pairs = cKDTree(at).query_pairs(tolerance, output_type="ndarray")
    pairs = pairs[(owner[pairs[:, 0]] != owner[pairs[:, 1]]) & ~(held[pairs[:, 0]] & held[pairs[:, 1]])]
    pairs = np.sort(pairs, axis=1)
    apart = np.hypot(*(at[pairs[:, 0]] - at[pairs[:, 1]]).T).round(9)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], apart))
    return [(int(a), int(b)) for a, b in pairs[order]]


def _mutually_nearest(at: Floats, owner: Ints, loose: Sequence[int], tolerance: float) -> list[tuple[int, int]]:
    """Pairs of ends, each the nearest to the other."""
    if not 2 <= len(loose) <= _MAX_MUTUAL:
        return []
    places, owners = at[list(loose)], owner[list(loose)]
    apart = np.hypot(*np.moveaxis(places[:, None] - places[None], -1, 0))
    apart[owners[:, None] == owners] = np.inf
    nearest = apart.argmin(axis=1).tolist()
    return [
        (loose[a], loose[b]) for a, b in enumerate(nearest) if a < b and nearest[b] == a and apart[a, b] <= tolerance
    ]


class _CurveArrays:
    """All curves as arrays, to measure the distance from a point to each at once."""

    def __init__(self, primitives: Sequence[Primitive]) -> None:
        lines = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Line)]
        rounds = [(i, p) for i, p in enumerate(primitives) if isinstance(p, Circle | Arc)]
        self.numbers = np.array([*(i for i, _ in lines), *(i for i, _ in rounds)])
        self.start = np.array([p.start for _, p in lines]).reshape(-1, 2)
        self.along = np.array([p.end for _, p in lines]).reshape(-1, 2) - self.start
        self.center = np.array([p.center for _, p in rounds]).reshape(-1, 2)
        self.radius = np.array([p.radius for _, p in rounds])
        self.first = np.array([p.start_angle if isinstance(p, Arc) else 0.0 for _, p in rounds])
        self.sweep = np.array([p.sweep if isinstance(p, Arc) else TAU for _, p in rounds])

    def nearest(self, place: Floats, owner: int, tolerance: float) -> int | None:
        """The curve nearest to a place, other than its owner, if it is within the tolerance."""
        offset = place - self.start
        share = np.sum(offset * self.along, axis=1) / np.maximum(np.sum(self.along**2, axis=1), 1e-300)
        length = np.hypot(*self.along.T)
        off = np.abs(self.along[:, 0] * offset[:, 1] - self.along[:, 1] * offset[:, 0]) / length
        off[(share < 0) | (share > 1)] = np.inf
        out = place - self.center
        rim = np.abs(np.hypot(*out.T) - self.radius)
        rim[(np.arctan2(out[:, 1], out[:, 0]) - self.first) % TAU > self.sweep] = np.inf
        both = np.concatenate([off, rim])
        both[self.numbers == owner] = np.inf
        best = int(both.argmin())
        return int(self.numbers[best]) if both[best] <= tolerance else None
