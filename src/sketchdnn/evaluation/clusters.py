"""Shares and quantiles of things that come in sketches.

Ends, lines and primitives of one sketch hang together, so a thousand of them from a hundred sketches tell less than a
thousand sketches would. The intervals here count sketches, not things.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .estimate import Estimate, Z, share_estimate

NOTHING = Estimate(float("nan"), float("nan"), float("nan"))


def clustered_share(hits: NDArray[np.number], of: NDArray[np.number]) -> Estimate:
    """The share of things that have some property, given for each sketch how many have it, and how many there are.

    Wilson's interval for as many independent things as would leave the same standard error. Not a number where there is
    nothing to count.

    >>> round(clustered_share(np.array([4, 0, 4, 0]), np.array([4, 4, 4, 4])).value, 3)
    0.5
    """
    total = float(of.sum())
    if total == 0:
        return NOTHING
    share, weight = float(hits.sum()) / total, independent(hits, of)
    interval = share_estimate(share * weight, weight)
    return Estimate(share, interval.low, interval.high)


def independent(hits: NDArray[np.number], of: NDArray[np.number]) -> float:
    """As many independent things as would leave the same standard error.

    Where all have the property or none has, there is no spread to measure, and each sketch counts once.
    """
    error = standard_error(hits, of)
    if error == 0:
        return float(np.count_nonzero(of))
    share = float(hits.sum()) / float(of.sum())
    return share * (1 - share) / error**2


def standard_error(hits: NDArray[np.number], of: NDArray[np.number]) -> float:
    """Of a share, when sketches are drawn independently (the linearized variance of a ratio)."""
    sketches = int(np.count_nonzero(of))
    if sketches < 2:
        return 0.0
    residual = hits - of * (hits.sum() / of.sum())
    variance = sketches / (sketches - 1) * float((residual**2).sum())
    return float(np.sqrt(variance) / of.sum())


def clustered_median(values: NDArray[np.floating], owner: NDArray[np.integer]) -> Estimate:
    """The median of values that belong to sketches, `owner` saying to which.

    Woodruff's interval: between the quantiles that the interval of the share below the median points at.
    """
    if len(values) == 0:
        return NOTHING
    median = _quantile(values, 0.5)
    of = np.bincount(owner)
    below = np.bincount(owner, values <= median, len(of))
    spread = Z * standard_error(below, of)
    return Estimate(median, _quantile(values, max(0.0, 0.5 - spread)), _quantile(values, min(1.0, 0.5 + spread)))


def _quantile(values: NDArray[np.floating], share: float) -> float:
    """A value that occurs: nothing is drawn between two of them, since one may be infinite."""
    return float(np.quantile(values, share, method="inverted_cdf"))
