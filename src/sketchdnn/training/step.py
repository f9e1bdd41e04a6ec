"""The loss of one training step, as a function of the step number; compiled as a whole on a GPU."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.gaussian import cosine
from sketchdnn.diffusion.noise import normal, uniform
from sketchdnn.diffusion.timesteps import authors_weights, uniform_weights
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, from_flat
from sketchdnn.systems import System
from sketchdnn.systems.system import ConditionMask, sample_condition_mask

from .completion_tasks import NUM_FRAME_DRAWS, Frame, Rows, num_task_draws, sample_frame, sample_task
from .config import TimestepSampling, TrainConfig
from .corpus import NUM_AFFINE_DRAWS, NUM_SYMMETRIES, Corpus, sample_affine

# Streams of the counter-based generator, one per purpose.
_NOISE, _CHOICES, _TASKS = 0, 1, 2
# Uniform numbers per sample, in this order: symmetry, timestep, conditioning (3 + rows), affine augmentation.
_NUM_CHOICES = 1 + 1 + 3 + NUM_AFFINE_DRAWS


class Objective(nn.Module):
    """The loss of a system on a corpus, as a module that can be compiled and distributed."""

    def __init__(self, system: System, corpus: Corpus, config: TrainConfig) -> None:
        super().__init__()
        self.system, self.corpus, self.config = system, corpus, config
        self.cdf = timestep_cdf(system.max_steps, config.timestep_sampling).to(corpus.params.device)

    def forward(
        self,
        indices: Int[Tensor, " share"],
        positions: Int[Tensor, " share"],
        noise: Float[Tensor, "share prim 21"],
        choices: Float[Tensor, "share number"],
        tasks: Float[Tensor, "share number"],
    ) -> Float[Tensor, "term share"]:
        """The loss terms of each sample: parameters, kind, construction.

        `positions` are the positions of the samples in the global batch.
        """
        x0, mask = self.clean_batch(indices, choices, tasks)
        quantile = choices[:, 1].double()
        if self.config.stratified:
            quantile = (quantile + positions) / self.config.batch_size
        loss = self.system.loss(x0, timesteps_at(quantile, self.cdf), from_flat(noise), mask)
        return torch.stack([loss.params_per_sample, loss.kind_per_sample, loss.construction_per_sample])

    def clean_batch(
        self,
        indices: Int[Tensor, " share"],
        choices: Float[Tensor, "share number"],
        tasks: Float[Tensor, "share number"],
    ) -> tuple[SketchBatch, ConditionMask]:
        """The sketches of a step, augmented, and what is known of each."""
        config = self.config
        symmetry = (choices[:, 0] * NUM_SYMMETRIES).long() if config.augment else torch.zeros_like(indices)
        kind = self.corpus.kind[indices]
        affine = None
        if config.affine_augmentation:
            affine = sample_affine(choices[:, -NUM_AFFINE_DRAWS:], config.affine_augmentation)
        mask, frame = self._sample_mask(indices, choices, tasks)
        x0 = self.corpus.batch(indices, symmetry, self.system.rows, affine, frame)
        if config.has_auxiliary:
            auxiliary = (kind != layout.NONE).sum(dim=1) < config.min_primitives
            mask = replace(mask, auxiliary=auxiliary if affine is None else auxiliary | affine.selected)
        return x0, mask

    def _sample_mask(
        self,
        indices: Int[Tensor, " share"],
        choices: Float[Tensor, "share number"],
        tasks: Float[Tensor, "share number"],
    ) -> tuple[ConditionMask, Frame | None]:
        """What is known of each sample, and its frame."""
        config, corpus = self.config, self.corpus
        if not config.completion_tasks:
            return sample_condition_mask(choices[:, 2:], corpus.kind[indices], config.conditioning), None
        rows = Rows(corpus.kind[indices], corpus.construction[indices], corpus.params[indices])
        mask = sample_task(tasks[:, NUM_FRAME_DRAWS:], rows, config.conditioning, config.conditional_below)
        return mask, sample_frame(tasks[:, :NUM_FRAME_DRAWS], mask, rows)


class RandomNumbers(NamedTuple):
    """Gaussian noise for every row of a batch, and uniform numbers for all choices."""

    noise: Float[Tensor, "batch prim 21"]
    choices: Float[Tensor, "batch number"]
    tasks: Float[Tensor, "batch number"]


def random_numbers(seed: int, numbers: Int[Tensor, " batch"], num_rows: int) -> RandomNumbers:
    """The random numbers of global sample numbers; they do not depend on the batch or the device."""
    return RandomNumbers(
        normal(seed, numbers, _NOISE, (num_rows, layout.ROW_WIDTH)),
        uniform(seed, numbers, _CHOICES, (_NUM_CHOICES + num_rows,)),
        uniform(seed, numbers, _TASKS, (NUM_FRAME_DRAWS + num_task_draws(num_rows),)),
    )


def precision(device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 on a GPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


def timestep_cdf(num_steps: int | None, sampling: TimestepSampling) -> Float[Tensor, " steps"]:
    """The cumulative distribution of t in 1..T; one entry for a system without timesteps.

    `low_noise` is half uniform, half uniform in log σ. `mid_noise` puts half of the weight on the noise levels at which
    the model decides which ends meet (`python -m benchmarks noise-levels`).
    """
    if num_steps is None:
        return torch.ones(1, dtype=torch.float64)
    if sampling == "uniform":
        return _cumulative(uniform_weights(num_steps))
    if sampling == "authors":
        return _cumulative(authors_weights(num_steps))
    even = _cumulative(torch.ones(num_steps, dtype=torch.float64))
    low_noise = (even + _log_uniform(num_steps, 2e-3, 1.0)) / 2
    return low_noise if sampling == "low_noise" else (low_noise + _log_uniform(num_steps, 0.01, 0.6)) / 2


def _log_uniform(num_steps: int, low: float, high: float) -> Float[Tensor, " steps"]:
    """The cumulative distribution that is uniform in log σ between two noise levels."""
    schedule = cosine(num_steps)
    sigma = (schedule.var / schedule.alpha_bar).sqrt()[1:-1].clamp(low, high)
    density = torch.zeros(num_steps, dtype=torch.float64)
    density[1:-1] = sigma.log().diff()
    return _cumulative(density)


def timesteps_at(quantile: Float[Tensor, " batch"], cdf: Float[Tensor, " steps"]) -> Int[Tensor, " batch"]:
    """The timesteps t in 1..T at quantiles in [0, 1); a timestep of zero weight is never selected."""
    below = torch.searchsorted(cdf, quantile * cdf[-1], right=True)
    # A product that is rounded up to the total belongs to the last timestep with a weight.
    return torch.minimum(below, torch.searchsorted(cdf, cdf[-1])) + 1


def _cumulative(weights: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    return (weights / weights.sum()).cumsum(dim=0)
