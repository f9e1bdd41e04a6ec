"""Where curves are kept together at a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sketchdnn.geometry import Constraint, ConstraintType, Part

from .sharing import Classes
from .variables import OUTSIDE, Variables

_TOGETHER = frozenset({ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.POINT_ON_CURVE})


def contacts(constraints: Iterable[Constraint], variables: Variables) -> dict[frozenset[int], int]:
    """For each two curves that constraints keep together at a place: such a place, an end of one of them if it is."""
    classes = Classes(variables.count + len(OUTSIDE))
    on: list[tuple[int, int]] = []
    for constraint in constraints:
        if constraint.type not in _TOGETHER:
            continue
        first, a = constraint.refs[0], variables.at(constraint.refs[0])
        for second in constraint.refs[1:]:
            b = variables.at(second)
            if a is not None and b is not None:
                classes.join(a, b)
            elif a is not None and second.primitive is not None:
                on.append((a, second.primitive))
            elif b is not None and first.primitive is not None:
                on.append((b, first.primitive))
    curves: defaultdict[int, dict[int, int]] = defaultdict(dict)  # class -> curve -> a place of the class on it
    for place, (primitive, part) in enumerate(variables.places):
        if part is Part.START or part is Part.END:
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
