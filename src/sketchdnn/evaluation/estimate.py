"""A figure and how sure we are of it: a value with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchdnn.errors import SketchError

LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)


class EvaluationError(SketchError):
    """Something that cannot be scored: too few sketches, or sets that do not fit together."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval. All three are NaN where there was nothing to measure."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an interval cannot run from {self.low} to {self.high}")

    @property
    def standard_error(self) -> float:
        """Half the interval's width over 1.96: exact for an interval that was made from a standard error."""
        return (self.high - self.low) / (2 * Z)


def normal_estimate(value: float, standard_error: float) -> Estimate:
    """The interval of a value whose error is about normal."""
    return Estimate(value, value - Z * standard_error, value + Z * standard_error)


def mean_estimate(values: Sequence[float] | NDArray[np.floating[Any]]) -> Estimate:
    """The mean of independent values with Student's interval, which is wide for few of them.

    >>> mean_estimate([1.0, 2.0, 3.0]).value
    2.0
    """
    from scipy.special import stdtrit

    numbers = np.asarray(values, np.float64)
    if numbers.size < 2:
        raise EvaluationError(f"a mean with an interval needs at least two values, there is {numbers.size}")
    mean = float(numbers.mean())
    reach = float(stdtrit(numbers.size - 1, 0.5 + LEVEL / 2)) * float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
    return Estimate(mean, mean - reach, mean + reach)


def ratio_estimate(values: NDArray[np.floating[Any]], of: NDArray[np.number]) -> Estimate:
    """All of some values over all that they are of, with the interval of independent pairs (linearized, Student's).

    >>> ratio_estimate(np.array([8.0, 30.0]), np.array([1, 3])).value
    9.5
    """
    ratio = float(values.sum() / of.sum())
    residual = mean_estimate((values - ratio * of) / of.mean())
    return Estimate(ratio, ratio + residual.low - residual.value, ratio + residual.high - residual.value)


def share_estimate(hits: float, of: float) -> Estimate:
    """A share with Wilson's interval, which stays inside 0..1 and is honest at both ends: 0 of 100 may still be 3 %.

    Neither count need be whole: samples that hang together count for fewer.

    >>> round(share_estimate(0, 100).high, 3)
    0.037
    """
    if not (of > 0 and 0 <= hits <= of):
        raise EvaluationError(f"{hits:g} of {of:g} is no share of anything")
    share = hits / of
    shrink = 1 + Z**2 / of
    middle = (share + Z**2 / (2 * of)) / shrink
    reach = Z * math.sqrt(share * (1 - share) / of + Z**2 / (4 * of**2)) / shrink
    # Rounding must not leave the value outside its own interval at 0 and 1.
    return Estimate(share, min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach)))
