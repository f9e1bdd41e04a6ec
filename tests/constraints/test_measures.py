"""Dimensions take part in solving, in the reading that is nearest to the drawing."""

from __future__ import annotations

import math

import pytest
from sketchdnn.constraints.holding import missed_by

from sketchdnn.constraints import solve
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Primitive, Ref, Sketch

T = ConstraintType
LINE, OTHER = Line((0, 0), (10, 0.2)), Line((0, 5.9), (10, 6.1))
SMALL, LARGE = Circle((0, 0), 2), Circle((0.1, 0), 5)
ORIGIN = Ref(None, Part.ORIGIN)


@pytest.mark.parametrize(
    ("primitives", "kind", "refs", "value", "left"),
    [
        ((LINE,), T.LENGTH, (Ref(0),), 10.1, 3),
        ((LINE,), T.DISTANCE, (Ref(0),), 10.1, 3),
        ((LINE,), T.HORIZONTAL_DISTANCE, (Ref(0),), 10.1, 3),
        ((LINE,), T.HORIZONTAL_DISTANCE, (Ref(0, Part.END), Ref(0, Part.START)), 10.1, 3),
        ((LINE,), T.VERTICAL_DISTANCE, (ORIGIN, Ref(0, Part.END)), 0.3, 3),
        ((LINE, OTHER), T.DISTANCE, (Ref(0), Ref(1)), 6.0, 6),
        ((OTHER, LINE), T.DISTANCE, (Ref(0), Ref(1)), 6.0, 6),
        ((LINE, Point((5, -3))), T.DISTANCE, (Ref(1, Part.POINT), Ref(0)), 3.1, 5),
        ((LINE, Point((5, -3))), T.DISTANCE, (Ref(0), Ref(1)), 3.1, 5),
        ((SMALL, Circle((8, 0), 1)), T.DISTANCE, (Ref(0), Ref(1)), 8.2, 5),  # between centers
        ((SMALL, Circle((8, 0), 1)), T.DISTANCE, (Ref(0), Ref(1)), 5.1, 5),  # between rims
        ((SMALL, Line((-5, 4), (5, 4.1))), T.DISTANCE, (Ref(1), Ref(0)), 6.1, 6),  # to the far rim
        ((SMALL,), T.RADIUS, (Ref(0),), 2.1, 2),
        ((SMALL, LARGE), T.DIAMETER, (Ref(1),), 10.4, 5),
        ((Arc((0, 0), 3, 0, 1.5),), T.RADIUS, (Ref(0),), 3.1, 4),
        ((Arc((0, 0), 3, 0, 1.5),), T.ANGLE, (Ref(0),), math.pi / 2, 4),
        ((LINE, Line((0, 0), (7, 7.1))), T.ANGLE, (Ref(0), Ref(1)), math.pi / 4, 7),
        ((LINE, Line((7, 7.1), (0, 0))), T.ANGLE, (Ref(1), Ref(0)), 3 * math.pi / 4, 7),
        ((Line((0, 0), (7, -7.1)),), T.ANGLE, (Ref(0),), math.pi / 4, 3),
        ((Arc((0, 0), 3, 0, 1.5),), T.FIX, (Ref(0),), None, 0),
        ((LINE, SMALL), T.FIX, (Ref(0, Part.END), Ref(1)), None, 2),
    ],
)
def test_each_dimension(
    primitives: tuple[Primitive, ...], kind: ConstraintType, refs: tuple[Ref, ...], value: float | None, left: int
) -> None:
    dimension = Constraint(kind, refs, value)
    solution = solve(Sketch(primitives), [dimension])
    assert (solution.warning, solution.unread, solution.redundant, solution.dof) == (None, (), (), left)
    assert solution.displacement < 0.05
    (missed,) = missed_by(solution.sketch, [dimension])
    assert missed is not None
    assert missed < 1e-9


def test_what_has_no_value_or_no_meaning_here_is_unread() -> None:
    wanted = [Constraint(T.DISTANCE, (Ref(0), Ref(1))), Constraint(T.LENGTH, (Ref(1),), 3.0)]
    wanted += [Constraint(T.RADIUS, (Ref(0),), 1.0), Constraint(T.FIX, (ORIGIN,))]
    assert solve(Sketch((LINE, SMALL)), wanted).unread == tuple(wanted)


def test_dimensions_that_contradict_are_named() -> None:
    against = Constraint(T.LENGTH, (Ref(0),), 10.4)
    solution = solve(Sketch((LINE,)), [Constraint(T.LENGTH, (Ref(0),), 10.0), against])
    assert solution.conflicting == (against,)
    assert solution.warning is None
