"""The process of the ablation SketchDNN (Cat.): labels by multinomial diffusion, parameters by Gaussian, as ever.

A noisy label is one-hot: right, or any other. Normal noise comes in and makes labels by the Gumbel-max trick, so the
noise that belongs to a sample serves here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Int
from torch import Tensor

from sketchdnn.diffusion import gaussian, gaussian_softmax
from sketchdnn.diffusion.gaussian import Level, Schedule
from sketchdnn.diffusion.process import Noise, Superposition, check_shape, superpose
from sketchdnn.representation.batch import Prediction, SketchBatch

from . import transitions as multinomial
from .transitions import Probabilities

# What stands for y_0 in the reverse step: the prediction (Hoogeboom 2021), or each label in turn, by its chance.
Reverse = Literal["predicted", "expected"]

Step = int | Int[Tensor, " batch"]


@dataclass(frozen=True, slots=True)
class CatProcess:
    """The schedules of parameters and of labels, and what the reverse step does with a prediction."""

    params: Schedule
    labels: Schedule
    superposition: Superposition = "max"
    reverse: Reverse = "predicted"

    def __post_init__(self) -> None:
        if self.reverse not in get_args(Reverse):
            raise ValueError(f"reverse must be one of {get_args(Reverse)}, not {self.reverse!r}")
        if self.superposition not in get_args(Superposition):
            raise ValueError(f"superposition must be one of {get_args(Superposition)}, not {self.superposition!r}")
        if self.params.num_steps != self.labels.num_steps:
            raise ValueError("params and labels must have schedules of the same number of steps")

    @property
    def kind(self) -> Schedule:
        return self.labels

    @property
    def construction(self) -> Schedule:
        return self.labels

    @property
    def num_steps(self) -> int:
        return self.params.num_steps

    def to(self, device: torch.device | str) -> CatProcess:
        """The same process with its schedules on a device."""
        return replace(self, params=self.params.to(device), labels=self.labels.to(device))

    def diffuse(self, x0: SketchBatch, t: Step, noise: Noise) -> SketchBatch:
        """X_t from a clean X_0 in one shot."""
        check_shape(noise, "noise", like=x0)
        level = self.labels.at(t)
        return SketchBatch(
            gaussian_softmax.draw_label(
                multinomial.cumulative_probs(told_flag(x0.construction), level), noise.construction
            ),
            gaussian_softmax.draw_label(multinomial.cumulative_probs(x0.kind, level), noise.kind),
            gaussian.diffuse(x0.params, noise.params, self.params.at(t)),
        )

    def step_forward(self, batch_s: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch:
        """X_t from X_s."""
        at_s, at_t = self.labels.at(s), self.labels.at(t)
        return SketchBatch(
            gaussian_softmax.draw_label(
                multinomial.forward_probs(batch_s.construction, at_s, at_t), noise.construction
            ),
            gaussian_softmax.draw_label(multinomial.forward_probs(batch_s.kind, at_s, at_t), noise.kind),
            gaussian.step_forward(batch_s.params, noise.params, self.params.at(s), self.params.at(t)),
        )

    def clean_params(self, prediction: Prediction) -> Tensor:
        """The parameters that go into the reverse mean."""
        return superpose(prediction.params, prediction.kind, self.superposition)

    def reverse_probs(self, y0_hat: Probabilities, y_t: Probabilities, s: Step, t: Step) -> Probabilities:
        """The chances of y_s that the reverse step draws from."""
        at_s, at_t = self.labels.at(s), self.labels.at(t)
        if self.reverse == "predicted":
            return multinomial.posterior_probs(y0_hat, y_t, at_s, at_t)
        return expected_posterior(y0_hat, y_t, at_s, at_t)

    def step_back(
        self, prediction: Prediction, params: Tensor, batch_t: SketchBatch, s: Step, t: Step, noise: Noise
    ) -> SketchBatch:
        """X_s from X_t, a prediction of labels, and the parameters that stand for x_0."""
        mean, std = gaussian.posterior(params, batch_t.params, self.params.at(s), self.params.at(t))
        construction = self.reverse_probs(prediction.construction, batch_t.construction, s, t)
        kind = self.reverse_probs(prediction.kind, batch_t.kind, s, t)
        return SketchBatch(
            gaussian_softmax.draw_label(construction, noise.construction),
            gaussian_softmax.draw_label(kind, noise.kind),
            mean + std * noise.params,
        )


def expected_posterior(y0_hat: Probabilities, y_t: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """Σ_c ŷ_0[c]·q(y_s | y_t, y_0 = c): right for a perfect ŷ_0 however long the step, as the plain posterior is not.

    It is the plain posterior of a prediction in which each label counts the more, the less likely it made y_t.
    """
    # q(y_t | y_0 = c) for every c: cumulative_probs is symmetric, so it is y_t that is mixed.
    chance = multinomial.cumulative_probs(y_t, level_t)
    # A chance of zero (y_t is certain, at t = 0) excludes the label, whatever the prediction says.
    weight = torch.where(chance > 0, y0_hat / chance.clamp(min=torch.finfo(chance.dtype).tiny), 0.0)
    return multinomial.posterior_probs(weight / weight.sum(dim=-1, keepdim=True), y_t, level_s, level_t)


def told_flag(construction: Probabilities) -> Probabilities:
    """The authors leave the flag of an empty row blank: it may be either, alike."""
    return construction + (1 - construction.sum(dim=-1, keepdim=True)) / construction.shape[-1]
