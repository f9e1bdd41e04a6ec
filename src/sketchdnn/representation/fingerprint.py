"""Numbers mixed so well that a sum or a comparison of them tells what they were made of: the base of all keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]


def mix(values: Keys) -> Keys:
    """A bijection in which every bit of the result depends on every bit of the value (the finaliser of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
