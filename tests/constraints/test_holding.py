"""Whether constraints hold, and follow from others."""

from __future__ import annotations

import math

import pytest
from sketchdnn.constraints.holding import follows, missed_by, moves, settled

from sketchdnn.geometry import EXTERNAL, Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch

T = ConstraintType
ANGLE = Sketch((Line((0, 0), (10, 0)), Line((10, 0), (10, 8)), Line((0, 1), (10, 2))))
MEET = Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1, Part.START)))
FLAT, UPRIGHT = Constraint(T.HORIZONTAL, (Ref(0),)), Constraint(T.VERTICAL, (Ref(1),))
SQUARE = Constraint(T.PERPENDICULAR, (Ref(0), Ref(1)))


def test_by_how_much() -> None:
    lean = Constraint(T.PARALLEL, (Ref(0), Ref(2)))
    outside = Constraint(T.COINCIDENT, (Ref(0, Part.END), EXTERNAL))
    assert missed_by(ANGLE, [MEET, SQUARE, lean, outside]) == pytest.approx([0, 0, math.sin(math.atan(0.1)), None])
    assert missed_by(Sketch(()), []) == []


def test_what_follows_must_hold_after_any_move() -> None:
    assert follows(ANGLE, [FLAT, UPRIGHT], [SQUARE, FLAT, MEET]) == [True, True, False]
    assert follows(ANGLE, [FLAT], [SQUARE]) == [False]


def test_an_arc_follows_its_own_circle() -> None:
    arc = Sketch((Arc((0, 0), 2, 0.1, 2), Circle((0, 0), 2)))
    same = [Constraint(T.CONCENTRIC, (Ref(0), Ref(1))), Constraint(T.EQUAL, (Ref(0), Ref(1)))]
    on = Constraint(T.POINT_ON_CURVE, (Ref(0, Part.START), Ref(1)))
    assert follows(arc, same, [on]) == [True]
    assert follows(arc, same[:1], [on]) == [False]


def test_how_much_is_settled_and_moved() -> None:
    assert settled(ANGLE, [], 1e-9) == 0
    assert settled(ANGLE, [MEET, FLAT], 1e-9) == pytest.approx(3 / 12)
    assert moves(ANGLE, ANGLE.moved(1, (0.3, 0.4))) == pytest.approx([0.05] * 6)
