"""Our denoiser: a transformer over the rows of a sketch that knows no order, only what each row holds.

Beside the paper's DiT it has Fourier features of the coordinates (a gap of 0.01 is visible to the first layer), one
modulation shared by all blocks with a small table of its own per block (a modulation layer a block would hold a quarter
of the weights), RMSNorm, normalized queries and keys, SwiGLU, and flags that say which parts of a row are given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.representation.settings import check_network, within

from .attention import attend
from .neighbours import NUM_FEATURES

# Given or not, for each of: construction, kind, parameters.
NUM_GIVEN_FLAGS = 3
# Fewer rows than this are multiplied one by one, which rounds otherwise: a sketch would depend on its batch.
_FEWEST_ROWS = 4
_OUTPUTS = [layout.NUM_CONSTRUCTION, layout.NUM_KINDS, layout.NUM_PARAMS]


@dataclass(frozen=True, slots=True)
class SetDenoiserConfig:
    """The size of the network. `octaves`: the finest coordinate feature has a wavelength of 4 / 2^octaves.

    `positions` adds a learned vector to each row, as in the ablation SketchDNN (Pos.): then order matters. With `hears`
    the network is told what it said of the sketch at the step before, with `neighbours` what lies near each end, and
    with `aside` which sketches it is to learn from but not to draw. `dropout` leaves out that share of what a block
    adds, in training alone.
    """

    width: int = field(default=512, metadata=within(1, 16_384))
    depth: int = field(default=12, metadata=within(1, 512))
    heads: int = field(default=8, metadata=within(1, 1024))
    octaves: int = field(default=8, metadata=within(1, 32))
    time_features: int = field(default=64, metadata=within(1, 4096))
    positions: bool = False
    # Later than models that are about: tables of settings leave them out where they are off.
    hears: bool = field(default=False, metadata={"later": True})
    neighbours: bool = field(default=False, metadata={"later": True})
    aside: bool = field(default=False, metadata={"later": True})
    dropout: float = field(default=0.0, metadata={"later": True} | within(0, 1, with_high=False))

    def __post_init__(self) -> None:
        check_network(self)

    @property
    def hidden(self) -> int:
        return hidden_width(self.width)


class SetDenoiser(nn.Module):
    """Scaled noisy rows, their noise level and what is given in; raw outputs for every row out."""

    def __init__(self, config: SetDenoiserConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        features = layout.ROW_WIDTH + NUM_GIVEN_FLAGS + 2 * config.octaves * layout.NUM_PARAMS
        self.embed = nn.Linear(features, width)
        self.position = nn.Parameter(torch.zeros(layout.MAX_PRIMITIVES, width)) if config.positions else None
        self.time = nn.Sequential(nn.Linear(2 * config.time_features, width), nn.SiLU(), nn.Linear(width, width))
        self.modulation = nn.Linear(width, 6 * width)
        self.blocks = nn.ModuleList(
            Block(width, config.heads, config.hidden, config.dropout) for _ in range(config.depth)
        )
        self.final_norm = nn.RMSNorm(width, elementwise_affine=False)
        self.final_modulation = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, sum(_OUTPUTS))
        # At the start every block is the identity and every output zero.
        for layer in (self.modulation, self.final_modulation, self.head):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        if self.position is not None:
            nn.init.normal_(self.position, std=0.02)
        # Last, so that a seed starts all else as in a network without; zero, so that both say the same at first.
        self.heard = _silent(features - NUM_GIVEN_FLAGS, width) if config.hears else None
        self.near = _silent(NUM_FEATURES, width) if config.neighbours else None
        self.near_before = _silent(NUM_FEATURES, width) if config.neighbours and config.hears else None
        self.aside = nn.Parameter(torch.zeros(width)) if config.aside else None

    def forward(
        self,
        rows: SketchBatch,
        noise: Float[Tensor, " batch"],
        given: Float[Tensor, "batch prim 3"],
        before: SketchBatch | None = None,
        near: Float[Tensor, "batch prim feature"] | None = None,
        near_before: Float[Tensor, "batch prim feature"] | None = None,
        aside: Float[Tensor, " batch"] | None = None,
    ) -> Prediction:
        """`rows.params` scaled to unit variance; `noise` is any smooth measure of the level, about −3 to 3.

        `before`: what the network said last, as rows without noise; rows of zeros, or none at all, if it said nothing.
        `near` and `near_before`: what `neighbours` tells of each row, as it is and as it was said to be.
        `aside`: 1 for sketches that are not such as are to be drawn; if nothing is said, all are.
        """
        sketches = len(noise)
        noise = _at_least(_FEWEST_ROWS, noise)
        # Both ends in float32: half precision cannot tell 0.500 from 0.501, and a gap of that size is a failure.
        with torch.autocast(rows.params.device.type, enabled=False):
            h = self.embed(torch.cat([rows.flat(), given, fourier(rows.params, self.config.octaves)], dim=-1))
            if self.heard is not None and before is not None:
                h = h + self.heard(said(before, self.config.octaves))
            if self.near is not None and near is not None:
                h = h + self.near(near)
            if self.near_before is not None and near_before is not None:
                h = h + self.near_before(near_before)
            c = self.time(waves(noise, self.config.time_features))
            if self.aside is not None and aside is not None:
                c = c + _at_least(_FEWEST_ROWS, aside)[:, None] * self.aside
            if self.position is not None:
                h = h + self.position[: h.shape[1]]
        shared = self.modulation(functional.silu(c))[:sketches, None].unflatten(-1, (6, -1))
        for block in self.blocks:
            h = block(h, shared)
        with torch.autocast(rows.params.device.type, enabled=False):
            shift, scale = self.final_modulation(functional.silu(c.float()))[:sketches, None].chunk(2, dim=-1)
            out = self.head(self.final_norm(h.float()) * (1 + scale) + shift)
        return Prediction(*torch.split(out, _OUTPUTS, dim=-1))


class Block(nn.Module):
    """Attention, then SwiGLU, each shifted, scaled and gated by the noise level."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = nn.Dropout(dropout)
        self.table = nn.Parameter(torch.zeros(6, width))
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.q_norm = nn.RMSNorm(width // heads)
        self.k_norm = nn.RMSNorm(width // heads)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, h: Tensor, shared: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_m, scale_m, gate_m = (shared + self.table).unbind(dim=-2)
        h = h + self.dropout(gate_a * self._attend(self.norm(h) * (1 + scale_a) + shift_a))
        gate, up = self.gate_up(self.norm(h) * (1 + scale_m) + shift_m).chunk(2, dim=-1)
        change: Tensor = self.dropout(gate_m * self.down(functional.silu(gate) * up))
        return h + change

    def _attend(self, h: Tensor) -> Tensor:
        q, k, v = self.qkv(h).unflatten(-1, (3, self.heads, -1)).unbind(dim=2)
        # Norms in float32, the type of their weights; compiled, the casts cost nothing.
        q, k = self.q_norm(q.float()).to(v.dtype), self.k_norm(k.float()).to(v.dtype)
        mixed = attend(torch.stack([q, k, v], dim=2))
        out: Tensor = self.out(mixed.flatten(2))
        return out


def _at_least(fewest: int, numbers: Float[Tensor, " batch"]) -> Float[Tensor, " rows"]:
    """A vector padded with zeros to so many numbers; as it is if it has them."""
    missing = fewest - len(numbers)
    return functional.pad(numbers, (0, missing)) if missing > 0 else numbers


def _silent(features: int, width: int) -> nn.Linear:
    """An input that counts for nothing until it is trained."""
    layer = nn.Linear(features, width, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def hidden_width(width: int) -> int:
    """Inner width of SwiGLU: its three matrices cost what a plain 4× MLP's two do."""
    return -(-8 * width // 3 // 64) * 64


def fourier(x: Float[Tensor, "batch prim param"], octaves: int) -> Float[Tensor, "batch prim feature"]:
    """sin and cos of each number at wavelengths 4, 2, 1, …: neighboring places look different to a linear layer."""
    angles = (x[..., None] * (math.pi / 2 * 2.0 ** torch.arange(octaves, device=x.device))).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def said(rows: SketchBatch, octaves: int) -> Float[Tensor, "batch prim feature"]:
    """Features of what was said; all are zero, cosines too, of rows that are not likely to be of any kind."""
    there = rows.kind.sum(dim=-1, keepdim=True) > 0.5
    return torch.cat([rows.flat(), there * fourier(rows.params, octaves)], dim=-1)


def waves(noise: Float[Tensor, " batch"], count: int) -> Float[Tensor, "batch feature"]:
    """sin and cos of the noise level at geometric frequencies."""
    frequencies = torch.exp(torch.linspace(math.log(0.25), math.log(64.0), count, device=noise.device))
    angles = noise.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
