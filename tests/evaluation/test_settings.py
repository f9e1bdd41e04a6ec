"""Sizes: as asked for, or as the data allows, both sides alike; and what a reader is warned of."""

from __future__ import annotations

import pytest

from sketchdnn.errors import SketchError
from sketchdnn.evaluation.protocol import FAST, MIN_SKETCHES, Settings, Sizes, available_sizes, size_warnings


@pytest.mark.parametrize(
    ("samples", "test", "train", "wanted"),
    [
        (10_000, 2_888, 22_400, Sizes(2_000, 10_000)),
        (10_000, 2_888, 15_000, Sizes(2_000, 7_500)),
        (10_000, 500, 22_400, Sizes(500, 10_000)),
        (300, 2_888, 22_400, Sizes(300, 300)),
        (10_000, 50, 10, Sizes(10, 0)),
    ],
)
def test_both_sides_shrink_together(samples: int, test: int, train: int, wanted: Sizes) -> None:
    assert available_sizes(Settings(), samples, test, train) == wanted


@pytest.mark.parametrize(("samples", "test", "train"), [(5, 99, 99), (99, 5, 99), (99, 99, 0)])
def test_too_little_to_compare_is_refused(samples: int, test: int, train: int) -> None:
    with pytest.raises(SketchError, match=f"at least {MIN_SKETCHES}"):
        available_sizes(Settings(), samples, test, train)


def test_the_fast_form_leaves_the_training_split_out() -> None:
    assert available_sizes(FAST, 500, 2_888, 22_400) == Sizes(500, 0)


def test_everything_is_measured_by_default_but_what_is_asked_for_by_name() -> None:
    full = Settings()
    assert (full.likelihood, full.corruption, full.fast, full.repaired) == (True, True, False, False)
    assert full.likelihood_sketches is None  # the whole split
    assert not FAST.corruption


def test_a_reader_is_warned_of_what_is_not_as_it_should_be() -> None:
    full = " ".join(size_warnings(Settings(), Sizes(2_000, 10_000), 10_000))
    assert "2,048" in full  # 2,000 are fewer than that
    assert "cut" not in full
    enough = Settings(against_test=2_048)
    assert size_warnings(enough, Sizes(2_048, 10_000), 10_000) == []
    cut = " ".join(size_warnings(enough, Sizes(2_048, 3_000), 3_000))
    assert "10,000 sketches were to be compared with the training split" in cut
    assert "fast form" in " ".join(size_warnings(FAST, Sizes(500, 0), 500))
