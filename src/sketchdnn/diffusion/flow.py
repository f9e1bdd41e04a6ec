"""The probability-flow ODE of the joint process: a deterministic path from noise to a sketch, and back.

Every part of a row is Gaussian: coordinates themselves, and logits of labels. Let r = √(ᾱ/(1 − ᾱ)), the square root of
the SNR of that part. In z = x/√(1 − ᾱ) the ODE of a part is dz/dr = x̂_0(X_t), where x̂_0 is the expected clean value
given all parts of all rows. For a label it is the expected logit Σ_c p(c | X_t)·log y'_0(c), because the clean logits
are a mixture over the categories (docs/few_steps.md derives both).

Each part has its own r, as a function of the common time t. A step of Euler's method holds x̂_0 constant, which is a
step of DDIM; a step of Heun's method lets it change linearly in λ = log r.

The flow map X_t → X_s is a step of Euler's method with the mean of x̂_0 along the path, weighted by dr. The mean of
predicted probabilities is a probability vector. So a network that outputs a softmax can represent the flow map of
labels, and with s = 0 the mean is the last prediction: a label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.representation.batch import Prediction

from . import gaussian, gaussian_softmax
from .gaussian import Level, like, root
from .process import Denoiser, JointProcess, Levels, LogitBatch, Noise, begin_trajectory, check_step, parts, superpose
from .sampling import predict

# 1 is Euler's method, one evaluation a step; 2 is Heun's, two evaluations.
Order = Literal[1, 2]


def expected_x0(process: JointProcess, prediction: Prediction) -> LogitBatch:
    """x̂_0 of the ODE: expected logits of both labels, and expected parameters."""
    labels = prediction.construction, prediction.kind
    construction, kind = (gaussian_softmax.reverse_logits(p, process.label_smoothing, "expected") for p in labels)
    by: Literal["none", "expected"] = "none" if process.superposition == "none" else "expected"
    return LogitBatch(construction, kind, superpose(prediction.params, labels[1], by))


def diffuse(x0: LogitBatch, noise: Noise, levels: Levels) -> LogitBatch:
    """X_t from clean rows and noise, in the space of logits."""
    return LogitBatch(*map(gaussian.diffuse, x0, parts(noise), levels))


def flow_step(state: LogitBatch, x0_hat: LogitBatch, levels_t: Levels, levels_s: Levels) -> LogitBatch:
    """X_s from X_t with a constant x̂_0: √(1 − ᾱ_s)·(z_t + (r_s − r_t)·x̂_0). Either of the two may be the noisier."""
    return LogitBatch(*map(_flow_step, state, x0_hat, levels_t, levels_s))


def _flow_step(x_t: Tensor, x0_hat: Tensor, level_t: Level, level_s: Level) -> Tensor:
    of_x_t = root(level_s.var / level_t.var)
    of_x0 = root(level_s.alpha_bar) - root(level_t.alpha_bar) * of_x_t
    return like(of_x_t, x_t) * x_t + like(of_x0, x_t) * x0_hat


def share_of_path(level_t: Level, level_u: Level, level_s: Level) -> Float[Tensor, "*batch"]:
    """(r_s − r_u)/(r_s − r_t): the share of the piece from u to s in the path from t to s, 1 if s is clean.

    The mean of x̂_0 over t → s is that share of the mean over u → s and the rest of the mean over t → u.
    """
    r_t, r_u, r_s = (root(level.alpha_bar) / root(level.var.clamp(min=1e-300)) for level in (level_t, level_u, level_s))
    share = (r_s - r_u) / (r_s - r_t).clamp(min=1e-300)
    return torch.where(level_s.var == 0, 1.0, share)


def integrate(
    denoise: Denoiser, process: JointProcess, state: LogitBatch, steps: Sequence[int], *, order: Order = 1
) -> LogitBatch:
    """Follow the ODE through `steps`, which all fall or all rise: from noise to a sketch, or from a sketch to noise.

    Args:
        denoise: E[X_0 | X_t]. With state of its own, as for self-conditioning, the path depends on the steps.
        process: The joint process.
        state: The rows at `steps[0]`, which is not 0: a clean label has no noise to go back to.
        steps: At least two; only the last may be 0.
        order: 1 for Euler's method, 2 for Heun's. A step from pure noise or to a clean state is Euler's in any case,
            as λ is infinite there.
    """
    for step in steps:
        check_step(step, process.num_steps, "steps")
    directions = {(s > t) - (s < t) for t, s in pairwise(steps)}
    if directions not in ({1}, {-1}) or 0 in steps[:-1]:
        raise ValueError(f"steps must be at least two that all fall or all rise, and begin above 0: {list(steps)}")
    denoise, process = begin_trajectory(denoise), process.to(state.params.device)
    with torch.no_grad():
        for t, s in pairwise(steps):
            at_t, at_s = process.levels(t), process.levels(s)
            clean = expected_x0(process, predict(denoise, state.batch(), t, None))
            state = flow_step(state, clean, at_t, at_s)
            if order == 2 and s > 0:
                end = expected_x0(process, predict(denoise, state.batch(), s, None))
                state = LogitBatch(*map(_correct, state, clean, end, at_t, at_s))
    return state


def _correct(x_s: Tensor, x0_t: Tensor, x0_s: Tensor, level_t: Level, level_s: Level) -> Tensor:
    """A step of Euler's method, corrected: x̂_0 changes linearly in λ, from its value at t to its value at s.

    The change has the weight √(1 − ᾱ_s)·∫ (λ − λ_t)/h·e^λ dλ = √ᾱ_s − w/h over the step, where h = λ_s − λ_t and w is
    the weight of a constant x̂_0.
    """
    usable = (level_t.alpha_bar > 0) & (level_s.alpha_bar > 0)
    signal_s, signal_t = root(level_s.alpha_bar), root(level_t.alpha_bar)
    h = (level_s.snr / level_t.snr.masked_fill(~usable, 1.0)).masked_fill(~usable, math.e).log() / 2
    constant = signal_s - signal_t * root(level_s.var / level_t.var)
    weight = torch.where(usable, signal_s - constant / h, 0.0)
    return x_s + like(weight, x_s) * (x0_s - x0_t)
