"""A variational autoencoder of sketches: sixteen rows to a few latent tokens, and back to rows of every kind.

Rows are told apart by learned positions, as in a sequence: a latent says in which order they come, so that what comes
out can be laid beside what went in. Latents have unit size by construction, whatever the weights: the mean of each
token is normalised, so a diffusion of them needs no scale that would have to be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, from_flat
from sketchdnn.representation.prediction import Prediction

from .attention import attend
from .set_denoiser import fourier, hidden_width

Latents = Float[Tensor, "batch token channel"]

# Where a posterior's deviation starts, and how far it may go: neither a point nor wider than the prior.
_LOG_STD = (-6.0, 0.0)
_FIRST_LOG_STD = -2.0


@dataclass(frozen=True, slots=True)
class VAEConfig:
    """The size of both halves, and of the latent between them. `octaves` as in the set denoiser."""

    width: int = 256
    depth: int = 4
    heads: int = 8
    tokens: int = 8
    channels: int = 16
    octaves: int = 8

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads", "tokens", "channels", "octaves"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, but {self.width} is none of {self.heads}")


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
        self.embed = nn.Linear(layout.ROW_WIDTH + 2 * config.octaves * layout.NUM_PARAMS, width)
        self.row_position, self.row_query = _positions(rows, width), _positions(rows, width)
        self.token_query, self.token_position = _positions(config.tokens, width), _positions(config.tokens, width)
        self.encoder = nn.ModuleList(PlainBlock(width, config.heads) for _ in range(config.depth))
        self.to_latent = nn.Linear(width, 2 * config.channels)
        self.from_latent = nn.Linear(config.channels, width)
        self.decoder = nn.ModuleList(PlainBlock(width, config.heads) for _ in range(config.depth))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, layout.ROW_WIDTH)
        self.log_variance = nn.Parameter(torch.full((1,), -2.0))  # a vector, which can be split over devices
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def encode(self, x0: SketchBatch) -> Posterior:
        """What the latent of a clean sketch may be."""
        # Both ends in float32, as in the set denoiser.
        with torch.autocast(x0.params.device.type, enabled=False):
            rows = self.embed(torch.cat([x0.flat(), fourier(x0.params, self.config.octaves)], dim=-1))
            h = torch.cat([self.token_query.expand(len(x0), -1, -1), rows + self.row_position], dim=1)
        for block in self.encoder:
            h = block(h)
        with torch.autocast(x0.params.device.type, enabled=False):
            mean, log_std = self.to_latent(h[:, : self.config.tokens].float()).chunk(2, dim=-1)
            mean = functional.rms_norm(mean, mean.shape[-1:])
            return Posterior(mean, (_FIRST_LOG_STD + log_std).clamp(*_LOG_STD))

    def decode(self, z: Latents) -> Prediction:
        """Label logits and the parameters of every kind, sixteen rows."""
        with torch.autocast(z.device.type, enabled=False):
            tokens = self.from_latent(z.float()) + self.token_position
            h = torch.cat([tokens, self.row_query.expand(len(z), -1, -1)], dim=1)
        for block in self.decoder:
            h = block(h)
        with torch.autocast(z.device.type, enabled=False):
            rows = from_flat(self.head(self.norm(h[:, self.config.tokens :].float())))
        return Prediction(rows.construction, rows.kind, rows.params)


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


def _positions(count: int, width: int) -> nn.Parameter:
    return nn.Parameter(0.02 * torch.randn(count, width))
