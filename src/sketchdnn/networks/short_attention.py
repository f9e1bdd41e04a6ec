"""Attention over at most 64 rows as one Triton program for each head of each sketch.

Only inputs and output touch memory. This module is imported only where Triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_MAX_ROWS = 64
_CHANNELS = (16, 32, 64, 128)


def fits(shape: torch.Size) -> bool:
    """Whether the kernel supports the shape: few rows, and channels that fill its tiles."""
    return shape[1] <= _MAX_ROWS and shape[4] in _CHANNELS


@torch.library.custom_op("sketchdnn::short_attention", mutates_args=())
def attend_triton(qkv: Tensor) -> Tensor:
    """softmax(q·kᵀ/√channel)·v for `batch, prim, 3, head, channel`."""
    qkv = qkv.contiguous()
    batch, rows, _, heads, channels = qkv.shape
    out = qkv.new_empty(batch, rows, heads, channels)
    if batch:
        _forward[(batch * heads,)](
            qkv, out, rows, heads, channels**-0.5, ROWS=_padded(rows), CHANNELS=channels, num_warps=1
        )
    return out


@torch.library.custom_op("sketchdnn::short_attention_backward", mutates_args=())
def attend_triton_backward(grad: Tensor, qkv: Tensor) -> Tensor:
    """The gradient of queries, keys and values, in their layout."""
    grad, qkv = grad.contiguous(), qkv.contiguous()
    batch, rows, _, heads, channels = qkv.shape
    grad_qkv = torch.empty_like(qkv)
    if batch:
        _backward[(batch * heads,)](
            grad, qkv, grad_qkv, rows, heads, channels**-0.5, ROWS=_padded(rows), CHANNELS=channels, num_warps=1
        )
    return grad_qkv


attend_triton.register_fake(lambda qkv: qkv.new_empty(*qkv.shape[:2], *qkv.shape[3:]))
attend_triton_backward.register_fake(lambda grad, qkv: qkv.new_empty(qkv.shape))


def _save_inputs(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate(ctx: Any, grad: Tensor) -> Tensor:
    (qkv,) = ctx.saved_tensors
    grad_qkv: Tensor = attend_triton_backward(grad, qkv)
    return grad_qkv


attend_triton.register_autograd(_differentiate, setup_context=_save_inputs)


def _padded(rows: int) -> int:
    """A tile has a power of two of rows, at least what a tensor core takes."""
    return max(16, 1 << (rows - 1).bit_length())


@triton.jit
def _forward(qkv, out, rows, heads, scale, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
    pair = tl.program_id(0)
    sketch, head = (pair // heads).to(tl.int64), pair % heads
    row, channel = tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    real, width = row < rows, heads * CHANNELS
    place = qkv + (sketch * rows + row[:, None]) * 3 * width + head * CHANNELS + channel[None, :]
    q = tl.load(place, mask=real[:, None], other=0.0)
    k = tl.load(place + width, mask=real[:, None], other=0.0)
    v = tl.load(place + 2 * width, mask=real[:, None], other=0.0)
    score = tl.where(real[None, :], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
    weight = tl.exp(score - tl.max(score, axis=1)[:, None])
    weight = weight / tl.sum(weight, axis=1)[:, None]
    mixed = tl.dot(weight.to(v.dtype), v)
    target = out + (sketch * rows + row[:, None]) * width + head * CHANNELS + channel[None, :]
    tl.store(target, mixed.to(v.dtype), mask=real[:, None])


@triton.jit
def _backward(grad, qkv, grad_qkv, rows, heads, scale, ROWS: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: N803
    pair = tl.program_id(0)
    sketch, head = (pair // heads).to(tl.int64), pair % heads
    row, channel = tl.arange(0, ROWS), tl.arange(0, CHANNELS)
    real, width = row < rows, heads * CHANNELS
    offset = (sketch * rows + row[:, None]) * 3 * width + head * CHANNELS + channel[None, :]
    q = tl.load(qkv + offset, mask=real[:, None], other=0.0)
    k = tl.load(qkv + offset + width, mask=real[:, None], other=0.0)
    v = tl.load(qkv + offset + 2 * width, mask=real[:, None], other=0.0)
    source = grad + (sketch * rows + row[:, None]) * width + head * CHANNELS + channel[None, :]
    g = tl.load(source, mask=real[:, None], other=0.0)
    # The weights are recomputed: cheaper than to store them.
    score = tl.where(real[None, :], tl.dot(q, tl.trans(k)) * scale, float("-inf"))
    weight = tl.exp(score - tl.max(score, axis=1)[:, None])
    weight = weight / tl.sum(weight, axis=1)[:, None]
    grad_weight = tl.dot(g, tl.trans(v))
    grad_score = weight * (grad_weight - tl.sum(grad_weight * weight, axis=1)[:, None]) * scale
    grad_score = tl.where(real[:, None], grad_score, 0.0).to(q.dtype)
    weight = tl.where(real[:, None], weight, 0.0).to(q.dtype)
    tl.store(grad_qkv + offset, tl.dot(grad_score, k).to(q.dtype), mask=real[:, None])
    tl.store(grad_qkv + offset + width, tl.dot(tl.trans(grad_score), q).to(q.dtype), mask=real[:, None])
    tl.store(grad_qkv + offset + 2 * width, tl.dot(tl.trans(weight), g).to(q.dtype), mask=real[:, None])
