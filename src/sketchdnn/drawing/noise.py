"""Random numbers with the device and the precision of a tensor."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def uniform(shape: tuple[int, ...], low: float, high: float, like: Tensor, generator: Generator) -> Tensor:
    """Random numbers between two bounds."""
    return low + (high - low) * torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


def normal(shape: tuple[int, ...], like: Tensor, generator: Generator) -> Tensor:
    """Random numbers of the standard normal distribution."""
    return torch.randn(shape, generator=generator, device=like.device, dtype=like.dtype)
