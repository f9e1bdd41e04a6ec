"""Kernel Inception Distance (Bińkowski et al. 2018): squared maximum mean discrepancy under the kernel (x·y/d + 1)³.

The value is the unbiased estimate over all pairs at once, not the mean over small random subsets, which estimates the
same number with more noise. Being unbiased it does not depend on the sizes, and may fall below 0 for sets that are
alike. It is given as it is; tables multiply it by 1000.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from .estimate import Estimate, normal_estimate
from .features import comparable

_ROWS = 1024


def kid(a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]) -> Estimate:
    """KID of two sets; `.standard_error` is its standard error, from which the interval is made.

    The error is that of the first-order terms: each sketch's mean kernel with its own set less that with the other.
    Where the sets are alike those means are mostly noise, and the error comes out larger than it is, never smaller.
    """
    a, b = comparable(a, b)
    with_b, with_a = _kernel_sums(a, b)
    # Every sketch's mean kernel with the others of its set, and with the other set.
    own_a = (_kernel_sums(a, a)[0] - _self_kernel(a)) / (len(a) - 1)
    own_b = (_kernel_sums(b, b)[0] - _self_kernel(b)) / (len(b) - 1)
    cross_a, cross_b = with_b / len(b), with_a / len(a)
    value = float(own_a.mean() + own_b.mean() - 2 * cross_a.mean())
    variance = 4 * float((own_a - cross_a).var() / len(a) + (own_b - cross_b).var() / len(b))
    return normal_estimate(value, math.sqrt(variance))


def _kernel_sums(
    a: Float[Tensor, "a feature"], b: Float[Tensor, "b feature"]
) -> tuple[Float[Tensor, " a"], Float[Tensor, " b"]]:
    """The kernel between all of `a` and all of `b`, summed over `b` and over `a`, without ever holding all of it."""
    theirs = b.double().T
    rows, columns = [], theirs.new_zeros(len(b))
    for first in range(0, len(a), _ROWS):
        kernel = _cubed(a[first : first + _ROWS].double() @ theirs / a.shape[1])
        rows.append(kernel.sum(1))
        columns += kernel.sum(0)
    return torch.cat(rows), columns


def _self_kernel(a: Float[Tensor, "a feature"]) -> Float[Tensor, " a"]:
    return _cubed(a.double().square().mean(1))


def _cubed(product: Tensor) -> Tensor:
    return (product + 1).pow(3)
