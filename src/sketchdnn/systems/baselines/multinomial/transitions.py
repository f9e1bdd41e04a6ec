"""Multinomial diffusion (Hoogeboom 2021): a label keeps its value with probability ᾱ_t, else it is drawn uniformly.

The paper's ablation, SketchDNN (Cat.). States are one-hot; each transition is a vector of probabilities, and `draw`
turns it into a one-hot label with noise that is given.
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
    """q(y_s | y_t, y_0) ∝ q(y_t | y_s)·q(y_s | y_0). Given a predicted ŷ_0 it is the reverse step of the method."""
    # q(y_t | y_s) is symmetric in its arguments, so it is y_t that is mixed.
    joint = forward_probs(y_t, level_s, level_t) * cumulative_probs(y0, level_s)
    return joint / joint.sum(dim=-1, keepdim=True)


def draw(probs: Probabilities, gumbel: Probabilities) -> Probabilities:
    """A one-hot label of these probabilities, by the Gumbel-max trick."""
    winner = (probs.log() + gumbel).argmax(dim=-1)
    return torch.nn.functional.one_hot(winner, probs.shape[-1]).to(probs.dtype)


def gumbel_from_uniform(uniform: Tensor) -> Tensor:
    """Gumbel noise from uniform noise on [0, 1)."""
    # Zero, which a generator may draw, would make a Gumbel of −inf and lose to a label of probability zero.
    return -torch.log(-uniform.clamp(min=torch.finfo(uniform.dtype).tiny).log())


def gumbel_from_normal(normal: Tensor) -> Tensor:
    """Gumbel noise from normal noise, so that the noise which belongs to a sample serves this process too."""
    return -torch.log(-torch.special.log_ndtr(normal))


def kl(q: Probabilities, p: Probabilities) -> Float[Tensor, "*rows"]:
    """KL(q ‖ p) = Σ q·log(q/p), in nats; what q excludes counts nothing.

    Between posteriors it is a term of the bound for s ≥ 1. At s = 0 q is one-hot and it is −log p(y_0 | y_1).
    """
    possible = q > 0
    log_ratio = torch.where(possible, q, 1.0).log() - torch.where(possible, p, 1.0).log()
    return (q * log_ratio).sum(dim=-1)


def _mix(y: Probabilities, level: Level) -> Probabilities:
    return like(level.alpha_bar, y) * y + like(level.var, y) / y.shape[-1]
