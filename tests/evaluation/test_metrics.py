"""FID, KID, precision, recall, density and coverage agree with other implementations and with theory."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from prdc import compute_prdc
from scipy.linalg import sqrtm
from torch import Tensor

from sketchdnn.evaluation import metrics
from sketchdnn.evaluation.estimates import EvaluationError
from sketchdnn.evaluation.metrics import PrecisionRecall, frechet_at_infinity, frechet_distance, frechet_estimate

sizes = st.tuples(st.integers(3, 60), st.integers(3, 60), st.integers(1, 30), st.integers(0, 2**20))
Score = Callable[[Tensor, Tensor], PrecisionRecall]


def decaying(count: int, dimensions: int, seed: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Features with decaying variances, like those of the Inception."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.arange(1, dimensions + 1).pow(-0.5) * scale
    mix = torch.linalg.qr(torch.randn(dimensions, dimensions, generator=torch.Generator().manual_seed(99)))[0]
    return (torch.randn(count, dimensions, generator=generator) * spread + shift) @ mix


def normal(count: int, seed: int, shift: float = 0.0, dimensions: int = 8) -> Tensor:
    return torch.randn(count, dimensions, generator=torch.Generator().manual_seed(seed)) + shift


def test_incomparable_features_are_refused() -> None:
    for a, b, message in (
        (torch.zeros(3, 2), torch.zeros(3, 4), "cannot be compared"),
        (torch.zeros(1, 2), torch.zeros(3, 2), "at least 2"),
        (torch.full((3, 2), torch.nan), torch.zeros(3, 2), "not finite"),
    ):
        with pytest.raises(EvaluationError, match=message):
            metrics.check_features(a, b)
    with pytest.raises(EvaluationError, match="at least 2"):
        frechet_distance(torch.zeros(1, 4), torch.zeros(9, 4))
    with pytest.raises(EvaluationError, match="at least 6"):
        metrics.density_coverage(normal(5, 0), normal(9, 1))


def test_fid_agrees_with_scipy_also_below_full_rank() -> None:
    for n, m, dimensions, rel in ((400, 300, 32, 1e-6), (100, 400, 32, 1e-6), (40, 200, 64, 1e-3), (40, 50, 64, 1e-3)):
        a, b = decaying(n, dimensions, 0), decaying(m, dimensions, 1, scale=1.3, shift=0.2)
        x, y = a.double().numpy(), b.double().numpy()
        cov_x, cov_y = np.cov(x.T), np.cov(y.T)
        root = sqrtm(cov_x @ cov_y).real
        expected = float(((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(cov_x + cov_y - 2 * root))
        assert frechet_distance(a, b) == pytest.approx(expected, rel=rel)


def test_fid_of_known_gaussians_and_its_error() -> None:
    base = decaying(500, 8, 3).double()
    base = (base - base.mean(0)) @ torch.linalg.inv(torch.linalg.cholesky(base.T.cov())).T
    stretch = torch.linspace(0.5, 2, 8, dtype=torch.float64)
    assert frechet_distance(base, base * stretch + 0.3) == pytest.approx(8 * 0.09 + float((stretch - 1).square().sum()))
    a, b = decaying(100, 6, 0), decaying(100, 6, 1, shift=0.4)
    wide_a, wide_b = (torch.cat([rows, torch.ones(100, 2)], 1) for rows in (a, b))
    assert frechet_distance(wide_a, wide_b) == pytest.approx(frechet_distance(a, b), rel=1e-6)
    assert frechet_estimate(wide_a, wide_b).high == pytest.approx(frechet_estimate(a, b).high, rel=1e-5)
    a, b = decaying(60, 5, 0), decaying(80, 5, 1, scale=1.5, shift=0.3)

    def variance(rows: Tensor, score: Callable[[Tensor], float]) -> float:
        left_out = [score(torch.cat([rows[:i], rows[i + 1 :]])) for i in range(len(rows))]
        return float(np.var(left_out) * (len(rows) - 1))

    of_a, of_b = (
        variance(a, lambda part: frechet_distance(part, b)),
        variance(b, lambda part: frechet_distance(a, part)),
    )
    estimate = frechet_estimate(a, b)
    assert (estimate.high - estimate.value) / 1.96 == pytest.approx(np.sqrt(of_a + of_b), rel=0.1)
    assert estimate.low == pytest.approx(2 * estimate.value - estimate.high)
    assert frechet_estimate(a, a.flip(0)).low == 0  # never below
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_GAUSSIAN_ROWS", 16)
        assert frechet_estimate(a, b).high == pytest.approx(estimate.high, rel=1e-9)


@given(sizes, st.floats(0.1, 10))
def test_fid_is_symmetric_and_scales_with_the_square(case: tuple[int, int, int, int], scale: float) -> None:
    n, m, dimensions, seed = case
    a, b = decaying(n, dimensions, seed).double(), decaying(m, dimensions, seed + 1, shift=0.5).double()
    distance = frechet_distance(a, b)
    assert frechet_distance(a, a) <= 1e-6 * float(a.var(0).sum())
    assert frechet_distance(b, a) == pytest.approx(distance, rel=1e-6)
    assert frechet_distance(a.flip(0), b.roll(2, 0)) == pytest.approx(distance, rel=1e-6)
    assert frechet_estimate(a, b).value == pytest.approx(distance)
    assert frechet_distance(a * scale + 3, b * scale + 3) == pytest.approx(scale**2 * distance, rel=1e-5)


@pytest.mark.parametrize(("dimensions", "count", "shift"), [(4, 200, 0.3), (4, 200, 0.0), (64, 50, 0.2)])
def test_fid_interval_covers_the_mean(dimensions: int, count: int, shift: float) -> None:
    estimates = [
        frechet_estimate(decaying(count, dimensions, 2 * i), decaying(count, dimensions, 2 * i + 1, 1 + shift, shift))
        for i in range(120)
    ]
    mean = np.mean([e.value for e in estimates])
    assert np.mean([e.low <= mean <= e.high for e in estimates]) >= 0.88
    assert np.mean([e.high - e.value for e in estimates]) / 1.96 < 2 * np.std([e.value for e in estimates])


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_fid_at_infinity_removes_most_of_the_bias(shift: float) -> None:
    truth = 16 * shift**2 + shift**2 * float(torch.arange(1, 17).reciprocal().sum())
    pairs = [(decaying(250, 16, 2 * i), decaying(250, 16, 2 * i + 1, 1 + shift, shift)) for i in range(40)]
    bias = np.mean([frechet_distance(a, b) for a, b in pairs]) - truth
    estimates = [frechet_at_infinity(a, b, seed=i) for i, (a, b) in enumerate(pairs)]
    assert bias > 0
    assert abs(np.mean([e.value for e in estimates]) - truth) < 0.35 * bias
    assert np.mean([e.low <= truth <= e.high for e in estimates]) >= 0.85


def test_fid_at_infinity_is_deterministic_and_reports_progress() -> None:
    a, b = decaying(50, 4, 0), decaying(60, 4, 1)
    progress: list[float] = []
    assert frechet_at_infinity(a, b, seed=3, on_progress=progress.append) == frechet_at_infinity(a, b, seed=3)
    assert frechet_at_infinity(a, b, seed=4) != frechet_at_infinity(a, b, seed=3)
    assert (progress, progress[-1]) == (sorted(progress), 1)
    for shift in (0.0, 0.5):  # also of sets so similar that the interval of FID stops at 0
        a, b = decaying(50, 40, 0), decaying(60, 40, 1, shift=shift)
        assert frechet_at_infinity(a, b, full=frechet_estimate(a, b)) == frechet_at_infinity(a, b)


def test_kid_agrees_with_its_definition() -> None:
    a, b = normal(150, 0, dimensions=16).abs().double(), normal(120, 1, 0.3, 16).abs().double()
    of_a, of_b, between = ((x @ y.T / 16 + 1) ** 3 for x, y in ((a, a), (b, b), (a, b)))
    own = sum((kernel.sum() - kernel.trace()) / (len(kernel) * (len(kernel) - 1)) for kernel in (of_a, of_b))
    assert metrics.kernel_distance(a, b).value == pytest.approx(float(own - 2 * between.mean()), rel=1e-9)


@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 2**20))
def test_kid_does_not_depend_on_order_or_chunks(n: int, m: int, seed: int) -> None:
    a, b = normal(n, seed, dimensions=16), normal(m, seed + 1, 0.5, 16)
    kid = metrics.kernel_distance(a, b)
    for other in (metrics.kernel_distance(b, a), metrics.kernel_distance(a.flip(0), b.roll(1, 0))):
        assert other.value == pytest.approx(kid.value, rel=1e-9, abs=1e-9)
        assert other.standard_error == pytest.approx(kid.standard_error, rel=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_KERNEL_ROWS", 7)
        assert metrics.kernel_distance(a, b).value == pytest.approx(kid.value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_kid_is_unbiased_with_a_correct_error(shift: float) -> None:
    means, deviations = [], []
    for count in (30, 120):
        pairs = ((normal(count, 2 * i, 0.0, 16), normal(count, 2 * i + 1, shift, 16)) for i in range(150))
        estimates = [metrics.kernel_distance(a, b) for a, b in pairs]
        values = np.array([e.value for e in estimates])
        means.append(values.mean())
        deviations.append(values.std() / np.sqrt(len(values)))
        assert 0.8 * values.std() < float(np.mean([e.standard_error for e in estimates])) < 2 * values.std()
        assert np.mean([e.low <= values.mean() <= e.high for e in estimates]) > 0.9
    assert abs(means[0] - means[1]) < 3.5 * np.hypot(*deviations)


def test_precision_recall_density_coverage_agree_with_prdc() -> None:
    for k in (1, 3, 5):
        for shift in (0.0, 0.7):
            real, fake = normal(300, 0), normal(200, 1, shift)
            pr, dc = metrics.precision_recall(real, fake, k), metrics.density_coverage(real, fake, k)
            ours = {name: score.value for name, score in {**pr._asdict(), **dc._asdict()}.items()}
            assert ours == pytest.approx(compute_prdc(real.numpy(), fake.numpy(), k), rel=1e-3)
    # The default of k is 3, as in the paper of Kynkäänniemi et al.
    assert (
        metrics.precision_recall(real, fake)
        == metrics.precision_recall(real, fake, 3)
        != metrics.precision_recall(real, fake, 4)
    )


@given(st.integers(6, 30), st.integers(6, 30), st.integers(0, 2**20))
def test_roles_swap_and_neither_order_nor_chunks_matter(n: int, m: int, seed: int) -> None:
    real, fake = normal(n, seed), normal(m, seed + 1, 0.5)
    for score in (metrics.precision_recall, metrics.authors_precision_recall):
        result = score(real, fake)
        assert score(fake, real) == PrecisionRecall(result.recall, result.precision)
        assert score(real.flip(0), fake.roll(3, 0)) == result
    whole = metrics.density_coverage(real, fake), metrics.precision_recall(real, fake)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_DISTANCE_ROWS", 4)
        assert (metrics.density_coverage(real, fake), metrics.precision_recall(real, fake)) == whole


@pytest.mark.parametrize("score", [metrics.precision_recall, metrics.authors_precision_recall])
def test_coverage_of_itself_of_nothing_and_of_one_mode(score: Score) -> None:
    real, far = normal(100, 0, 8.0), normal(100, 1, -8.0)
    for result, expected in ((score(real, real), 1.0), (score(real, far), 0.0)):
        assert (result.precision.value, result.recall.value) == (expected, expected)
    # Fakes of one of two modes are precise, but recall half.
    first, second = torch.tensor([6.0] * 4 + [0.0] * 4), torch.tensor([0.0] * 4 + [6.0] * 4)
    real, fake = torch.cat([normal(200, 0) + first, normal(200, 1) + second]), normal(200, 2) + first
    result = score(real, fake)
    assert result.recall.value <= 0.5
    assert result.precision.value > 1.5 * result.recall.value
    assert metrics.density_coverage(real, fake).coverage.value <= 0.5


def test_balls_of_radius_zero_and_of_the_authors() -> None:
    real = normal(10, 0, dimensions=300).repeat_interleave(5, dim=0) * 7
    assert metrics.precision_recall(real, real.flip(0)).precision.value == 1
    real, fake = normal(200, 0, 0.5), normal(200, 1, 0.5)
    result = metrics.authors_precision_recall(real, fake)
    lengths = torch.rand(200, 1, generator=torch.Generator().manual_seed(5)) + 0.5
    assert metrics.authors_precision_recall(real * lengths, fake) == result
    normalized = [torch.nn.functional.normalize(rows, dim=1) for rows in (real, fake)]
    assert result.precision.value < metrics.precision_recall(*normalized).precision.value


def test_authors_variant_by_hand() -> None:
    """Reals on a circle, one step apart: the three nearest lie 1, 1 and 2 steps off, so a ball reaches 0.95 · 4/3.

    Fakes come in groups of four, 0.01 steps from one another: their balls are tiny, and hold the one real at their
    middle but not its neighbors.
    """
    step = 2 * np.pi / 600
    reals = torch.arange(600, dtype=torch.float64) * step
    group = torch.tensor([-0.015, -0.005, 0.005, 0.015], dtype=torch.float64) * step

    def on_circle(angle: Tensor) -> Tensor:
        return torch.stack([angle.cos(), angle.sin()], 1) * 3

    def score(real: Tensor, at: float) -> tuple[float, float]:
        fakes = on_circle(torch.cat([group, group + 300 * step]) + at * step)
        result = metrics.authors_precision_recall(on_circle(real), fakes)
        return result.precision.value, result.recall.value

    assert score(reals, 0.0) == (1.0, pytest.approx(2 / 600))
    # Past the end of an arc of reals, a ball reaches 0.95 · (1 + 2 + 3)/3 = 1.9 steps.
    arc = torch.cat([reals[:50], reals[300:350]])
    assert (score(arc, -1.85)[0], score(arc, -1.95)[0]) == (1.0, 0.0)
