"""More than one device or machine: `torchrun -m sketchdnn train …` starts a process for each, and DDP adds gradients.

Each takes its share of every batch, and what depends on a clock or a signal is decided by the first, so that all stay
in step. On its own a process pays for none of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1
    local: int = 0  # which device of this machine

    @property
    def alone(self) -> bool:
        return self.world == 1

    @property
    def first(self) -> bool:
        """Writes files and speaks for all."""
        return self.rank == 0

    def wrapped(self, module: nn.Module) -> nn.Module:
        """The module with its gradients averaged over all processes, and the first one's weights to begin with."""
        return module if self.alone else DistributedDataParallel(module)

    def averaged(self, values: Tensor) -> Tensor:
        """The mean over all processes."""
        if self.alone:
            return values
        values = values.clone()
        distributed.all_reduce(values)
        return values / self.world

    def largest(self, values: Tensor) -> Tensor:
        """The largest of any process."""
        if self.alone:
            return values
        values = values.clone()
        distributed.all_reduce(values, distributed.ReduceOp.MAX)
        return values

    def of_first(self, value: float, device: torch.device) -> float:
        """The number that the first process has."""
        if self.alone:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=device)
        distributed.broadcast(shared, src=0)
        return float(shared)


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """Join the processes that torchrun started, if it did, and leave them at the end."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        yield Ranks()
        return
    ranks = Ranks(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ.get("LOCAL_RANK", "0")))
    if device == "cuda":
        torch.cuda.set_device(ranks.local)
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield ranks
    finally:
        distributed.destroy_process_group()
