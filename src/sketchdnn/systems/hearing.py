"""A network that hears what it said before (self-conditioning, Chen et al. 2023): how it is told, who remembers.

What was said is a `Prediction`. A label of which nothing was said has no chance to be anything: its logits are all −∞.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion.process import Noise
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from .system import ConditionMask

# Walks that training prepares for, and how many strides of them a batch takes in turn.
_FEWEST_STEPS, _STRIDES = 25, 8


class PredictionInput(Protocol):
    """A denoiser that can be told what it said before."""

    def __call__(self, batch_t: SketchBatch, t: Int[Tensor, " batch"], *, before: Prediction) -> Prediction: ...


class SelfConditionedDenoiser:
    """A denoiser for one trajectory: every call gets the prediction of the call before, the first a null prediction."""

    def __init__(self, denoise: PredictionInput) -> None:
        self.denoise = denoise
        self.previous: Prediction | None = None

    def __call__(self, batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction:
        # The null prediction is passed, not left out, so that a compiled denoiser is one graph for all steps.
        previous = null_prediction(batch_t.params) if self.previous is None else self.previous
        self.previous = self.denoise(batch_t, t, before=previous)
        return self.previous

    def fresh(self) -> SelfConditionedDenoiser:
        return SelfConditionedDenoiser(self.denoise)


def null_prediction(like: Float[Tensor, "batch prim 14"]) -> Prediction:
    """Nothing said of any row."""
    rows = like.shape[:2]
    return Prediction(
        like.new_full((*rows, layout.NUM_CONSTRUCTION), -math.inf),
        like.new_full((*rows, layout.NUM_KINDS), -math.inf),
        like.new_zeros((*rows, layout.NUM_PARAMS)),
    )


def step_before(t: Int[Tensor, " batch"], num_steps: int) -> Int[Tensor, " batch"]:
    """A noisier step for each, at most T, as far up as a walk of 25 steps or any more comes from.

    Steps of a walk are spaced quadratically, so √t falls evenly: by nearly nothing to 1/25, in turn along a batch.
    """
    turns = (torch.arange(len(t), device=t.device) % _STRIDES + 1) / _STRIDES
    up = num_steps * ((t / num_steps).sqrt() + turns / _FEWEST_STEPS).square()
    return torch.maximum(up.round().long(), t + 1).clamp(max=num_steps)


def rolled(noise: Noise) -> Noise:
    """The noise of another sketch of the batch for each: as good as fresh, without a draw."""
    return Noise(*(part.roll(1, dims=0) for part in (noise.construction, noise.kind, noise.params)))


def every_other(said: Prediction, count: int) -> Prediction:
    """What was said of the sketches 0, 2, 4, … of `count`, and of those between them nothing."""
    silent = null_prediction(said.params)

    def mixed(some: Tensor, none: Tensor) -> Tensor:
        return torch.stack([some, none], dim=1).flatten(0, 1)[:count]

    return Prediction(
        mixed(said.construction_logits, silent.construction_logits),
        mixed(said.kind_logits, silent.kind_logits),
        mixed(said.params, silent.params),
    )


def as_heard(before: Prediction, batch_t: SketchBatch, given: ConditionMask | None, data_std: float) -> SketchBatch:
    """A prediction as rows for the network: chances of labels, parameters scaled as those of rows without noise are.

    What is given it knows for sure, as it is shown in `batch_t`. Rows of which nothing was said are all zero.
    """
    rows = SketchBatch(_chances(before.construction_logits), _chances(before.kind_logits), before.params)
    if given is not None:
        rows = given.fill_rows(batch_t, rows)
    there = _said(before.kind_logits)
    return SketchBatch(rows.construction * there, rows.kind * there, rows.params * there / data_std)


def _chances(logits: Float[Tensor, "batch prim cat"]) -> Float[Tensor, "batch prim cat"]:
    said = _said(logits)
    return torch.where(said, logits, 0.0).softmax(dim=-1) * said


def _said(logits: Float[Tensor, "batch prim cat"]) -> Tensor:
    """Whether anything was said, by label. What is not a number was: it is not to pass for silence."""
    return (logits != -math.inf).any(dim=-1, keepdim=True)
