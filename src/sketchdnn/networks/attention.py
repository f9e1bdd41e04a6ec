"""Attention among the rows of a sketch (sixteen tokens, so a kernel of its own on a GPU), and the size of transformers.

The flash kernels of PyTorch are made for long sequences and pad sixteen rows to 64 or 128. On a GPU with Triton the
attention of one head of one sketch fits in registers, read once and written once. Elsewhere PyTorch's own is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from sketchdnn.representation.settings import check_network, within

_KERNEL = find_spec("triton") is not None
if _KERNEL:
    from . import short_attention


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """The size of a transformer."""

    width: int = field(default=512, metadata=within(1, 16_384))
    depth: int = field(default=12, metadata=within(1, 512))
    heads: int = field(default=8, metadata=within(1, 1024))

    def __post_init__(self) -> None:
        check_network(self)


def attend(qkv: Float[Tensor, "batch prim 3 head channel"]) -> Float[Tensor, "batch prim head channel"]:
    """softmax(q·kᵀ/√channel)·v within each sketch, for queries, keys and values that lie side by side."""
    if _KERNEL and qkv.is_cuda and qkv.dtype in (torch.bfloat16, torch.float16) and short_attention.fits(qkv.shape):
        mixed: Tensor = short_attention.attend_triton(qkv)
        return mixed
    query, key, value = qkv.permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
