"""Distinct suggestions: the distance between additions, and one of each cluster."""

import math

import pytest
from hypothesis import given, settings
from support.strategies import primitives

from sketchdnn.generation.distinct import SAME_IDEA, choose_distinct, difference
from sketchdnn.geometry import Circle, Line, Point, Primitive

SIZE = 100.0


@given(primitives, primitives)
@settings(max_examples=50)
def test_difference_is_symmetric_and_zero_to_itself(a: Primitive, b: Primitive) -> None:
    assert difference([a], [a], SIZE) == 0
    assert difference([a], [b], SIZE) == difference([b], [a], SIZE)


def test_difference_is_that_of_geometry_not_of_primitives() -> None:
    whole, halves = [Line((0, 0), (80, 0))], [Line((80, 0), (40, 0)), Line((40, 0), (0, 0))]
    assert difference(whole, halves, SIZE) == 0
    shifted = [Line((0, 8), (80, 8))]
    assert difference(whole, shifted, SIZE) == pytest.approx(0.08, abs=0.011)
    assert difference([Circle((0, 0), 10)], [Circle((30, 0), 10)], SIZE) == pytest.approx(0.3, abs=0.011)
    axis = [Line((0, 0), (80, 0), construction=True)]
    assert difference(whole, axis, SIZE) == math.inf
    assert difference(whole, [*whole, Point((3, 3))], SIZE) == math.inf


def test_one_of_each_cluster_is_chosen_best_first() -> None:
    radii = [10.0, 10.5, 30.0, 9.8, 60.0]
    added = [[Circle((0, 0), radius)] for radius in radii]
    assert choose_distinct(added, SIZE, [3, 2, 0, 1, 4]) == {3: [3, 0, 1], 2: [2], 4: [4]}
    assert choose_distinct(added, SIZE, [3, 2, 0, 1, 4], [[Circle((0, 0), 30 + 50 * SAME_IDEA)]]) == {
        3: [3, 0, 1],
        4: [4],
    }
