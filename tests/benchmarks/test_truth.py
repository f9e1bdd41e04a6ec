"""The judge of inferred constraints, on cases where the verdict is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.constraint_recall import Judged, Score, Shaken, count, follows, kind_of, measure, shake, shake_all
from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Ref, Sketch

T = ConstraintType
CORNERS = [(0.0, 0.0), (40.0, 0.0), (40.0, 30.0), (0.0, 30.0)]
SIDES = tuple(Line(a, b) for a, b in zip(CORNERS, CORNERS[1:] + CORNERS[:1], strict=True))
LEVEL = tuple(Constraint(T.VERTICAL if i % 2 else T.HORIZONTAL, (Ref(i),)) for i in range(4))
MEETING = tuple(Constraint(T.COINCIDENT, (Ref(i, Part.END), Ref((i + 1) % 4, Part.START))) for i in range(4))
RECTANGLE = Sketch(SIDES, (*LEVEL, *MEETING))


def test_what_follows_need_not_be_said() -> None:
    wanted = [
        Constraint(T.PARALLEL, (Ref(0), Ref(2))),
        Constraint(T.PERPENDICULAR, (Ref(0), Ref(1))),
        Constraint(T.EQUAL, (Ref(0), Ref(2))),
        Constraint(T.EQUAL, (Ref(0), Ref(1))),
    ]
    assert follows(RECTANGLE, RECTANGLE.constraints, wanted) == [True, True, True, False]


def test_what_holds_by_accident_does_not_follow() -> None:
    """All sides are level, and nothing was said of them."""
    assert follows(RECTANGLE, (), LEVEL) == [False] * 4
    assert follows(RECTANGLE, LEVEL[:2], LEVEL) == [True, True, False, False]


def test_what_is_missed_does_not_follow_even_if_it_was_said() -> None:
    crooked = Sketch((replace(SIDES[0], end=(40, 1)), *SIDES[1:]))
    assert follows(crooked, LEVEL, LEVEL[:2]) == [False, True]


def test_scores_count_by_kind() -> None:
    score = Score()
    shaken = Shaken(RECTANGLE, replace(RECTANGLE, constraints=()), 0.0)
    wrong = Constraint(T.EQUAL, (Ref(0), Ref(1)))
    count(score, shaken, Judged((*LEVEL, wrong), RECTANGLE, left_out=(wrong,)))
    assert (score.recall("horizontal"), score.recall("vertical"), score.recall("coincident")) == (1, 1, 0)
    assert score.precision() == pytest.approx(0.8)
    assert (score.precision("equal"), score.precision("vertical")) == (0, 1)
    assert score.residuals == [0.0]
    count(score, shaken, Judged((), None))
    assert (score.failed, score.sketches, score.recall("horizontal")) == (1, 2, 0.5)


def test_shaking_moves_as_much_as_it_says() -> None:
    sketch = Sketch((*SIDES, Circle((10, 10), 4), Arc((20, 10), 5, 0.5, 2)))
    shaken, moved = shake(sketch, 0.005, np.random.default_rng(0))
    assert shaken.constraints == ()
    assert 0.002 < moved < 0.005 * 2**0.5
    far = max(np.hypot(*np.subtract(p.start, q.start)) for p, q in zip(SIDES, shaken.primitives[:4], strict=True))  # type: ignore[union-attr]
    assert 0 < far <= 0.005 * 40 * 2**0.5
    assert [one.sketch for one in shake_all([sketch], 0.005)] == [shaken]


def test_a_rectangle_is_found_again() -> None:
    score = measure([RECTANGLE] * 5, 0.001, 0.001)
    assert score.recall("coincident") == score.recall("horizontal") == score.recall("vertical") == 1
    assert score.precision() == 1
    assert max(score.residuals) < 1e-9
    assert np.mean(score.displacements) <= np.mean(score.jitters)


def test_a_place_on_a_curve_is_a_kind_of_its_own() -> None:
    assert kind_of(Constraint(T.COINCIDENT, (Ref(0, Part.END), Ref(1)))) == "on or along"
    assert kind_of(MEETING[0]) == "coincident"
