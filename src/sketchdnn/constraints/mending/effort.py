"""How much a repair may try: enough for any sketch, and an end for a thousand lines that all cross."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Primitive, Sketch
from sketchdnn.geometry.bounds import row_bounds
from sketchdnn.geometry.proximity import close_pairs
from sketchdnn.geometry.table import sketches_to_table

# About so many seconds of a core. Most sketches take a hundredth of one.
_MOST = 40.0
# What no solution costs: more equations than that fall apart into pieces, or are too many to try.
_DEAREST = 8.0
# Fewer primitives never take long. Of more, so many pairs may come close at most.
_FEW, _MOST_PAIRS = 300, 20_000
# What makes numbers one needs no equation.
_NO_EQUATION = frozenset(
    {ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.HORIZONTAL, ConstraintType.VERTICAL}
)


class Effort:
    """What is left of it. It is counted and not timed: what comes of a repair must not depend on the machine."""

    def __init__(self) -> None:
        self.left = _MOST

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def spend(self, cost: float) -> bool:
        """Whether something may still be done; if so, it is counted."""
        may = not self.is_spent
        self.left -= cost if may else 0.0
        return may


def trying(primitives: Sequence[Primitive]) -> float:
    """What an attempt costs besides inferring and solving; of many primitives few are near each."""
    return min(3e-6 * len(primitives) ** 2, 2e-3 * len(primitives))


def is_tangle(sketch: Sketch) -> bool:
    """Whether so many primitives cross that each attempt would take many seconds."""
    if len(sketch) <= _FEW:
        return False
    table = sketches_to_table([sketch.primitives])
    low, high = row_bounds(table)
    return next(islice(close_pairs(table, low, high, 0.0), _MOST_PAIRS, None), None) is not None


def inferring(primitives: Sequence[Primitive]) -> float:
    """What it costs to look at all at once."""
    return 2e-9 * free_numbers(primitives) ** 3


def solving(primitives: Sequence[Primitive], constraints: Sequence[Constraint]) -> float:
    """What a solution costs: mostly to find out which equations are independent."""
    equations = 2 * sum(isinstance(p, Arc) for p in primitives) + sum(c.type not in _NO_EQUATION for c in constraints)
    return min(4e-9 * free_numbers(primitives) * equations**2, _DEAREST)


def free_numbers(primitives: Sequence[Primitive]) -> int:
    """How many numbers are free in a drawing."""
    return sum(
        4 if isinstance(p, Line) else 5 if isinstance(p, Arc) else 3 if isinstance(p, Circle) else 2 for p in primitives
    )
