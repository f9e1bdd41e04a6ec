"""More than one device or machine: `torchrun -m sketchdnn train …` starts a process for each.

DDP averages their gradients; or FSDP does, which also splits the weights between them (see `sharding`).

Each takes its share of every batch, and what depends on a clock or a signal is decided by the first, so that all stay
in step. On its own a process pays for none of this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from .checkpoint import RunError
from .sharding import shard


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1
    local: int = 0  # which device of this machine
    shards: bool = False  # whether each keeps only a part of the weights

    @property
    def alone(self) -> bool:
        return self.world == 1

    @property
    def first(self) -> bool:
        """Writes files and speaks for all."""
        return self.rank == 0

    def wrapped(self, module: nn.Module, average: nn.Module | None = None) -> nn.Module:
        """The module with its gradients averaged over all processes, and the first one's weights to begin with.

        Where weights are split, so are those of their `average`, both in place: an optimizer must be made after.
        """
        if self.shards:
            for split in (module, average):
                if split is not None:
                    shard(split)
        return module if self.alone or self.shards else DistributedDataParallel(module)

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
def joined(device: str, *, shards: bool = False) -> Iterator[Ranks]:
    """Join the processes that torchrun started, if it did, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        if shards:
            raise RunError(
                "--fsdp splits a model over processes, and there is only one; "
                "start two or more with torchrun --nproc-per-node N -m sketchdnn train …"
            )
        yield Ranks()
        return
    ranks = Ranks(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")), shards)
    if device == "cuda":
        torch.cuda.set_device(ranks.local)
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield ranks
    finally:
        distributed.destroy_process_group()


def leave() -> None:
    """End the process here if it is one of several, and has done its part.

    Split modules keep process groups alive, and with them threads of gloo. One that lets go of its last tensor while
    Python is taken down ends the process with SIGABRT (pytorch/pytorch#179291), and torchrun then ends the others.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
