"""The networks of latent diffusion: a variational autoencoder of sketches, and a denoiser of its latents.

The autoencoder maps sixteen rows to a few latent tokens, and back to rows of every kind.

Rows are told apart by learned positions, as in a sequence: a latent says in which order they come, so that what comes
out can be laid beside what went in. A token is made of neighboring rows, which have looked at all others, and becomes
those rows again: the way of a row through the latent need not be found first. Latents have unit size by construction,
whatever the weights: the mean of each token is normalized, so a diffusion of them needs no scale to be measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.networks.attention import TransformerConfig, attend
from sketchdnn.networks.set_denoiser import ModulatedTransformer, fourier, hidden_width, waves
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat
from sketchdnn.representation.settings import within

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
            rows = from_flat(self.head(self.norm(h.float())))
        return Prediction(rows.construction, rows.kind, rows.params)


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
        mixed = attend(self.qkv(_normed(self.attention_norm, h)).unflatten(-1, (3, self.heads, -1)))
        h = h + self.out(mixed.flatten(2))
        gate, up = self.gate_up(_normed(self.perceptron_norm, h)).chunk(2, dim=-1)
        change: Tensor = self.down(functional.silu(gate) * up)
        return h + change


def _normed(norm: nn.RMSNorm, h: Tensor) -> Tensor:
    """In float32, the type of its weights."""
    normed: Tensor = norm(h.float())
    return normed


def _bounded(raw: Tensor) -> Tensor:
    """A log deviation from any number: softly, since one that is cut off at a bound would learn no more."""
    return _LEAST_LOG_STD * torch.sigmoid(math.log(_FIRST_LOG_STD / (_LEAST_LOG_STD - _FIRST_LOG_STD)) - raw)


def _positions(count: int, width: int) -> nn.Parameter:
    return nn.Parameter(0.02 * torch.randn(count, width))
