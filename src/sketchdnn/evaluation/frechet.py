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

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .estimate import Estimate, normal_estimate
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
    of_a, of_b = _Gaussian.of(a), _Gaussian.of(b)
    found = normal_estimate(_distance(of_a, of_b), math.sqrt(_variance(a, b, of_a, of_b)))
    return Estimate(found.value, max(0.0, found.low), found.high)


def frechet_at_infinity(
    a: Float[Tensor, "a feature"],
    b: Float[Tensor, "b feature"],
    *,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> Estimate:
    """FID extrapolated to infinitely many sketches: a line in 1/N through FID of random parts, read off at 0.

    Chong & Forsyth cut only the samples, their reference being large. Here both sets are cut by the same share, which
    takes out the bias of either. The result may fall below 0 for sets that are alike. With no more sketches than
    features vary in directions the bias is not yet a line in 1/N, and a part of it stays.

    The interval joins the error of the line with that of FID from the whole sets: the parts come from them, so all
    of the line's points share that error.
    """
    a, b = comparable(a, b, at_least=4)
    dice = np.random.default_rng(seed)
    scores = []
    for done, share in enumerate(SHARES, 1):
        parts = (_part(rows, share, dice) for rows in (a, b))
        scores.append(_distance(*(_Gaussian.of(part) for part in parts)))
        if on_progress is not None:
            on_progress(done / (len(SHARES) + 1))
    (_, intercept), of_line = np.polyfit([1 / share for share in SHARES], scores, 1, cov=True)
    of_sets = _variance(a, b, _Gaussian.of(a), _Gaussian.of(b))
    if on_progress is not None:
        on_progress(1.0)
    return normal_estimate(float(intercept), math.sqrt(float(of_line[1, 1]) + of_sets))


@dataclass(frozen=True, slots=True)
class _Gaussian:
    """A Gaussian fitted to features, and a matrix `root` of few rows with rootᵀ root = covariance."""

    mean: Float[Tensor, " feature"]
    covariance: Float[Tensor, "feature feature"]
    root: Float[Tensor, "rank feature"]

    @staticmethod
    def of(rows: Float[Tensor, "row feature"]) -> _Gaussian:
        count, dimensions = rows.shape
        mean = rows.mean(0, dtype=torch.float64)
        scale = math.sqrt(count - 1)
        if count <= dimensions:
            root = (rows.double() - mean) / scale
            return _Gaussian(mean, root.T @ root, root)
        covariance = mean.new_zeros(dimensions, dimensions)
        for first in range(0, count, _ROWS):
            centred = (rows[first : first + _ROWS].double() - mean) / scale
            covariance += centred.T @ centred
        return _Gaussian(mean, covariance, _root(covariance))


def _root(covariance: Float[Tensor, "feature feature"]) -> Float[Tensor, "rank feature"]:
    triangle: Tensor
    triangle, failed = torch.linalg.cholesky_ex(covariance)
    if not failed:
        return triangle.T
    # Not of full rank: a feature that never changes, say.
    values, vectors = torch.linalg.eigh(covariance)
    root: Tensor = values.clamp(min=0).sqrt()[:, None] * vectors.T
    return root


def _distance(a: _Gaussian, b: _Gaussian) -> float:
    if len(b.root) < len(a.root):
        a, b = b, a
    shared = torch.linalg.eigvalsh(_inner(a.root, b.covariance)).clamp(min=0).sqrt().sum()
    apart = (a.mean - b.mean).square().sum()
    return max(0.0, float(apart + a.covariance.trace() + b.covariance.trace() - 2 * shared))


def _inner(root: Float[Tensor, "rank feature"], covariance: Float[Tensor, "feature feature"]) -> Float[Tensor, "r r"]:
    inner = root @ covariance @ root.T
    return (inner + inner.T) / 2


def _variance(a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"], of_a: _Gaussian, of_b: _Gaussian) -> float:
    """The variance of FID by the influence of every row.

    The derivative by the mean of a set is 2 (μ − μ'); that by its covariance is 1 − T, where T carries the set to the
    other one: with K = F Cb Fᵀ it is Fᵀ K^−½ F for `b`, and Cb Fᵀ K^−3⁄2 F Cb for `a`. Directions that K does not reach
    have no derivative and are left out.
    """
    if len(of_b.root) < len(of_a.root):
        a, b, of_a, of_b = b, a, of_b, of_a
    values, vectors = torch.linalg.eigh(_inner(of_a.root, of_b.covariance))
    reached = values > values[-1] * len(values) * torch.finfo(values.dtype).eps
    values, turned = values[reached, None], vectors[:, reached].T @ of_a.root
    slope = 2 * (of_a.mean - of_b.mean)
    on_a = _influences(a, of_a.mean, slope, values.pow(-0.75) * (turned @ of_b.covariance))
    on_b = _influences(b, of_b.mean, -slope, values.pow(-0.25) * turned)
    return float(on_a.var() / len(a) + on_b.var() / len(b))


def _influences(
    rows: Float[Tensor, "row feature"],
    mean: Float[Tensor, " feature"],
    slope: Float[Tensor, " feature"],
    half: Float[Tensor, "rank feature"],
) -> Float[Tensor, " row"]:
    """How FID changes with the weight of each row, up to a constant; halfᵀ half is the T of `_variance`."""
    found = []
    for first in range(0, len(rows), _ROWS):
        centred = rows[first : first + _ROWS].double() - mean
        found.append(centred @ slope + centred.square().sum(1) - (centred @ half.T).square().sum(1))
    return torch.cat(found)


def _part(rows: Float[Tensor, "row feature"], share: float, dice: np.random.Generator) -> Float[Tensor, "part feature"]:
    count = max(2, round(share * len(rows)))
    return rows[torch.from_numpy(dice.permutation(len(rows))[:count]).to(rows.device)]
