"""Fidelity and diversity apart: is a sketch inside the region that the other set covers?

A set covers a ball around each of its members. Three definitions of the balls and of what is counted:

- `precision_recall`: Kynkäänniemi et al. 2019. A ball reaches to its k-th nearest other member. Precision is the share
  of fakes in some ball of a real one, recall the share of reals in some ball of a fake.
- `density_coverage`: Naeem et al. 2020, which one outlier cannot inflate. Density is how many balls of reals a fake
  lies in, over k (it may pass 1); coverage the share of reals whose ball holds a fake.
- `authors_precision_recall`: as the authors of SketchDNN counted; never to be compared with the first.

Intervals hold for the balls as they are: they tell how far another draw of what is counted would change the share.
Distances are taken in float64, in chunks, on the features' device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .estimate import Estimate, mean_estimate, share_estimate
from .features import comparable

_ROWS = 1024
_EQUAL = 1e-12  # of their squared norms: below this, the distance between two features is rounding


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    precision: Estimate
    recall: Estimate


@dataclass(frozen=True, slots=True)
class DensityCoverage:
    density: Estimate
    coverage: Estimate


def precision_recall(
    real: Float[Tensor, "real feature"], fake: Float[Tensor, "fake feature"], k: int = 3
) -> PrecisionRecall:
    """Precision and recall of Kynkäänniemi et al. 2019: a ball reaches to its k-th nearest neighbor."""
    real, fake = comparable(real, fake, at_least=k + 1)
    return _precision_recall(real, fake, _nearest(real, k)[:, -1], _nearest(fake, k)[:, -1])


def authors_precision_recall(
    real: Float[Tensor, "real feature"], fake: Float[Tensor, "fake feature"]
) -> PrecisionRecall:
    """Precision and recall as the authors of SketchDNN counted them.

    Features are scaled to length 1; a ball's radius is 0.95 times the mean distance to the three nearest other
    members. In their code a member's distance 0 to itself may be among the three, as their partial sort happens to
    leave it; here it never is, so that the number does not depend on a sorting routine.
    """
    real, fake = (torch.nn.functional.normalize(rows.double(), dim=1) for rows in comparable(real, fake, at_least=4))
    reach = [(0.95 * _nearest(rows, 3).sqrt().mean(1)).square() for rows in (real, fake)]
    return _precision_recall(real, fake, *reach)


def density_coverage(
    real: Float[Tensor, "real feature"], fake: Float[Tensor, "fake feature"], k: int = 5
) -> DensityCoverage:
    """Density and coverage of Naeem et al. 2020."""
    real, fake = comparable(real, fake, at_least=k + 1)
    reach = _nearest(real, k)[:, -1]
    balls = torch.zeros(len(fake), device=fake.device, dtype=torch.float64)
    covered = []
    for first, squared in _squared_distances(real, fake):
        inside = squared <= reach[first : first + len(squared), None]
        balls += inside.sum(0)
        covered.append(inside.any(1))
    return DensityCoverage(mean_estimate((balls / k).cpu().numpy()), _share(torch.cat(covered)))


def _precision_recall(
    real: Float[Tensor, "real feature"],
    fake: Float[Tensor, "fake feature"],
    reach_of_real: Float[Tensor, " real"],
    reach_of_fake: Float[Tensor, " fake"],
) -> PrecisionRecall:
    precise = torch.zeros(len(fake), device=fake.device, dtype=torch.bool)
    recalled = []
    for first, squared in _squared_distances(real, fake):
        precise |= (squared <= reach_of_real[first : first + len(squared), None]).any(0)
        recalled.append((squared <= reach_of_fake).any(1))
    return PrecisionRecall(_share(precise), _share(torch.cat(recalled)))


def _nearest(rows: Float[Tensor, "row feature"], k: int) -> Float[Tensor, "row k"]:
    """Squared distances from each row to its k nearest others, smallest first."""
    found = []
    for first, squared in _squared_distances(rows, rows):
        squared.diagonal(first).fill_(torch.inf)  # itself
        found.append(squared.topk(k, largest=False).values)
    return torch.cat(found)


def _squared_distances(
    a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]
) -> Iterator[tuple[int, Float[Tensor, "some b"]]]:
    """Squared distances from some of `a` at a time, with the index of the first, to all of `b`.

    They come from products of matrices, which is fast, and in float64, without which close neighbors would drown in
    rounding; equal rows are at distance 0 exactly.
    """
    theirs = b.double()
    their_norms = theirs.square().sum(1)
    for first in range(0, len(a), _ROWS):
        some = a[first : first + _ROWS].double()
        norms = some.square().sum(1)[:, None] + their_norms
        squared = norms - 2 * (some @ theirs.T)
        yield first, torch.where(squared > _EQUAL * norms, squared, 0.0)


def _share(hits: Bool[Tensor, " row"]) -> Estimate:
    return share_estimate(int(hits.sum()), len(hits))
