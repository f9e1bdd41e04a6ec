"""One training step as a function of its number: the same on every device, and compiled whole."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import normal, uniform
from sketchdnn.diffusion.schedule import Schedule
from sketchdnn.representation import layout
from sketchdnn.representation.batch import from_flat
from sketchdnn.systems.sketchdnn import SketchDNN, draw_given

from .config import TrainConfig
from .corpus import NUM_SYMMETRIES, Corpus

# Draws of the counter-based generator: one number a purpose, so that none shares bits with another.
_NOISE, _CHOICES = 0, 1


def time_edges(schedule: Schedule) -> Float[Tensor, " steps"]:
    """The cumulative density of t in 1..T: half uniform, half uniform in the logarithm of the noise.

    The second half dwells on small noise, where gaps close.
    """
    sigma = (schedule.var / schedule.alpha_bar).sqrt()[1:-1].clamp(2e-3, 1.0)
    log_uniform = torch.zeros(schedule.num_steps, dtype=torch.float64)
    log_uniform[1:-1] = sigma.log().diff()
    uniform_t = torch.full_like(log_uniform, 1 / schedule.num_steps)
    return (0.5 * uniform_t + 0.5 * log_uniform / log_uniform.sum()).cumsum(dim=0)


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of a batch: noise for every row, and uniform numbers for all choices."""

    noise: Float[Tensor, "batch prim 21"]
    choices: Float[Tensor, "batch number"]


def draw(seed: int, numbers: Int[Tensor, " batch"], num_rows: int) -> Draws:
    """What belongs to these global sample numbers, whichever batch or device they are in."""
    return Draws(
        normal(seed, numbers, _NOISE, (num_rows, layout.ROW_WIDTH)), uniform(seed, numbers, _CHOICES, (5 + num_rows,))
    )


def batch_loss(
    system: SketchDNN,
    corpus: Corpus,
    edges: Float[Tensor, " steps"],
    indices: Int[Tensor, " batch"],
    draws: Draws,
    config: TrainConfig,
) -> tuple[Loss, Int[Tensor, " batch"]]:
    """The loss of some sketches, and the steps it was taken at."""
    u = draws.choices
    symmetry = (u[:, 0] * NUM_SYMMETRIES).long() if config.augment else torch.zeros_like(indices)
    x0 = corpus.batch(indices, symmetry, arc_scalar=system.config.arc_scalar)
    # Spread evenly over the batch: every step sees all noise levels.
    spread = (u[:, 1].double() + torch.arange(len(u), device=u.device)) / len(u)
    t = torch.searchsorted(edges, spread * edges[-1], right=True).clamp(max=system.process.num_steps - 1) + 1
    given = draw_given(u[:, 2:], corpus.kind[indices], config.given)
    return system.loss(x0, t, from_flat(draws.noise), given), t
