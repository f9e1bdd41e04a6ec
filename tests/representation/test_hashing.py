"""Hashes: twins fall into the same cell of the 8-bit grid, and all symmetric images of a sketch share one key."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import parts, rows, sets, shuffled
from support.strategies import assert_same

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch
from sketchdnn.representation import Compact, decode_compact, encode
from sketchdnn.representation.hashing import NUM_SYMMETRIES, row_codes, symmetric_keys, turned
from sketchdnn.training.corpus import apply_symmetry

nice = st.sampled_from([0, 1, -1, 0.5, -0.5, 0.25, 1 / 3, 2 / 3, 0.1, -0.3, 0.7, 0.9, -0.2])


def codes(*primitives: Line | Circle | Arc | Point, half_extent: float = 1.0) -> list[int]:
    rows = row_codes(encode([Sketch(primitives)]), half_extent)
    return [int(code) for code in rows[0, : len(primitives)]]


@given(*[st.tuples(nice, nice)] * 2, st.tuples(st.floats(-1e-9, 1e-9), st.floats(-1e-9, 1e-9)))
def test_codes_ignore_noise_around_common_values_and_the_direction_of_lines(a, b, noise) -> None:
    assert codes(Point(a)) == codes(Point((a[0] + noise[0], a[1] + noise[1])))
    if a != b:
        assert codes(Line(a, b)) == codes(Line(b, a))


def test_neighboring_cells_kinds_and_flags_differ_and_frames_scale() -> None:
    step = 2 / 127
    for base in np.linspace(-0.9, 0.9, 37):
        assert codes(Point((base, 0))) != codes(Point((base + step, 0)))
        assert codes(Point((0, base))) != codes(Point((0, base + step)))
    assert codes(Circle((0, 0), 0.5)) != codes(Circle((0, 0), 0.5 + step))
    assert codes(Arc((0, 0), 1, 0, 1)) != codes(Arc((0, 0), 1, 0, 1 + step * math.pi))
    level = 1 / 127
    for border in (1, -1):
        assert codes(Point((border, 0))) != codes(Point((border * (1 - level), 0)))
        assert codes(Point((0, border))) != codes(Point((0, border * (1 - level))))
        assert codes(Point((border, 0))) == codes(Point((border * (1 + 5 * level), 0)))  # nothing lies beyond
    assert len(set(codes(Point((0, 0)), Point((0, 0), True), Circle((0, 0), 1), Circle((0, 0), 1, True)))) == 4
    small = [Line((0.1, 0.2), (0.3, -0.4)), Circle((0.1, 0.0), 0.2), Arc((0, 0), 0.4, 0, 2)]
    large = [Line((0.2, 0.4), (0.6, -0.8)), Circle((0.2, 0.0), 0.4), Arc((0, 0), 0.8, 0, 2)]
    assert codes(*small, half_extent=0.5) == codes(*large)


def test_symmetries_by_hand_and_as_in_training() -> None:
    drawing = rows([Line((0, 0), (1, 0)), Circle((0.5, 0.2), 0.1), Point((0, 1)), Arc((0, 0), 1, 0, math.pi / 2)])
    arc = Arc((0, 0), 1, math.pi / 2, math.pi / 2)
    quarter = Sketch((Line((0, 0), (0, 1)), Circle((-0.2, 0.5), 0.1), Point((-1, 0)), arc))
    mirror = Sketch((Line((0, 0), (-1, 0)), Circle((-0.5, 0.2), 0.1), Point((0, 1)), arc))
    assert_same(decode_compact(turned(drawing, 1))[0].sketch, quarter)
    assert_same(decode_compact(turned(drawing, 4))[0].sketch, mirror)
    images = {turned(parts(3), symmetry).params.tobytes() for symmetry in range(NUM_SYMMETRIES)}
    assert len(images) == NUM_SYMMETRIES
    compact = parts(20)
    kind, params = torch.from_numpy(compact.kind), torch.from_numpy(compact.params)
    for symmetry in range(NUM_SYMMETRIES):
        trained = apply_symmetry(kind, params, torch.full((20,), symmetry))
        np.testing.assert_allclose(turned(compact, symmetry).params, trained.numpy(), atol=1e-7)


@given(sets)
def test_each_symmetry_is_undone_by_another_to_the_bit(compact: Compact) -> None:
    for symmetry in range(NUM_SYMMETRIES):
        inverse = symmetry if symmetry >= 4 else -symmetry % 4
        np.testing.assert_array_equal(turned(turned(compact, symmetry), inverse).params, compact.params)


def with_lines_reversed(compact: Compact, seed: int) -> Compact:
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
