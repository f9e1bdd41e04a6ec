"""Fingerprints: equal for equals, different for different, the same every time."""

from __future__ import annotations

import numpy as np

from sketchdnn.data.candidates import fold_keys, mix, row_keys, text_keys, uniform_from_keys
from sketchdnn.geometry import Line, Point, Sketch
from sketchdnn.representation import encode

# Stored corpora are split by these: a change would move sketches between training and test.
KEY_OF_SKETCH = 0x4A10A5D53CFE1F37


def test_mixing_loses_nothing_and_spreads_every_bit() -> None:
    values = np.arange(100_000, dtype=np.uint64)
    mixed = mix(values)
    assert len(np.unique(mixed)) == len(values)
    bits = np.unpackbits(mixed.view(np.uint8)).reshape(len(values), 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.01


def test_fold_minds_the_order() -> None:
    a, b = fold_keys(np.array([[1, 2, 3], [3, 2, 1]], np.uint64))
    assert a != b
    assert fold_keys(np.array([[1, 2, 3]], np.uint64))[0] == a


def test_the_sign_of_zero_does_not_count() -> None:
    plus, minus = (row_keys(encode([Sketch((Line((zero, 0), (1, 0)),))])) for zero in (0.0, -0.0))
    assert np.array_equal(plus, minus)


def test_rows_that_differ_have_different_keys() -> None:
    rows = encode([Sketch((Point((0, 0)), Point((0, 0), True), Point((1e-7, 0)), Line((0, 0), (1, 0))))])
    assert len(set(row_keys(rows)[0].tolist())) == 5  # the four, and the empty rows


def test_words_have_keys_that_never_change() -> None:
    assert text_keys(["a", "b", "a"]).tolist() == text_keys(["a", "b", "a"]).tolist()
    assert text_keys(["sketch"]).tolist() == [KEY_OF_SKETCH]
    assert len(set(text_keys(map(str, range(10_000))).tolist())) == 10_000
    assert text_keys(["\udcff"]).shape == (1,)


def test_shares_are_even_and_depend_on_the_seed() -> None:
    keys = np.arange(100_000, dtype=np.uint64)
    share = uniform_from_keys(keys, 0)
    assert share.min() >= 0
    assert share.max() < 1
    assert np.abs(np.histogram(share, 10)[0] / len(keys) - 0.1).max() < 0.005
    assert np.corrcoef(share, uniform_from_keys(keys, 1))[0, 1] < 0.02
