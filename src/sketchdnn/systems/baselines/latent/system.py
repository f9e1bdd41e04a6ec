"""Latent diffusion: an autoencoder encodes sketches as a few tokens, and a transformer denoises the tokens.

Both are trained in one run. The loss of the denoiser has no gradient with respect to the autoencoder. With `stage` they
are trained one after the other: a run with `vae`, then one with `diffusion` that starts from its model (`--init-from`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion import gaussian
from sketchdnn.diffusion.gaussian import Schedule
from sketchdnn.diffusion.likelihood import Bins, Elbo, Parts, kl_of_steps, kl_to_noise, nats_given_prediction
from sketchdnn.diffusion.loss import MSE_BOOST, Loss, paper_loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise, check_steps, our_process, parts
from sketchdnn.diffusion.samplers import ddim_weights, posterior_weights, solver_weights
from sketchdnn.diffusion.sampling import Progress, SamplingOptions, WeightRule
from sketchdnn.diffusion.timesteps import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.errors import SketchError
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.baselines.latent.networks import (
    VAE,
    LatentDenoiser,
    LatentDenoiserConfig,
    Latents,
    VAEConfig,
)
from sketchdnn.systems.system import DEFAULT_OPTIONS, ConditionMask, System

Stage = Literal["both", "vae", "diffusion"]

Vectors = Float[Tensor, "batch *shape"]
VectorDenoiser = Callable[[Vectors, Int[Tensor, " batch"]], Vectors]
VectorNoise = Callable[[int], Vectors]
# Receives (number of the step from 1, number of steps, t, s), the state at s and the prediction at t.
OnVectorStep = Callable[[Sequence[int], Vectors, Vectors], None]


VECTOR_SAMPLERS: Mapping[str, WeightRule] = {
    "ancestral": posterior_weights,
    "ddim": lambda level_s, level_t, _: ddim_weights(level_s, level_t, 0.0),
    "dpm++": solver_weights,
}

# Standard deviation of latents, whose tokens are normalized.
_DATA_STD = 1.0
# Keeps the logarithm of a noise level finite at both ends of the schedule.
_FLOOR = 1e-8
# Noise at which the bound reconstructs a latent: about the width of the posterior.
_READ_WIDTH = 0.02
# Weight of the gradient of the variance.
_FIT_WEIGHT = 1e-3
# The noise of a sketch has numbers for two latents: one samples the posterior, the other is the diffusion noise.
_NUMBERS = layout.MAX_PRIMITIVES * layout.ROW_WIDTH


@dataclass(frozen=True, slots=True)
class LatentConfig:
    """`mse_weight` is the paper's λ, for the autoencoder; `kl_weight` is the weight of the mean KL."""

    network: LatentDenoiserConfig = field(default_factory=LatentDenoiserConfig)
    vae: VAEConfig = field(default_factory=VAEConfig)
    stage: Stage = "both"
    num_steps: int = field(default=2000, metadata=within(1, 100_000))
    mse_weight: float = field(default=MSE_BOOST, metadata=within(0, 1e6))
    kl_weight: float = field(default=1e-3, metadata=within(0, 1e6))
    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        numbers = self.vae.tokens * self.vae.channels
        if 2 * numbers > _NUMBERS:
            raise ValueError(f"a latent may hold {_NUMBERS // 2} numbers, not {numbers}: fewer tokens, or channels")


class LatentDiffusion(System):
    """A VAE and a denoiser of its latents."""

    name: ClassVar[str] = "latent"
    config_class: ClassVar[type[Any]] = LatentConfig
    samplers: ClassVar[Collection[str]] = tuple(VECTOR_SAMPLERS)

    def __init__(self, config: LatentConfig) -> None:
        super().__init__()
        self.config: LatentConfig = config
        self.shape = (config.vae.tokens, config.vae.channels)
        self.vae = VAE(config.vae)
        self.network = LatentDenoiser(config.network, *self.shape)
        # Only the schedule of coordinates is used.
        self.process = our_process(config.num_steps)
        if config.stage == "vae":
            self.network.requires_grad_(False)
        if config.stage == "diffusion":
            self.vae.requires_grad_(False)

    def can_init_from(self, other: System) -> bool:
        """Whether the settings are equal except for the stage."""
        return isinstance(other, LatentDiffusion) and replace(other.config, stage=self.config.stage) == self.config

    def to_device(self, device: torch.device | str) -> LatentDiffusion:
        self.to(device)
        self.process = self.process.to(device)
        return self

    def denoise_latent(self, z_t: Latents, t: Int[Tensor, " batch"]) -> Latents:
        """The network's estimate of the clean latent."""
        level = self.process.params.at(t)
        noise = torch.log((level.var + _FLOOR) / (level.alpha_bar + _FLOOR)).to(z_t.dtype) / 6
        raw = self.network(gaussian.scale_input(z_t, level, _DATA_STD), noise)
        return gaussian.denoised(z_t, raw, level, _DATA_STD)

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """The loss of both stages. The parameter term contains the squared error, the KL and the error of the denoised
        latent. The mask is ignored."""
        first, second = _split(noise, self.shape)
        posterior = self.vae.encode(x0)
        z = posterior.drawn(first)
        nothing = torch.zeros(len(x0), dtype=z.dtype, device=z.device)
        loss = Loss(nothing, nothing, nothing)
        if self.config.stage != "diffusion":
            loss = paper_loss(self.vae.decode(z), x0, t, mse_boost=1.0)
            params = self.config.mse_weight * loss.params_per_sample + self._fit_variance(loss.params_per_sample)
            params = params + self.config.kl_weight * posterior.kl().flatten(1).mean(dim=-1)
            loss = replace(loss, params_per_sample=params)
        if self.config.stage != "vae":
            loss = replace(loss, params_per_sample=loss.params_per_sample + self._latent_loss(z.detach(), t, second))
        return loss

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sketches from noise. A latent holds a sketch as a whole, so no part of one can be known."""
        options = self.resolve(options)
        if options.conditioning is not None:
            raise SketchError("latent diffusion samples whole sketches: it cannot be conditioned on a part")
        if not isinstance(options.sampler, str):
            raise SketchError("latent diffusion has its own samplers: name one of them")

        def draws(number: int) -> Latents:
            return _split(noise(number), self.shape)[0]

        def on_step(step: Sequence[int], z_s: Latents, z0_hat: Latents) -> None:
            if options.on_step is not None:
                options.on_step(_LatentProgress(step, z_s, z0_hat, self.vae.decode))

        with torch.no_grad():
            state = draws(0)
            if options.start is not None:
                mean = self.vae.encode(options.start.batch.to(state)).mean
                state = gaussian.diffuse(mean, state, self.process.params.at(options.start.t))
            z = sample_vectors(
                self.denoise_latent,
                self.process.params,
                state,
                draws,
                VECTOR_SAMPLERS[options.sampler],
                steps=options.timesteps(self.config.num_steps),
                on_step=on_step,
            )
            return _as_batch(self.vae.decode(z))

    def draw_steps(self, batch: int, draws: int, generator: torch.Generator, *, width: float) -> StepDraws:
        """A latent has no grid: it is reconstructed at a fixed noise level."""
        process = self.process.to("cpu")
        return draw_steps(process, batch, draws, generator, read_at=step_as_noisy_as(process, _READ_WIDTH))

    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, *, bins: Bins | None = None
    ) -> Elbo:
        """The bound of both stages: −log p(x | z) + log q(z | x) − log p(z) for z from q, with the diffusion bound for
        the last. The terms of the latent are in the parameter part of `prior` and `diffusion`."""
        if steps is None:
            raise ValueError("a bound needs timesteps: draw them with draw_steps")
        variance = float(self.vae.log_variance.detach().double().exp())
        with torch.no_grad():
            first, _ = _split(noise(0), self.shape)
            posterior = self.vae.encode(x0)
            z = posterior.drawn(first)
            wide = Prediction(*(part.double() for part in parts(self.vae.decode(z))))
            posterior_nats = (
                -(first.double() ** 2 + torch.log(2 * torch.tensor(torch.pi))) / 2 - posterior.log_std.double()
            )
            prior, rest = vector_elbo(
                self.denoise_latent,
                self.process.params,
                z,
                lambda number: _split(noise(number), self.shape)[1],
                steps,
            )
            nothing = torch.zeros_like(prior)
            return Elbo(
                Parts(nothing, nothing, prior),
                Parts(nothing, nothing, rest + posterior_nats.flatten(1).sum(dim=-1)),
                nats_given_prediction(wide, x0, variance, bins),
                variance,
                steps.read_at,
            )

    def _latent_loss(self, z: Latents, t: Int[Tensor, " batch"], noise: Latents) -> Float[Tensor, " batch"]:
        """Squared error with uniform weight in the network's output, as in `our_loss`."""
        level = self.process.params.at(t)
        error = (self.denoise_latent(gaussian.diffuse(z, noise, level), t) - z) ** 2
        out = gaussian.like(gaussian.preconditioning(level, _DATA_STD).out, error)
        return (error / out**2).flatten(1).mean(dim=-1)

    def _fit_variance(self, squared_error: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """A term of value zero whose gradient fits `log_variance` to the squared error.

        Its weight is small, so that it does not affect gradient clipping.
        """
        nats = (squared_error.detach() * (-self.vae.log_variance).exp() + self.vae.log_variance) / 2
        return _FIT_WEIGHT * (nats - nats.detach())


class _LatentProgress(Progress):
    """A step whose latents are decoded on access, since decoding takes as long as the step."""

    def __init__(
        self, step: Sequence[int], z_s: Latents, z0_hat: Latents, decode: Callable[[Latents], Prediction]
    ) -> None:
        for name, value in zip(("number", "total", "t", "s"), step, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "active", None)
        object.__setattr__(self, "_seen", (z_s, z0_hat, decode))

    @property
    def batch(self) -> SketchBatch:
        z_s, _, decode = self._seen  # type: ignore[attr-defined]
        return _as_batch(decode(z_s))

    @property
    def prediction(self) -> Prediction:
        _, z0_hat, decode = self._seen  # type: ignore[attr-defined]
        prediction: Prediction = decode(z0_hat)
        return prediction


def sample_vectors(
    denoise: VectorDenoiser,
    schedule: Schedule,
    first: Vectors,
    noise: VectorNoise,
    weights: WeightRule,
    *,
    steps: Sequence[int],
    on_step: OnVectorStep | None = None,
) -> Vectors:
    """Sample from the state `first` at the first timestep to t = 0. Step j, from 1, uses the noise of draw j."""
    check_steps(steps, schedule.num_steps)
    transitions = list(pairwise(steps))
    from_t, to_s = torch.tensor(transitions).unbind(dim=1)
    levels = schedule.to("cpu")
    table = torch.stack(weights(levels.at(to_s), levels.at(from_t), levels.at(from_t.roll(1))), dim=-1).to(first)
    state = clean = first
    for number, (t, s) in enumerate(transitions, start=1):
        before, clean = clean, denoise(state, torch.full((len(state),), t, device=state.device)).to(state)
        of_x_t, of_x0, of_before, std = table[number - 1].unbind()
        state = of_x_t * state + of_x0 * clean + of_before * before + std * noise(number)
        if on_step is not None:
            on_step((number, len(transitions), t, s), state, clean)
    return state


def vector_elbo(
    denoise: VectorDenoiser, schedule: Schedule, x0: Vectors, noise: VectorNoise, steps: StepDraws
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """A bound on −log p(x_0) in nats: the prior term, and the sum of all other terms.

    x_0 is reconstructed from x_r with the variance of the noise at r, using the noise of draw 0. Step j uses draw j.
    """
    schedule, truth, batch = schedule.to(x0.device), x0.double(), len(x0)
    dimensions, last = x0[0].numel(), schedule.at(schedule.num_steps)

    def squared_error(t: Tensor, draw: int) -> Tensor:
        x_t = gaussian.diffuse(x0, noise(draw), schedule.at(t))
        return (truth - denoise(x_t, t).double()).square().flatten(1).sum(dim=-1)

    read_at = torch.full((batch,), steps.read_at, device=x0.device)
    variance = float(schedule.var[steps.read_at])
    read_off = squared_error(read_at, 0) / variance / 2 + dimensions * math.log(2 * math.pi * variance) / 2
    terms = []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.device), steps.count, strict=True), start=1):
        terms.append(count.to(truth) * kl_of_steps(squared_error(t, draw), schedule.at(t - 1), schedule.at(t)))
    prior = kl_to_noise(truth.square().flatten(1).sum(dim=-1), last, dimensions)
    return prior, torch.stack(terms).mean(dim=0) + read_off


def _split(noise: Noise, shape: tuple[int, int]) -> tuple[Latents, Latents]:
    """The noise of two latents, from the noise of a sketch."""
    numbers, count = noise.flat().flatten(1), shape[0] * shape[1]
    return numbers[:, :count].reshape(-1, *shape), numbers[:, count : 2 * count].reshape(-1, *shape)


def _as_batch(prediction: Prediction) -> SketchBatch:
    return SketchBatch(prediction.construction, prediction.kind, prediction.params)
