"""A diffusion transformer over a few latent tokens: the set denoiser's blocks, with positions, since tokens differ."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.networks.set_denoiser import Block, hidden_width, waves
from sketchdnn.representation.settings import check_network, within

from .vae import Latents


@dataclass(frozen=True, slots=True)
class LatentDenoiserConfig:
    """The size of the network."""

    width: int = field(default=512, metadata=within(1, 16_384))
    depth: int = field(default=12, metadata=within(1, 512))
    heads: int = field(default=8, metadata=within(1, 1024))
    time_features: int = field(default=64, metadata=within(1, 4096))

    def __post_init__(self) -> None:
        check_network(self)


class LatentDenoiser(nn.Module):
    """Maps noisy latents of unit variance and their noise level to raw outputs of the same shape."""

    def __init__(self, config: LatentDenoiserConfig, tokens: int, channels: int) -> None:
        super().__init__()
        self.config = config
        width = config.width
        self.embed = nn.Linear(channels, width)
        self.position = nn.Parameter(0.02 * torch.randn(tokens, width))
        self.time = nn.Sequential(nn.Linear(2 * config.time_features, width), nn.SiLU(), nn.Linear(width, width))
        self.modulation = nn.Linear(width, 6 * width)
        self.blocks = nn.ModuleList(Block(width, config.heads, hidden_width(width)) for _ in range(config.depth))
        self.final_norm = nn.RMSNorm(width, elementwise_affine=False)
        self.final_modulation = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, channels)
        # Initially every block is the identity and every output zero.
        for layer in (self.modulation, self.final_modulation, self.head):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, z_t: Latents, noise: Float[Tensor, " batch"]) -> Latents:
        """`noise` is any smooth measure of the level, about −3 to 3."""
        with torch.autocast(z_t.device.type, enabled=False):
            h = self.embed(z_t) + self.position
            c = self.time(waves(noise, self.config.time_features))
        shared = self.modulation(functional.silu(c))[:, None].unflatten(-1, (6, -1))
        for block in self.blocks:
            h = block(h, shared)
        with torch.autocast(z_t.device.type, enabled=False):
            shift, scale = self.final_modulation(functional.silu(c.float()))[:, None].chunk(2, dim=-1)
            out: Latents = self.head(self.final_norm(h.float()) * (1 + scale) + shift)
        return out
