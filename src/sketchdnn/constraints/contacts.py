"""Which places are one, and where curves are therefore kept together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sketchdnn.geometry import Constraint, ConstraintType, Part

from .variables import Variables

_TOGETHER = frozenset({ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.POINT_ON_CURVE})


class Classes:
    """Places that are one, however far around; each class is known by its lowest member."""

    def __init__(self, count: int) -> None:
        self.leader = list(range(count))

    def find(self, item: int) -> int:
        while self.leader[item] != item:
            self.leader[item] = item = self.leader[self.leader[item]]
        return item

    def join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        self.leader[max(a, b)] = min(a, b)


def contacts(constraints: Iterable[Constraint], variables: Variables) -> dict[frozenset[int], int]:
    """For each two curves that constraints keep together at a place: such a place, an end of one of them if it is."""
    classes = Classes(len(variables.places) + 3)
    on: list[tuple[int, int]] = []
    for constraint in constraints:
        if constraint.type not in _TOGETHER or len(constraint.refs) != 2:
            continue
        first, second = constraint.refs
        a, b = variables.at(first), variables.at(second)
        if a is not None and b is not None:
            classes.join(a, b)
        elif a is not None and second.primitive is not None:
            on.append((a, second.primitive))
        elif b is not None and first.primitive is not None:
            on.append((b, first.primitive))
    curves: defaultdict[int, dict[int, int]] = defaultdict(dict)  # class -> curve -> a place of the class on it
    for place, (primitive, part) in enumerate(variables.places):
        if part in (Part.START, Part.END):
            curves[classes.find(place)].setdefault(primitive, place)
    for place, primitive in on:
        curves[classes.find(place)].setdefault(primitive, place)
    return {
        frozenset((a, b)): places[a]
        for places in curves.values()
        if len(places) > 1
        for a in places
        for b in places
        if a < b
    }
