"""Intervals that count sketches, not the things in them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sketchdnn.evaluation.estimates import clustered_median, clustered_share, clustered_standard_error, share_estimate


def test_things_that_come_alone_give_the_plain_interval() -> None:
    hits = np.array([1] * 30 + [0] * 70)
    clustered, plain = clustered_share(hits, np.ones(100, int)), share_estimate(30, 100)
    assert clustered.value == pytest.approx(plain.value)
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=2e-3)


def test_copies_within_a_sketch_tell_nothing_new() -> None:
    hits, of = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1]), np.ones(10, int)
    once, tenfold = clustered_share(hits, of), clustered_share(10 * hits, 10 * of)
    assert (tenfold.value, tenfold.low, tenfold.high) == pytest.approx((once.value, once.low, once.high))


@pytest.mark.parametrize("hits", [0, 12])
def test_all_or_none_is_not_certain(hits: int) -> None:
    found = clustered_share(np.full(20, hits), np.full(20, 12))
    assert 0.1 < found.high - found.low < 0.25
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_nothing_to_count_is_no_number() -> None:
    assert math.isnan(clustered_share(np.zeros(3, int), np.zeros(3, int)).value)
    assert math.isnan(clustered_median(np.empty(0), np.empty(0, int)).value)


def test_the_standard_error_is_the_spread_over_repeated_draws() -> None:
    dice = np.random.default_rng(0)
    shares, errors = [], []
    for _ in range(400):
        of = dice.integers(1, 20, 300)
        hits = dice.binomial(of, dice.beta(1, 2, 300))  # every sketch has a share of its own
        shares.append(hits.sum() / of.sum())
        errors.append(clustered_standard_error(hits, of))
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=0.1)


def test_the_interval_of_a_median_holds_it_as_often_as_it_says() -> None:
    dice = np.random.default_rng(1)
    owner = np.repeat(np.arange(100), 8)
    held = 0
    for _ in range(300):
        values = dice.normal(size=100)[owner] + 0.3 * dice.normal(size=800)  # the true median is 0
        found = clustered_median(values, owner)
        held += found.low <= 0 <= found.high
    assert 0.9 <= held / 300 <= 0.99
