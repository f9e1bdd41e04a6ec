"""Low-rank adapters (LoRA, Hu et al. 2021): linear layers with a fixed matrix and a trained change of low rank."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional


class LowRankLinear(nn.Linear):
    """A linear layer with the weight W + U·D, where W is fixed and U is zero at first.

    `merge` computes the sum once, for inference.
    """

    _merged: Tensor | None

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.weight.requires_grad_(False)
        self.low_rank_down = nn.Parameter(layer.weight.new_empty(rank, layer.in_features))
        self.low_rank_up = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))
        nn.init.kaiming_uniform_(self.low_rank_down, a=math.sqrt(5))
        self.register_buffer("_merged", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.sum() if self._merged is None else self._merged, self.bias)

    def sum(self) -> Tensor:
        """W + U·D, in single precision."""
        with torch.autocast(self.weight.device.type, enabled=False):
            return self.weight + self.low_rank_up @ self.low_rank_down

    def merge(self) -> None:
        """Compute the weight now; the layer is for inference only from then on."""
        self._merged = self.sum().detach()


def inference_weight(layer: nn.Linear) -> Tensor:
    """The weight that a layer multiplies by, without gradients."""
    if not isinstance(layer, LowRankLinear):
        return layer.weight.detach()
    return (layer.sum() if layer._merged is None else layer._merged).detach()


def add_adapters(module: nn.Module, rank: int, except_for: Collection[str] = ()) -> None:
    """Replace linear layers by `LowRankLinear` of the same weights, in place. All other weights stay trainable.

    Args:
        module: The network.
        rank: The rank of every change. A layer keeps its own weight if an adapter would not be smaller.
        except_for: Names of layers that keep their own weight too.
    """
    if rank < 1:
        raise ValueError(f"the rank of an adapter must be at least 1, not {rank}")
    for parent in list(module.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is not nn.Linear or name in except_for:
                continue
            if rank * sum(layer.weight.shape) < layer.weight.numel():
                setattr(parent, name, LowRankLinear(layer, rank))


def adapters(module: nn.Module) -> Iterator[LowRankLinear]:
    """The adapted layers of a module."""
    return (layer for layer in module.modules() if isinstance(layer, LowRankLinear))
