"""Gaussian-Softmax diffusion of labels: Gaussian diffusion of logits, projected to the simplex.

A label y is a point of the simplex. A one-hot label is smoothed first (y' = k·y + (1 − k)/D), so that its logarithm is
finite; k is `label_smoothing`.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from . import gaussian
from .schedule import Level

Label = Float[Tensor, "*rows cat"]
ReverseLogits = Literal["log", "2log", "expected"]
REVERSE_LOGITS: tuple[ReverseLogits, ...] = get_args(ReverseLogits)

# Keeps the logarithm of a chance finite: beyond what normal noise of 32 bits reaches.
_TINY = 1e-12


def smooth(y0: Label, label_smoothing: float) -> Label:
    """y'_0 = k·y_0 + (1 − k)/D."""
    return label_smoothing * y0 + (1 - label_smoothing) / y0.shape[-1]


def diffuse(y0: Label, noise: Label, level_t: Level, label_smoothing: float) -> Label:
    """y_t from one-hot y_0 in one shot, eqn:discrete_cumulative_transition."""
    return gaussian.diffuse(smooth(y0, label_smoothing).log(), noise, level_t).softmax(dim=-1)


def step_forward(y_s: Label, noise: Label, level_s: Level, level_t: Level) -> Label:
    """y_t from y_s, eqn:discrete_forward_transition; y_s has no zeros."""
    return gaussian.step_forward(y_s.log(), noise, level_s, level_t).softmax(dim=-1)


def step_back(logits0: Label, y_t: Label, noise: Label, level_s: Level, level_t: Level) -> Label:
    """y_s from y_t and the logits of a (predicted) y_0, eqn:discrete_reverse_transition."""
    mean, std = gaussian.posterior(logits0, y_t.log(), level_s, level_t)
    return (mean + std * noise).softmax(dim=-1)


def draw(y0_hat: Label, noise: Label) -> Label:
    """A one-hot label with the chances ŷ_0; `noise` is standard normal (Gumbel-max)."""
    uniform = torch.special.ndtr(noise.double()).clamp(_TINY, 1 - _TINY)
    gumbel = -(-uniform.log()).log()
    chosen = (y0_hat.double().log() + gumbel).argmax(dim=-1)
    return one_hot(chosen, y0_hat.shape[-1]).to(y0_hat)


def reverse_logits(y0_hat: Label, label_smoothing: float, form: ReverseLogits) -> Label:
    """The logits of a predicted label that go into the reverse mean.

    `log` (paper): log of the smoothed prediction. Departs from the paper, which smooths nothing here: a certain
    prediction would be infinite. `2log` (authors): twice that. `expected` (ours): Σ_c ŷ_0[c]·log y'_0(c), the
    expectation that the posterior mean, linear in log y'_0, asks for; the log of the expectation is biased even with a
    perfect network.
    """
    if form == "expected":
        low = math.log((1 - label_smoothing) / y0_hat.shape[-1])
        high = math.log(label_smoothing + (1 - label_smoothing) / y0_hat.shape[-1])
        return low + (high - low) * y0_hat
    logits = smooth(y0_hat, label_smoothing).log()
    return 2 * logits if form == "2log" else logits
