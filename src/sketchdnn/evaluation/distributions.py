"""What a set is made of (kinds, construction, number of primitives), and how far two sets differ in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchdnn.geometry import Kind
from sketchdnn.representation import Compact

from .clusters import clustered_share, independent
from .curves import filled
from .estimate import Estimate

RELATIVE, ERRORS = 0.15, 2.0


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its interval, by sketch, and as many independent things as would leave the same interval."""

    estimate: Estimate
    independent: float


Distribution = Mapping[str, Share]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One share in two sets. `relative` is to the reference (infinite if that has none and this has some); `errors`
    counts standard errors that the difference would have if both sets had the same share: that of a set which has none
    says nothing, being 0. `is_within`: no more than 15 % or two standard errors."""

    name: str
    value: float
    reference: float
    relative: float
    errors: float

    @property
    def is_within(self) -> bool:
        return abs(self.relative) <= RELATIVE or abs(self.errors) <= ERRORS


def kinds(compact: Compact) -> Distribution:
    """The share of each kind among all primitives."""
    return {kind.label: _share(compact.kind == kind, compact) for kind in Kind}


def construction(compact: Compact) -> Distribution:
    """Construction or not, among all primitives."""
    return {
        "construction": _share(compact.construction & filled(compact), compact),
        "drawn": _share(~compact.construction & filled(compact), compact),
    }


def counts(compact: Compact) -> Distribution:
    """The share of sketches with each number of primitives that occurs."""
    number, one = compact.counts, np.ones(len(compact), np.int64)
    return {
        str(count): Share(clustered_share(number == count, one), independent(number == count, one))
        for count in np.unique(number).tolist()
    }


def total_variation(a: Distribution, b: Distribution) -> float:
    """Half the sum of all differences of shares: 0 for equal distributions, 1 for those that have nothing in common."""
    return sum(abs(_value(a, name) - _value(b, name)) for name in _names(a, b)) / 2


def deviations(a: Distribution, reference: Distribution) -> tuple[Deviation, ...]:
    """Share by share, how far a set is from a reference."""
    found = []
    for name in _names(a, reference):
        value, wanted = _value(a, name), _value(reference, name)
        error = _error_if_equal(value, _weight(a, name), wanted, _weight(reference, name))
        found.append(Deviation(name, value, wanted, _ratio(value - wanted, wanted), _ratio(value - wanted, error)))
    return tuple(found)


def _share(hits: NDArray[np.bool_], compact: Compact) -> Share:
    by_sketch, of = hits.sum(axis=1), compact.counts
    return Share(clustered_share(by_sketch, of), independent(by_sketch, of))


def _names(a: Distribution, b: Distribution) -> Iterable[str]:
    return dict.fromkeys([*b, *a])


def _value(distribution: Distribution, name: str) -> float:
    return distribution[name].estimate.value if name in distribution else 0.0


def _weight(distribution: Distribution, name: str) -> float:
    """How much a share rests on. What a set does not name, it has none of, among as many as it has others."""
    if name in distribution:
        return distribution[name].independent
    return max((share.independent for share in distribution.values()), default=0.0)


def _error_if_equal(share: float, of: float, other: float, of_other: float) -> float:
    """The standard error of the difference of two shares, both taken to be the one that the two sets have together."""
    if not min(of, of_other) > 0:
        return math.nan
    together = (share * of + other * of_other) / (of + of_other)
    return math.sqrt(together * (1 - together) * (1 / of + 1 / of_other))


def _ratio(difference: float, unit: float) -> float:
    if difference == 0:
        return 0.0
    return difference / unit if unit > 0 else math.copysign(math.inf, difference)
