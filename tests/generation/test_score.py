"""The score prefers what can be extruded: closed before open, clean before doubled, tight before gaping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import pulled_square, square
from support.strategies import sketches

from sketchdnn.generation.score import score
from sketchdnn.geometry import Circle, Line, Point, Primitive, Sketch


def of(*primitives: Primitive) -> float:
    return score(Sketch(primitives))


def test_a_clean_closed_drawing_has_one() -> None:
    assert of(*square(), Circle((0, 0), 0.5), Line((-1, 0), (1, 0), True), Point((0, 0))) == 1


def test_worse_drawings_have_less() -> None:
    tight, gaping, more, wide = (of(*pulled_square(by)) for by in (0.0, 0.005, 0.015, 0.1))
    assert 1 == tight > gaping > more > wide
    assert of(*square(), Line((-1, -1), (0.5, -1))) < 1
    assert of(*square(), Line((3, 0), (4, 0.1))) < 1
    assert of(Point((0, 0)), Point((1, 0))) == 0
    assert score(Sketch(())) == 0


def test_widest_gap_that_counts_as_joined_costs_half() -> None:
    """A gap costs in proportion, up to 1 % of the size."""
    assert of(*pulled_square(0.01)) == pytest.approx(0.75)
    assert of(*pulled_square(0.0199)) == pytest.approx(0.5, abs=0.01)


def test_a_doubled_line_costs_its_share() -> None:
    """Four of five curves are in the loop; two of five lie on one another."""
    assert of(*square(), square()[0]) == pytest.approx(4 / 5 - 2 / 5)


@given(sketches(), st.floats(0.01, 100))
def test_it_stays_within_its_bounds_whatever_the_size(sketch: Sketch, scale: float) -> None:
    value = score(sketch)
    assert -1.5 <= value <= 1
    assert score(sketch.moved(2.0)) == pytest.approx(value, abs=1e-6)
