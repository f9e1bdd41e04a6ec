"""Symmetry, alignment and specks, as a draughtsman would call them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import polygon, rows, sets, shuffled, square

from sketchdnn.evaluation.curves import axis_aligned, mirror_symmetric, tiny_primitives
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive
from sketchdnn.representation import Compact
from sketchdnn.representation.symmetric import NUM_SYMMETRIES, turned

LEFT, RIGHT = Circle((-0.5, 0.3), 0.2), Circle((0.5, 0.3), 0.2)


@pytest.mark.parametrize(
    ("drawing", "expected"),
    [
        (square(), True),
        (polygon((-1, -1), (1, -1), (0, 1)), True),
        (polygon((-1, -1), (1, -1), (0.3, 1)), False),
        (polygon((-1, -1), (1, -1), (1, 1)), False),  # symmetric about a diagonal, which is no mid-axis
        ([*square(), LEFT, RIGHT], True),
        ([*square(), LEFT], False),
        ([*square(), LEFT, Circle((0.505, 0.3), 0.2)], True),  # within 0.01
        ([*square(), LEFT, Circle((0.515, 0.3), 0.2)], False),
        ([*square(), LEFT, Circle((0.5, 0.3), 0.22)], False),
        ([*square(), LEFT, Circle((0.5, 0.3), 0.2, True)], False),
        ([*square(), LEFT, LEFT, RIGHT], False),  # one of the twins has no partner
        ([*square(), LEFT, LEFT, RIGHT, RIGHT], True),
        ([*square(), Arc((0, 0), 0.5, 0, math.pi)], True),
        ([*square(), Arc((0, 0.3), 0.5, 0, math.pi / 2)], False),
        ([*square(), Arc((-0.2, 0.1), 0.5, math.pi / 2, 1), Arc((0.2, 0.1), 0.5, math.pi / 2 - 1, 1)], True),
        ([Point((0, 0.5)), Line((-1, -1), (1, -1)), Point((0, 1))], True),
    ],
)
def test_mirror_symmetry(drawing: list[Primitive], expected: bool) -> None:
    assert mirror_symmetric(rows(drawing)).tolist() == [expected]


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_turning_and_reordering_change_no_symmetry(compact: Compact, symmetry: int, seed: int) -> None:
    other = shuffled(turned(compact, symmetry), seed)
    np.testing.assert_array_equal(mirror_symmetric(compact), mirror_symmetric(other))
    np.testing.assert_array_equal(axis_aligned(compact).sum(axis=1), axis_aligned(other).sum(axis=1))
    np.testing.assert_array_equal(tiny_primitives(compact).sum(axis=1), tiny_primitives(other).sum(axis=1))


@given(sets)
def test_a_drawing_beside_its_mirror_image_is_symmetric(compact: Compact) -> None:
    image = turned(compact, 4)
    both = Compact(*(np.concatenate([getattr(c, n) for c in (compact, image)], axis=1) for n in Compact.__slots__))
    assert mirror_symmetric(both).all()


@pytest.mark.parametrize(("degrees", "aligned"), [(0, 1), (0.4, 1), (0.6, 0), (45, 0), (89.6, 1), (179.6, 1), (-90, 1)])
def test_lines_within_half_a_degree_are_aligned(degrees: float, aligned: int) -> None:
    angle = math.radians(degrees)
    compact = rows([Line((0, 0), (math.cos(angle), math.sin(angle))), Arc((0, 0), 1, 0, 1)])
    assert axis_aligned(compact).sum() == aligned


def test_specks_are_curves_too_small_to_see() -> None:
    small: list[Primitive] = [Line((0, 0), (0.004, 0)), Circle((0, 0), 0.002), Arc((0, 0), 0.01, 0, 0.4)]
    large: list[Primitive] = [Line((0, 0), (0.006, 0)), Circle((0, 0), 0.003), Arc((0, 0), 0.01, 0, 0.6), Point((0, 0))]
    assert tiny_primitives(rows(small + large))[0].tolist() == [True] * 3 + [False] * 13
