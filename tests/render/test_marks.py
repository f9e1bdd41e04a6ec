"""Every constraint that has a sign gets a mark, and each mark a place that is near and free."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shaky import MEANT, PLATE, related

from sketchdnn.geometry import Arc, Circle, Constraint, ConstraintType, Line, Part, Point, Ref, Sketch
from sketchdnn.render import Style, frame
from sketchdnn.render.constraint_marks import Mark, constraint_marks
from sketchdnn.render.mark_layout import PlacedMark, arrange_marks

T = ConstraintType


def place_all(sketch: Sketch, size: float = 400) -> list[PlacedMark]:
    return arrange_marks(constraint_marks(sketch), sketch, frame(sketch, size, size, Style()), 6)


@given(related())
def test_whatever_constraints_say_marks_are_finite_and_speak_of_constraints(sketch: Sketch) -> None:
    for one in place_all(sketch):
        assert all(0 <= n < len(sketch.constraints) for n in one.mark.numbers)
        assert all(math.isfinite(number) for number in (*one.at, *one.half))


def test_every_kind_is_shown_near_what_it_is_about() -> None:
    sketch = Sketch(PLATE.primitives, MEANT)
    placed = place_all(sketch)
    assert {n for one in placed for n in one.mark.numbers} == set(range(len(MEANT)))
    view = frame(sketch, 400, 400, Style())
    near = {
        T.COINCIDENT: (60, 0),
        T.PERPENDICULAR: (60, 0),
        T.TANGENT: (60, 30),
        T.CONCENTRIC: (50, 30),
        T.POINT_ON_CURVE: (30, 18),
        T.FIX: (0, 0),
    }
    for one in placed:
        if one.mark.sign in near:
            far = math.dist(one.at, view.to_pixel(near[one.mark.sign]))
            assert far == 0 if one.mark.pinned else far < 25
    assert {one.mark.words for one in placed if one.mark.sign is T.RADIUS} == {"R8"}


def test_marks_do_not_cover_each_other() -> None:
    placed = [one for one in place_all(Sketch(PLATE.primitives, MEANT), 500) if not one.mark.pinned]
    for i, one in enumerate(placed):
        for other in placed[:i]:
            apart = [abs(one.at[k] - other.at[k]) - one.half[k] - other.half[k] for k in (0, 1)]
            assert max(apart) > -3, (one.mark, other.mark)


def test_a_chain_gets_one_mark_a_line_and_two_groups_get_numbers() -> None:
    lines = tuple(Line((k, 0), (k, 5 if k < 3 else 9)) for k in range(5))
    chain = [Constraint(T.EQUAL, (Ref(0), Ref(1))), Constraint(T.EQUAL, (Ref(1), Ref(2)))]
    found = constraint_marks(Sketch(lines, tuple(chain)))
    assert [(mark.beside, mark.words) for mark in found] == [(line, "") for line in lines[:3]]
    found = constraint_marks(Sketch(lines, (*chain, Constraint(T.EQUAL, (Ref(3), Ref(4))))))
    assert {mark.beside: mark.words for mark in found} == dict(zip(lines, "11122", strict=True))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_a_midpoint_is_marked_at_the_one_in_the_middle(order: tuple[int, ...]) -> None:
    points = (Point((5, 0)), Point((0, 0)), Point((10, 0)))
    (mark,) = constraint_marks(Sketch(points, (Constraint(T.MIDPOINT, tuple(Ref(i) for i in order)),)))
    assert mark.beside == points[0]


def test_a_dimension_between_the_ends_of_a_line_stands_beside_the_line() -> None:
    line = Line((0, 0), (10, 0))
    distance = Constraint(T.DISTANCE, (Ref(0, Part.END), Ref(0, Part.START)), -12.5)
    (mark,) = constraint_marks(Sketch((line,), (distance,)))
    assert mark == Mark(T.DISTANCE, line, (0,), words="12.5", along=mark.along)


@pytest.mark.parametrize(
    ("other", "where"),
    [
        (Line((-20, 10), (20, 10)), (0, 10)),
        (Circle((15, 0), 5), (10, 0)),
        (Circle((6, 0), 4), (10, 0)),
        (Arc((0, 20), 10, 4, 1.5), (0, 10)),
    ],
)
def test_curves_that_touch_are_marked_where_they_do(other: Line | Circle | Arc, where: tuple[float, float]) -> None:
    sketch = Sketch((Circle((0, 0), 10), other))
    for refs in ((Ref(0), Ref(1)), (Ref(1), Ref(0))):
        (mark,) = constraint_marks(Sketch(sketch.primitives, (Constraint(T.TANGENT, refs),)))
        assert isinstance(mark.beside, Point)
        assert math.dist(mark.beside.at, where) < 1e-9


@settings(max_examples=20)
@given(related(), st.floats(-6, 6))
def test_places_do_not_depend_on_the_scale(sketch: Sketch, magnitude: float) -> None:
    """What is drawn twice as large looks the same: the picture fits it."""
    before, after = place_all(sketch), place_all(sketch.moved(2.0 ** round(magnitude)))
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert math.dist(one.at, other.at) < 1e-6 or one.mark.words != other.mark.words
