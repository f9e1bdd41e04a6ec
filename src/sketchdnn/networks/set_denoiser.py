"""Our denoiser: a transformer over the rows of a sketch, equivariant to their order.

Differences from the paper's DiT: Fourier features of the coordinates (a gap of 0.01 is visible to the first layer), one
modulation shared by all blocks with a small table per block (a modulation layer a block would hold a quarter of the
weights), RMSNorm, normalized queries and keys, SwiGLU, a mask of known parts, and optional inputs: the previous
prediction, proximity features, and a flag of auxiliary samples.

Proximity features describe what lies near each end of a row. A profile closes where ends meet, and at little noise the
best estimate of a vertex is the mean of the ends that belong to it; attention learns to find them only slowly. Each end
gets the distances to others, in units of the noise, averaged softly at several scales: to ends of other rows; along x
and along y alone, to any place (axis-parallel lines, rows of holes) and to its mirror image (a sketch is centered, so
its symmetry axes are the coordinate axes); and the difference of a circle's radius from others'. They are zero where
nothing is near, and equivariant to the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.geometry import Kind
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.settings import within

from .attention import TransformerConfig, attend

# (number of a block, its output) → an addition to its output.
BlockChange = Callable[[int, Tensor], Tensor]

# Known or not, for each of: construction, kind, parameters.
NUM_MASK_FLAGS = 3
# Smaller batches are multiplied row by row, which rounds differently: a sketch would depend on its batch.
_MIN_BATCH = 4
# Scales of proximity, in units of the noise. Two noisy ends of one vertex are 1.4 apart along each axis.
PROXIMITY_SCALES = (0.7, 1.5, 3.0, 6.0)
# Features fade where the probability that anything is near is below this.
_MIN_WEIGHT = 0.01
# At each scale: a vector and a weight, for ends; a difference and a weight, along x and along y, for places and for
# their mirror images, and for radii.
_END_FEATURES, _RADIUS_FEATURES = 3 + 2 * (2 + 2), 2
NUM_PROXIMITY_FEATURES = len(PROXIMITY_SCALES) * (2 * _END_FEATURES + _RADIUS_FEATURES)


@dataclass(frozen=True, slots=True)
class SetDenoiserConfig(TransformerConfig):
    """Size and inputs of the network.

    Attributes:
        octaves: The finest coordinate feature has a wavelength of 4 / 2^octaves; 0 means no such features.
        positions: Adds a learned vector to each row, as in the ablation SketchDNN (Pos.); order matters then.
        self_conditioning: Adds the previous prediction as input.
        proximity_features: Adds features of what lies near each end.
        auxiliary: Adds a flag of training samples that are not of the target distribution.
        dropout: In training, of the output of each block.
        next_level: Adds the noise level that the sampler goes to next, for students of distillation.
    """

    octaves: int = field(default=8, metadata=within(0, 32))
    time_features: int = field(default=64, metadata=within(1, 4096))
    positions: bool = False
    # Added later: omitted from dictionaries of settings at their default.
    self_conditioning: bool = field(default=False, metadata={"omit_if_default": True})
    proximity_features: bool = field(default=False, metadata={"omit_if_default": True})
    auxiliary: bool = field(default=False, metadata={"omit_if_default": True})
    dropout: float = field(default=0.0, metadata={"omit_if_default": True} | within(0, 1, with_high=False))
    next_level: bool = field(default=False, metadata={"omit_if_default": True})


class ModulatedTransformer(nn.Module):
    """Blocks and an output layer that are modulated by the noise level; subclasses embed their tokens.

    Initially every block is the identity and every output zero.
    """

    def _add_layers(self, config: TransformerConfig, time_features: int, outputs: int, dropout: float = 0.0) -> None:
        width = config.width
        self.time = nn.Sequential(nn.Linear(2 * time_features, width), nn.SiLU(), nn.Linear(width, width))
        self.modulation = nn.Linear(width, 6 * width)
        self.blocks = nn.ModuleList(Block(width, config.heads, dropout) for _ in range(config.depth))
        self.final_norm = nn.RMSNorm(width, elementwise_affine=False)
        self.final_modulation = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, outputs)
        for layer in (self.modulation, self.final_modulation, self.head):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def _output(self, h: Tensor, c: Tensor, change: BlockChange | None = None) -> Tensor:
        """The outputs for embedded tokens and an embedded noise level; rows of `c` beyond the batch are padding."""
        shared = self.modulation(functional.silu(c))[: h.shape[0], None].unflatten(-1, (6, -1))
        for number, block in enumerate(self.blocks):
            h = block(h, shared)
            if change is not None:
                h = h + change(number, h)
        with torch.autocast(h.device.type, enabled=False):
            shift, scale = self.final_modulation(functional.silu(c.float()))[: h.shape[0], None].chunk(2, dim=-1)
            out: Tensor = self.head(self.final_norm(h.float()) * (1 + scale) + shift)
        return out


class SetDenoiser(ModulatedTransformer):
    """Scaled noisy rows, their noise level and the mask of known parts in; raw outputs for every row out."""

    def __init__(self, config: SetDenoiserConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        features = layout.ROW_WIDTH + NUM_MASK_FLAGS + 2 * config.octaves * layout.NUM_PARAMS
        self.embed = nn.Linear(features, width)
        self.position = nn.Parameter(torch.zeros(layout.MAX_PRIMITIVES, width)) if config.positions else None
        self._add_layers(config, config.time_features, layout.ROW_WIDTH, config.dropout)
        if self.position is not None:
            nn.init.normal_(self.position, std=0.02)
        # Extra inputs are zero-initialized, so a smaller checkpoint loads unchanged. They come last, so that a seed
        # gives all other weights the values of a network without them.
        previous, proximity = config.self_conditioning, config.proximity_features
        self.embed_previous = _zero_linear(features - NUM_MASK_FLAGS, width) if previous else None
        self.embed_proximity = _zero_linear(NUM_PROXIMITY_FEATURES, width) if proximity else None
        self.embed_previous_proximity = _zero_linear(NUM_PROXIMITY_FEATURES, width) if proximity and previous else None
        self.auxiliary = nn.Parameter(torch.zeros(width)) if config.auxiliary else None
        self.embed_next_level = _zero_linear(2 * config.time_features, width) if config.next_level else None

    def forward(
        self,
        rows: SketchBatch,
        noise: Float[Tensor, " batch"],
        mask: Float[Tensor, "batch prim 3"],
        previous: SketchBatch | None = None,
        proximity: Float[Tensor, "batch prim feature"] | None = None,
        previous_proximity: Float[Tensor, "batch prim feature"] | None = None,
        auxiliary: Float[Tensor, " batch"] | None = None,
        next_noise: Float[Tensor, " batch"] | None = None,
        change: BlockChange | None = None,
    ) -> Prediction:
        """Raw outputs for every row.

        Args:
            rows: Noisy rows with parameters scaled to unit variance.
            noise: A smooth measure of the noise level, about −3 to 3.
            mask: 1 for known construction, kind and parameters of a row.
            previous: The previous prediction as rows without noise; rows of zeros, or None, for a null prediction.
            proximity: `proximity_features` of the noisy rows.
            previous_proximity: `proximity_features` of the previous prediction.
            auxiliary: 1 for auxiliary training samples; default 0 (target distribution).
            next_noise: The noise level that the sampler goes to, in the units of `noise`.
            change: What to add to the rows after each block, as `ImageAdapters.change`.
        """
        noise = _pad(noise, _MIN_BATCH)
        # Both ends in float32: half precision cannot tell 0.500 from 0.501, and a gap of that size is a failure.
        with torch.autocast(rows.params.device.type, enabled=False):
            h = self.embed(torch.cat([rows.flat(), mask, fourier(rows.params, self.config.octaves)], dim=-1))
            if self.embed_previous is not None and previous is not None:
                h = h + self.embed_previous(previous_features(previous, self.config.octaves))
            if self.embed_proximity is not None and proximity is not None:
                h = h + self.embed_proximity(proximity)
            if self.embed_previous_proximity is not None and previous_proximity is not None:
                h = h + self.embed_previous_proximity(previous_proximity)
            c = self.time(waves(noise, self.config.time_features))
            if self.auxiliary is not None and auxiliary is not None:
                c = c + _pad(auxiliary, _MIN_BATCH)[:, None] * self.auxiliary
            if self.embed_next_level is not None and next_noise is not None:
                c = c + self.embed_next_level(waves(_pad(next_noise, _MIN_BATCH), self.config.time_features))
            if self.position is not None:
                h = h + self.position[: h.shape[1]]
        return Prediction(*torch.split(self._output(h, c, change), layout.PART_WIDTHS, dim=-1))


class Block(nn.Module):
    """Attention, then SwiGLU, each shifted, scaled and gated by the noise level."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        hidden = hidden_width(width)
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


def _pad(numbers: Float[Tensor, " batch"], length: int) -> Float[Tensor, " rows"]:
    """A vector padded with zeros to at least this length."""
    missing = length - numbers.shape[0]
    return functional.pad(numbers, (0, missing)) if missing > 0 else numbers


def _zero_linear(features: int, width: int) -> nn.Linear:
    layer = nn.Linear(features, width, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def hidden_width(width: int) -> int:
    """Inner width of SwiGLU: its three matrices cost what a plain 4× MLP's two do."""
    return -(-8 * width // 3 // 64) * 64


def fourier(x: Float[Tensor, "batch prim param"], octaves: int) -> Float[Tensor, "batch prim feature"]:
    """sin and cos of each number at wavelengths 4, 2, 1, …: a linear layer can resolve small differences."""
    angles = (x[..., None] * (math.pi / 2 * 2.0 ** torch.arange(octaves, device=x.device))).flatten(-2)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def previous_features(rows: SketchBatch, octaves: int) -> Float[Tensor, "batch prim feature"]:
    """Features of a previous prediction; all zero, cosines too, for rows of a null prediction."""
    exists = rows.kind.sum(dim=-1, keepdim=True) > 0.5
    return torch.cat([rows.flat(), exists * fourier(rows.params, octaves)], dim=-1)


def waves(noise: Float[Tensor, " batch"], count: int) -> Float[Tensor, "batch feature"]:
    """sin and cos of the noise level at geometric frequencies."""
    frequencies = torch.exp(torch.linspace(math.log(0.25), math.log(64.0), count, device=noise.device))
    angles = noise.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def proximity_features(rows: SketchBatch) -> Float[Tensor, "batch prim feature"]:
    """The proximity features of every row; its parameters are in units of the noise."""
    count = rows.kind.shape[1]
    exists = rows.kind[..., : layout.NONE].sum(dim=-1)
    has_ends = rows.kind[..., Kind.LINE] + rows.kind[..., Kind.ARC]
    places = _places(rows).flatten(1, 2)  # first and last of a row, row after row
    offset = places[:, None] - places[:, :, None]  # from one place to another
    image_offset = -places[:, None] - places[:, :, None]  # from one place to the mirror image of another, or its own
    place = torch.arange(2 * count, device=places.device)
    other_row = (place[:, None] // 2 != place // 2).to(places)
    other_place = (place[:, None] != place).to(places)
    visible = _per_place(exists)[:, None]
    features = [_soft_mean_offset(offset, _per_place(has_ends)[:, None] * other_row)]
    for axis in (slice(0, 1), slice(1, 2)):
        features.append(_soft_mean_offset(offset[..., axis], visible * other_place))
        features.append(_soft_mean_offset(image_offset[..., axis], visible.expand_as(offset[..., 0])))
    place_features = torch.cat(features, dim=-1)
    radius = rows.of_kind(Kind.CIRCLE)[..., layout.RADIUS, None]
    other_circles = rows.kind[:, None, :, Kind.CIRCLE] * other_place[:count, :count]
    radius_features = _soft_mean_offset(radius[:, None] - radius[:, :, None], other_circles)
    return torch.cat([place_features.reshape(place_features.shape[0], count, -1), radius_features], dim=-1)


def _soft_mean_offset(
    offset: Float[Tensor, "batch one other axis"], weight: Float[Tensor, "batch one other"]
) -> Float[Tensor, "batch one feature"]:
    """At each scale the mean offset to what is near, in units of the scale, and how much is near: 0 to 1."""
    scale = offset.new_tensor(PROXIMITY_SCALES)[:, None]
    near = weight[:, :, None] * torch.exp(offset.square().sum(dim=-1)[:, :, None] / (-2 * scale**2))
    share = near / (near.sum(dim=-1, keepdim=True) + _MIN_WEIGHT)
    mean = (share[..., None] * offset[:, :, None]).sum(dim=-2) / scale
    return torch.cat([mean, share.sum(dim=-1, keepdim=True)], dim=-1).flatten(2)


def _places(rows: SketchBatch) -> Float[Tensor, "batch prim two axis"]:
    """The start and end of each row, averaged over its kinds; those of a circle or a point are the same place."""
    probabilities = rows.kind[..., : layout.NONE]
    probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True).clamp(min=1e-6)
    last_columns = {Kind.LINE: layout.END, Kind.ARC: layout.END}
    first = torch.stack([rows.of_kind(kind)[..., layout.START] for kind in Kind], dim=-1)
    last = torch.stack([rows.of_kind(kind)[..., last_columns.get(kind, layout.START)] for kind in Kind], dim=-1)
    return (torch.stack([first, last], dim=-3) * probabilities[..., None, None, :]).sum(dim=-1)


def _per_place(of_rows: Float[Tensor, "batch prim"]) -> Float[Tensor, "batch place"]:
    return of_rows.repeat_interleave(2, dim=1)
