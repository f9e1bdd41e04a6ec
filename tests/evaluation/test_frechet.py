"""FID agrees with others, is a distance, and its intervals hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from torch import Tensor
from torchmetrics.image.fid import FrechetInceptionDistance

from sketchdnn.evaluation.estimates import EvaluationError
from sketchdnn.evaluation.metrics import frechet_at_infinity, frechet_distance, frechet_estimate

sizes = st.tuples(st.integers(3, 60), st.integers(3, 60), st.integers(1, 30), st.integers(0, 2**20))


def draw(count: int, dimensions: int, seed: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Features whose directions matter less and less, like Inception's."""
    dice = torch.Generator().manual_seed(seed)
    spread = torch.arange(1, dimensions + 1).pow(-0.5) * scale
    mix = torch.linalg.qr(torch.randn(dimensions, dimensions, generator=torch.Generator().manual_seed(99)))[0]
    return (torch.randn(count, dimensions, generator=dice) * spread + shift) @ mix


def by_scipy(a: Tensor, b: Tensor) -> float:
    x, y = a.double().numpy(), b.double().numpy()
    cov_x, cov_y = np.cov(x.T), np.cov(y.T)
    root = sqrtm(cov_x @ cov_y).real
    return float(((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(cov_x + cov_y - 2 * root))


@pytest.mark.parametrize("counts", [(400, 300), (100, 400)])
def test_it_agrees_with_scipy(counts: tuple[int, int]) -> None:
    a, b = draw(counts[0], 32, 0), draw(counts[1], 32, 1, scale=1.3, shift=0.2)
    assert frechet_distance(a, b) == pytest.approx(by_scipy(a, b), rel=1e-6)


@pytest.mark.parametrize("counts", [(300, 200), (40, 200), (40, 50)])
def test_it_agrees_with_torchmetrics_also_below_full_rank(counts: tuple[int, int]) -> None:
    a, b = draw(counts[0], 64, 0), draw(counts[1], 64, 1, scale=1.3, shift=0.2)

    class Pass(torch.nn.Module):
        num_features = 64

        def forward(self, x: Tensor) -> Tensor:
            return x

    metric = FrechetInceptionDistance(feature=Pass(), normalize=True).set_dtype(torch.float64)
    metric.used_custom_model = True
    metric.update(a, real=True)
    metric.update(b, real=False)
    assert frechet_distance(a, b) == pytest.approx(float(metric.compute()), rel=1e-3)


def test_of_known_gaussians_it_is_what_theory_says() -> None:
    """Standardized exactly, then stretched and moved: ‖shift‖² + Σ (s − 1)²."""
    base = draw(500, 8, 3).double()
    base = (base - base.mean(0)) @ torch.linalg.inv(torch.linalg.cholesky(base.T.cov())).T
    stretch = torch.linspace(0.5, 2, 8, dtype=torch.float64)
    assert frechet_distance(base, base * stretch + 0.3) == pytest.approx(8 * 0.09 + float((stretch - 1).square().sum()))


@given(sizes)
def test_it_is_zero_for_a_set_and_itself_the_same_both_ways_and_in_any_order(case: tuple[int, int, int, int]) -> None:
    n, m, dimensions, seed = case
    a, b = draw(n, dimensions, seed), draw(m, dimensions, seed + 1, shift=0.5)
    size = float(a.double().var(0).sum())
    found = frechet_distance(a, b)
    assert frechet_distance(a, a) <= 1e-6 * size
    assert frechet_distance(b, a) == pytest.approx(found, rel=1e-6)
    assert frechet_distance(a.flip(0), b.roll(2, 0)) == pytest.approx(found, rel=1e-6)
    assert frechet_estimate(a, b).value == pytest.approx(found)


@given(sizes, st.floats(0.1, 10))
def test_it_scales_with_the_square_and_ignores_a_common_move(case: tuple[int, int, int, int], scale: float) -> None:
    n, m, dimensions, seed = case
    a, b = draw(n, dimensions, seed).double(), draw(m, dimensions, seed + 1, shift=0.5).double()
    assert frechet_distance(a * scale + 3, b * scale + 3) == pytest.approx(scale**2 * frechet_distance(a, b), rel=1e-5)


def test_a_feature_that_never_changes_is_no_trouble() -> None:
    a, b = draw(100, 6, 0), draw(100, 6, 1, shift=0.4)
    still = torch.ones(100, 2)
    wide_a, wide_b = torch.cat([a, still], 1), torch.cat([b, still], 1)
    assert frechet_distance(wide_a, wide_b) == pytest.approx(frechet_distance(a, b), rel=1e-6)
    wide, narrow = frechet_estimate(wide_a, wide_b), frechet_estimate(a, b)
    assert wide.high == pytest.approx(narrow.high, rel=1e-5)


def test_influence_is_the_change_that_a_heavier_row_brings() -> None:
    """Dropping each row in turn must give the standard error that the derivatives gave."""
    a, b = draw(60, 5, 0), draw(80, 5, 1, scale=1.5, shift=0.3)

    def dropping(rows: Tensor, score: object) -> float:
        left_out = [score(torch.cat([rows[:i], rows[i + 1 :]])) for i in range(len(rows))]  # type: ignore[operator]
        return float(np.var(left_out) * (len(rows) - 1))

    by_jackknife = dropping(a, lambda part: frechet_distance(part, b)) + dropping(
        b, lambda part: frechet_distance(a, part)
    )
    found = frechet_estimate(a, b)
    assert (found.high - found.value) / 1.96 == pytest.approx(np.sqrt(by_jackknife), rel=0.1)


@pytest.mark.parametrize(
    ("dimensions", "count", "shift", "least"),
    [(4, 200, 0.3, 0.88), (4, 200, 0.0, 0.9), (64, 50, 0.2, 0.88)],
    ids=["apart", "alike", "below full rank"],
)
def test_the_interval_holds_the_mean_of_such_scores(dimensions: int, count: int, shift: float, least: float) -> None:
    found = [
        frechet_estimate(draw(count, dimensions, 2 * i), draw(count, dimensions, 2 * i + 1, 1 + shift, shift))
        for i in range(120)
    ]
    mean = np.mean([f.value for f in found])
    assert np.mean([f.low <= mean <= f.high for f in found]) >= least
    # Nor is it so wide as to say nothing.
    assert np.mean([f.high - f.value for f in found]) / 1.96 < 2 * np.std([f.value for f in found])


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_at_infinity_most_of_the_bias_is_gone(shift: float) -> None:
    truth = 16 * shift**2 + shift**2 * float(torch.arange(1, 17).reciprocal().sum())
    pairs = [(draw(250, 16, 2 * i), draw(250, 16, 2 * i + 1, 1 + shift, shift)) for i in range(40)]
    here = np.mean([frechet_distance(a, b) for a, b in pairs]) - truth
    found = [frechet_at_infinity(a, b, seed=i) for i, (a, b) in enumerate(pairs)]
    beyond = np.mean([f.value for f in found]) - truth
    assert here > 0
    assert abs(beyond) < 0.35 * here
    assert np.mean([f.low <= truth <= f.high for f in found]) >= 0.85


def test_at_infinity_is_the_same_for_the_same_seed_and_tells_how_far_it_is() -> None:
    a, b = draw(50, 4, 0), draw(60, 4, 1)
    told: list[float] = []
    assert frechet_at_infinity(a, b, seed=3, on_progress=told.append) == frechet_at_infinity(a, b, seed=3)
    assert frechet_at_infinity(a, b, seed=4) != frechet_at_infinity(a, b, seed=3)
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_at_infinity_may_be_told_what_is_known_already(shift: float) -> None:
    """Also of sets so alike that the interval of FID stops at 0."""
    a, b = draw(50, 40, 0), draw(60, 40, 1, shift=shift)
    assert frechet_at_infinity(a, b, whole=frechet_estimate(a, b)) == frechet_at_infinity(a, b)


def test_too_few_are_refused() -> None:
    with pytest.raises(EvaluationError, match="at least 2"):
        frechet_distance(torch.zeros(1, 4), torch.zeros(9, 4))
