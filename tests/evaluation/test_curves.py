"""Vectorized geometry agrees with the primitives; gaps, symmetry and alignment of known sketches."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import parts, polygon, pulled_square, rows, sets, shuffled, square

from sketchdnn.evaluation import curves
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.representation.hashing import NUM_SYMMETRIES, turned

LEFT, RIGHT = Circle((-0.5, 0.3), 0.2), Circle((0.5, 0.3), 0.2)


@given(sets)
def test_points_and_lengths_agree_with_the_primitives(compact: Compact) -> None:
    fractions = np.array([0.0, 0.25, 0.5, 1.0])
    points, length = curves.points_along(compact, fractions), curves.lengths(compact)
    for s, decoded in enumerate(decode_compact(compact)):
        for p, item in enumerate(decoded.sketch):
            assert length[s, p] == pytest.approx(item.length, rel=1e-6, abs=1e-9)
            for f, point in zip(fractions, points[s, p], strict=True):
                match item:
                    case Line(start, end):
                        expected = (start[0] + f * (end[0] - start[0]), start[1] + f * (end[1] - start[1]))
                    case Arc():
                        expected = item.at(f)
                    case Circle((x, y), radius):
                        expected = (x + radius * math.cos(math.tau * f), y + radius * math.sin(math.tau * f))
                    case Point(at):
                        expected = at
                assert math.dist(point, expected) < 1e-6


def test_gaps_alignment_and_sizes_of_known_sketches(monkeypatch: pytest.MonkeyPatch) -> None:
    for gap in (0.0, 0.004, 0.03):
        distance = curves.end_gaps(rows(pulled_square(gap)))[0, :4]
        assert sorted(distance.ravel().tolist())[-2:] == pytest.approx([gap, gap], abs=1e-6)
    short = Line((0, 0), (0.001, 0))
    distance = curves.end_gaps(rows([short, Circle((0, 0), 1), Point((0, 0)), Point((0.001, 0))], [Circle((0, 0), 1)]))
    assert np.isinf(distance[0, 0]).all()
    assert np.isnan(distance[0, 1:]).all()
    assert np.isnan(distance[1]).all()
    half = Arc((0, 0), 1, 0, math.pi)
    assert curves.end_gaps(rows([half, Line((-1, 0), (1, 0), True)]))[0, :2].max() == pytest.approx(0, abs=1e-6)
    gaps = curves.largest_gaps(rows(square(), pulled_square(0.25), [Circle((0, 0), 1)], [Line((-1, 0), (1, 0))]))
    assert np.allclose(gaps[:2], [0, 0.25])
    assert np.isnan(gaps[2])
    assert np.isinf(gaps[3])
    compact = parts(40)
    gaps, symmetric = curves.end_gaps(compact), curves.mirror_symmetric(compact)
    monkeypatch.setattr(curves, "CHUNK", 3 * 4 * 16**2)
    np.testing.assert_array_equal(curves.end_gaps(compact), gaps)
    np.testing.assert_array_equal(curves.mirror_symmetric(compact), symmetric)
    angles = {0: 1, 0.4: 1, 0.6: 0, 45: 0, 89.6: 1, 179.6: 1, -90: 1}
    lines = [Line((0, 0), (math.cos(math.radians(angle)), math.sin(math.radians(angle)))) for angle in angles]
    compact = rows(*([line, Arc((0, 0), 1, 0, 1)] for line in lines))
    assert curves.axis_aligned(compact).sum(axis=1).tolist() == list(angles.values())
    small: list[Primitive] = [Line((0, 0), (0.004, 0)), Circle((0, 0), 0.002), Arc((0, 0), 0.01, 0, 0.4)]
    large: list[Primitive] = [Line((0, 0), (0.006, 0)), Circle((0, 0), 0.003), Arc((0, 0), 0.01, 0, 0.6), Point((0, 0))]
    assert curves.tiny_primitives(rows(small + large))[0].tolist() == [True] * 3 + [False] * 13


def test_mirror_symmetry_of_known_sketches() -> None:
    cases: list[tuple[list[Primitive], bool]] = [
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
        ([*square(), LEFT, LEFT, RIGHT], False),  # one of the two equal circles has no partner
        ([*square(), LEFT, LEFT, RIGHT, RIGHT], True),
        ([*square(), Arc((0, 0), 0.5, 0, math.pi)], True),
        ([*square(), Arc((0, 0.3), 0.5, 0, math.pi / 2)], False),
        ([*square(), Arc((-0.2, 0.1), 0.5, math.pi / 2, 1), Arc((0.2, 0.1), 0.5, math.pi / 2 - 1, 1)], True),
        ([Point((0, 0.5)), Line((-1, -1), (1, -1)), Point((0, 1))], True),
    ]
    assert curves.mirror_symmetric(rows(*(drawing for drawing, _ in cases))).tolist() == [
        expected for _, expected in cases
    ]


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_measures_do_not_depend_on_symmetry_or_order(compact: Compact, symmetry: int, seed: int) -> None:
    other = shuffled(turned(compact, symmetry), seed)
    np.testing.assert_array_equal(curves.mirror_symmetric(compact), curves.mirror_symmetric(other))
    for measure in (curves.axis_aligned, curves.tiny_primitives):
        np.testing.assert_array_equal(measure(compact).sum(axis=1), measure(other).sum(axis=1))
    for before, after in zip(curves.end_gaps(compact), curves.end_gaps(other), strict=True):
        np.testing.assert_allclose(np.sort(before.ravel()), np.sort(after.ravel()), atol=1e-12)


@given(sets)
def test_sketch_beside_its_mirror_image_is_symmetric(compact: Compact) -> None:
    image = turned(compact, 4)
    both = Compact(*(np.concatenate([getattr(c, n) for c in (compact, image)], axis=1) for n in Compact.__slots__))
    assert curves.mirror_symmetric(both).all()
