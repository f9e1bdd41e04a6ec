"""What lies near each end of a sketch, in units of its noise: for a network that is told of neighbours."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.diffusion.gaussian import like, root
from sketchdnn.diffusion.schedule import Level
from sketchdnn.networks.neighbours import neighbours
from sketchdnn.representation.batch import SketchBatch

from .system import ConditionMask

# What differs by less is near, however little noise there is; the size of a sketch is 2.
_LEAST_NOISE = 0.003
# What was said of a place is that much nearer to the truth than the noisy place itself, about.
_SHARPER = 0.5


def near_noisy(batch_t: SketchBatch, level: Level, given: ConditionMask | None) -> Float[Tensor, "batch prim feature"]:
    """By the noisy rows. Given parts, shown clean, are brought to where they would be among noisy ones."""
    signal, unit = _units(level, batch_t.params)
    params = batch_t.params
    if given is not None:
        params = torch.where(given.params[..., None], signal * params, params)
    return _near(batch_t, params / unit)


def near_said(heard: SketchBatch, level: Level, data_std: float) -> Float[Tensor, "batch prim feature"]:
    """By what the network said before, as it hears it."""
    signal, unit = _units(level, heard.params)
    return _near(heard, heard.params * (data_std * signal / (_SHARPER * unit)))


def _near(rows: SketchBatch, params: Tensor) -> Float[Tensor, "batch prim feature"]:
    # In float32: half precision cannot tell places apart that are near.
    with torch.autocast(params.device.type, enabled=False):
        return neighbours(SketchBatch(rows.construction, rows.kind, params))


def _units(level: Level, params: Tensor) -> tuple[Tensor, Tensor]:
    """How large a sketch is at a level, and how large its noise, by which what is near is measured."""
    signal, noise = (like(root(part), params) for part in (level.alpha_bar, level.var))
    return signal, torch.maximum(noise, _LEAST_NOISE * signal)
