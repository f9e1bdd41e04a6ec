"""Reconstruction losses: squared error of the parameters, cross entropy of both labels.

Three functions that differ in how they average: `paper_loss`, `authors_loss`, `our_loss`. All mask the parameters by
the true kind: those of other kinds are free, so that every row can be a superposition.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant

from . import gaussian
from .gaussian import Level, like
from .process import check_shape

# λ and the last step it holds for.
MSE_BOOST = 16.0
BOOST_UNTIL = 150

Steps = Int[Tensor, " batch"]


@dataclass(frozen=True, slots=True)
class Loss:
    """The terms of a loss, one value a sample: their mean is the loss, their split by t shows where it comes from."""

    params_per_sample: Float[Tensor, " batch"]
    kind_per_sample: Float[Tensor, " batch"]
    construction_per_sample: Float[Tensor, " batch"]

    @property
    def per_sample(self) -> Float[Tensor, " batch"]:
        return self.params_per_sample + self.kind_per_sample + self.construction_per_sample

    @property
    def total(self) -> Float[Tensor, ""]:
        return self.per_sample.mean()


def paper_loss(prediction: Prediction, x0: SketchBatch, t: Steps, *, mse_boost: float = MSE_BOOST) -> Loss:
    """L_RECON of the text: λ·MSE + CE, λ = 16 for t ≤ 150, else 1.

    The text does not specify how it averages. Here the MSE is the mean over a sketch's relevant parameters and a CE the
    mean over its rows, both labels added; then the mean over sketches. So a sketch's loss does not depend on its
    batch, and is the same on one device as on eight.
    """
    _check(prediction, x0, t)
    kind, construction = _cross_entropies(prediction, x0)
    error = _mean_of_relevant((prediction.params - x0.params) ** 2, x0)
    return Loss(mse_weight(t, mse_boost) * error, kind.mean(dim=-1), construction.mean(dim=-1))


def authors_loss(prediction: Prediction, x0: SketchBatch, t: Steps, *, mse_boost: float = MSE_BOOST) -> Loss:
    """The loss of the released code.

    MSE = Σ(λ·mask·err²)/Σmask over the whole batch, so a large sketch counts more. Each CE is averaged over elements,
    categories included: the kind's comes out divided by 5, the construction's by 2. An empty row has the construction
    label [0, 0] and adds nothing. The values a sample are shares of the batch's: only their mean is the authors'.
    """
    _check(prediction, x0, t)
    mask = relevant(x0.kind.argmax(dim=-1))
    squared = ((prediction.params - x0.params) ** 2 * mask).sum(dim=(1, 2))
    per_batch = len(x0) / mask.sum().clamp(min=1)
    filled = 1 - x0.kind[..., layout.NONE]
    kind, construction = _cross_entropies(prediction, x0)
    return Loss(
        mse_weight(t, mse_boost) * squared * per_batch,
        kind.mean(dim=-1) / layout.NUM_KINDS,
        (construction * filled).mean(dim=-1) / layout.NUM_CONSTRUCTION,
    )


def our_loss(prediction: Prediction, x0: SketchBatch, level_t: Level, data_std: float) -> Loss:
    """Uniform in the network's output: the error of x̂_0 is divided by c_out, which makes it an error of F.

    `level_t` is the level of the parameters, t ≥ 1. Averaged as in `paper_loss`.
    """
    _check(prediction, x0)
    if level_t.alpha_bar.shape not in ((), (len(x0),)):
        raise ValueError(f"level_t must be one level, or one a sample, not of shape {tuple(level_t.alpha_bar.shape)}")
    error = (prediction.params - x0.params) ** 2
    out = like(gaussian.preconditioning(level_t, data_std).out, error)
    kind, construction = _cross_entropies(prediction, x0)
    return Loss(_mean_of_relevant(error / out**2, x0), kind.mean(dim=-1), construction.mean(dim=-1))


def mse_weight(t: Steps, mse_boost: float, boost_until: int = BOOST_UNTIL) -> Float[Tensor, " batch"]:
    """λ for t up to and including `boost_until`, else 1."""
    return torch.where(t <= boost_until, mse_boost, 1.0)


def _check(prediction: Prediction, x0: SketchBatch, t: Tensor | None = None) -> None:
    """Shapes only, which need no value of a tensor. A wrong one would broadcast silently."""
    check_shape(x0, "x0")
    check_shape(prediction, "prediction", like=x0)
    if t is not None and t.shape != (len(x0),):
        raise ValueError(f"t must hold one step a sample, {len(x0)} of them, not the shape {tuple(t.shape)}")


def _mean_of_relevant(values: Float[Tensor, "batch prim param"], x0: SketchBatch) -> Float[Tensor, " batch"]:
    """The mean over each sketch's relevant parameters; zero for an empty sketch."""
    mask = relevant(x0.kind.argmax(dim=-1))
    return (values * mask).sum(dim=(1, 2)) / mask.sum(dim=(1, 2)).clamp(min=1)


def _cross_entropies(prediction: Prediction, x0: SketchBatch) -> tuple[Tensor, Tensor]:
    """Of the kind and of the construction of each row."""
    kind, construction = prediction.kind_logits.log_softmax(dim=-1), prediction.construction_logits.log_softmax(dim=-1)
    return -(x0.kind * kind).sum(dim=-1), -(x0.construction * construction).sum(dim=-1)
