"""The Fréchet distance between Gaussians fitted to two sets of features (FID, Heusel et al. 2017), and how sure it is.

‖μa − μb‖² + tr(Ca + Cb) − 2 tr (Ca Cb)^½, in float64, on the features' device. With Ca = Fᵀ F for any F, the last
trace is the sum of the square roots of the eigenvalues of F Cb Fᵀ, which is symmetric and no larger than the smaller
set: no square root of a matrix is needed, and covariances of low rank (fewer sketches than dimensions) are no special
case.

FID from finite sets is too large, by about c/n (Chong & Forsyth 2020). `frechet_estimate` is the distance at the sizes
given, bias included, as everybody reports it; `frechet_at_infinity` takes the bias out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .estimate import Estimate, Z, normal_estimate
from .features import comparable

# Shares of both sets that the extrapolation looks at: their inverses are evenly spaced from 1 to 2.
SHARES = tuple(1 / x for x in np.linspace(1, 2, 6))
_ROWS = 4096


def frechet_distance(a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]) -> float:
    """FID of two sets: 0 for a set and itself, the same both ways."""
    a, b = comparable(a, b)
    return _distance(_Gaussian.of(a), _Gaussian.of(b))


def frechet_estimate(a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]) -> Estimate:
    """FID with an interval for what other sets of these sizes, drawn alike, would score.

    Drawing from the sets with repetition would not do: repeated sketches lower the rank and raise FID by as much as the
    interval is wide. Instead each sketch's influence on FID, its derivative by that sketch's weight, is written down
    exactly (the infinitesimal jackknife, to which the bootstrap's spread tends). The variance of FID is the sum over
    both sets of the influences' variance over the set's size. It errs on the wide side where the sets are close to
    equal, since the influences then are mostly noise themselves.
    """
    a, b = comparable(a, b)
    value, variance = _distance_and_variance(a, b)
    found = normal_estimate(value, math.sqrt(variance))
    return Estimate(value, max(0.0, found.low), found.high)


def frechet_at_infinity(
    a: Float[Tensor, "a feature"],
    b: Float[Tensor, "b feature"],
    *,
    whole: Estimate | None = None,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Estimate:
    """FID extrapolated to infinitely many sketches: a line in 1/N through FID of random parts, read off at 0.

    Chong & Forsyth cut only the samples, their reference being large. Here both sets are cut by the same share, which
    takes out the bias of either. The result may fall below 0 for sets that are alike. With no more sketches than
    features vary in directions the bias is not yet a line in 1/N, and a part of it stays.

    The interval joins the error of the line with that of FID from the whole sets: the parts come from them, so all
    of the line's points share that error. `whole` is what `frechet_estimate` says of the two, if that is known already.
    """
    a, b = comparable(a, b, at_least=4)
    whole = whole or frechet_estimate(a, b)
    dice = np.random.default_rng(seed)
    scores = [whole.value]
    for done, share in enumerate(SHARES[1:], 1):
        scores.append(_distance(*(_Gaussian.of(_part(rows, share, dice)) for rows in (a, b))))
        if on_progress is not None:
            on_progress(done / (len(SHARES) - 1))
    (_, intercept), of_line = np.polyfit([1 / share for share in SHARES], scores, 1, cov=True)
    of_sets = (whole.high - whole.value) / Z  # not from its lower end, which stops at 0
    return normal_estimate(float(intercept), math.hypot(math.sqrt(float(of_line[1, 1])), of_sets))


@dataclass(frozen=True, slots=True)
class _Gaussian:
    """A Gaussian fitted to features: its mean, its covariance, and the features it was fitted to."""

    mean: Float[Tensor, " feature"]
    covariance: Float[Tensor, "feature feature"]
    rows: Float[Tensor, "row feature"]

    @staticmethod
    def of(rows: Float[Tensor, "row feature"]) -> _Gaussian:
        mean = rows.mean(0, dtype=torch.float64)
        covariance = mean.new_zeros(len(mean), len(mean))
        for first in range(0, len(rows), _ROWS):
            centered = rows[first : first + _ROWS].double() - mean
            covariance += centered.T @ centered
        return _Gaussian(mean, covariance / (len(rows) - 1), rows)

    @property
    def rank(self) -> int:
        """The most directions that the features can vary in."""
        return min(self.rows.shape)

    def root(self) -> Float[Tensor, "rank feature"]:
        """A matrix of few rows with rootᵀ root = covariance. It takes a while, and one of two Gaussians is enough."""
        centered = (self.rows.double() - self.mean) / math.sqrt(len(self.rows) - 1)
        if len(self.rows) <= len(self.mean):
            return centered
        triangle: Tensor
        triangle, failed = torch.linalg.cholesky_ex(self.covariance)
        if not failed:
            return triangle.T
        # Not of full rank: a feature that never changes, say. The triangle of QR is a root whatever the rank.
        triangle = torch.linalg.qr(centered, mode="r").R
        return triangle


def _distance(a: _Gaussian, b: _Gaussian) -> float:
    if b.rank < a.rank:
        a, b = b, a
    return _from_eigenvalues(a, b, _solve(torch.linalg.eigvalsh, _inner(a.root(), b.covariance)))


def _from_eigenvalues(a: _Gaussian, b: _Gaussian, of_inner: Float[Tensor, " rank"]) -> float:
    apart = (a.mean - b.mean).square().sum()
    shared = of_inner.clamp(min=0).sqrt().sum()
    return max(0.0, float(apart + a.covariance.trace() + b.covariance.trace() - 2 * shared))


def _solve(solver: Callable[[Tensor], Any], matrix: Float[Tensor, "r r"]) -> Any:
    """A GPU's solver may give up on a matrix that is not of full rank, where the CPU's does not."""
    try:
        return solver(matrix)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        if matrix.device.type == "cpu":
            raise
        found = solver(matrix.cpu())
        return found.to(matrix.device) if isinstance(found, Tensor) else [part.to(matrix.device) for part in found]


def _inner(root: Float[Tensor, "rank feature"], covariance: Float[Tensor, "feature feature"]) -> Float[Tensor, "r r"]:
    inner = root @ covariance @ root.T
    return (inner + inner.T) / 2


def _distance_and_variance(a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]) -> tuple[float, float]:
    """FID, and its variance by the influence of every row, from one decomposition.

    The derivative by the mean of a set is 2 (μ − μ'); that by its covariance is 1 − T, where T carries the set to the
    other one: with K = F Cb Fᵀ it is Fᵀ K^−½ F for `b`, and Cb Fᵀ K^−3⁄2 F Cb for `a`. Directions that K does not reach
    have no derivative and are left out.
    """
    of_a, of_b = _Gaussian.of(a), _Gaussian.of(b)
    if of_b.rank < of_a.rank:
        of_a, of_b = of_b, of_a
    root = of_a.root()
    values, vectors = _solve(torch.linalg.eigh, _inner(root, of_b.covariance))
    distance = _from_eigenvalues(of_a, of_b, values)
    reached = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    values, turned = values[reached, None], vectors[:, reached].T @ root
    slope = 2 * (of_a.mean - of_b.mean)
    on_a = _influences(of_a, slope, values.pow(-0.75) * (turned @ of_b.covariance))
    on_b = _influences(of_b, -slope, values.pow(-0.25) * turned)
    return distance, float(on_a.var() / len(on_a) + on_b.var() / len(on_b))


def _influences(
    of: _Gaussian, slope: Float[Tensor, " feature"], half: Float[Tensor, "rank feature"]
) -> Float[Tensor, " row"]:
    """How FID changes with the weight of each row, up to a constant; halfᵀ half is the T of the function above."""
    found = []
    for first in range(0, len(of.rows), _ROWS):
        centered = of.rows[first : first + _ROWS].double() - of.mean
        found.append(centered @ slope + centered.square().sum(1) - (centered @ half.T).square().sum(1))
    return torch.cat(found)


def _part(rows: Float[Tensor, "row feature"], share: float, dice: np.random.Generator) -> Float[Tensor, "part feature"]:
    count = max(2, round(share * len(rows)))
    return rows[torch.from_numpy(dice.permutation(len(rows))[:count]).to(rows.device)]
