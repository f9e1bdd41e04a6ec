"""A budget for repairs: ample for any sketch, and a limit for a thousand lines that all cross."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Primitive, Sketch
from sketchdnn.geometry.bounds import row_bounds
from sketchdnn.geometry.proximity import close_pairs
from sketchdnn.geometry.table import sketches_to_table

# About this many seconds of a core. Most sketches take a hundredth of one.
_TOTAL = 40.0
# The largest cost of a solution: more equations fall into blocks, or are too many to try.
_MAX_SOLVE = 8.0
# Fewer primitives never take long. Of more, this many pairs may come close.
_FEW, _MAX_PAIRS = 300, 20_000
# Constraints that merge variables need no equation.
_MERGING = frozenset(
    {ConstraintType.COINCIDENT, ConstraintType.CONCENTRIC, ConstraintType.HORIZONTAL, ConstraintType.VERTICAL}
)


class Budget:
    """The work that is left. It is counted, not timed: results must not depend on the machine."""

    def __init__(self) -> None:
        self.left = _TOTAL

    @property
    def is_spent(self) -> bool:
        return self.left <= 0

    def spend(self, cost: float) -> bool:
        """Whether something may still be done; if so, its cost is subtracted."""
        may = not self.is_spent
        self.left -= cost if may else 0.0
        return may


def attempt_cost(primitives: Sequence[Primitive]) -> float:
    """The cost of an attempt without inference and solving; of many primitives few are near each."""
    return min(3e-6 * len(primitives) ** 2, 2e-3 * len(primitives))


def infer_cost(primitives: Sequence[Primitive]) -> float:
    """The cost of inference on a whole sketch."""
    return 2e-9 * num_parameters(primitives) ** 3


def solve_cost(primitives: Sequence[Primitive], constraints: Sequence[Constraint]) -> float:
    """The cost of a solution: mostly that of finding independent equations."""
    equations = 2 * sum(isinstance(p, Arc) for p in primitives) + sum(c.type not in _MERGING for c in constraints)
    return min(4e-9 * num_parameters(primitives) * equations**2, _MAX_SOLVE)


def num_parameters(primitives: Sequence[Primitive]) -> int:
    """The number of parameters that primitives have without constraints."""
    return sum({Line: 4, Arc: 5, Circle: 3}.get(type(p), 2) for p in primitives)


def is_tangle(sketch: Sketch) -> bool:
    """Whether so many primitives cross that each attempt would take many seconds."""
    if len(sketch) <= _FEW:
        return False
    table = sketches_to_table([sketch.primitives])
    low, high = row_bounds(table)
    return next(islice(close_pairs(table, low, high, 0.0), _MAX_PAIRS, None), None) is not None
