"""Loose ends of a batch of sketches, for samplers: found from the rows, without tracing loops."""

from __future__ import annotations

import torch
from jaxtyping import Bool
from torch import Tensor

from sketchdnn.geometry import Kind

from . import layout
from .batch import SketchBatch

# In a model's coordinates, where the larger side is about 2: ends this close count as joined before repair.
WITHIN = 0.02


def has_loose_end(batch: SketchBatch, within: float = WITHIN) -> Bool[Tensor, " batch"]:
    """Whether a non-construction line or arc has an end with no end of another curve `within` a distance.

    An end on the middle of another curve is loose too, since no loop continues there.
    """
    kind = batch.kind.argmax(dim=-1)
    is_arc = kind == Kind.ARC.value
    with_ends = is_arc | (kind == Kind.LINE.value)
    is_drawn = with_ends & (batch.construction.argmax(dim=-1) == 0)
    arcs, lines = (batch.of_kind(each)[..., : layout.BEND] for each in (Kind.ARC, Kind.LINE))
    ends = torch.where(is_arc[..., None], arcs, lines).reshape(len(batch), -1, 2)
    apart = (ends[:, :, None] - ends[:, None]).norm(dim=-1)
    row = torch.arange(kind.shape[1], device=kind.device).repeat_interleave(2)
    to_other = with_ends.repeat_interleave(2, dim=1)[:, None] & (row[:, None] != row)
    is_met = (to_other & (apart <= within)).any(dim=-1)
    is_loose: Tensor = is_drawn.repeat_interleave(2, dim=1) & ~is_met
    return is_loose.any(dim=-1)
