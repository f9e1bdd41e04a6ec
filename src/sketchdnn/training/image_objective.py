"""The loss of an image-conditioned model: sketches, their pictures, and several noise levels for each picture.

A sketch is put in the frame of its picture, and its picture is drawn from the same parameters with noise. Drawing and
encoding are done once for all noise levels of a picture. All random numbers are functions of the seed and the number of
the sample, so a run can be resumed exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.noise import normal, uniform
from sketchdnn.drawing.ink import NUM_NORMAL, NUM_UNIFORM, draw_ink
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, expand, from_flat, smaller_end_first
from sketchdnn.systems.image_conditioned import ImageConditionedSystem
from sketchdnn.systems.system import ConditionMask

from .completion_tasks import Frame, apply_frame
from .config import TrainConfig
from .corpus import NUM_SYMMETRIES, Corpus, apply_symmetry
from .image_settings import ImageTrainConfig
from .step import timestep_cdf, timesteps_at

# Streams of the counter-based generator, after those of training and of distillation.
_NOISE, _UNIFORM, _NORMAL = 5, 6, 7
# Uniform numbers of a picture before those of `draw_ink`: symmetry, dropped, frame (4), noise levels.
_NUM_OWN = 6
# A sketch that nearly fills its frame: the smallest size, and how far it may be off the middle.
_NEARLY, _OFF = 0.85, 0.05
# The noise levels of a picture change places after so many pictures: in a batch, every other sample and every eighth
# are treated differently, and all of them must have all levels.
_TURN = 8


class Numbers(NamedTuple):
    """Random numbers of the pictures of a step; `noise` has one part for each noise level."""

    noise: Float[Tensor, "image level prim 21"]
    quantile: Float[Tensor, "image level"]
    own: Float[Tensor, "image number"]
    ink_uniform: Float[Tensor, "image number"]
    ink_normal: Float[Tensor, "image number"]


class Samples(NamedTuple):
    """Sketches in the frames of their pictures, and the pictures."""

    x0: SketchBatch
    pictures: Float[Tensor, "image side side"]
    present: Bool[Tensor, " image"]


def image_numbers(seed: int, numbers: Int[Tensor, " image"], num_rows: int, noises: int) -> Numbers:
    """The random numbers of global numbers of pictures; they do not depend on the batch or the device."""
    levels = (numbers[:, None] * noises + torch.arange(noises, device=numbers.device)).flatten()
    both = uniform(seed, numbers, _UNIFORM, (_NUM_OWN + noises + NUM_UNIFORM,))
    own, quantile, ink_uniform = torch.split(both, [_NUM_OWN, noises, NUM_UNIFORM], dim=1)
    noise = normal(seed, levels, _NOISE, (num_rows, layout.ROW_WIDTH))
    noise = noise.reshape(-1, noises, num_rows, layout.ROW_WIDTH)
    return Numbers(noise, quantile, own, ink_uniform, normal(seed, numbers, _NORMAL, (NUM_NORMAL,)))


class ImageObjective(nn.Module):
    """The loss of an image-conditioned model on a corpus, as a module that can be compiled and distributed."""

    def __init__(
        self, system: ImageConditionedSystem, corpus: Corpus, config: TrainConfig, image: ImageTrainConfig
    ) -> None:
        super().__init__()
        self.system, self.corpus, self.config, self.image = system, corpus, config, image
        self.cdf = timestep_cdf(system.max_steps, config.timestep_sampling).to(corpus.params.device)

    def forward(
        self, indices: Int[Tensor, " image"], positions: Int[Tensor, " image"], numbers: Numbers
    ) -> Float[Tensor, "term image"]:
        """The loss terms of each picture: parameters, kind, construction."""
        samples = self.samples(indices, numbers)
        terms = self.terms(samples, self._levels(positions, numbers.quantile), numbers.noise)
        return terms.reshape(len(terms), len(indices), -1).mean(dim=2)

    def samples(self, indices: Int[Tensor, " image"], numbers: Numbers, *, symmetric: bool = True) -> Samples:
        """The sketches of a step with their pictures."""
        corpus, form = self.corpus, self.system.rows
        with torch.no_grad():
            kind, construction, params = (part[indices] for part in (corpus.kind, corpus.construction, corpus.params))
            params = apply_frame(kind, params, sample_image_frame(numbers.own, self.image))
            if symmetric and self.config.augment:
                params = apply_symmetry(kind, params, (numbers.own[:, 0] * NUM_SYMMETRIES).long())
            if form.canonical_lines:
                params = smaller_end_first(kind, params)
            pictures = draw_ink(kind, construction, params, numbers.ink_uniform, numbers.ink_normal, self.image.ink)
            x0 = expand(
                kind, construction, params, arc_scalar=form.arc_scalar, none_construction=form.none_construction
            )
        return Samples(x0, pictures, numbers.own[:, 1] >= self.image.share_dropped)

    def terms(
        self, samples: Samples, t: Int[Tensor, "image level"], noise: Float[Tensor, "image level prim 21"]
    ) -> Float[Tensor, "term batch"]:
        """The loss terms of each sketch of the batch: one picture after the other, with all of its noise levels."""
        count = t.shape[1]
        features = self.system.encode(samples.pictures, samples.present).repeated(count)
        x0 = from_flat(samples.x0.flat().repeat_interleave(count, dim=0))
        unknown = torch.zeros(x0.kind.shape[:2], dtype=torch.bool, device=t.device)
        # Without their pictures too, these are not samples of the target distribution.
        auxiliary = torch.ones_like(unknown[:, 0]) if self.system.supports_auxiliary else None
        mask = ConditionMask(unknown, unknown, unknown, auxiliary, features)
        loss = self.system.loss(x0, t.flatten(), from_flat(noise.flatten(0, 1)), mask)
        return torch.stack([loss.params_per_sample, loss.kind_per_sample, loss.construction_per_sample])

    def _levels(
        self, positions: Int[Tensor, " image"], quantile: Float[Tensor, "image level"]
    ) -> Int[Tensor, "image level"]:
        """The noise levels of each picture, spread over their distribution."""
        count = quantile.shape[1]
        quantile = quantile.double()
        if self.config.stratified:
            levels = torch.arange(count, device=positions.device)
            part = torch.remainder(levels + (positions // _TURN)[:, None], count)
            place = part * self.config.batch_size + positions[:, None]
            quantile = (quantile + place) / (self.config.batch_size * count)
        return timesteps_at(quantile.contiguous(), self.cdf)


def sample_image_frame(own: Float[Tensor, "image number"], config: ImageTrainConfig) -> Frame:
    """The size and the place of each sketch in the frame of its picture."""
    nearly = own[:, 2] < config.centered
    smallest = torch.where(nearly, max(_NEARLY, config.min_scale), config.min_scale)
    scale = smallest + (1 - smallest) * own[:, 3]
    room = torch.where(nearly, (1 - scale).clamp(max=_OFF), 1 - scale)
    return Frame(scale, room[:, None] * (2 * own[:, 4:6] - 1))
