"""Copies of training sketches are counted, and the image distance is small for similar sketches only."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sketch_sets import parts, rows, sets, shuffled, square

from sketchdnn.errors import GeometryError
from sketchdnn.evaluation import novelty
from sketchdnn.evaluation.novelty import (
    GRIDS,
    blurred_images,
    find_nearest,
    measure_neighbors,
    measure_novelty,
    nearest_distances,
)
from sketchdnn.evaluation.scores import jitter_ends
from sketchdnn.geometry import Arc, Circle, Line, Point, Primitive
from sketchdnn.representation import Compact
from sketchdnn.representation.hashing import NUM_SYMMETRIES, symmetric_keys, turned

BRACKET: list[Primitive] = [*square(), Arc((-0.4, 0.3), 0.37, 0.2, 1.9), Circle((0.55, 0.21), 0.13, True)]


def same(a: Compact, b: Compact, levels: int) -> bool:
    return bool(symmetric_keys(a, levels)[0] == symmetric_keys(b, levels)[0])


@given(sets, st.integers(0, NUM_SYMMETRIES - 1), st.integers(0, 99))
def test_symmetry_and_order_change_neither_keys_nor_distances(compact: Compact, symmetry: int, seed: int) -> None:
    other = shuffled(turned(compact, symmetry), seed)
    for levels in GRIDS:
        np.testing.assert_array_equal(symmetric_keys(compact, levels), symmetric_keys(other, levels))
    assert nearest_distances(blurred_images(other), blurred_images(compact)).max() == 0


def test_changed_sketches_have_other_keys() -> None:
    arc, circle = BRACKET[4:]
    for levels in GRIDS:
        cell = 2 / levels
        others: list[list[Primitive]] = [
            [*square(), arc, Circle((0.55 + cell, 0.21), 0.13, True)],
            [*square(), arc, Circle((0.55, 0.21), 0.13 + cell, True)],
            [*square(), arc, Circle((0.55, 0.21), 0.13)],
            [*square(), Arc((-0.4, 0.3), 0.37, 0.2, 1.9 + cell * math.pi), circle],
            [*square(), arc],
            [*square(), arc, circle, circle],
        ]
        assert not any(same(rows(BRACKET), rows(other), levels) for other in others)
    plate = rows([*square(), Circle((0.5, 0.25), 0.25), Circle((-0.5, 0), 1 / 3)])
    copy = jitter_ends(plate, 0.004, seed=0)
    assert same(plate, copy, 24)
    assert not same(plate, copy, 256)


def test_copies_and_duplicates_are_counted() -> None:
    train, test = parts(60)[:40], parts(60)[40:]
    copied = shuffled(turned(train[:10], 5), 1)
    samples = Compact(*(np.concatenate([getattr(c, n) for c in (copied, copied)]) for n in Compact.__slots__))
    result = measure_novelty(samples, train, test)
    assert [repeats["levels"] for repeats in result["repeats"]] == [24, 64, 256]
    for repeats in result["repeats"]:
        assert repeats["in_training"].value == 1
        assert repeats["unique"].value <= 0.5
        assert repeats["real_in_training"].value < 1
    assert max(result["neighbors"]["samples"]) == 0
    assert [result[name] for name in ("samples", "train", "test", "same_size")] == [20, 40, 20, 20]
    with pytest.raises(GeometryError, match="no sketches"):
        measure_novelty(samples[:0], train, test)
    samples = parts(60)[[0, 1, 2, 3, 0, 1, 2, 3]]
    for test, same_size in ((parts(60)[40:44], 4), (samples, 8)):
        result = measure_novelty(samples, parts(60), test)
        finest = result["repeats"][-1]
        assert (result["same_size"], finest["unique"].value) == (same_size, 0.5)
        assert finest["unique_same_size"].value == finest["real_unique"].value == 4 / same_size
    result = measure_novelty(jitter_ends(parts(120)[:60], 0.01, seed=2), parts(120), parts(120)[60:])
    values = [repeats["in_training"].value for repeats in result["repeats"]]
    assert values[-1] == 0
    assert values[0] >= values[1] >= values[2]


def test_images_and_their_distances_in_any_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    images = blurred_images(rows([Line((-1, 0), (1, 0))], [Circle((0, 0), 1)], [Point((0.5, -0.5))]))
    np.testing.assert_allclose(np.linalg.norm(images, axis=(1, 2)), 1, rtol=1e-5)
    line, circle, point = images
    assert line[:, 15:17].sum() > 0.5 * line.sum()  # the two middle cells in y
    assert circle[16, 16] < 1e-3 * circle.max()
    assert np.unravel_index(point.argmax(), point.shape) == (23, 8)
    # A split line has the image of the whole.
    whole, cut = rows([Line((-1, 0), (1, 0))]), rows([Line((-1, 0), (0.25, 0)), Line((0.25, 0), (1, 0))])
    assert nearest_distances(blurred_images(whole), blurred_images(cut))[0] < 0.01
    references = blurred_images(parts(50))
    jittered = [blurred_images(jitter_ends(parts(50), sigma, 0)) for sigma in (0, 0.01, 0.03, 0.1)]
    medians = [float(np.median(nearest_distances(images, references))) for images in jittered]
    assert medians == sorted(set(medians))
    far = nearest_distances(blurred_images(rows([Point((1, 1))])), blurred_images(rows(square(0.1))))
    assert far[0] == pytest.approx(math.sqrt(2), abs=0.01)
    queries, references = blurred_images(parts(30)[:7]), blurred_images(parts(30)[7:])
    images = [np.rot90(image, k, (1, 2)) for k in range(4) for image in (queries, queries[:, ::-1])]
    expected = np.min([[[np.linalg.norm(q - r) for r in references] for q in image] for image in images], axis=(0, 2))
    np.testing.assert_allclose(nearest_distances(queries, references), expected, atol=1e-3)
    for name in ("_IMAGE_BATCH", "_QUERY_BATCH", "_REFERENCE_BATCH"):
        monkeypatch.setattr(novelty, name, 5)
    progress: list[float] = []
    found = nearest_distances(queries, references, on_progress=progress.append)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert progress == [5 / 7, 1]
    np.testing.assert_array_equal(blurred_images(parts(30)[:7]), queries)


def test_the_nearest_reference_is_found_with_its_symmetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(novelty, "_REFERENCE_BATCH", 7)
    train = parts(40)
    order = np.random.default_rng(0).permutation(40)[:16]
    queries = [turned(train[i : i + 1], k % 8) for k, i in enumerate(order.tolist())]
    images = np.concatenate([blurred_images(query) for query in queries])
    references = blurred_images(train)
    found = find_nearest(images, references)
    assert not found.distance.any()
    for query, number, symmetry in zip(queries, found.reference.tolist(), found.symmetry.tolist(), strict=True):
        image = blurred_images(turned(query, symmetry))[0]
        np.testing.assert_allclose(image, references[number], atol=1e-4)


def test_copies_are_nearer_than_the_test_split() -> None:
    whole = parts(300)
    train, test, fresh = whole[:200], whole[200:250], whole[250:]
    progress: list[float] = []
    copies = measure_neighbors(train[:50], train, test, on_progress=progress.append)
    assert (progress, progress[-1]) == (sorted(progress), pytest.approx(1))
    honest = measure_neighbors(fresh, train, test)
    assert copies["kolmogorov_smirnov"] > 0.5 > honest["kolmogorov_smirnov"]
    assert copies["median"].value == 0 < honest["median"].low
    assert copies["closer_than_1"].value == copies["closer_than_5"].value == copies["closer_than_25"].value == 1
    assert copies["real_closer_than_1"].value >= 0.01
    assert copies["real_closer_than_5"].value >= 0.05
    assert honest["real_median"] == copies["real_median"]
    rough = measure_neighbors(jitter_ends(train[:50], 0.005, seed=0), train, test)  # too inexact for any grid
    assert rough["closer_than_25"].value > 2 * rough["real_closer_than_25"].value
    assert rough["nearer"] > 0.4
    far = measure_neighbors(jitter_ends(test, 0.2, seed=0), train, test)
    assert far["nearer"] < 0.1 < 0.4 < far["kolmogorov_smirnov"]
