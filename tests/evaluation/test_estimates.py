"""Intervals have their nominal coverage, shares stay in 0..1, and clustered intervals count sketches."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchdnn.evaluation import estimates


@given(st.integers(1, 5000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_share_lies_in_its_interval(counts: tuple[int, int]) -> None:
    hits, total = counts
    share, mirrored = estimates.share_estimate(hits, total), estimates.share_estimate(total - hits, total)
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.low < share.high
    assert mirrored.low == pytest.approx(1 - share.high, abs=1e-12)


def test_intervals_cover_95_percent() -> None:
    rng = np.random.default_rng(0)
    for share in (0.03, 0.5, 0.9):
        shares = [
            estimates.share_estimate(int(hits), 60) for hits in np.random.default_rng(0).binomial(60, share, 2000)
        ]
        assert np.mean([s.low <= share <= s.high for s in shares]) == pytest.approx(0.95, abs=0.035)
    for count in (3, 50):
        means = map(estimates.mean_estimate, np.random.default_rng(0).normal(2.0, 3.0, (2000, count)))
        assert np.mean([e.low <= 2 <= e.high for e in means]) == pytest.approx(0.95, abs=0.02)
    covered = 0
    for _ in range(400):
        totals = rng.integers(1, 20, 60)
        ratio = estimates.ratio_estimate(totals * rng.normal(3, 1, 60) + rng.normal(0, 2, 60), totals)
        covered += ratio.low <= 3 <= ratio.high
    assert 0.9 <= covered / 400 <= 0.98
    rng, covered = np.random.default_rng(1), 0
    sketch = np.repeat(np.arange(100), 8)
    for _ in range(300):
        values = rng.normal(size=100)[sketch] + 0.3 * rng.normal(size=800)  # the true median is 0
        median = estimates.clustered_median(values, sketch)
        covered += median.low <= 0 <= median.high
    assert 0.9 <= covered / 300 <= 0.99


def test_clustered_invalid_and_undefined_estimates() -> None:
    hits = np.array([1] * 30 + [0] * 70)
    clustered, plain = estimates.clustered_share(hits, np.ones(100, int)), estimates.share_estimate(30, 100)
    assert clustered.value == pytest.approx(plain.value)
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=2e-3)
    # Copies within a sketch do not narrow the interval.
    hits, totals = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 1]), np.ones(10, int)
    once, tenfold = estimates.clustered_share(hits, totals), estimates.clustered_share(10 * hits, 10 * totals)
    assert (tenfold.value, tenfold.low, tenfold.high) == pytest.approx((once.value, once.low, once.high))
    for hits in (0, 12):
        share = estimates.clustered_share(np.full(20, hits), np.full(20, 12))
        assert 0.1 < share.high - share.low < 0.25
        assert 0 <= share.low <= share.value <= share.high <= 1
    rng = np.random.default_rng(0)
    shares, errors = [], []
    for _ in range(400):
        totals = rng.integers(1, 20, 300)
        hits = rng.binomial(totals, rng.beta(1, 2, 300))  # every sketch has a share of its own
        shares.append(hits.sum() / totals.sum())
        errors.append(estimates.clustered_standard_error(hits, totals))
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=0.1)
    with pytest.raises(estimates.EvaluationError, match="two values"):
        estimates.mean_estimate([1.0])
    for hits, total in ((0, 0), (2, 1), (-1, 3)):
        with pytest.raises(estimates.EvaluationError, match="not a proportion"):
            estimates.share_estimate(hits, total)
    with pytest.raises(ValueError, match="cannot run"):
        estimates.Estimate(1.0, 2.0, 0.0)
    assert math.isnan(estimates.clustered_share(np.zeros(3, int), np.zeros(3, int)).value)
    assert math.isnan(estimates.clustered_median(np.empty(0), np.empty(0, int)).value)
    assert estimates.normal_estimate(3.0, 0.25).standard_error == pytest.approx(0.25)
    values = estimates.to_json({"a": float("nan"), "b": [float("inf"), 1.23456789], "c": np.True_, "d": np.int64(2)})
    assert json.dumps(values, allow_nan=False) == '{"a": null, "b": [null, 1.23457], "c": true, "d": 2}'
