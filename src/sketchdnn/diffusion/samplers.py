"""Samplers: from noise to sketches, as functions of a denoiser.

All walk alike (`walk.py`) and differ in one step alone: a weighted sum of state, prediction and noise for each part of
a row, coordinates and logits of labels each on their own schedule. `steps` falls from T to 0, by default through all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor

from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from . import gaussian, latent
from . import labels as label
from .given import Given
from .latent import Latent
from .noise import NoiseSource
from .process import Denoiser, JointProcess, Noise
from .schedule import Level
from .walk import OnStep, Start, Weights, walk

Spacing = Literal["uniform", "quadratic"]
Labels = Literal["mean", "drawn"]


def ancestral(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    labels: Labels = "mean",
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """The paper's sampler: each step draws from the posterior, given the prediction.

    What stands for a label is the process's logit of the prediction (`mean`), or the label is `drawn` from the
    prediction. In small steps both come to the same; in long ones the mean forgets how uncertain the label was and
    favors the common kinds, while a drawn label has the right law however long the step (docs/decisions/0004).
    """
    clean_of = partial(drawn, process) if labels == "drawn" else None
    return walk(
        denoise,
        process,
        noise,
        posterior_weights,
        steps=steps,
        given=given,
        on_step=on_step,
        start=start,
        clean_of=clean_of,
    )


def authors(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    prediction_weight: float = 2.0,
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """The authors' sampler: `prediction_weight`·log ŷ_0 in the reverse mean, and the last prediction is the sample.

    The weight (1 is the paper's mean) stands in place of the process's own `reverse_logits`. Above 1 labels gain
    certainty and lose variety: this is no longer the reverse of the process.
    """
    if not prediction_weight > 0:
        raise ValueError(f"prediction_weight must be above zero, not {prediction_weight}")
    plain = replace(process, reverse_logits="log")

    def weighted(prediction: Prediction, _: Callable[[], Noise]) -> Latent:
        clean = latent.of_clean(plain.clean(prediction))
        return Latent(prediction_weight * clean.construction, prediction_weight * clean.kind, clean.params)

    return walk(
        denoise,
        process,
        noise,
        posterior_weights,
        steps=steps,
        given=given,
        on_step=on_step,
        start=start,
        clean_of=weighted,
        end_on_prediction=True,
    )


def ddim(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    eta: float = 0.0,
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """Song et al. 2021, on coordinates and logits together: `eta` of the noise of `ancestral`; 0 is deterministic."""
    if not 0 <= eta <= 1:
        raise ValueError(f"eta must lie in 0..1, not {eta}")

    def weights(level_s: Level, level_t: Level, _: Level) -> Weights:
        return ddim_weights(level_s, level_t, eta)

    return walk(denoise, process, noise, weights, steps=steps, given=given, on_step=on_step, start=start)


def dpm_solver_pp(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    *,
    steps: Sequence[int] | None = None,
    given: Given | None = None,
    on_step: OnStep | None = None,
    start: Start | None = None,
) -> SketchBatch:
    """DPM-Solver++(2M), Lu et al. 2022: deterministic, of second order in λ = ½ log SNR.

    A step of it is a step of DDIM with the prediction extrapolated from the last two. Where λ is infinite, from pure
    noise and to the clean end, it is of first order.
    """
    return walk(denoise, process, noise, solver_weights, steps=steps, given=given, on_step=on_step, start=start)


def step_sequence(num_steps: int, count: int, spacing: Spacing = "uniform") -> tuple[int, ...]:
    """`count` steps from T down to 0; `quadratic` spacing puts more of them near 0, where details form.

    >>> step_sequence(2000, 4), step_sequence(2000, 4, "quadratic")
    ((2000, 1500, 1000, 500, 0), (2000, 1125, 500, 125, 0))
    """
    if not 1 <= count <= num_steps:
        raise ValueError(f"count must lie in 1..{num_steps}, not {count}")
    if spacing not in get_args(Spacing):
        raise ValueError(f"spacing must be one of {get_args(Spacing)}, not {spacing!r}")
    power = 2 if spacing == "quadratic" else 1
    whole = count**power
    # Rounded in whole numbers; the second term keeps steps apart where they would round to the same.
    return tuple(max((2 * num_steps * i**power + whole) // (2 * whole), i) for i in range(count, -1, -1))


def posterior_weights(level_s: Level, level_t: Level, _: Level) -> Weights:
    """Those of q(x_s | x_t, x_0)."""
    of_x_t, of_x0, std = gaussian.posterior_weights(level_s, level_t)
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def ddim_weights(level_s: Level, level_t: Level, eta: float) -> Weights:
    """Noise of `eta` times the posterior's deviation; the rest is kept from x_t. With eta = 1 it is the posterior."""
    alpha_ts, var_ts = gaussian.transition(level_s, level_t)
    std = eta * gaussian.root(var_ts * level_s.var / level_t.var)
    # √(var_s − std²)/√var_t, with the difference written out so that it does not cancel.
    kept = alpha_ts * level_s.var + (1 - eta**2) * var_ts
    of_x_t = gaussian.root(level_s.var * kept) / level_t.var
    of_x0 = gaussian.root(level_s.alpha_bar) - gaussian.root(level_t.alpha_bar) * of_x_t
    return Weights(of_x_t, of_x0, torch.zeros_like(of_x0), std)


def solver_weights(level_s: Level, level_t: Level, level_before: Level) -> Weights:
    """A step of DDIM with x̂_0 replaced by x̂_0 + w·(x̂_0 − the prediction before)."""
    plain = ddim_weights(level_s, level_t, 0.0)
    beyond = extrapolation(level_s, level_t, level_before)
    return plain._replace(of_x0=plain.of_x0 * (1 + beyond), of_before=-plain.of_x0 * beyond)


def extrapolation(level_s: Level, level_t: Level, level_before: Level) -> Tensor:
    """How far DPM-Solver++(2M) goes on beyond the last two predictions.

    Nothing where a step in λ is infinite, or where there is no prediction from a noisier level before.
    """
    at_s, at_t, at_before = (_half_log_snr(level) for level in (level_s, level_t, level_before))
    ahead, behind = at_s - at_t, at_t - at_before
    usable = ahead.isfinite() & behind.isfinite() & (behind > 0)
    return torch.where(usable, torch.where(usable, ahead, 0.0) / (2 * torch.where(usable, behind, 1.0)), 0.0)


def drawn(process: JointProcess, prediction: Prediction, noise: Callable[[], Noise]) -> Latent:
    """A prediction with its labels drawn; parameters stay superposed by how likely their kinds were."""
    fresh = noise()
    construction = label.draw(prediction.construction, fresh.construction)
    kind = label.draw(prediction.kind, fresh.kind)
    known = latent.of_sketch(SketchBatch(construction, kind, prediction.params), process.label_smoothing)
    return known._replace(params=process.clean(prediction).params)


def _half_log_snr(level: Level) -> Tensor:
    """±inf at the ends. Set there, not computed, so that what leaves them out has a finite gradient."""
    noise, clean = level.alpha_bar == 0, level.var == 0
    half = (level.alpha_bar.masked_fill(noise, 1.0).log() - level.var.masked_fill(clean, 1.0).log()) / 2
    return half.masked_fill(noise, -math.inf).masked_fill(clean, math.inf)
