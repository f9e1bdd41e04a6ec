"""Extra inputs of our denoiser: its previous prediction (self-conditioning, Chen et al. 2023) and proximity features.

The previous prediction is a `Prediction`. A null prediction, before the first step, has logits of −∞ everywhere: no
label has any probability.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion.gaussian import like, root
from sketchdnn.diffusion.process import Noise
from sketchdnn.diffusion.schedule import Level
from sketchdnn.networks.set_denoiser import proximity_features
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from .system import ConditionMask

# Sampling runs that training prepares for, and the number of step lengths that a batch cycles through.
_MIN_SAMPLING_STEPS, _STRIDES = 25, 8
# Distances are measured in units of the noise, but of no less than this; the size of a sketch is 2.
_MIN_UNIT = 0.003
# A predicted place is about that much closer to the truth than the noisy place.
_PREDICTION_UNIT = 0.5


class PredictionInput(Protocol):
    """A denoiser that takes its previous prediction."""

    def __call__(self, batch_t: SketchBatch, t: Int[Tensor, " batch"], *, previous: Prediction) -> Prediction: ...


class SelfConditionedDenoiser:
    """A denoiser for one trajectory: every call gets the prediction of the call before, the first a null prediction."""

    def __init__(self, denoise: PredictionInput) -> None:
        self.denoise = denoise
        self.previous: Prediction | None = None

    def __call__(self, batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction:
        # The null prediction is passed, not left out, so that a compiled denoiser is one graph for all steps.
        previous = null_prediction(batch_t.params) if self.previous is None else self.previous
        self.previous = self.denoise(batch_t, t, previous=previous)
        return self.previous

    def fresh(self) -> SelfConditionedDenoiser:
        return SelfConditionedDenoiser(self.denoise)


def null_prediction(like: Float[Tensor, "batch prim 14"]) -> Prediction:
    """No prediction for any row."""
    rows = like.shape[:2]
    return Prediction(
        like.new_full((*rows, layout.NUM_CONSTRUCTION), -math.inf),
        like.new_full((*rows, layout.NUM_KINDS), -math.inf),
        like.new_zeros((*rows, layout.NUM_PARAMS)),
    )


def previous_step(t: Int[Tensor, " batch"], num_steps: int) -> Int[Tensor, " batch"]:
    """For each t a noisier step, at most T, from which a sampling run of 25 or more steps may arrive at t.

    Sampling steps are spaced quadratically, so √t falls evenly: by 1/25 of √T or less, in turn along the batch.
    """
    strides = (torch.arange(len(t), device=t.device) % _STRIDES + 1) / _STRIDES
    noisier = num_steps * ((t / num_steps).sqrt() + strides / _MIN_SAMPLING_STEPS).square()
    return torch.maximum(noisier.round().long(), t + 1).clamp(max=num_steps)


def roll_noise(noise: Noise) -> Noise:
    """The noise of another sketch of the batch for each: as good as fresh, without a draw."""
    return Noise(*(part.roll(1, dims=0) for part in (noise.construction, noise.kind, noise.params)))


def interleave_null(prediction: Prediction, count: int) -> Prediction:
    """Predictions for sketches 0, 2, 4, … of `count`, and null predictions for those between them."""
    null = null_prediction(prediction.params)

    def interleave(some: Tensor, none: Tensor) -> Tensor:
        return torch.stack([some, none], dim=1).flatten(0, 1)[:count]

    return Prediction(
        interleave(prediction.construction_logits, null.construction_logits),
        interleave(prediction.kind_logits, null.kind_logits),
        interleave(prediction.params, null.params),
    )


def prediction_rows(
    previous: Prediction, batch_t: SketchBatch, mask: ConditionMask | None, data_std: float
) -> SketchBatch:
    """A previous prediction as input rows: probabilities of labels, and parameters scaled to unit variance.

    Known parts are taken from `batch_t`, which shows them clean. Rows of a null prediction are all zero.
    """
    rows = SketchBatch(
        _probabilities(previous.construction_logits), _probabilities(previous.kind_logits), previous.params
    )
    if mask is not None:
        rows = mask.fill_rows(batch_t, rows)
    exists = _exists(previous.kind_logits)
    return SketchBatch(rows.construction * exists, rows.kind * exists, rows.params * exists / data_std)


def noisy_proximity(
    batch_t: SketchBatch, level: Level, mask: ConditionMask | None
) -> Float[Tensor, "batch prim feature"]:
    """Proximity features of the noisy rows. Known parts, shown clean, are scaled to where noisy ones lie."""
    signal, unit = _signal_and_unit(level, batch_t.params)
    params = batch_t.params
    if mask is not None:
        params = torch.where(mask.params[..., None], signal * params, params)
    return _features(batch_t, params / unit)


def predicted_proximity(rows: SketchBatch, level: Level, data_std: float) -> Float[Tensor, "batch prim feature"]:
    """Proximity features of the previous prediction, as `prediction_rows` returns it."""
    signal, unit = _signal_and_unit(level, rows.params)
    return _features(rows, rows.params * (data_std * signal / (_PREDICTION_UNIT * unit)))


def _features(rows: SketchBatch, params: Tensor) -> Float[Tensor, "batch prim feature"]:
    # In float32: half precision cannot resolve small distances.
    with torch.autocast(params.device.type, enabled=False):
        return proximity_features(SketchBatch(rows.construction, rows.kind, params))


def _signal_and_unit(level: Level, params: Tensor) -> tuple[Tensor, Tensor]:
    """The scale of a sketch at this level, and the unit of distance: the standard deviation of the noise."""
    signal, noise = (like(root(part), params) for part in (level.alpha_bar, level.var))
    return signal, torch.maximum(noise, _MIN_UNIT * signal)


def _probabilities(logits: Float[Tensor, "batch prim cat"]) -> Float[Tensor, "batch prim cat"]:
    exists = _exists(logits)
    return torch.where(exists, logits, 0.0).softmax(dim=-1) * exists


def _exists(logits: Float[Tensor, "batch prim cat"]) -> Tensor:
    """Whether there is a prediction, by label. NaN counts as one: it must not pass for null."""
    return (logits != -math.inf).any(dim=-1, keepdim=True)
