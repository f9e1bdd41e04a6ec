"""Which hidden primitives came back: each added one counts once, and only for its own kind and flag."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from support.strategies import primitives

from benchmarks.completion import NEAR, apart, recovered
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive


@given(primitives, primitives)
def test_distance_is_none_to_itself_and_the_same_both_ways(a: Primitive, b: Primitive) -> None:
    assert apart(a, a) == 0
    assert apart(a, b) == apart(b, a)


def test_a_line_is_the_same_from_either_end_and_an_arc_is_not_its_rest() -> None:
    assert apart(Line((0, 0), (1, 0)), Line((1, 0), (0, 0.01))) == pytest.approx(0.01)
    upper, lower = Arc((0, 0), 1, 0, math.pi), Arc((0, 0), 1, math.pi, math.pi)
    assert apart(upper, lower) >= 2


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ([], 0),
        ([Circle((0, 0), 1)], 1),
        ([Circle((0, 0), 1), Circle((0, 0), 1)], 1),  # the second has nothing left to find
        ([Circle((0, NEAR * 0.9), 1), Point((3, 3))], 2),
        ([Circle((0, NEAR * 1.1), 1), Point((3, 3))], 1),
        ([Circle((0, 0), 1, construction=True)], 0),
        ([Arc((0, 0), 1, 0, 6.2)], 0),
    ],
)
def test_each_added_one_counts_once(added: list[Primitive], found: int) -> None:
    assert recovered([Circle((0, 0), 1), Point((3, 3))], added) == found


def test_pairs_are_made_so_that_as_many_as_possible_are_found() -> None:
    """The first hidden circle could take either; the second only the one that the first might have taken."""
    hidden = [Circle((0, 0), 1), Circle((0.08, 0), 1)]
    assert recovered(hidden, [Circle((0.04, 0), 1), Circle((-0.04, 0), 1)]) == 2
