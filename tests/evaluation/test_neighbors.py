"""The distance between drawings: nothing for the same, little for alike, much for others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.drawn_sets import parts, rows, sets, shuffled, square

from sketchdnn.evaluation.novelty import blurred_images, measure_neighbors, nearest_distances
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.geometry import Circle, Line, Point
from sketchdnn.representation import Compact
from sketchdnn.representation.symmetric import NUM_SYMMETRIES, turned


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_a_turned_copy_is_at_no_distance(compact: Compact, symmetry: int, seed: int) -> None:
    known = blurred_images(compact)
    assert nearest_distances(blurred_images(shuffled(turned(compact, symmetry), seed)), known).max() == 0


def test_pictures_have_length_one_and_ink_where_the_curve_is() -> None:
    picture = blurred_images(rows([Line((-1, 0), (1, 0))], [Circle((0, 0), 1)], [Point((0.5, -0.5))]))
    np.testing.assert_allclose(np.linalg.norm(picture, axis=(1, 2)), 1, rtol=1e-5)
    line, circle, point = picture
    assert line[:, 15:17].sum() > 0.5 * line.sum()  # the two middle cells in y
    assert circle[16, 16] < 1e-3 * circle.max()
    assert np.unravel_index(point.argmax(), point.shape) == (23, 8)


def test_how_a_curve_is_cut_does_not_matter() -> None:
    whole, cut = rows([Line((-1, 0), (1, 0))]), rows([Line((-1, 0), (0.25, 0)), Line((0.25, 0), (1, 0))])
    assert nearest_distances(blurred_images(whole), blurred_images(cut))[0] < 0.01


def test_the_nearest_is_the_smallest_over_all_and_over_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, known = blurred_images(parts(30)[:7]), blurred_images(parts(30)[7:])
    images = [
        image for k in range(4) for image in (np.rot90(queries, k, (1, 2)), np.rot90(queries[:, ::-1], k, (1, 2)))
    ]
    wanted = np.min([[[np.linalg.norm(q - p) for p in known] for q in image] for image in images], axis=(0, 2))
    np.testing.assert_allclose(nearest_distances(queries, known), wanted, atol=1e-3)
    for name in ("SKETCHES_AT_ONCE", "QUERIES_AT_ONCE", "KNOWN_AT_ONCE"):
        monkeypatch.setattr(f"sketchdnn.evaluation.neighbors.{name}", 5)
    np.testing.assert_allclose(nearest_distances(queries, known), wanted, atol=1e-3)
    np.testing.assert_array_equal(blurred_images(parts(30)[:7]), queries)


def test_noise_takes_a_sketch_further_away() -> None:
    known = blurred_images(parts(50))
    medians = [
        float(np.median(nearest_distances(blurred_images(jitter_ends(parts(50), s, 0)), known)))
        for s in (0, 0.01, 0.03, 0.1)
    ]
    assert medians == sorted(set(medians))
    assert nearest_distances(blurred_images(rows([Point((1, 1))])), blurred_images(rows(square(0.1))))[
        0
    ] == pytest.approx(math.sqrt(2), abs=0.01)


def test_copies_stand_out_against_the_test_split() -> None:
    whole = parts(300)
    train, test, fresh = whole[:200], whole[200:250], whole[250:]
    copies, honest = measure_neighbors(train[:50], train, test), measure_neighbors(fresh, train, test)
    assert copies.kolmogorov_smirnov > 0.5 > honest.kolmogorov_smirnov
    assert copies.median.value == 0 < honest.median.low
    assert copies.closer_than_1.value == copies.closer_than_5.value == copies.closer_than_25.value == 1
    assert copies.real_closer_than_1.value >= 0.01
    assert copies.real_closer_than_5.value >= 0.05
    assert honest.real_median == copies.real_median
    rough = measure_neighbors(jitter_ends(train[:50], 0.005, seed=0), train, test)  # copies too inexact for any grid
    assert rough.closer_than_25.value > 2 * rough.real_closer_than_25.value
    assert rough.nearer > 0.4
    far = measure_neighbors(jitter_ends(test, 0.2, seed=0), train, test)
    assert far.nearer < 0.1 < 0.4 < far.kolmogorov_smirnov


def test_progress_ends_at_one() -> None:
    seen: list[float] = []
    measure_neighbors(parts(20)[:10], parts(20), parts(20)[10:], on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1)
