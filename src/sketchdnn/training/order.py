"""Which sketch is seen when, and with which random numbers: a function of the seed and the step alone.

So a run that resumes needs no state but its step number, and a run on two devices sees what one would have seen: each
takes its share of every batch.
"""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from sketchdnn.geometry import Kind

from .checkpoint import RunError
from .corpus import Corpus


def balanced(corpus: Corpus, rare: float) -> Int[Tensor, " entry"]:
    """The sketches of one pass by number, those with a point or a construction aid `rare` times as often as others.

    Such sketches are few, and a model draws fewer still. A fraction is spread evenly over them.
    """
    special = ((corpus.kind == Kind.POINT.value) | corpus.construction).any(dim=1).cpu()
    repeats = torch.ones(len(corpus), dtype=torch.int64)
    place = torch.arange(int(special.sum()), dtype=torch.float64)
    repeats[special] = ((place + 1) * rare).floor().long() - (place * rare).floor().long()
    return torch.repeat_interleave(torch.arange(len(corpus)), repeats).to(corpus.params.device)


class DataOrder:
    """An endless sequence of shuffled passes over `size` entries, cut into batches, of which one rank has a share."""

    def __init__(
        self, size: int, batch_size: int, seed: int, device: torch.device | str, rank: int = 0, world: int = 1
    ) -> None:
        if size < 1 or batch_size < 1:
            raise RunError(f"a batch of {batch_size} cannot be drawn from {size} sketches")
        if batch_size % world:
            raise RunError(f"a batch of {batch_size} cannot be shared by {world} processes; use a multiple of {world}")
        self.size, self.batch_size, self.seed, self.device = size, batch_size, seed, device
        self.share = batch_size // world
        self._first = rank * self.share
        self._passes: dict[int, Tensor] = {}

    def positions(self) -> Int[Tensor, " share"]:
        """Which places of every batch are this rank's."""
        return torch.arange(self._first, self._first + self.share, device=self.device)

    def numbers(self, step: int) -> Int[Tensor, " share"]:
        """The global sample numbers of a step: what its noise is drawn by. They never repeat."""
        start = step * self.batch_size + self._first
        return torch.arange(start, start + self.share, device=self.device)

    def indices(self, step: int) -> Int[Tensor, " share"]:
        """The entries of a step."""
        start = step * self.batch_size + self._first
        stop = start + self.share
        first, last = start // self.size, (stop - 1) // self.size
        passes = torch.cat([self._pass(number) for number in range(first, last + 1)])
        self._passes = {n: p for n, p in self._passes.items() if n >= last}
        return passes[start - first * self.size : stop - first * self.size]

    def _pass(self, number: int) -> Tensor:
        if number not in self._passes:
            # Shuffled on the CPU, so that every device sees the same order.
            generator = torch.Generator().manual_seed((self.seed * 1_000_003 + number) % 2**63)
            order = torch.randperm(self.size, generator=generator)
            if torch.device(self.device).type == "cuda":
                order = order.pin_memory()  # so that nothing waits for the copy
            self._passes[number] = order.to(self.device, non_blocking=True)
        return self._passes[number]
