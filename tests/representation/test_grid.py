"""The 8-bit grid: twins fall into the same cell, others do not."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import sketches

from sketchdnn.geometry import Arc, Circle, Line, Point, Sketch, normalize
from sketchdnn.representation import encode
from sketchdnn.representation.hashing import row_codes

nice = st.sampled_from([0, 1, -1, 0.5, -0.5, 0.25, 1 / 3, 2 / 3, 0.1, -0.3, 0.7, 0.9, -0.2])


def codes(*primitives: Line | Circle | Arc | Point, half_extent: float = 1.0) -> list[int]:
    rows = row_codes(encode([Sketch(primitives)]), half_extent)
    return [int(code) for code in rows[0, : len(primitives)]]


@given(nice, nice, st.floats(-1e-9, 1e-9), st.floats(-1e-9, 1e-9))
def test_noise_around_common_values_changes_nothing(x: float, y: float, dx: float, dy: float) -> None:
    assert codes(Point((x, y))) == codes(Point((x + dx, y + dy)))


@given(nice, nice, nice, nice)
def test_a_line_is_the_same_from_either_end(x1: float, y1: float, x2: float, y2: float) -> None:
    if (x1, y1) != (x2, y2):
        assert codes(Line((x1, y1), (x2, y2))) == codes(Line((x2, y2), (x1, y1)))


def test_what_differs_by_two_cells_differs() -> None:
    step = 2 / 127
    for base in np.linspace(-0.9, 0.9, 37):
        assert codes(Point((base, 0))) != codes(Point((base + step, 0)))
        assert codes(Point((0, base))) != codes(Point((0, base + step)))
    assert codes(Circle((0, 0), 0.5)) != codes(Circle((0, 0), 0.5 + step))
    assert codes(Arc((0, 0), 1, 0, 1)) != codes(Arc((0, 0), 1, 0, 1 + step * math.pi))


def test_neighboring_levels_differ_up_to_the_border() -> None:
    """The outermost level holds the border of the frame alone, on either side."""
    level = 1 / 127
    for border in (1, -1):
        assert codes(Point((border, 0))) != codes(Point((border * (1 - level), 0)))
        assert codes(Point((0, border))) != codes(Point((0, border * (1 - level))))
        assert codes(Point((border, 0))) == codes(Point((border * (1 + 5 * level), 0)))  # nothing lies beyond


def test_kind_and_construction_count() -> None:
    assert len(set(codes(Point((0, 0)), Point((0, 0), True), Circle((0, 0), 1), Circle((0, 0), 1, True)))) == 4


@given(sketches(max_size=16), st.randoms())
def test_permuting_primitives_permutes_codes(sketch: Sketch, random: object) -> None:
    placed, _ = normalize(sketch)
    primitives = list(placed.primitives)
    random.shuffle(primitives)  # type: ignore[attr-defined]
    try:
        assert sorted(codes(*placed)) == sorted(codes(*primitives))
    except ValueError:
        return  # a primitive too small for single precision


def test_the_frame_only_scales_the_grid() -> None:
    small = [Line((0.1, 0.2), (0.3, -0.4)), Circle((0.1, 0.0), 0.2), Arc((0, 0), 0.4, 0, 2)]
    large = [Line((0.2, 0.4), (0.6, -0.8)), Circle((0.2, 0.0), 0.4), Arc((0, 0), 0.8, 0, 2)]
    assert codes(*small, half_extent=0.5) == codes(*large)
