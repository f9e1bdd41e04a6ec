"""A sketch in the space where all of it is Gaussian: logits of both labels, and parameters.

Samplers walk here and show the network the simplex, so that nothing is lost to a softmax and the logarithm after it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.representation.batch import SketchBatch

from .labels import smooth
from .process import Clean, JointProcess, Noise
from .schedule import Level


class Latent(NamedTuple):
    """Three tensors that diffuse alike, each on its own schedule; labels as logits, of which a shift means nothing."""

    construction: Float[Tensor, "batch prim 2"]
    kind: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    def batch(self) -> SketchBatch:
        """What the network sees: labels on the simplex."""
        return SketchBatch(self.construction.softmax(dim=-1), self.kind.softmax(dim=-1), self.params)


def of_noise(noise: Noise) -> Latent:
    return Latent(noise.construction, noise.kind, noise.params)


def of_clean(clean: Clean) -> Latent:
    """A prediction as the reverse mean wants it."""
    return Latent(clean.construction_logits, clean.kind_logits, clean.params)


def of_sketch(x0: SketchBatch, label_smoothing: float) -> Latent:
    """A clean sketch, its labels smoothed so that their logarithm is finite."""
    return Latent(smooth(x0.construction, label_smoothing).log(), smooth(x0.kind, label_smoothing).log(), x0.params)


def levels(process: JointProcess, t: int) -> tuple[Level, Level, Level]:
    """How noisy each part is at step t, in the order of a latent."""
    at_t = process.levels(t)
    return at_t.construction, at_t.kind, at_t.params


def where(masks: tuple[Tensor, Tensor, Tensor], these: Latent, others: Latent) -> Latent:
    """`these` where a mask is true, `others` elsewhere."""
    return Latent(*map(torch.where, masks, these, others))
