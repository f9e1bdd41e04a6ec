"""Sketches that are varied in training: turned by any angle, smaller, stretched. Ends that met still meet.

A corpus is small beside what a network can remember. Varied sketches show it more of how ends meet and lines run; they
are not such as people draw, so it is told that they are aside, and draws none of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout

# Uniform numbers a sketch: whether it is varied; how far it is turned, how large and how wide it becomes.
NUM_DRAWS = 4
# The least size and the least width, of the whole.
_LEAST_SIZE, _LEAST_WIDTH = 0.6, 0.5


class Variation(NamedTuple):
    """Which sketches of a batch are varied, and three uniform numbers for each that say how."""

    chosen: Bool[Tensor, " batch"]
    how: Float[Tensor, "batch 3"]


def draw_variation(uniform: Float[Tensor, "batch 4"], share: float) -> Variation:
    """A `share` of the sketches, chosen by chance."""
    return Variation(uniform[:, 0] < share, uniform[:, 1:])


def vary(
    kind: Int[Tensor, "batch prim"], params: Float[Tensor, "batch prim 5"], variation: Variation
) -> Float[Tensor, "batch prim 5"]:
    """Compact rows, of the chosen sketches smaller, half of them turned, and without circles and arcs narrower."""
    turn, size, width = variation.how[:, :, None].unbind(dim=1)
    angle = (turn - 0.5).clamp(min=0) * math.pi  # a quarter turn at most: whole quarters are symmetries
    cos, sin = angle.cos(), angle.sin()
    # A square that is turned is wider by this; what is in it stays within the frame.
    scale = (_LEAST_SIZE + (1 - _LEAST_SIZE) * size) / (cos + sin)
    is_round = (kind == Kind.CIRCLE.value) | (kind == Kind.ARC.value)
    narrow = torch.where(is_round.any(dim=1, keepdim=True), 1.0, _LEAST_WIDTH + (1 - _LEAST_WIDTH) * width)

    def moved(places: Tensor) -> Tensor:
        # Written out: as a product of matrices it would be rounded to half precision where training is.
        x, y = scale * narrow * places[..., 0], scale * places[..., 1]
        return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)

    start, end = moved(params[..., layout.START]), moved(params[..., layout.END])
    # A circle keeps its radius in place of an end.
    is_circle = (kind == Kind.CIRCLE.value)[..., None]
    end = torch.where(is_circle, scale[..., None] * params[..., layout.END], end)
    return torch.where(
        variation.chosen[:, None, None], torch.cat([start, end, params[..., layout.BEND :]], dim=-1), params
    )
