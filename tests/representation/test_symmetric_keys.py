"""The eight symmetries form a group and turn a sketch as turning its primitives would; all images share one key."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import parts, rows, sets, shuffled
from support.strategies import assert_same

from sketchdnn.geometry import Arc, Circle, Kind, Line, Point, Sketch
from sketchdnn.representation import Compact, decode_compact
from sketchdnn.representation.hashing import NUM_SYMMETRIES, symmetric_keys, turned


def test_a_quarter_turn_and_a_mirror_image_by_hand() -> None:
    drawing = rows([Line((0, 0), (1, 0)), Circle((0.5, 0.2), 0.1), Point((0, 1)), Arc((0, 0), 1, 0, math.pi / 2)])
    quarter = Sketch(
        (Line((0, 0), (0, 1)), Circle((-0.2, 0.5), 0.1), Point((-1, 0)), Arc((0, 0), 1, math.pi / 2, math.pi / 2))
    )
    mirror = Sketch(
        (Line((0, 0), (-1, 0)), Circle((-0.5, 0.2), 0.1), Point((0, 1)), Arc((0, 0), 1, math.pi / 2, math.pi / 2))
    )
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
    torch = pytest.importorskip("torch")
    from sketchdnn.training.corpus import apply_symmetry

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
