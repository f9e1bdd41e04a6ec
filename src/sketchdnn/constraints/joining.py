"""Which numbers of a drawing are meant to be one: places that meet, and the coordinate along which a line is level."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from scipy.spatial import cKDTree

from sketchdnn.geometry import Constraint, ConstraintType, Part, Ref

from .sharing import Classes, Sharing, Slots, shared
from .variables import Floats, Ints, Variables

# Three standard deviations of an error that is anywhere within ±1.
SURE = 3**0.5
# Constants that are further apart, in parts of the sketch's size, are not one.
_ONE = 1e-9
# What moves by more tolerances than this, or shrinks below this share of itself, was not meant to.
_STRAIN = 6.0
_SHRUNK = 0.3
# A line that leans by more than this sine is not level, however short it is.
_MOST_LEAN = 0.2
# More places than this are not compared each with each.
_MANY = 400
# In a large drawing, what is off by more than this share of what is drawn there was not meant to be one.
_LOCAL = 0.1

Believed = tuple[Constraint, int, float]  # how many numbers it settles, and which share of what it may miss it does


class Joined:
    """The numbers of a drawing that are one: by what is `given`, where places meet, where lines are level.

    With `local`, nothing may be off by more than a tenth of the primitives concerned: the tolerance is a share of the
    size, and lines of a large drawing may be shorter than it.
    """

    def __init__(
        self,
        variables: Variables,
        tolerance: float,
        given: Sequence[Constraint],
        fixed: Collection[int],
        *,
        local: bool = False,
    ) -> None:
        self.variables, self.tolerance, self.given, self.fixed = variables, tolerance, given, fixed
        self.reach = _LOCAL * extents(variables) if local else np.full(len(variables.primitives), np.inf)
        self.sharing, self.classes = self._shared(given)
        self.believed = join_places(variables, self.sharing, self.classes, tolerance, self.reach)
        self.slots = self._level()

    def _shared(self, constraints: Sequence[Constraint]) -> tuple[Sharing, Classes]:
        """The numbers, and the places, that constraints make one."""
        sharing, classes = Sharing(self.variables, self.fixed), Classes(self.variables.count)
        places = 2 * self.variables.count
        for constraint in constraints:
            pairs = shared(constraint, self.variables)
            if pairs is None or sharing.join(pairs, _ONE) is None:
                continue
            for a, b in pairs:
                if a % 2 == 0 and max(a, b) < places and (a + 1, b + 1) in pairs:
                    classes.join(a // 2, b // 2)
        return sharing, classes

    def _level(self) -> Slots:
        """Lines along an axis, without those that this would strain; the numbers that are left then.

        Where it strains already that places meet, less of that is believed.
        """
        meeting, without, patience = list(self.believed), set[int](), 1
        while True:
            levels = join_levels(self.variables, self.sharing, self.tolerance, without, self.reach)
            slots = self.sharing.slots()
            strain = strained(self.variables, slots.start[slots.slot], self.tolerance)
            if not strain or not (levels or meeting):
                self.believed = [*meeting, *levels]
                return slots
            if levels:
                without |= strain if not without else set(self.variables.lines)
            else:
                meeting = [b for b in meeting if patience and strain.isdisjoint(r.primitive for r in b[0].refs)]
                without, patience = set(), patience - 1
            self.sharing, self.classes = self._shared([*self.given, *(constraint for constraint, _, _ in meeting)])


def strained(variables: Variables, f: Floats, tolerance: float) -> set[int]:
    """Primitives that moved further than the tolerance explains, or lost most of their size."""
    far = np.flatnonzero(np.abs(variables.moves(f)) > _STRAIN * tolerance).tolist()
    small = np.flatnonzero(variables.shares(f) < _SHRUNK).tolist()
    if not far and not small:
        return set()
    movers = [*(i for i, _ in variables.places), *variables.rounds]
    sized = [*variables.lines, *variables.arcs, *variables.rounds]
    return {movers[k] for k in far} | {sized[k] for k in small}


def extents(variables: Variables) -> Floats:
    """How large each primitive is: a line's length, a radius; a point has no size and is as large as can be."""
    sizes = np.full(len(variables.primitives), np.inf)
    k = 2 * np.array([variables.first[i] for i in variables.lines], dtype=int)
    sizes[variables.lines] = np.hypot(variables.f[k + 2] - variables.f[k], variables.f[k + 3] - variables.f[k + 1])
    sizes[variables.rounds] = variables.f[[variables.radius[i] for i in variables.rounds]]
    return sizes


def join_places(
    variables: Variables, sharing: Sharing, classes: Classes, tolerance: float, reach: Floats
) -> list[Believed]:
    """Places that are one, nearest pairs first; never two of one primitive, which would leave nothing of it.

    `reach` is how far off the places of each primitive may be at most.
    """
    # Both coordinates are off by two errors; the root of 2 makes that three standard deviations again.
    allowed = 2**0.5 * SURE * tolerance
    at = variables.f[: 2 * variables.count].reshape(-1, 2)
    of = reach[[i for i, _ in variables.places]]
    first, second, off = _near(at, min(allowed, float(of.max())))
    near = off <= np.minimum(of[first], of[second])
    first, second, off = first[near], second[near], off[near]
    owners: list[set[int]] = [set() for _ in variables.places]
    for k, (i, _) in enumerate(variables.places):
        owners[classes.find(k)].add(i)
    believed: list[Believed] = []
    order = np.lexsort((second, first, off.round(9)))
    for m, n, by in zip(first[order].tolist(), second[order].tolist(), off[order].tolist(), strict=True):
        a, b = classes.find(m), classes.find(n)
        if a == b or owners[a] & owners[b] or not sharing.join([(2 * m, 2 * n), (2 * m + 1, 2 * n + 1)], _ONE):
            continue
        classes.join(a, b)
        owners[min(a, b)] = owners[a] | owners[b]
        believed.append((_one_place(variables, m, n), 2, by / allowed))
    return believed


def join_levels(
    variables: Variables, sharing: Sharing, tolerance: float, without: set[int], reach: Floats
) -> list[Believed]:
    """Lines along an axis, the most level first; the ends' coordinates become one, at the mean of all that share it."""
    slots = sharing.slots()
    lines = [i for i in variables.lines if i not in without]
    if not lines:
        return []
    f = slots.start[slots.slot]
    count = np.bincount(slots.slot).astype(float)
    count[slots.free :] = np.inf
    k = np.array([2 * variables.first[i] for i in lines])
    along = np.abs(np.stack([f[k + 2] - f[k], f[k + 3] - f[k + 1]]))
    length = np.hypot(along[0], along[1])
    a, b = slots.slot[np.stack([k, k + 1])], slots.slot[np.stack([k + 2, k + 3])]
    allowed = SURE * tolerance * np.sqrt(1 / count[a] + 1 / count[b])
    off = along / np.maximum(allowed, 1e-300)
    axes, which = np.nonzero((along <= _MOST_LEAN * length) & (along <= reach[lines]) & (off <= 1) & (a != b))
    mean, weight = slots.start.tolist(), count.tolist()
    classes = Classes(len(mean))
    believed: list[Believed] = []
    for n in np.argsort(off[axes, which].round(9), kind="stable").tolist():
        axis, line = int(axes[n]), int(which[n])
        p, q = classes.find(int(a[axis, line])), classes.find(int(b[axis, line]))
        apart = abs(mean[p] - mean[q])
        if p == q or apart > SURE * tolerance * (1 / weight[p] + 1 / weight[q]) ** 0.5:
            continue
        column = int(k[line]) + axis
        if not sharing.join([(column, column + 2)], _ONE):
            continue
        classes.join(p, q)
        keep = min(p, q)
        mean[keep], weight[keep] = _merged(mean[p], weight[p], mean[q], weight[q])
        kind = ConstraintType.VERTICAL if axis == 0 else ConstraintType.HORIZONTAL
        believed.append((Constraint(kind, (Ref(lines[line]),)), 1, float(off[axis, line])))
    return believed


def _merged(a: float, weight_a: float, b: float, weight_b: float) -> tuple[float, float]:
    if weight_a == np.inf or weight_b == np.inf:
        return (a if weight_a == np.inf else b), np.inf
    total = weight_a + weight_b
    return (a * weight_a + b * weight_b) / total, total


def _near(at: Floats, allowed: float) -> tuple[Ints, Ints, Floats]:
    """Pairs of places that are near in both coordinates, and how far they are apart in the larger one."""
    if len(at) > _MANY:
        pairs = cKDTree(at).query_pairs(allowed, p=np.inf, output_type="ndarray")
        first, second = pairs[:, 0], pairs[:, 1]
        return first, second, np.abs(at[first] - at[second]).max(axis=1, initial=0.0)
    off = np.maximum(np.abs(at[:, 0, None] - at[:, 0]), np.abs(at[:, 1, None] - at[:, 1]))
    first, second = np.nonzero(off <= allowed)
    once = first < second
    first, second = first[once], second[once]
    return first, second, off[first, second]


def _one_place(variables: Variables, a: int, b: int) -> Constraint:
    (i, part), (j, other) = variables.places[a], variables.places[b]
    if part is Part.CENTER and other is Part.CENTER:
        return Constraint(ConstraintType.CONCENTRIC, (Ref(i), Ref(j)))
    return Constraint(ConstraintType.COINCIDENT, (Ref(i, part), Ref(j, other)))
