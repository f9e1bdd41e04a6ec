"""Latent diffusion: an autoencoder encodes sketches as a few tokens, and a transformer denoises the tokens.

Both are trained in one run. The loss of the denoiser has no gradient with respect to the autoencoder. With `stage` they
are trained one after the other: a run with `vae`, then one with `diffusion` that starts from its model (`--init-from`).

The autoencoder maps sixteen rows to a few latent tokens, and back to rows of every kind. Rows have learned positions,
so that decoded rows can be compared with the input. A token is made of neighboring rows, which have attended to all
others, and becomes those rows again. Latents have unit size by construction, whatever the weights: the mean of each
token is normalized, so their diffusion needs no measured scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.diffusion import Progress, SamplingOptions, Schedule, gaussian
from sketchdnn.diffusion.likelihood import Bins, Elbo, Parts, kl_of_steps, kl_to_noise, nats_given_prediction
from sketchdnn.diffusion.loss import MSE_BOOST, Loss, paper_loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise, check_steps, our_process, parts
from sketchdnn.diffusion.samplers import ddim_weights, posterior_weights, solver_weights
from sketchdnn.diffusion.sampling import WeightRule, Weights
from sketchdnn.diffusion.timesteps import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.errors import SketchError
from sketchdnn.networks.attention import TransformerConfig, attend
from sketchdnn.networks.set_denoiser import ModulatedTransformer, fourier, hidden_width, waves
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.system import DEFAULT_OPTIONS, ConditionMask, System

Stage = Literal["both", "vae", "diffusion"]

Vectors = Float[Tensor, "batch *shape"]
VectorDenoiser = Callable[[Vectors, Int[Tensor, " batch"]], Vectors]
VectorNoise = Callable[[int], Vectors]
# (number of the step from 1, number of steps, t, s), the state at s and the prediction at t.
VectorStep = tuple[tuple[int, int, int, int], Vectors, Vectors]


def _ddim(level_s: gaussian.Level, level_t: gaussian.Level, _: gaussian.Level) -> Weights:
    return ddim_weights(level_s, level_t, 0.0)


VECTOR_SAMPLERS: Mapping[str, WeightRule] = {"ancestral": posterior_weights, "ddim": _ddim, "dpm++": solver_weights}

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


# The networks: an autoencoder of sketches, and a denoiser of its latents.

Latents = Float[Tensor, "batch token channel"]

# How far a posterior's deviation may go, and where it starts: neither a point nor wider than the prior.
_LEAST_LOG_STD = -6.0
_FIRST_LOG_STD = -2.0
# The variance has a long way to go, from 1 to a ten thousandth, with steps no longer than those of any weight.
_PACE = 10.0


@dataclass(frozen=True, slots=True)
class VAEConfig(TransformerConfig):
    """The size of both halves, and of the latent between them. `octaves` as in the set denoiser."""

    width: int = field(default=256, metadata=within(1, 16_384))
    depth: int = field(default=4, metadata=within(1, 512))
    tokens: int = field(default=8, metadata=within(1, layout.MAX_PRIMITIVES))
    channels: int = field(default=16, metadata=within(1, 1024))
    octaves: int = field(default=8, metadata=within(1, 32))

    def __post_init__(self) -> None:
        TransformerConfig.__post_init__(self)
        if layout.MAX_PRIMITIVES % self.tokens:
            raise ValueError(f"tokens must share {layout.MAX_PRIMITIVES} rows alike, which {self.tokens} cannot")


class Posterior(NamedTuple):
    """N(mean, std²) of a sketch's latent."""

    mean: Latents
    log_std: Latents

    def drawn(self, noise: Latents) -> Latents:
        return self.mean + self.log_std.exp() * noise

    def kl(self) -> Latents:
        """KL to N(0, 1), number by number."""
        return (self.mean**2 + (2 * self.log_std).exp() - 1) / 2 - self.log_std


class VAE(nn.Module):
    """`encode` to a posterior, `decode` to what a denoiser would say of the sketch.

    `log_variance` is that of the parameters about what is decoded, learned to be just what is missed.
    """

    def __init__(self, config: VAEConfig) -> None:
        super().__init__()
        self.config = config
        width, rows = config.width, layout.MAX_PRIMITIVES
        of_a_token = rows // config.tokens * width
        self.embed = nn.Linear(layout.ROW_WIDTH + 2 * config.octaves * layout.NUM_PARAMS, width)
        self.row_in, self.row_out = _positions(rows, width), _positions(rows, width)
        self.encoder = nn.ModuleList(PlainBlock(width, config.heads) for _ in range(config.depth))
        self.encoded_norm = nn.RMSNorm(width)
        self.to_latent = nn.Linear(of_a_token, 2 * config.channels)
        self.from_latent = nn.Linear(config.channels, of_a_token)
        self.decoder = nn.ModuleList(PlainBlock(width, config.heads) for _ in range(config.depth))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, layout.ROW_WIDTH)
        self.variance_exponent = nn.Parameter(torch.full((1,), -0.2))  # a vector, which can be split over devices
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    @property
    def log_variance(self) -> Float[Tensor, " one"]:
        return _PACE * self.variance_exponent

    def encode(self, x0: SketchBatch) -> Posterior:
        """What the latent of a clean sketch may be."""
        # Both ends in float32, as in the set denoiser.
        with torch.autocast(x0.params.device.type, enabled=False):
            h = self.embed(torch.cat([x0.flat(), fourier(x0.params, self.config.octaves)], dim=-1)) + self.row_in
        for block in self.encoder:
            h = block(h)
        with torch.autocast(x0.params.device.type, enabled=False):
            h = self.encoded_norm(h.float()).unflatten(1, (self.config.tokens, -1)).flatten(2)
            mean, raw = self.to_latent(h).chunk(2, dim=-1)
            return Posterior(functional.rms_norm(mean, mean.shape[-1:]), _bounded(raw))

    def decode(self, z: Latents) -> Prediction:
        """Label logits and the parameters of every kind, sixteen rows."""
        with torch.autocast(z.device.type, enabled=False):
            h = self.from_latent(z.float()).reshape(len(z), *self.row_out.shape) + self.row_out
        for block in self.decoder:
            h = block(h)
        with torch.autocast(z.device.type, enabled=False):
            return Prediction(*parts(from_flat(self.head(self.norm(h.float())))))


@dataclass(frozen=True, slots=True)
class LatentDenoiserConfig(TransformerConfig):
    """The size of the denoiser."""

    time_features: int = field(default=64, metadata=within(1, 4096))


class LatentDenoiser(ModulatedTransformer):
    """Maps noisy latents of unit variance and their noise level to raw outputs of the same shape.

    It has the set denoiser's blocks, with positions, since tokens differ.
    """

    def __init__(self, config: LatentDenoiserConfig, tokens: int, channels: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Linear(channels, config.width)
        self.position = _positions(tokens, config.width)
        self._add_layers(config, config.time_features, channels)

    def forward(self, z_t: Latents, noise: Float[Tensor, " batch"]) -> Latents:
        """`noise` is any smooth measure of the level, about −3 to 3."""
        with torch.autocast(z_t.device.type, enabled=False):
            h = self.embed(z_t) + self.position
            c = self.time(waves(noise, self.config.time_features))
        return self._output(h, c)


class PlainBlock(nn.Module):
    """Attention, then SwiGLU: the set denoiser's block, with no noise level to listen to."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        hidden = hidden_width(width)
        self.heads = heads
        self.attention_norm, self.perceptron_norm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        mixed = attend(self.qkv(self.attention_norm(h.float())).unflatten(-1, (3, self.heads, -1)))
        h = h + self.out(mixed.flatten(2))
        gate, up = self.gate_up(self.perceptron_norm(h.float())).chunk(2, dim=-1)
        return torch.add(h, self.down(functional.silu(gate) * up))


def _bounded(raw: Tensor) -> Tensor:
    """A log deviation from any number: softly, since one that is cut off at a bound would learn no more."""
    return _LEAST_LOG_STD * torch.sigmoid(math.log(_FIRST_LOG_STD / (_LEAST_LOG_STD - _FIRST_LOG_STD)) - raw)


def _positions(count: int, width: int) -> nn.Parameter:
    return nn.Parameter(0.02 * torch.randn(count, width))


# The system.


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
        self.network.requires_grad_(config.stage != "vae")
        self.vae.requires_grad_(config.stage != "diffusion")

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
        loss = Loss(*[z.new_zeros(len(x0))] * 3)
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

        with torch.no_grad():
            state = draws(0)
            if options.start is not None:
                mean = self.vae.encode(options.start.batch.to(state)).mean
                state = gaussian.diffuse(mean, state, self.process.params.at(options.start.t))
            rule, steps = VECTOR_SAMPLERS[options.sampler], options.timesteps(self.config.num_steps)
            for step, z, z0_hat in sample_vectors(self.denoise_latent, self.process.params, state, draws, rule, steps):
                if options.on_step is not None:
                    options.on_step(cast(Progress, _LatentProgress(*step, z, z0_hat, self.vae.decode)))
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
            two_pi = 2 * torch.tensor(torch.pi)
            posterior_nats = -(first.double() ** 2 + two_pi.log()) / 2 - posterior.log_std.double()
            process, second = self.process.params, lambda number: _split(noise(number), self.shape)[1]
            prior, rest = vector_elbo(self.denoise_latent, process, z, second, steps)
            nothing = torch.zeros_like(prior)
            diffusion = Parts(nothing, nothing, rest + posterior_nats.flatten(1).sum(dim=-1))
            reconstruction = nats_given_prediction(wide, x0, variance, bins)
            return Elbo(Parts(nothing, nothing, prior), diffusion, reconstruction, variance, steps.read_at)

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


@dataclass(frozen=True, slots=True)
class _LatentProgress:
    """A `Progress` whose latents are decoded on access, since decoding takes as long as the step."""

    number: int
    total: int
    t: int
    s: int
    z_s: Latents
    z0_hat: Latents
    decode: Callable[[Latents], Prediction]
    active: None = None

    @property
    def batch(self) -> SketchBatch:
        return _as_batch(self.decode(self.z_s))

    @property
    def prediction(self) -> Prediction:
        return self.decode(self.z0_hat)


def sample_vectors(
    denoise: VectorDenoiser,
    schedule: Schedule,
    first: Vectors,
    noise: VectorNoise,
    rule: WeightRule,
    steps: Sequence[int],
) -> Iterator[VectorStep]:
    """Sample from the state `first` at the first timestep to t = 0. Step j, from 1, uses the noise of draw j."""
    check_steps(steps, schedule.num_steps)
    transitions = list(pairwise(steps))
    from_t, to_s = torch.tensor(transitions).unbind(dim=1)
    levels = schedule.to("cpu")
    table = torch.stack(rule(levels.at(to_s), levels.at(from_t), levels.at(from_t.roll(1))), dim=-1).to(first)
    state = clean = first
    for number, (t, s) in enumerate(transitions, start=1):
        before, clean = clean, denoise(state, torch.full((len(state),), t, device=state.device)).to(state)
        of_x_t, of_x0, of_before, std = table[number - 1].unbind()
        state = of_x_t * state + of_x0 * clean + of_before * before + std * noise(number)
        yield (number, len(transitions), t, s), state, clean


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
