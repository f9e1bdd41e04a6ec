"""Which sketch is seen when, and with which random numbers: a function of the seed and the step alone.

So a run that resumes needs no state but its step number, and a run on two devices sees what one would have seen.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor


class DataOrder:
    """An endless sequence of shuffled passes over `size` sketches, cut into batches."""

    def __init__(self, size: int, batch_size: int, seed: int, device: torch.device | str) -> None:
        if size < 1 or batch_size < 1:
            raise ValueError(f"a batch of {batch_size} cannot be drawn from {size} sketches")
        self.size, self.batch_size, self.seed, self.device = size, batch_size, seed, device
        self._passes: dict[int, Tensor] = {}

    def numbers(self, step: int) -> Int[Tensor, " batch"]:
        """The global sample numbers of a step: what its noise is drawn by. They never repeat."""
        start = step * self.batch_size
        return torch.arange(start, start + self.batch_size, device=self.device)

    def indices(self, step: int) -> Int[Tensor, " batch"]:
        """The sketches of a step."""
        start = step * self.batch_size
        stop = start + self.batch_size
        first, last = start // self.size, (stop - 1) // self.size
        passes = torch.cat([self._pass(number) for number in range(first, last + 1)])
        self._passes = {n: p for n, p in self._passes.items() if n >= last}
        return passes[start - first * self.size : stop - first * self.size]

    def _pass(self, number: int) -> Tensor:
        if number not in self._passes:
            # Shuffled on the CPU, so that every device sees the same order.
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + number) % 2**63)
            self._passes[number] = torch.randperm(self.size, generator=generator).to(self.device)
        return self._passes[number]
