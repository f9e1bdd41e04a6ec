"""Intervals cover what they claim to, and stay where shares live."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.evaluation.estimates import (
    Estimate,
    EvaluationError,
    mean_estimate,
    normal_estimate,
    ratio_estimate,
    share_estimate,
)


@given(st.integers(1, 5000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_lies_in_its_interval_and_that_in_0_to_1(counts: tuple[int, int]) -> None:
    hits, of = counts
    found = share_estimate(hits, of)
    mirrored = share_estimate(of - hits, of)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-12)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_shares_are_covered_about_95_times_in_100(share: float) -> None:
    hits = np.random.default_rng(0).binomial(60, share, 2000)
    found = [share_estimate(int(h), 60) for h in hits]
    assert np.mean([f.low <= share <= f.high for f in found]) == pytest.approx(0.95, abs=0.035)


@pytest.mark.parametrize("count", [3, 50])
def test_means_are_covered_95_times_in_100_also_from_few_values(count: int) -> None:
    draws = np.random.default_rng(0).normal(2.0, 3.0, (2000, count))
    assert np.mean([e.low <= 2 <= e.high for e in map(mean_estimate, draws)]) == pytest.approx(0.95, abs=0.02)


def test_the_standard_error_comes_back() -> None:
    assert normal_estimate(3.0, 0.25).standard_error == pytest.approx(0.25)


def test_the_impossible_is_refused() -> None:
    with pytest.raises(EvaluationError, match="two values"):
        mean_estimate([1.0])
    for hits, of in ((0, 0), (2, 1), (-1, 3)):
        with pytest.raises(EvaluationError, match="no share"):
            share_estimate(hits, of)
    with pytest.raises(ValueError, match="cannot run"):
        Estimate(1.0, 2.0, 0.0)


def test_the_interval_of_a_ratio_holds_it_as_often_as_it_says() -> None:
    dice, held = np.random.default_rng(0), 0
    for _ in range(400):
        of = dice.integers(1, 20, 60)
        found = ratio_estimate(of * dice.normal(3, 1, 60) + dice.normal(0, 2, 60), of)
        held += found.low <= 3 <= found.high
    assert 0.9 <= held / 400 <= 0.98
