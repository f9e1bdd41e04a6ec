"""Values with 95 % intervals, for independent observations and for observations grouped by sketch.

Ends, lines and primitives of one sketch are correlated: a thousand of them from a hundred sketches carry less
information than a thousand sketches. The `clustered_*` intervals therefore treat sketches as the sampling unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sketchdnn.errors import SketchError

# Called with the share of the work that is done.
OnProgress = Callable[[float], None]


def ignore(share: float) -> None:
    """Progress that nobody wants to know."""


LEVEL = 0.95
Z = NormalDist().inv_cdf(0.5 + LEVEL / 2)


class EvaluationError(SketchError):
    """Input that cannot be scored: too few sketches, or sets that do not fit together."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its 95 % interval. All three are NaN if there is nothing to measure."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"an interval cannot run from {self.low} to {self.high}")

    @property
    def standard_error(self) -> float:
        """Half the width of the interval over 1.96; exact for an interval made from a standard error."""
        return (self.high - self.low) / (2 * Z)


UNDEFINED = Estimate(float("nan"), float("nan"), float("nan"))


def normal_estimate(value: float, standard_error: float) -> Estimate:
    """The interval of a value whose error is approximately normal."""
    return Estimate(value, value - Z * standard_error, value + Z * standard_error)


def mean_estimate(values: Sequence[float] | NDArray[np.floating[Any]]) -> Estimate:
    """The mean of independent values with Student's t interval.

    >>> mean_estimate([1.0, 2.0, 3.0]).value
    2.0
    """
    from scipy.special import stdtrit

    numbers = np.asarray(values, np.float64)
    if numbers.size < 2:
        raise EvaluationError(f"a mean with an interval needs at least two values, there is {numbers.size}")
    mean = float(numbers.mean())
    margin = float(stdtrit(numbers.size - 1, 0.5 + LEVEL / 2)) * float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
    return Estimate(mean, mean - margin, mean + margin)


def ratio_estimate(values: NDArray[np.floating[Any]], totals: NDArray[np.number]) -> Estimate:
    """The sum of `values` over the sum of `totals`, with the linearized t interval for independent pairs.

    >>> ratio_estimate(np.array([8.0, 30.0]), np.array([1, 3])).value
    9.5
    """
    ratio = float(values.sum() / totals.sum())
    residual = mean_estimate((values - ratio * totals) / totals.mean())
    return Estimate(ratio, ratio + residual.low - residual.value, ratio + residual.high - residual.value)


def share_estimate(hits: float, total: float) -> Estimate:
    """A proportion with Wilson's interval, which stays inside 0..1. Counts may be fractional (effective counts).

    >>> round(share_estimate(0, 100).high, 3)
    0.037
    """
    if not (total > 0 and 0 <= hits <= total):
        raise EvaluationError(f"{hits:g} of {total:g} is not a proportion")
    share = hits / total
    shrink = 1 + Z**2 / total
    middle = (share + Z**2 / (2 * total)) / shrink
    margin = Z * math.sqrt(share * (1 - share) / total + Z**2 / (4 * total**2)) / shrink
    # Rounding must not leave the value outside its own interval at 0 and 1.
    return Estimate(share, min(share, max(0.0, middle - margin)), max(share, min(1.0, middle + margin)))


def share_of(mask: NDArray[np.bool_] | Tensor) -> Estimate:
    """The proportion of true values in a one-dimensional mask."""
    return share_estimate(int(mask.sum()), len(mask))


def clustered_share(hits: NDArray[np.number], totals: NDArray[np.number]) -> Estimate:
    """A proportion of items that are grouped by sketch: Wilson's interval for the effective number of items.

    Args:
        hits: For each sketch, how many of its items have the property.
        totals: For each sketch, how many items it has.

    Returns:
        The proportion; `UNDEFINED` without any item.

    >>> round(clustered_share(np.array([4, 0, 4, 0]), np.array([4, 4, 4, 4])).value, 3)
    0.5
    """
    total = float(totals.sum())
    if total == 0:
        return UNDEFINED
    share, count = float(hits.sum()) / total, effective_count(hits, totals)
    interval = share_estimate(share * count, count)
    return Estimate(share, interval.low, interval.high)


def effective_count(hits: NDArray[np.number], totals: NDArray[np.number]) -> float:
    """The number of independent items that would have the same standard error.

    If all items have the property or none has, the spread cannot be measured and each sketch counts once.
    """
    error = clustered_standard_error(hits, totals)
    if error == 0:
        return float(np.count_nonzero(totals))
    share = float(hits.sum()) / float(totals.sum())
    return share * (1 - share) / error**2


def clustered_standard_error(hits: NDArray[np.number], totals: NDArray[np.number]) -> float:
    """The standard error of a proportion if sketches are independent (linearized variance of a ratio)."""
    sketches = int(np.count_nonzero(totals))
    if sketches < 2:
        return 0.0
    residual = hits - totals * (hits.sum() / totals.sum())
    variance = sketches / (sketches - 1) * float((residual**2).sum())
    return float(np.sqrt(variance) / totals.sum())


def clustered_median(values: NDArray[np.floating], sketch: NDArray[np.integer]) -> Estimate:
    """The median of values grouped by sketch, with Woodruff's interval.

    Args:
        values: The values; some may be infinite.
        sketch: For each value, the index of its sketch.
    """
    if len(values) == 0:
        return UNDEFINED
    median = _quantile(values, 0.5)
    totals = np.bincount(sketch)
    below = np.bincount(sketch, values <= median, len(totals))
    margin = Z * clustered_standard_error(below, totals)
    return Estimate(median, _quantile(values, max(0.0, 0.5 - margin)), _quantile(values, min(1.0, 0.5 + margin)))


def to_json(value: Any) -> Any:
    """Results as JSON: dataclasses become objects, floats keep six digits, NaN and infinity become None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _quantile(values: NDArray[np.floating], share: float) -> float:
    """A quantile that is one of the values: interpolation would fail on infinite ones."""
    return float(np.quantile(values, share, method="inverted_cdf"))
