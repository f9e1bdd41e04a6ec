"""Corrupted sketches are still sketches: valid, normalized, and worse by the amount asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import parts, rows, sets, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation.curves import end_gaps
from sketchdnn.evaluation.scores import drop_primitives, jitter_ends
from sketchdnn.geometry import Circle, Kind, Line, Point, bounds
from sketchdnn.representation import Compact, decode_compact, layout
from sketchdnn.representation.compact import collapsed


def assert_in_order(compact: Compact) -> None:
    """Rows that decode without repair, in a centered box of side 2; empty rows hold nothing and come last."""
    assert not collapsed(compact).any()
    empty = compact.kind == layout.NONE
    assert not compact.params[empty].any()
    assert not compact.construction[empty].any()
    assert (np.diff(empty.astype(int), axis=1) >= 0).all()
    for decoded in decode_compact(compact):
        assert decoded.is_clean
        assert len(decoded.sketch)
        box = bounds(decoded.sketch)
        assert box.size == pytest.approx(2, abs=1e-4)
        assert box.center == pytest.approx((0, 0), abs=1e-4)


@given(sets, st.sampled_from([0.005, 0.05, 0.5]), st.integers(0, 99))
def test_jittered_sketches_are_sketches(compact: Compact, sigma: float, seed: int) -> None:
    worse = jitter_ends(compact, sigma, seed)
    assert_in_order(worse)
    np.testing.assert_array_equal(worse.kind, compact.kind)
    arcs = compact.kind == Kind.ARC
    np.testing.assert_array_equal(worse.params[arcs, layout.BEND], compact.params[arcs, layout.BEND])


@given(sets, st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 99))
def test_thinned_sketches_are_sketches(compact: Compact, share: float, seed: int) -> None:
    worse = drop_primitives(compact, share, seed)
    assert_in_order(worse)
    assert (worse.counts <= compact.counts).all()


def test_no_noise_and_nothing_dropped_change_nothing() -> None:
    for same in (jitter_ends(parts(20), 0.0, 1), drop_primitives(parts(20), 0.0, 1)):
        np.testing.assert_array_equal(same.kind, parts(20).kind)
        np.testing.assert_allclose(same.params, parts(20).params, atol=1e-6)


def test_noise_is_as_strong_as_asked_and_the_same_for_a_seed() -> None:
    compact = rows(*[square()] * 300)
    worse = jitter_ends(compact, 0.01, 7)
    # Two ends that met are now as far apart as two draws, and the whole is scaled a little to fit its box again.
    apart = np.nanmedian(end_gaps(worse))
    assert apart == pytest.approx(0.01 * math.sqrt(2) * math.sqrt(2 * math.log(2)), rel=0.05)
    np.testing.assert_array_equal(worse.params, jitter_ends(compact, 0.01, 7).params)
    assert not np.array_equal(worse.params, jitter_ends(compact, 0.01, 8).params)


def test_so_many_are_dropped_and_those_of_a_smaller_share_first() -> None:
    compact = parts(300)
    few, many = (drop_primitives(compact, share, 3).counts for share in (0.1, 0.4))
    assert few.sum() / compact.counts.sum() == pytest.approx(0.9, abs=0.02)
    assert many.sum() / compact.counts.sum() == pytest.approx(0.6, abs=0.02)
    assert (many <= few).all()


def test_what_gives_a_sketch_its_size_stays() -> None:
    compact = rows([Circle((0, 0), 1), *[Point((0, y / 10)) for y in range(9)]], [Point((-1, 0)), Point((1, 0))])
    kept = drop_primitives(compact, 1.0, 0)
    assert kept.kind[0, 0] == Kind.CIRCLE
    assert kept.counts.tolist() == [1, 2]


def test_impossible_amounts_are_refused() -> None:
    compact = rows([Line((-1, 0), (1, 0))])
    with pytest.raises(GeometryError, match="standard deviation"):
        jitter_ends(compact, -1, 0)
    with pytest.raises(GeometryError, match="between 0 and 1"):
        drop_primitives(compact, 1.5, 0)
