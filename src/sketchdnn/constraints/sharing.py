"""Numbers that are one: places that meet share both coordinates, a level line one, equal circles their radius.

Such constraints need no equation, and leave fewer numbers for the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sketchdnn.geometry import Constraint, ConstraintType, Ref

from .variables import OUTSIDE, Floats, Ints, Variables


class Classes:
    """Items that are one, however far around; each class is known by its lowest member."""

    def __init__(self, count: int) -> None:
        self.leader = list(range(count))

    def find(self, item: int) -> int:
        leader = self.leader
        while leader[item] != item:
            leader[item] = item = leader[leader[item]]
        return item

    def join(self, a: int, b: int) -> bool:
        """Make two classes one; False if they were."""
        a, b = self.find(a), self.find(b)
        self.leader[max(a, b)] = min(a, b)
        return a != b

    def leaders(self) -> Ints:
        """The leader of each item's class."""
        leaders = np.array(self.leader, dtype=int)
        while True:
            above = leaders[leaders]
            if np.array_equal(above, leaders):
                return leaders
            leaders = above


@dataclass(frozen=True, slots=True)
class Slots:
    """The numbers that features are: the first `free` of them can change, the others are constants.

    Steps z count from `start`, which is nearest to the drawing. A number that many features share is stretched by the
    root of their count, so that a step is as long as those of all its features together.
    """

    slot: Ints  # of each feature
    free: int
    start: Floats
    root: Floats

    def numbers(self, z: Floats) -> Floats:
        numbers = self.start.copy()
        numbers[: self.free] += z / self.root
        return numbers

    def steps(self, f: Floats) -> Floats:
        """The steps that come nearest to some features."""
        total = np.bincount(self.slot, weights=f, minlength=len(self.start))
        count = np.bincount(self.slot, minlength=len(self.start))
        steps: Floats = (total / count - self.start)[: self.free] * self.root
        return steps

    def features(self, z: Floats) -> Floats:
        f: Floats = self.numbers(z)[self.slot]
        return f


class Sharing:
    """Which features are one number, and which of them are constants: those outside, and those of fixed primitives."""

    def __init__(self, variables: Variables, fixed: Collection[int] = ()) -> None:
        self.variables = variables
        self.classes = Classes(variables.num_features)
        outside = range(2 * variables.count, 2 * (variables.count + len(OUTSIDE)))
        self.constant = {*outside, *(k for i in fixed for k in variables.features(i))}

    def join(self, pairs: Collection[tuple[int, int]], holds: float) -> bool | None:
        """Make each pair of features one: whether any was not before, or None, and nothing done, if two constants of a
        pair differ.
        """
        find, leader, constant = self.classes.find, self.classes.leader, self.constant
        for a, b in pairs:
            p, q = find(a), find(b)
            if p in constant and q in constant and abs(float(self.variables.f[p] - self.variables.f[q])) > holds:
                return None
        new = False
        for a, b in pairs:
            p, q = find(a), find(b)
            if p != q:
                new = new or p not in constant or q not in constant
                first = p in constant or (q not in constant and p < q)  # a class with a constant is led by it
                leader[q if first else p] = p if first else q
        return new

    def slots(self) -> Slots:
        """The numbers that are left, each at the mean of what shares it."""
        f = self.variables.f
        leaders = self.classes.leaders()
        held = np.zeros(len(f), dtype=bool)
        held[list(self.constant)] = True
        is_leader = leaders == np.arange(len(f))
        free, constant = np.flatnonzero(is_leader & ~held), np.flatnonzero(is_leader & held)
        order = np.concatenate([free, constant])
        number = np.empty(len(f), dtype=int)
        number[order] = np.arange(len(order))
        slot = number[leaders]
        count = np.bincount(slot, minlength=len(order))
        # Counted from one of them: equal ones stay exactly what they are.
        start = f[order] + np.bincount(slot, weights=f - f[leaders], minlength=len(order)) / count
        start[len(free) :] = f[constant]
        return Slots(slot, len(free), start, np.sqrt(count[: len(free)]))


def shared(constraint: Constraint, variables: Variables) -> list[tuple[int, int]] | None:
    """The features that a constraint makes one; None if it is no such constraint."""
    t, refs = ConstraintType, constraint.refs
    match constraint.type:
        case t.COINCIDENT | t.CONCENTRIC | t.EQUAL if len(refs) > 1:
            pairs = [_shared_by(constraint.type, refs[0], other, variables) for other in refs[1:]]
        case t.HORIZONTAL | t.VERTICAL:
            axis = 1 if constraint.type is t.HORIZONTAL else 0
            places = [variables.at(ref) for ref in refs]
            lines = [variables.ends(ref) for ref in refs]
            if len(places) > 1 and None not in places:
                pairs = [_level(places[0], place, axis) for place in places[1:]]
            else:
                pairs = [line and _level(*line, axis) for line in lines]
        case _:
            return None
    return None if None in pairs else [pair for several in pairs for pair in several or ()]


def _shared_by(kind: ConstraintType, first: Ref, second: Ref, variables: Variables) -> list[tuple[int, int]] | None:
    one, two = variables.round(first), variables.round(second)
    if kind is ConstraintType.EQUAL:
        return [(one[1], two[1])] if one and two else None
    find = variables.middle if kind is ConstraintType.CONCENTRIC else variables.at
    a, b = find(first), find(second)
    if a is not None and b is not None:
        return [(2 * a, 2 * b), (2 * a + 1, 2 * b + 1)]
    if one and two:
        return [(2 * one[0], 2 * two[0]), (2 * one[0] + 1, 2 * two[0] + 1), (one[1], two[1])]
    return None


def _level(a: int | None, b: int | None, axis: int) -> list[tuple[int, int]] | None:
    return None if a is None or b is None else [(2 * a + axis, 2 * b + axis)]
