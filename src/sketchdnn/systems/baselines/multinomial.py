"""SketchDNN (Cat.): multinomial diffusion of kind and construction (Hoogeboom et al. 2021), the rest as in SketchDNN.

A label is kept with probability ᾱ_t, otherwise sampled uniformly. Noisy labels are one-hot; each transition is a vector
of probabilities. Labels are sampled from Gaussian noise by the Gumbel-max trick, so the noise of a sample is the same
as for the other systems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.diffusion import gaussian
from sketchdnn.diffusion.gaussian import Level, Schedule, authors_cosine, cosine, like
from sketchdnn.diffusion.gaussian_softmax import draw_label
from sketchdnn.diffusion.likelihood import Parts, elbo, kl_of_steps, kl_to_noise, sum_over_steps
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, Noise, Step, Superposition, begin_trajectory, check_shape, superpose
from sketchdnn.diffusion.sampling import Conditioning, Progress, SamplingOptions, Start, predict
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems.row_denoiser import RowDenoiser, RowDenoiserConfig
from sketchdnn.systems.system import DEFAULT_OPTIONS

# y_0 in the reverse step: the prediction (Hoogeboom et al. 2021), or the mean over all labels by their probability.
Reverse = Literal["predicted", "expected"]

Probabilities = Float[Tensor, "*rows cat"]


@dataclass(frozen=True, slots=True)
class SketchDNNCatConfig(RowDenoiserConfig):
    """Settings of SketchDNN (Cat.). Labels use the schedule of the parameters.

    `reverse`: y_0 in the reverse step. `predicted` is the prediction (Hoogeboom et al. 2021). `expected` is the mean
    over all labels: equal in short steps, and exact in long ones.
    """

    reverse: Reverse = "expected"


@dataclass(frozen=True, slots=True)
class MultinomialProcess:
    """The schedule of parameters and labels, and the form of the reverse step."""

    schedule: Schedule
    superposition: Superposition = "max"
    reverse: Reverse = "predicted"

    def __post_init__(self) -> None:
        for name, choices in (("reverse", get_args(Reverse)), ("superposition", get_args(Superposition))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, not {getattr(self, name)!r}")

    @property
    def params(self) -> Schedule:
        return self.schedule

    kind = construction = params

    @property
    def num_steps(self) -> int:
        return self.schedule.num_steps

    def to(self, device: torch.device | str) -> MultinomialProcess:
        """The same process with its schedule on a device."""
        return replace(self, schedule=self.schedule.to(device))

    def at(self, t: Step) -> Level:
        """The noise level of step t."""
        return self.schedule.at(t)

    def diffuse(self, x0: SketchBatch, t: Step, noise: Noise) -> SketchBatch:
        """Sample X_t given X_0."""
        check_shape(noise, "noise", like=x0)
        construction, kind = (cumulative_probs(y0, self.at(t)) for y0 in (fill_blank_flags(x0.construction), x0.kind))
        return _drawn(construction, kind, gaussian.diffuse(x0.params, noise.params, self.at(t)), noise)

    def step_forward(self, batch_s: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch:
        """Sample X_t given X_s, s < t."""
        at_s, at_t = self.at(s), self.at(t)
        construction, kind = (forward_probs(y_s, at_s, at_t) for y_s in (batch_s.construction, batch_s.kind))
        params = gaussian.step_forward(batch_s.params, noise.params, at_s, at_t)
        return _drawn(construction, kind, params, noise)

    def clean_params(self, prediction: Prediction) -> Tensor:
        """The parameters that go into the reverse mean."""
        return superpose(prediction.params, prediction.kind, self.superposition)

    def reverse_probs(self, y0_hat: Probabilities, y_t: Probabilities, s: Step, t: Step) -> Probabilities:
        """The probabilities of y_s in the reverse step."""
        posterior = posterior_probs if self.reverse == "predicted" else expected_posterior
        return posterior(y0_hat, y_t, self.at(s), self.at(t))

    def step_back(
        self, prediction: Prediction, params: Tensor, batch_t: SketchBatch, s: Step, t: Step, noise: Noise
    ) -> SketchBatch:
        """Sample X_s given X_t, predicted labels, and the parameters that replace x_0."""
        mean, std = gaussian.posterior(params, batch_t.params, self.at(s), self.at(t))
        construction = self.reverse_probs(prediction.construction, batch_t.construction, s, t)
        kind = self.reverse_probs(prediction.kind, batch_t.kind, s, t)
        return _drawn(construction, kind, mean + std * noise.params, noise)


class SketchDNNCat(RowDenoiser[MultinomialProcess]):
    """A denoiser of the multinomial process."""

    name: ClassVar[str] = "sketchdnn-cat"
    config_class: ClassVar[type[Any]] = SketchDNNCatConfig
    inference_only: ClassVar[tuple[str, ...]] = ("superposition", "reverse")
    config: SketchDNNCatConfig

    def __init__(self, config: SketchDNNCatConfig) -> None:
        schedule = authors_cosine(config.num_steps) if config.variant == "authors" else cosine(config.num_steps)
        super().__init__(config, MultinomialProcess(schedule, config.superposition, config.reverse), multinomial_elbo)

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sketches from noise. Labels are discrete, so the ancestral sampler is the only one."""
        options = self.resolve(options)
        return sample_multinomial(self.denoiser(options.conditioning), self.process, noise, options)


# Transitions.


def forward_probs(y_s: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """q(y_t | y_s) = Cat(α_ts·y_s + (1 − α_ts)/D)."""
    return cumulative_probs(y_s, gaussian.transition(level_s, level_t))


def cumulative_probs(y0: Probabilities, level_t: Level) -> Probabilities:
    """q(y_t | y_0) = Cat(ᾱ_t·y_0 + (1 − ᾱ_t)/D)."""
    return like(level_t.alpha_bar, y0) * y0 + like(level_t.var, y0) / y0.shape[-1]


def posterior_probs(y0: Probabilities, y_t: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """q(y_s | y_t, y_0) ∝ q(y_t | y_s)·q(y_s | y_0). With a predicted ŷ_0 it is the reverse step."""
    # q(y_t | y_s) is symmetric in its arguments, so y_t is mixed.
    joint = forward_probs(y_t, level_s, level_t) * cumulative_probs(y0, level_s)
    return joint / joint.sum(dim=-1, keepdim=True)


def expected_posterior(y0_hat: Probabilities, y_t: Probabilities, level_s: Level, level_t: Level) -> Probabilities:
    """Σ_c ŷ_0[c]·q(y_s | y_t, y_0 = c): exact for a perfect ŷ_0 at any step length, unlike the plain posterior.

    It equals the plain posterior of ŷ_0[c] / q(y_t | y_0 = c), normalized.
    """
    # q(y_t | y_0 = c) for every c: cumulative_probs is symmetric, so y_t is mixed.
    likelihood = cumulative_probs(y_t, level_t)
    # A probability of zero (at t = 0) excludes the label.
    weight = torch.where(likelihood > 0, y0_hat / likelihood.clamp(min=torch.finfo(likelihood.dtype).tiny), 0.0)
    return posterior_probs(weight / weight.sum(dim=-1, keepdim=True), y_t, level_s, level_t)


def kl(q: Probabilities, p: Probabilities) -> Float[Tensor, "*rows"]:
    """KL(q ‖ p) = Σ q·log(q/p), in nats; terms with q = 0 are zero.

    Between posteriors it is a term of the bound for s ≥ 1. At s = 0 q is one-hot and it is −log p(y_0 | y_1).
    """
    possible = q > 0
    log_ratio = torch.where(possible, q, 1.0).log() - torch.where(possible, p, 1.0).log()
    return (q * log_ratio).sum(dim=-1)


def fill_blank_flags(construction: Probabilities) -> Probabilities:
    """Flags with the blank ones of empty rows, as in the authors' code, replaced by the uniform distribution."""
    return construction + (1 - construction.sum(dim=-1, keepdim=True)) / construction.shape[-1]


def _drawn(construction: Probabilities, kind: Probabilities, params: Tensor, noise: Noise) -> SketchBatch:
    """Labels drawn from their probabilities by the noise, beside the parameters."""
    return SketchBatch(draw_label(construction, noise.construction), draw_label(kind, noise.kind), params)


# The ancestral sampler. Noise of draw 0 starts a trajectory and every transition takes the next draw, as in
# `sampling_loop`.


def sample_multinomial(
    denoise: Denoiser, process: MultinomialProcess, noise: NoiseSource, options: SamplingOptions
) -> SketchBatch:
    """Sketches from noise by the reverse of the multinomial process: labels are sampled at every step."""
    pure = noise(0)
    options.check_shapes(pure)
    transitions = options.transitions(process.num_steps)
    process = process.to(pure.params.device)
    conditioning = None if options.conditioning is None else options.conditioning.to(pure.params)
    denoise = begin_trajectory(denoise)

    batch = _initial_state(process, pure, conditioning, options.start)
    with torch.no_grad():
        for number, (t, s) in enumerate(transitions, start=1):
            if s > t:
                batch = process.step_forward(batch, t, s, noise(number))
                continue
            visible = batch if conditioning is None else conditioning.visible(batch)
            prediction = predict(denoise, visible, t, conditioning)
            params = process.clean_params(prediction)
            if conditioning is not None:
                params = torch.where(conditioning.params, conditioning.batch.params, params)
            batch = process.step_back(prediction, params, batch, s, t, noise(number))
            if s == 0 and conditioning is not None:
                batch = conditioning.fill_rows(batch)
            if options.on_step is not None:
                options.on_step(Progress(number, len(transitions), t, s, batch, prediction))
    return batch


def _initial_state(
    process: MultinomialProcess, noise: Noise, conditioning: Conditioning | None, start: Start | None
) -> SketchBatch:
    """Uniform labels, or the start diffused by the noise; known parts begin where the forward process takes them."""
    if start is None:
        t, batch = process.num_steps, _drawn(_uniform(noise.construction), _uniform(noise.kind), noise.params, noise)
    else:
        t, batch = start.t, process.diffuse(start.batch.to(noise.params), start.t, noise)
    if conditioning is None:
        return batch
    filled = conditioning.fill_rows(batch)
    # The flags of unknown rows are replaced by valid ones; their diffused values are not used.
    filled = SketchBatch(fill_blank_flags(filled.construction), filled.kind, filled.params)
    return replace(conditioning, batch=process.diffuse(filled, t, noise)).fill_rows(batch)


def _uniform(like: Tensor) -> Probabilities:
    return torch.full_like(like, 1 / like.shape[-1])


# The bound: as in `diffusion.likelihood`, with the KL of categorical labels in the prior and diffusion terms.


def multinomial_prior(process: MultinomialProcess, x0: SketchBatch) -> Parts:
    """KL(q(x_T | x_0) ‖ uniform labels and N(0, 1)); zero if ᾱ_T = 0."""
    clean, last = _clean(x0), process.at(process.num_steps)
    labels = clean.construction, clean.kind
    construction, kind = (kl(cumulative_probs(y0, last), _uniform(y0)).sum(dim=-1) for y0 in labels)
    squared = torch.sum(clean.params**2, dim=(-2, -1))
    return Parts(construction, kind, kl_to_noise(squared, last, x0.kind.shape[1] * layout.NUM_PARAMS))


def multinomial_diffusion(
    denoise: Denoiser, process: MultinomialProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws
) -> Parts:
    """Σ over t = r+1..T of KL(q(x_{t−1} | x_t, x_0) ‖ the sampler's step)."""
    clean = _clean(x0)

    def divergences(prediction: Prediction, batch_t: SketchBatch, t: Tensor) -> Iterable[Tensor]:
        at_s, at_t = process.at(t - 1), process.at(t)
        for part in ("construction", "kind"):
            y0, y0_hat, y_t = (getattr(each, part) for each in (clean, prediction, batch_t))
            true = posterior_probs(y0, y_t.double(), at_s, at_t)
            yield kl(true, process.reverse_probs(y0_hat, y_t.double(), t - 1, t)).sum(dim=-1)
        squared = torch.sum((clean.params - process.clean_params(prediction)) ** 2, dim=(-2, -1))
        yield kl_of_steps(squared, at_s, at_t)

    return sum_over_steps(denoise, process, x0, noise, steps, divergences)


multinomial_elbo = partial(elbo, terms=(multinomial_prior, multinomial_diffusion))


def _clean(x0: SketchBatch) -> SketchBatch:
    x0 = x0.to(torch.float64)
    return SketchBatch(fill_blank_flags(x0.construction), x0.kind, x0.params)
