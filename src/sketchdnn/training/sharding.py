"""Weights, gradients and moments split over processes by FSDP2, for a network that is too large for one device.

A tensor on disk is always whole, so that a run may begin on one device and go on over eight, or the other way round.
"""

from __future__ import annotations

from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


def shard(module: nn.Module) -> None:
    """Split the weights in place, the first process's: each element of a list of modules is a unit, the rest another.

    A unit is gathered when it is called and let go after, so an element of a list must be used by calling it.
    """
    weights = list(module.parameters())
    for weight in weights:
        distributed.broadcast(weight.detach(), src=0)
    device = weights[0].device
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    for unit in units(module):
        if device.type == "cuda":
            # Gathering breaks the graph, so a whole step cannot be compiled: what lies between two gatherings is.
            unit.compile(dynamic=False)
        fully_shard(unit, mesh=mesh)
    fully_shard(module, mesh=mesh)


def units(module: nn.Module) -> list[nn.Module]:
    """Elements of lists of modules, the innermost first, as FSDP wants them."""
    lists = [part for part in module.modules() if isinstance(part, nn.ModuleList)]
    found = [unit for part in reversed(lists) for unit in part if not isinstance(unit, nn.ModuleList)]
    return [unit for unit in found if any(True for _ in unit.parameters())]


def local(values: list[nn.Parameter]) -> list[Tensor]:
    """The parts that are here of tensors that may be split."""
    return [value.to_local() if isinstance(value, DTensor) else value for value in values]


def whole(value: Tensor) -> Tensor:
    """A tensor in one piece. One that is split is gathered: every process must ask for it at the same time."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def split_like(value: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, the same in every process, split as `other` is."""
    if not isinstance(other, DTensor) or value.shape != other.shape:
        return value
    value = value.to(other.device)
    return distribute_tensor(value, other.device_mesh, other.placements, src_data_rank=None)
