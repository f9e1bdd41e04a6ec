"""One training step as a function of its number: the same on every device, and compiled whole."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.gaussian import cosine
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import normal, uniform
from sketchdnn.diffusion.timesteps import authors_weights, uniform_weights
from sketchdnn.representation import layout
from sketchdnn.representation.batch import from_flat
from sketchdnn.systems import System
from sketchdnn.systems.system import sample_condition_mask

from .config import Times, TrainConfig
from .corpus import NUM_SYMMETRIES, Corpus
from .variation import NUM_DRAWS, draw_variation

# Draws of the counter-based generator: one number a purpose, so that none shares bits with another.
_NOISE, _CHOICES = 0, 1
# The uniform numbers of a sketch, in this order: its symmetry, its step, what is given (3 + rows), how it is varied.
_NUM_CHOICES = 1 + 1 + 3 + NUM_DRAWS


class Objective(nn.Module):
    """The loss of a system on a corpus as a module, which is what can be compiled and shared between devices."""

    def __init__(self, system: System, corpus: Corpus, config: TrainConfig) -> None:
        super().__init__()
        self.system, self.corpus, self.config = system, corpus, config
        self.edges = time_edges(system.max_steps, config.times).to(corpus.params.device)

    def forward(
        self,
        indices: Int[Tensor, " share"],
        positions: Int[Tensor, " share"],
        noise: Float[Tensor, "share prim 21"],
        choices: Float[Tensor, "share number"],
    ) -> Float[Tensor, "term share"]:
        """The terms of each sketch's loss: parameters, kind, construction."""
        draws = Draws(noise, choices)
        loss, _ = batch_loss(self.system, self.corpus, self.edges, indices, positions, draws, self.config)
        return torch.stack([loss.params_per_sample, loss.kind_per_sample, loss.construction_per_sample])


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of a batch: noise for every row, and uniform numbers for all choices."""

    noise: Float[Tensor, "batch prim 21"]
    choices: Float[Tensor, "batch number"]


def draw(seed: int, numbers: Int[Tensor, " batch"], num_rows: int) -> Draws:
    """What belongs to these global sample numbers, whichever batch or device they are in."""
    return Draws(
        normal(seed, numbers, _NOISE, (num_rows, layout.ROW_WIDTH)),
        uniform(seed, numbers, _CHOICES, (_NUM_CHOICES + num_rows,)),
    )


def time_edges(num_steps: int | None, times: Times = "low_noise") -> Float[Tensor, " steps"]:
    """The cumulative density of t in 1..T; a system without steps is always at 1, which means nothing to it.

    `low_noise` is half uniform, half uniform in the logarithm of the noise: it dwells where gaps close. `matching`
    dwells where it is settled which ends belong together, and profiles fail to close
    (`python -m benchmarks noise-levels`).
    """
    if num_steps is None:
        return torch.ones(1, dtype=torch.float64)
    if times == "uniform":
        return _cumulative(uniform_weights(num_steps))
    if times == "authors":
        return _cumulative(authors_weights(num_steps))
    even = _cumulative(torch.ones(num_steps, dtype=torch.float64))
    low_noise = (even + _log_uniform(num_steps, 2e-3, 1.0)) / 2
    return low_noise if times == "low_noise" else (low_noise + _log_uniform(num_steps, 0.01, 0.6)) / 2


def _log_uniform(num_steps: int, low: float, high: float) -> Float[Tensor, " steps"]:
    """The cumulative density that is even in log σ between two levels of noise."""
    schedule = cosine(num_steps)
    sigma = (schedule.var / schedule.alpha_bar).sqrt()[1:-1].clamp(low, high)
    density = torch.zeros(num_steps, dtype=torch.float64)
    density[1:-1] = sigma.log().diff()
    return _cumulative(density)


def batch_loss(
    system: System,
    corpus: Corpus,
    edges: Float[Tensor, " steps"],
    indices: Int[Tensor, " batch"],
    positions: Int[Tensor, " batch"],
    draws: Draws,
    config: TrainConfig,
) -> tuple[Loss, Int[Tensor, " batch"]]:
    """The loss of some sketches, and the steps it was taken at. `positions` are their places in the global batch."""
    u = draws.choices
    symmetry = (u[:, 0] * NUM_SYMMETRIES).long() if config.augment else torch.zeros_like(indices)
    kind = corpus.kind[indices]
    variation = draw_variation(u[:, -NUM_DRAWS:], config.vary) if config.vary else None
    x0 = corpus.batch(indices, symmetry, system.rows, variation)
    where = u[:, 1].double()
    if config.spread:
        # Evenly over the batch: every step sees all noise levels.
        where = (where + positions) / config.batch_size
    t = _steps_at(where, edges)
    given = sample_condition_mask(u[:, 2:], kind, config.given)
    if config.puts_aside:
        aside = (kind != layout.NONE).sum(dim=1) < config.fewest
        given = replace(given, auxiliary=aside if variation is None else aside | variation.chosen)
    return system.loss(x0, t, from_flat(draws.noise), given), t


def _steps_at(where: Float[Tensor, " batch"], edges: Float[Tensor, " steps"]) -> Int[Tensor, " batch"]:
    """The steps t in 1..T at these places in [0, 1) of a cumulative density; one of no weight is never chosen."""
    below = torch.searchsorted(edges, where * edges[-1], right=True)
    # A product rounded up to the whole belongs to the last step that has a weight.
    return torch.minimum(below, torch.searchsorted(edges, edges[-1])) + 1


def _cumulative(weights: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    return (weights / weights.sum()).cumsum(dim=0)
