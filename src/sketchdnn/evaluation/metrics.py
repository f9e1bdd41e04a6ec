"""Scores of two sets of features: FID, FID∞, KID, precision and recall, density and coverage, all with intervals.

**FID** (Heusel et al. 2017), the Fréchet distance of two fitted Gaussians: ‖μa − μb‖² + tr(Ca + Cb) − 2 tr (Ca Cb)^½.
With Ca = Fᵀ F for any F, the last trace is the sum of the square roots of the eigenvalues of F Cb Fᵀ. That matrix is
symmetric and no larger than the smaller set, so no matrix square root is needed, and covariances of low rank are no
special case. FID of finite sets is too large by about c/n (Chong & Forsyth 2020): `frechet_estimate` includes the bias,
as usually reported; `frechet_at_infinity` removes it.

**KID** (Bińkowski et al. 2018), the squared maximum mean discrepancy under the kernel (x·y/d + 1)³. The value is the
unbiased estimate over all pairs, not the mean over random subsets. It does not depend on the sizes and may be below 0.

**Precision, recall, density, coverage**: a set covers a ball around each of its members.

- `precision_recall`: Kynkäänniemi et al. 2019. A ball reaches to its k-th nearest other member. Precision is the share
  of fakes in some ball of a real, recall the share of reals in some ball of a fake.
- `density_coverage`: Naeem et al. 2020, robust to outliers. Density is the mean number of real balls around a fake,
  over k (it may exceed 1); coverage is the share of reals whose ball holds a fake.
- `authors_precision_recall`: as the authors of SketchDNN counted; not comparable with the first.

Their intervals hold for fixed balls: they cover the choice of the counted items. Everything is computed in float64, in
chunks, on the device of the features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .estimates import Estimate, EvaluationError, OnProgress, Z, ignore, mean_estimate, normal_estimate, share_of

# Features of two sets, one row per sketch.
A = Float[Tensor, "a feature"]
B = Float[Tensor, "b feature"]
Real = Float[Tensor, "real feature"]
Fake = Float[Tensor, "fake feature"]
Rows = Float[Tensor, "row feature"]

# Subset sizes of the extrapolation as shares: their inverses are evenly spaced from 1 to 2.
SHARES = tuple(1 / x for x in np.linspace(1, 2, 6))
_GAUSSIAN_ROWS, _KERNEL_ROWS, _DISTANCE_ROWS = 4096, 1024, 1024
_EQUAL = 1e-12  # relative to the squared norms: a smaller squared distance is rounding


def check_features(a: A, b: B, minimum: int = 2) -> tuple[A, B]:
    """Both sets unchanged; refuses sets of different widths, of fewer than `minimum` rows, or not finite."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise EvaluationError(f"features of {tuple(a.shape)} and {tuple(b.shape)} cannot be compared")
    if min(len(a), len(b)) < minimum:
        raise EvaluationError(f"a comparison needs at least {minimum} sketches in both sets, not {len(a)} and {len(b)}")
    if not (a.isfinite().all() and b.isfinite().all()):
        raise EvaluationError("some features are not finite numbers")
    return a, b


def frechet_distance(a: A, b: B) -> float:
    """FID of two sets: 0 for a set and itself, and symmetric."""
    return _distance(*check_features(a, b))


def frechet_estimate(a: A, b: B) -> Estimate:
    """FID with an interval for other sets of these sizes from the same distributions.

    The bootstrap would be biased: repeated sketches lower the rank and raise FID by as much as the interval is wide.
    Instead the variance comes from the influence of each sketch on FID, its exact derivative by the weight of that
    sketch (infinitesimal jackknife). The interval is too wide for nearly equal sets, whose influences are mostly noise.
    """
    first, second = _fit_both(*check_features(a, b))
    root = first.root()
    values, vectors = _solve(torch.linalg.eigh, _inner(root, second.covariance))
    distance = _from_eigenvalues(first, second, values)
    # The derivative by the mean of a set is 2 (μ − μ'). That by its covariance is 1 − T, where T transports the set to
    # the other: with K = F Cb Fᵀ it is Fᵀ K^−½ F for the second, and Cb Fᵀ K^−3⁄2 F Cb for the first. Directions in
    # the null space of K have no derivative and are left out.
    positive = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    values, rotated = values[positive, None], vectors[:, positive].T @ root
    slope = 2 * (first.mean - second.mean)
    on_first = _influences(first, slope, values.pow(-0.75) * (rotated @ second.covariance))
    on_second = _influences(second, -slope, values.pow(-0.25) * rotated)
    variance = float(on_first.var() / len(on_first) + on_second.var() / len(on_second))
    estimate = normal_estimate(distance, math.sqrt(variance))
    return replace(estimate, low=max(0.0, estimate.low))


def frechet_at_infinity(
    a: A, b: B, *, full: Estimate | None = None, seed: int = 0, on_progress: OnProgress = ignore
) -> Estimate:
    """FID extrapolated to infinitely many sketches: the intercept of a line in 1/N through FID of random subsets.

    Chong & Forsyth subsample only the samples; here both sets shrink by the same share, which removes the bias of
    either. The result may be below 0 for similar sets. With no more sketches than features have directions, the bias
    is not yet linear in 1/N and a part of it remains. The interval combines the error of the line with that of `full`,
    since all points of the line share the full sets.

    Args:
        full: The result of `frechet_estimate`, if it is known already.
    """
    a, b = check_features(a, b, minimum=4)
    full = full or frechet_estimate(a, b)
    rng = np.random.default_rng(seed)
    scores = [full.value]
    for done, share in enumerate(SHARES[1:], 1):
        scores.append(_distance(*(_subset(rows, share, rng) for rows in (a, b))))
        on_progress(done / (len(SHARES) - 1))
    (_, intercept), covariance = np.polyfit([1 / share for share in SHARES], scores, 1, cov=True)
    full_error = (full.high - full.value) / Z  # the lower end of the interval is clipped at 0
    return normal_estimate(float(intercept), math.hypot(math.sqrt(float(covariance[1, 1])), full_error))


@dataclass(frozen=True, slots=True)
class _Gaussian:
    """A Gaussian fitted to features: its mean, its covariance, and the features."""

    mean: Float[Tensor, " feature"]
    covariance: Float[Tensor, "feature feature"]
    rows: Rows

    @staticmethod
    def fit(rows: Rows) -> _Gaussian:
        mean = rows.mean(0, dtype=torch.float64)
        covariance = mean.new_zeros(len(mean), len(mean))
        for first in range(0, len(rows), _GAUSSIAN_ROWS):
            centered = rows[first : first + _GAUSSIAN_ROWS].double() - mean
            covariance += centered.T @ centered
        return _Gaussian(mean, covariance / (len(rows) - 1), rows)

    def root(self) -> Float[Tensor, "rank feature"]:
        """A matrix of few rows with rootᵀ root = covariance. It is slow, and one of two Gaussians is enough."""
        centered = (self.rows.double() - self.mean) / math.sqrt(len(self.rows) - 1)
        if len(self.rows) <= len(self.mean):
            return centered
        triangle: Tensor
        triangle, failed = torch.linalg.cholesky_ex(self.covariance)
        if not failed:
            return triangle.T
        # Rank-deficient, for example a constant feature: the triangle of QR is a root for any rank.
        triangle = torch.linalg.qr(centered, mode="r").R
        return triangle


def _fit_both(a: A, b: B) -> tuple[_Gaussian, _Gaussian]:
    """Gaussians of two sets; first that of the lower maximum rank."""
    if min(b.shape) < min(a.shape):
        a, b = b, a
    return _Gaussian.fit(a), _Gaussian.fit(b)


def _distance(a: A, b: B) -> float:
    first, second = _fit_both(a, b)
    return _from_eigenvalues(first, second, _solve(torch.linalg.eigvalsh, _inner(first.root(), second.covariance)))


def _from_eigenvalues(a: _Gaussian, b: _Gaussian, eigenvalues: Float[Tensor, " rank"]) -> float:
    mean_term = (a.mean - b.mean).square().sum()
    cross_term = eigenvalues.clamp(min=0).sqrt().sum()
    return max(0.0, float(mean_term + a.covariance.trace() + b.covariance.trace() - 2 * cross_term))


def _solve(solver: Callable[[Tensor], Any], matrix: Float[Tensor, "r r"]) -> Any:
    """Run an eigenvalue solver; on the CPU if the GPU's fails, as it may on a rank-deficient matrix."""
    try:
        return solver(matrix)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        if matrix.device.type == "cpu":
            raise
        result = solver(matrix.cpu())
        return result.to(matrix.device) if isinstance(result, Tensor) else [part.to(matrix.device) for part in result]


def _inner(root: Float[Tensor, "rank feature"], covariance: Float[Tensor, "feature feature"]) -> Float[Tensor, "r r"]:
    inner = root @ covariance @ root.T
    return (inner + inner.T) / 2


def _influences(
    gaussian: _Gaussian, slope: Float[Tensor, " feature"], half: Float[Tensor, "rank feature"]
) -> Float[Tensor, " row"]:
    """The derivative of FID by the weight of each row, up to a constant; halfᵀ half is T of `frechet_estimate`."""
    influences = []
    for first in range(0, len(gaussian.rows), _GAUSSIAN_ROWS):
        centered = gaussian.rows[first : first + _GAUSSIAN_ROWS].double() - gaussian.mean
        influences.append(centered @ slope + centered.square().sum(1) - (centered @ half.T).square().sum(1))
    return torch.cat(influences)


def _subset(rows: Rows, share: float, rng: np.random.Generator) -> Float[Tensor, "part feature"]:
    count = max(2, round(share * len(rows)))
    return rows[torch.from_numpy(rng.permutation(len(rows))[:count]).to(rows.device)]


def kernel_distance(a: A, b: B) -> Estimate:
    """KID of two sets; the interval is made from its standard error.

    The error is that of the first-order terms: the mean kernel of each sketch with its own set minus that with the
    other set. For similar sets these means are mostly noise, and the error is overestimated.
    """
    a, b = check_features(a, b)
    with_b, with_a = _kernel_sums(a, b)
    # The mean kernel of each sketch with the others of its set, and with the other set.
    own_a = (_kernel_sums(a, a)[0] - _kernel(a.double().square().mean(1))) / (len(a) - 1)
    own_b = (_kernel_sums(b, b)[0] - _kernel(b.double().square().mean(1))) / (len(b) - 1)
    cross_a, cross_b = with_b / len(b), with_a / len(a)
    value = float(own_a.mean() + own_b.mean() - 2 * cross_a.mean())
    variance = 4 * float((own_a - cross_a).var() / len(a) + (own_b - cross_b).var() / len(b))
    return normal_estimate(value, math.sqrt(variance))


def _kernel_sums(a: A, b: B) -> tuple[Float[Tensor, " a"], Float[Tensor, " b"]]:
    """The kernel between `a` and `b`, summed over `b` and over `a`, without holding all of it."""
    b_transposed = b.double().T
    rows, columns = [], b_transposed.new_zeros(len(b))
    for first in range(0, len(a), _KERNEL_ROWS):
        kernel = _kernel(a[first : first + _KERNEL_ROWS].double() @ b_transposed / a.shape[1])
        rows.append(kernel.sum(1))
        columns += kernel.sum(0)
    return torch.cat(rows), columns


def _kernel(product: Tensor) -> Tensor:
    return (product + 1).pow(3)


class PrecisionRecall(NamedTuple):
    precision: Estimate
    recall: Estimate


class DensityCoverage(NamedTuple):
    density: Estimate
    coverage: Estimate


def precision_recall(real: Real, fake: Fake, k: int = 3) -> PrecisionRecall:
    """Precision and recall of Kynkäänniemi et al. 2019: a ball reaches to the k-th nearest neighbor."""
    real, fake = check_features(real, fake, minimum=k + 1)
    return _precision_recall(real, fake, _nearest(real, k)[:, -1], _nearest(fake, k)[:, -1])


def authors_precision_recall(real: Real, fake: Fake) -> PrecisionRecall:
    """Precision and recall as the authors of SketchDNN counted them.

    Features are scaled to norm 1; the radius of a ball is 0.95 times the mean distance to the three nearest other
    members. In their code the distance 0 of a member to itself may be among the three, depending on a partial sort;
    here it never is.
    """
    real, fake = (torch.nn.functional.normalize(rows.double(), dim=1) for rows in check_features(real, fake, minimum=4))
    squared_radii = [(0.95 * _nearest(rows, 3).sqrt().mean(1)).square() for rows in (real, fake)]
    return _precision_recall(real, fake, *squared_radii)


def density_coverage(real: Real, fake: Fake, k: int = 5) -> DensityCoverage:
    """Density and coverage of Naeem et al. 2020."""
    real, fake = check_features(real, fake, minimum=k + 1)
    squared_radii = _nearest(real, k)[:, -1]
    balls = torch.zeros(len(fake), device=fake.device, dtype=torch.float64)
    covered = []
    for first, squared in _squared_distances(real, fake):
        inside = squared <= squared_radii[first : first + len(squared), None]
        balls += inside.sum(0)
        covered.append(inside.any(1))
    return DensityCoverage(mean_estimate((balls / k).cpu().numpy()), share_of(torch.cat(covered)))


def _precision_recall(
    real: Real, fake: Fake, real_radii: Float[Tensor, " real"], fake_radii: Float[Tensor, " fake"]
) -> PrecisionRecall:
    """Precision and recall for given squared radii."""
    precise = torch.zeros(len(fake), device=fake.device, dtype=torch.bool)
    recalled = []
    for first, squared in _squared_distances(real, fake):
        precise |= (squared <= real_radii[first : first + len(squared), None]).any(0)
        recalled.append((squared <= fake_radii).any(1))
    return PrecisionRecall(share_of(precise), share_of(torch.cat(recalled)))


def _nearest(rows: Rows, k: int) -> Float[Tensor, "row k"]:
    """Squared distances from each row to its k nearest others, smallest first."""
    nearest = []
    for first, squared in _squared_distances(rows, rows):
        squared.diagonal(first).fill_(torch.inf)  # the row itself
        nearest.append(squared.topk(k, largest=False).values)
    return torch.cat(nearest)


def _squared_distances(a: A, b: B) -> Iterator[tuple[int, Float[Tensor, "chunk b"]]]:
    """Squared distances from a chunk of `a` to all of `b`, with the index of the first row of the chunk.

    They come from matrix products in float64; distances within rounding of 0 are exactly 0.
    """
    b = b.double()
    b_norms = b.square().sum(1)
    for first in range(0, len(a), _DISTANCE_ROWS):
        chunk = a[first : first + _DISTANCE_ROWS].double()
        norms = chunk.square().sum(1)[:, None] + b_norms
        squared = norms - 2 * (chunk @ b.T)
        yield first, torch.where(squared > _EQUAL * norms, squared, 0.0)
