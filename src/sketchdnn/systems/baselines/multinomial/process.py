"""The process of the ablation SketchDNN (Cat.): multinomial diffusion of labels, Gaussian diffusion of parameters.

A noisy label is one-hot. Labels are sampled from Gaussian noise by the Gumbel-max trick, so the noise of a sample is
the same as for the other systems.
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

# y_0 in the reverse step: the prediction (Hoogeboom et al. 2021), or the mean over all labels by their probability.
Reverse = Literal["predicted", "expected"]

Step = int | Int[Tensor, " batch"]


@dataclass(frozen=True, slots=True)
class MultinomialProcess:
    """The schedules of parameters and labels, and the form of the reverse step."""

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

    def to(self, device: torch.device | str) -> MultinomialProcess:
        """The same process with its schedules on a device."""
        return replace(self, params=self.params.to(device), labels=self.labels.to(device))

    def diffuse(self, x0: SketchBatch, t: Step, noise: Noise) -> SketchBatch:
        """Sample X_t given X_0."""
        check_shape(noise, "noise", like=x0)
        level = self.labels.at(t)
        return SketchBatch(
            gaussian_softmax.draw_label(
                multinomial.cumulative_probs(fill_blank_flags(x0.construction), level), noise.construction
            ),
            gaussian_softmax.draw_label(multinomial.cumulative_probs(x0.kind, level), noise.kind),
            gaussian.diffuse(x0.params, noise.params, self.params.at(t)),
        )

    def step_forward(self, batch_s: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch:
        """Sample X_t given X_s, s < t."""
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
        """The probabilities of y_s in the reverse step."""
        at_s, at_t = self.labels.at(s), self.labels.at(t)
        if self.reverse == "predicted":
            return multinomial.posterior_probs(y0_hat, y_t, at_s, at_t)
        return expected_posterior(y0_hat, y_t, at_s, at_t)

    def step_back(
        self, prediction: Prediction, params: Tensor, batch_t: SketchBatch, s: Step, t: Step, noise: Noise
    ) -> SketchBatch:
        """Sample X_s given X_t, predicted labels, and the parameters that replace x_0."""
        mean, std = gaussian.posterior(params, batch_t.params, self.params.at(s), self.params.at(t))
        construction = self.reverse_probs(prediction.construction, batch_t.construction, s, t)
        kind = self.reverse_probs(prediction.kind, batch_t.kind, s, t)
        return SketchBatch(
            gaussian_softmax.draw_label(construction, noise.construction),
            gaussian_softmax.draw_label(kind, noise.kind),
            mean + std * noise.params,
        )


def expected_posterior(y0_hat: Probabilities, y_t: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """Σ_c ŷ_0[c]·q(y_s | y_t, y_0 = c): exact for a perfect ŷ_0 at any step length, unlike the plain posterior.

    It equals the plain posterior of ŷ_0[c] / q(y_t | y_0 = c), normalized.
    """
    # q(y_t | y_0 = c) for every c: cumulative_probs is symmetric, so y_t is mixed.
    likelihood = multinomial.cumulative_probs(y_t, level_t)
    # A probability of zero (at t = 0) excludes the label.
    weight = torch.where(likelihood > 0, y0_hat / likelihood.clamp(min=torch.finfo(likelihood.dtype).tiny), 0.0)
    return multinomial.posterior_probs(weight / weight.sum(dim=-1, keepdim=True), y_t, level_s, level_t)


def fill_blank_flags(construction: Probabilities) -> Probabilities:
    """Flags with the blank ones of empty rows, as in the authors' code, replaced by the uniform distribution."""
    return construction + (1 - construction.sum(dim=-1, keepdim=True)) / construction.shape[-1]
