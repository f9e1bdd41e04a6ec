"""Hashes: twins fall into the same cell of the 8-bit grid, and all symmetric images of a sketch share one key."""

from __future__ import annotations

import math
import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import parts, rows, sets, shuffled
from support.strategies import assert_same, sketches

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch, normalize
from sketchdnn.representation import Compact, decode_compact, encode
from sketchdnn.representation.hashing import NUM_SYMMETRIES, row_codes, symmetric_keys, turned
from sketchdnn.training.corpus import apply_symmetry

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
def test_permuting_primitives_permutes_codes(sketch: Sketch, rng: random.Random) -> None:
    placed, _ = normalize(sketch)
    primitives = list(placed.primitives)
    rng.shuffle(primitives)
    try:
        assert sorted(codes(*placed)) == sorted(codes(*primitives))
    except ValueError:
        return  # a primitive too small for single precision


def test_the_frame_only_scales_the_grid() -> None:
    small = [Line((0.1, 0.2), (0.3, -0.4)), Circle((0.1, 0.0), 0.2), Arc((0, 0), 0.4, 0, 2)]
    large = [Line((0.2, 0.4), (0.6, -0.8)), Circle((0.2, 0.0), 0.4), Arc((0, 0), 0.8, 0, 2)]
    assert codes(*small, half_extent=0.5) == codes(*large)


def test_a_quarter_turn_and_a_mirror_image_by_hand() -> None:
    drawing = rows([Line((0, 0), (1, 0)), Circle((0.5, 0.2), 0.1), Point((0, 1)), Arc((0, 0), 1, 0, math.pi / 2)])
    arc = Arc((0, 0), 1, math.pi / 2, math.pi / 2)
    quarter = Sketch((Line((0, 0), (0, 1)), Circle((-0.2, 0.5), 0.1), Point((-1, 0)), arc))
    mirror = Sketch((Line((0, 0), (-1, 0)), Circle((-0.5, 0.2), 0.1), Point((0, 1)), arc))
    assert_same(decode_compact(turned(drawing, 1))[0].sketch, quarter)
    assert_same(decode_compact(turned(drawing, 4))[0].sketch, mirror)


@given(sets)
def test_each_symmetry_is_undone_by_another_to_the_bit(compact: Compact) -> None:
    for symmetry in range(NUM_SYMMETRIES):
        inverse = symmetry if symmetry >= 4 else -symmetry % 4
        np.testing.assert_array_equal(turned(turned(compact, symmetry), inverse).params, compact.params)


def test_the_eight_are_different() -> None:
    images = {turned(parts(3), symmetry).params.tobytes() for symmetry in range(NUM_SYMMETRIES)}
    assert len(images) == NUM_SYMMETRIES


def test_they_are_those_of_training() -> None:
    compact = parts(20)
    kind, params = torch.from_numpy(compact.kind), torch.from_numpy(compact.params)
    for symmetry in range(NUM_SYMMETRIES):
        trained = apply_symmetry(kind, params, torch.full((20,), symmetry))
        np.testing.assert_allclose(turned(compact, symmetry).params, trained.numpy(), atol=1e-7)


def with_lines_reversed(compact: Compact, seed: int) -> Compact:
    """Some of the lines, drawn from their other end."""
    params = np.array(compact.params)
    some = (compact.kind == Kind.LINE) & (np.random.default_rng(seed).random(compact.kind.shape) < 0.5)
    params[some] = params[some][:, [2, 3, 0, 1, 4]]
    return Compact(compact.kind, compact.construction, params)


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_a_key_does_not_depend_on_symmetry_order_or_direction(compact: Compact, symmetry: int, seed: int) -> None:
    other = with_lines_reversed(shuffled(turned(compact, symmetry), seed), seed)
    np.testing.assert_array_equal(symmetric_keys(compact, 64), symmetric_keys(other, 64))


def test_different_sketches_have_different_keys() -> None:
    compact = parts(300)
    same = len(np.unique(symmetric_keys(compact, 256)))
    assert same >= 295
    moved = Compact(compact.kind, compact.construction, compact.params.copy())
    moved.params[:, 0, 0] *= 0.5
    apart = np.abs(compact.params[:, 0, 0]) > 0.2
    assert not (symmetric_keys(compact, 64) == symmetric_keys(moved, 64))[apart].any()
