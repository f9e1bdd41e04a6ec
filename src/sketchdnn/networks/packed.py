"""Blocks for inference on a CPU: weights in the layout and the type of the matrix products, and fewer operations.

PyTorch brings the weights of a layer into the layout of its kernels, and under autocast into bfloat16, whenever they
are used. With small batches this takes as long as the products. Packed blocks do both once. The operations are those of
`set_denoiser.Block`, in the same order, so that results are equal to the bit wherever the kernels are: with bfloat16.
In float32 PyTorch uses another library for weights that are not packed, so results differ in the last digits.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.representation.layout import MAX_PRIMITIVES

from .low_rank import inference_weight
from .set_denoiser import Block, SetDenoiser

# Rows that the layout of weights is chosen for. All numbers of rows may use it.
_ROWS = 256
# Weights and their versions → the packed network.
_PACKED: WeakKeyDictionary[SetDenoiser, dict[torch.dtype, tuple[tuple[int, ...], SetDenoiser]]] = WeakKeyDictionary()

# Whether packed blocks round alike: by the type, the batch sizes and the number of threads.
_ALIKE: WeakKeyDictionary[SetDenoiser, dict[tuple[torch.dtype, tuple[int, ...], int], bool]] = WeakKeyDictionary()


def can_pack() -> bool:
    """Whether this build of PyTorch packs weights."""
    is_available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_available and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def pack(network: SetDenoiser, dtype: torch.dtype) -> SetDenoiser:
    """The network with packed blocks of a type, for inference only. It is made again after weights have changed.

    All layers outside the blocks are shared.
    """
    state = tuple(number for weight in network.blocks.parameters() for number in (weight.data_ptr(), weight._version))
    made = _PACKED.setdefault(network, {})
    if dtype not in made or made[dtype][0] != state:
        packed = copy.copy(network)
        blocks = nn.ModuleList(PackedBlock(block, dtype) for block in network.blocks if isinstance(block, Block))
        packed.__dict__["_modules"] = {**network._modules, "blocks": blocks}
        made[dtype] = state, packed
    return made[dtype][1]


def packs_alike(network: SetDenoiser, dtype: torch.dtype, batches: Sequence[int]) -> bool:
    """Whether a packed block is equal to the bit to the block itself, for batches of these sizes. Computed once."""
    block = network.blocks[0]
    if not isinstance(block, Block):
        return False
    results = _ALIKE.setdefault(network, {})
    key = dtype, tuple(batches), torch.get_num_threads()
    if key not in results:
        packed, generator = PackedBlock(block, dtype), torch.Generator().manual_seed(0)
        width, narrow = block.table.shape[1], dtype == torch.bfloat16
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            inputs = [
                [torch.randn(batch, *shape, generator=generator) for shape in ((MAX_PRIMITIVES, width), (1, 6, width))]
                for batch in batches
            ]
            results[key] = all(torch.equal(packed(h, shared), block(h, shared)) for h, shared in inputs)
    return results[key]


class PackedBlock(nn.Module):
    """A `Block` with packed weights and without dropout."""

    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.heads = dtype, block.heads
        layers = block.qkv, block.out, block.gate_up, block.down
        self.qkv, self.out, self.gate_up, self.down = (_pack_weight(layer, dtype) for layer in layers)
        self.table = block.table.detach()
        self.norm_weight = torch.stack([block.q_norm.weight, block.k_norm.weight]).detach()[:, None]

    def forward(self, h: Tensor, shared: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = (shared + self.table).unbind(dim=-2)
        h = h + gate_a * self._attend(_rms_norm(h).mul_(1 + scale_a).add_(shift_a))
        gate, up = self._linear(_rms_norm(h).mul_(1 + scale_m).add_(shift_m), self.gate_up).chunk(2, dim=-1)
        return h.add_(gate_m * self._linear(functional.silu(gate) * up, self.down))

    def _attend(self, h: Tensor) -> Tensor:
        qkv = self._linear(h, self.qkv)
        qkv = qkv.reshape(*qkv.shape[:2], 3, self.heads, -1)
        query, key = (_rms_norm(qkv[:, :, :2].float()) * self.norm_weight).to(self.dtype).unbind(dim=2)
        value = qkv[:, :, 2].transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), value)
        return self._linear(mixed.transpose(1, 2).flatten(2), self.out)

    def _linear(self, x: Tensor, weight: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), weight, None, "none", [], "")
        return product


def _pack_weight(layer: nn.Linear, dtype: torch.dtype) -> Tensor:
    weight = inference_weight(layer).to(dtype).contiguous()
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
    return packed


def _rms_norm(x: Tensor) -> Tensor:
    return functional.rms_norm(x, x.shape[-1:])
