"""Training in several processes: `torchrun -m sketchdnn train …` starts one for each device.

DDP averages the gradients; FSDP2 also shards weights, gradients and moments. Each process takes its share of every
batch. Decisions that depend on a clock or a signal are made by the first process for all.

Tensors on disk are always whole, so a run may start on one device and continue on eight, or the other way round.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from .config import RunError

try:
    from torch.distributed.fsdp import fully_shard
except ImportError:  # torch 2.5
    from torch.distributed._composable.fsdp import fully_shard  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of this process, and the number of processes."""

    rank: int = 0
    world: int = 1
    local: int = 0  # device of this machine
    shards: bool = False  # whether weights are sharded

    @property
    def alone(self) -> bool:
        return self.world == 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def wrap(self, module: nn.Module, average: nn.Module | None = None) -> nn.Module:
        """The module with gradients averaged over all processes, and with the weights of the first process.

        Sharding replaces the weights of the module and of `average` in place: make the optimizer afterwards.
        """
        if self.shards:
            for part in (module, average):
                if part is not None:
                    shard(part)
        return module if self.alone or self.shards else DistributedDataParallel(module)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over all processes."""
        if self.alone:
            return values
        values = values.clone()
        distributed.all_reduce(values)
        return values / self.world

    def maximum(self, values: Tensor) -> Tensor:
        """The maximum over all processes."""
        if self.alone:
            return values
        values = values.clone()
        distributed.all_reduce(values, distributed.ReduceOp.MAX)
        return values

    def from_first(self, value: float, device: torch.device) -> float:
        """The value of the first process."""
        if self.alone:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=device)
        distributed.broadcast(shared, src=0)
        return float(shared)


@contextmanager
def process_group(device: str, *, shards: bool = False) -> Iterator[Ranks]:
    """Join the process group of torchrun, if there is one, and leave it at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        if shards:
            raise RunError(
                "--fsdp shards a model over processes, and there is only one; "
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


def exit_worker() -> None:
    """Exit at once if this is one of several processes.

    Sharded modules keep threads of gloo alive. Releasing their last tensor during interpreter shutdown aborts the
    process (pytorch/pytorch#179291), and torchrun then ends the others.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def shard(module: nn.Module) -> None:
    """Shard the weights of the first process in place: each element of a module list is a unit, the rest another.

    A unit is gathered when it is called, so elements of module lists must be called, not taken apart.
    """
    weights = list(module.parameters())
    for weight in weights:
        distributed.broadcast(weight.detach(), src=0)
    device = weights[0].device
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    for unit in sharding_units(module):
        if device.type == "cuda":
            # Gathering breaks the graph, so units are compiled one by one.
            unit.compile(dynamic=False)
        fully_shard(unit, mesh=mesh)
    fully_shard(module, mesh=mesh)


def sharding_units(module: nn.Module) -> list[nn.Module]:
    """Elements of module lists with weights, the innermost first, as FSDP requires."""
    lists = [part for part in module.modules() if isinstance(part, nn.ModuleList)]
    units = [unit for part in reversed(lists) for unit in part if not isinstance(unit, nn.ModuleList)]
    return [unit for unit in units if any(True for _ in unit.parameters())]


def local_shards(values: list[nn.Parameter]) -> list[Tensor]:
    """The local shards of tensors; whole tensors stay as they are."""
    return [value.to_local() if isinstance(value, DTensor) else value for value in values]


def gather(value: Tensor) -> Tensor:
    """The whole tensor. A sharded one is gathered: every process must call this at the same time."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def shard_like(value: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, equal in every process, sharded like `other`."""
    if not isinstance(other, DTensor) or value.shape != other.shape:
        return value
    value = value.to(other.device)
    return distribute_tensor(value, other.device_mesh, other.placements, src_data_rank=None)
