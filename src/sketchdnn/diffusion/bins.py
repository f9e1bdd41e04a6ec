"""A grid over parameters, so that a density becomes the probability of a cell and bits can be compared with tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout


@dataclass(frozen=True, slots=True)
class Bins:
    """2^bits equal cells between `low` and `high`, numbers for all columns or one for each of the 14.

    The outermost cells reach to infinity, so that the cells of a column share out all of its probability.
    """

    bits: int = 8
    low: float | tuple[float, ...] = -1.0
    high: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 24:
            raise ValueError(f"bits must lie in 1..24, not {self.bits}")
        for name, end in (("low", self.low), ("high", self.high)):
            if isinstance(end, tuple) and len(end) != layout.NUM_PARAMS:
                raise ValueError(f"{name} must be one number or {layout.NUM_PARAMS}, not {len(end)}")
        low, high = torch.as_tensor(self.low), torch.as_tensor(self.high)
        if not bool((low < high).all()) or not bool((high - low).isfinite().all()):
            raise ValueError(f"low must be below high, both finite, not {self.low} and {self.high}")

    @property
    def levels(self) -> int:
        return 1 << self.bits

    def index(self, params: Float[Tensor, "*rows 14"]) -> Int[Tensor, "*rows 14"]:
        """The cell that each number falls into; what lies outside falls into the outermost."""
        low, width = self._ends(params)
        return ((params.double() - low) / width).floor().clamp(0, self.levels - 1).long()

    def log_mass(
        self, params: Float[Tensor, "*rows 14"], mean: Float[Tensor, "*rows 14"], std: float
    ) -> Float[Tensor, "*rows 14"]:
        """log of the probability that N(mean, std²) falls into the cell of `params`, float64."""
        low, width = self._ends(params)
        index = self.index(params)
        left = torch.where(index > 0, low + index * width, -math.inf)
        right = torch.where(index < self.levels - 1, low + (index + 1) * width, math.inf)
        return log_normal_between((left - mean) / std, (right - mean) / std)

    def _ends(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Where the grid starts, and the width of a cell."""
        low = torch.as_tensor(self.low, dtype=torch.float64, device=params.device)
        high = torch.as_tensor(self.high, dtype=torch.float64, device=params.device)
        return low, (high - low) / self.levels


def log_normal_between(left: Float[Tensor, "*shape"], right: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """log(Φ(right) − Φ(left)) for left < right, without canceling in either tail."""
    # Cells right of the mean are mirrored to its left, where Φ is small and its logarithm exact.
    mirrored = left > 0
    low, high = torch.where(mirrored, -right, left), torch.where(mirrored, -left, right)
    log_high: Tensor = torch.special.log_ndtr(high)
    log_low: Tensor = torch.special.log_ndtr(low)
    return log_high + torch.log1p(-torch.exp(log_low - log_high))
