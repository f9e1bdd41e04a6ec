"""Drag a part of a sketch: it goes as near to a place as the constraints allow, and the rest moves little.

The constraints hold before and after. All equations that are connected with the dragged part are solved together by
`pull`; everything else stays exactly as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchdnn.errors import GeometryError
from sketchdnn.geometry import Arc, Circle, Part, Sketch, Vec
from sketchdnn.geometry.constraints import PARTS_OF_KIND
from sketchdnn.geometry.primitives import LARGEST_COORDINATE

from .mechanism import SMALLEST, Mechanism
from .pull import Pull
from .solve import solve
from .variables import Variables

# The part that changes the size of a circle or arc; the others are those of constraints.
RADIUS = "radius"
_PARTS = (Part.START, Part.END, Part.CENTER, Part.POINT, Part.WHOLE, RADIUS)
# A part that misses its target by less than this share of the size reaches it.
_REACHES = 1e-6


@dataclass(frozen=True, slots=True)
class Drag:
    """What is dragged where.

    Attributes:
        primitive: The index of the primitive.
        part: `start`, `end`, `center` or `point`; `radius` of a circle or arc; or `whole`.
        to: Where the part should go; for `radius`, a place that the circle should pass through.
        origin: With `whole`: the primitive moves by `to` − `origin`.
    """

    primitive: int
    part: Part | str
    to: Vec
    origin: Vec | None = None

    def __post_init__(self) -> None:
        if self.part not in _PARTS:
            parts = ", ".join(map(str, _PARTS))
            raise GeometryError(f"'{str(self.part)[:20]}' is no part to drag; use one of {parts}")
        for at in (self.to, self.origin):
            if at is not None and not (len(at) == 2 and all(abs(value) <= LARGEST_COORDINATE for value in at)):
                raise GeometryError(f"a place of a drag has two coordinates up to {LARGEST_COORDINATE:g}")
        if self.part == Part.WHOLE and self.origin is None:
            raise GeometryError("a drag of a whole primitive needs the place where it began")

    def check(self, sketch: Sketch) -> None:
        """Raise a `GeometryError` if the sketch has no such primitive or part."""
        if not 0 <= self.primitive < len(sketch):
            raise GeometryError(f"there is no primitive {self.primitive} to drag")
        primitive = sketch.primitives[self.primitive]
        is_round = isinstance(primitive, Circle | Arc)
        if not (is_round if self.part == RADIUS else self.part in PARTS_OF_KIND[primitive.kind]):
            raise GeometryError(f"{primitive.kind.label} {self.primitive} has no {self.part} to drag")


@dataclass(frozen=True, slots=True)
class DragResult:
    """The sketch after a drag.

    Attributes:
        sketch: The sketch, in which the constraints hold; the input if nothing moved.
        dof: The degrees of freedom.
        moved: Whether anything moved.
        message: Why the part did not follow, or did not reach its target.
    """

    sketch: Sketch
    dof: int
    moved: bool
    message: str | None = None


def drag(sketch: Sketch, drag: Drag) -> DragResult:
    """Drag a part of a sketch.

    The part goes as near to its target as the constraints allow, on a path on which they hold: nothing flips over, and
    nothing collapses. Other geometry moves as little as that needs. Constraints that conflict with others, or that
    the solver does not support, are ignored.

    Args:
        sketch: The sketch. While a pointer moves, it may be that of the beginning, or the last result.
        drag: What is dragged where.

    Returns:
        The result.

    Raises:
        GeometryError: If there is no such primitive or part.

    >>> from sketchdnn.geometry import Constraint, ConstraintType, Line, Ref
    >>> corner = Constraint(ConstraintType.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
    >>> level = Constraint(ConstraintType.HORIZONTAL, (Ref(0),))
    >>> sketch = Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10, 8))), (corner, level))
    >>> result = drag(sketch, Drag(0, "end", (12, 0)))
    >>> result.sketch.primitives[1].start, result.dof
    ((12.0, 0.0), 5)
    """
    drag.check(sketch)
    mechanism = Mechanism(sketch, sketch.constraints)
    if not mechanism.holds:
        solution = solve(sketch)
        if solution.warning:
            return DragResult(sketch, solution.dof, False, f"the constraints do not hold: {solution.warning}")
        left_out = {id(c) for c in solution.conflicting}
        mechanism = Mechanism(solution.sketch, [c for c in sketch.constraints if id(c) not in left_out])
    if mechanism.too_large:
        return DragResult(sketch, mechanism.dof, False, "too much is connected with it to drag it")
    goal = _goal(drag, mechanism)
    if not len(goal.rows):
        return DragResult(sketch, mechanism.dof, False, "the constraints hold it in its place")
    moved = mechanism.pull(goal)
    if moved is None:
        return DragResult(sketch, mechanism.dof, False, "no solution was found there")
    if moved.primitives == sketch.primitives:
        is_there = float(np.abs(goal.misses(np.zeros(goal.rows.shape[1]))).max()) <= _REACHES
        message = None if is_there else "the constraints hold it in its place"
        return DragResult(sketch, mechanism.dof, False, message)
    message = None
    if moved.missed > _REACHES:
        message = "something would collapse beyond this" if moved.is_stopped else "the constraints allow no more"
    return DragResult(replace(sketch, primitives=moved.primitives), mechanism.dof, True, message)


def _goal(drag: Drag, mechanism: Mechanism) -> Pull:
    """The goals of the dragged parameters, as far as they are free."""
    variables, variable_map = mechanism.variables, mechanism.variable_map
    goals: dict[int, float] = {}  # by variable
    for parameter, value in _targets(drag, variables).items():
        variable = int(variable_map.index[parameter])
        if variable < variable_map.num_free:
            goals.setdefault(variable, value)
    columns = list(goals)
    rows = np.zeros((len(columns), variable_map.num_free))
    rows[range(len(columns)), columns] = 1 / variable_map.root[columns]
    return Pull(rows, np.array([*goals.values()]) - variable_map.start[columns])


def _targets(drag: Drag, variables: Variables) -> dict[int, float]:
    """The target of each dragged parameter."""
    f, i = variables.f, drag.primitive
    to = (np.array(drag.to) - variables.shift) / variables.scale
    if drag.part == RADIUS:
        center = 2 * variables.first[i]
        radius = float(np.hypot(*(to - f[center : center + 2])))
        return {variables.radius[i]: max(radius, SMALLEST)}
    if drag.part == Part.WHOLE:
        by = (np.array(drag.to) - np.array(drag.origin)) / variables.scale
        points = range(2 * variables.num_points)
        return {k: float(f[k]) + (float(by[k % 2]) if k in points else 0.0) for k in variables.parameters(i)}
    k = variables.point_index[i, Part(drag.part)]
    return {2 * k: float(to[0]), 2 * k + 1: float(to[1])}
