"""Multinomial diffusion (Hoogeboom et al. 2021): a label is kept with probability ᾱ_t, otherwise sampled uniformly.

States are one-hot; each transition is a vector of probabilities.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.diffusion import gaussian
from sketchdnn.diffusion.gaussian import Level, like

Probabilities = Float[Tensor, "*rows cat"]


def forward_probs(y_s: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """q(y_t | y_s) = Cat(α_ts·y_s + (1 − α_ts)/D)."""
    return _mix(y_s, gaussian.transition(level_s, level_t))


def cumulative_probs(y0: Probabilities, level_t: Level) -> Probabilities:
    """q(y_t | y_0) = Cat(ᾱ_t·y_0 + (1 − ᾱ_t)/D)."""
    return _mix(y0, level_t)


def posterior_probs(y0: Probabilities, y_t: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """q(y_s | y_t, y_0) ∝ q(y_t | y_s)·q(y_s | y_0). With a predicted ŷ_0 it is the reverse step."""
    # q(y_t | y_s) is symmetric in its arguments, so y_t is mixed.
    joint = forward_probs(y_t, level_s, level_t) * cumulative_probs(y0, level_s)
    return joint / joint.sum(dim=-1, keepdim=True)


def kl(q: Probabilities, p: Probabilities) -> Float[Tensor, "*rows"]:
    """KL(q ‖ p) = Σ q·log(q/p), in nats; terms with q = 0 are zero.

    Between posteriors it is a term of the bound for s ≥ 1. At s = 0 q is one-hot and it is −log p(y_0 | y_1).
    """
    possible = q > 0
    log_ratio = torch.where(possible, q, 1.0).log() - torch.where(possible, p, 1.0).log()
    return (q * log_ratio).sum(dim=-1)


def _mix(y: Probabilities, level: Level) -> Probabilities:
    return like(level.alpha_bar, y) * y + like(level.var, y) / y.shape[-1]
