"""Sampled rows as small tensors, to be stored: the labels that decoding reads, and every parameter."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from sketchdnn.representation import SketchBatch, layout


def packed(batch: SketchBatch) -> dict[str, Tensor]:
    """The tensors of a batch."""
    kind, construction = (part.argmax(dim=-1).to(torch.uint8) for part in (batch.kind, batch.construction))
    return {"kind": kind.cpu(), "construction": construction.cpu(), "params": batch.params.float().cpu()}


def unpacked(tensors: Mapping[str, Tensor]) -> SketchBatch:
    """The batch of `packed` tensors."""
    return SketchBatch(
        one_hot(tensors["construction"].long(), layout.NUM_CONSTRUCTION).float(),
        one_hot(tensors["kind"].long(), layout.NUM_KINDS).float(),
        tensors["params"],
    )
