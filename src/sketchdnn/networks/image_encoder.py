"""Pictures as an input of the set denoiser: an image encoder, and cross-attention adapters beside its blocks.

The encoder turns a picture into 16 by 16 tokens: three convolutions with stride 2, then transformer blocks. One linear
layer computes the keys and values of all adapters from the tokens, so everything that depends on the picture alone is
computed once for a picture. After each block of the denoiser its adapter lets the rows attend to the tokens. The last
layer of an adapter is zero-initialized: at first the denoiser's output does not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.errors import SketchError
from sketchdnn.representation.settings import within

from .attention import TransformerConfig, attend
from .set_denoiser import hidden_width

# Each convolution halves the side of the picture.
_STRIDE = 8
_HEAD_WIDTH = 64


@dataclass(frozen=True, slots=True)
class ImageEncoderConfig(TransformerConfig):
    """Size of the encoder and of the adapters.

    Attributes:
        size: Pixels a side of a picture, a multiple of 8.
        adapter_width: Channels of queries, keys and values of an adapter; heads have 64 or fewer.
    """

    width: int = field(default=256, metadata=within(8, 4096))
    depth: int = field(default=6, metadata=within(0, 64))
    heads: int = field(default=4, metadata=within(1, 64))
    size: int = field(default=128, metadata=within(8, 1024))
    adapter_width: int = field(default=256, metadata=within(8, 4096))

    def __post_init__(self) -> None:
        # Written out: `super` without arguments fails in a dataclass with slots.
        TransformerConfig.__post_init__(self)
        if self.width % 8 or self.size % _STRIDE:
            raise SketchError(f"the width and the pictures of an image encoder are multiples of 8, not {self.width}")
        if self.adapter_width % self.adapter_heads:
            raise SketchError(f"adapter_width must be a multiple of {_HEAD_WIDTH}, not {self.adapter_width}")

    @property
    def num_tokens(self) -> int:
        return (self.size // _STRIDE) ** 2

    @property
    def adapter_heads(self) -> int:
        return max(1, self.adapter_width // _HEAD_WIDTH)


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """What the denoiser takes of some pictures: keys and values of every adapter.

    A batch of sketches has `repeats` sketches for each picture, one picture after the other.

    Attributes:
        keys: Of each adapter.
        values: Of each adapter.
        present: False for pictures that were dropped; the denoiser's output is that without a picture.
        repeats: The number of sketches for each picture.
    """

    keys: Float[Tensor, "image layer head token channel"]
    values: Float[Tensor, "image layer head token channel"]
    present: Bool[Tensor, " image"]
    repeats: int = 1

    def __len__(self) -> int:
        return len(self.present) * self.repeats

    @property
    def present_rows(self) -> Bool[Tensor, " batch"]:
        """`present`, for each sketch of the batch."""
        return self.present.repeat_interleave(self.repeats)

    def __getitem__(self, index: slice | Tensor) -> ImageFeatures:
        """The features for some sketches of the batch."""
        step = index.step if isinstance(index, slice) and index.start is None and index.stop is None else None
        if step is not None and step > 0 and self.repeats % step == 0:
            return replace(self, repeats=self.repeats // step)
        of = torch.arange(len(self), device=self.present.device)[index] // self.repeats
        return ImageFeatures(self.keys[of], self.values[of], self.present[of])

    def repeated(self, repeats: int) -> ImageFeatures:
        """The features of the same pictures for more sketches."""
        return replace(self, repeats=self.repeats * repeats)


class ImageEncoder(nn.Module):
    """Pictures in, ink = 1 on paper = 0; tokens out."""

    def __init__(self, config: ImageEncoderConfig) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.stem = nn.Sequential(
            nn.Conv2d(1, width // 4, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv2d(width // 4, width // 2, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width // 2, width, 3, stride=2, padding=1),
        )
        self.position = nn.Parameter(_waves_of_places(config.size // _STRIDE, width))
        self.blocks = nn.ModuleList(EncoderBlock(width, config.heads) for _ in range(config.depth))
        self.norm = nn.RMSNorm(width)

    def forward(self, pictures: Float[Tensor, "image side side"]) -> Float[Tensor, "image token width"]:
        tokens = self.stem(pictures[:, None]).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        normed: Tensor = self.norm(tokens.float())
        return normed


class EncoderBlock(nn.Module):
    """Attention among the tokens of a picture, then SwiGLU."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        hidden = hidden_width(width)
        self.heads = heads
        self.norm = nn.RMSNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.q_norm = nn.RMSNorm(width // heads)
        self.k_norm = nn.RMSNorm(width // heads)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(tokens)).unflatten(-1, (3, self.heads, -1)).unbind(dim=2)
        q, k = self.q_norm(q.float()).to(v.dtype), self.k_norm(k.float()).to(v.dtype)
        tokens = tokens + self.out(attend(torch.stack([q, k, v], dim=2)).flatten(2))
        gate, up = self.gate_up(self.norm(tokens)).chunk(2, dim=-1)
        change: Tensor = self.down(functional.silu(gate) * up)
        return tokens + change


class ImageAdapters(nn.Module):
    """The cross-attention beside every block of a denoiser."""

    def __init__(self, config: ImageEncoderConfig, denoiser: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.depth, width = config.adapter_heads, denoiser.depth, config.adapter_width
        self.layers = nn.ModuleList(
            CrossAttention(denoiser.width, width, config.adapter_heads) for _ in range(denoiser.depth)
        )
        self.keys_values = nn.Linear(config.width, denoiser.depth * 2 * width, bias=False)
        self.k_norm = nn.RMSNorm(width // config.adapter_heads)

    def features(
        self, tokens: Float[Tensor, "image token width"], present: Bool[Tensor, " image"] | None = None
    ) -> ImageFeatures:
        """Keys and values of all adapters.

        Args:
            tokens: Of `ImageEncoder`.
            present: False for pictures to drop; by default none.
        """
        both = self.keys_values(tokens).unflatten(-1, (self.depth, 2, self.heads, -1))
        keys, values = both.permute(0, 2, 3, 4, 1, 5).unbind(dim=2)
        keys = self.k_norm(keys.float()).to(values.dtype)
        if present is None:
            present = torch.ones(len(tokens), dtype=torch.bool, device=tokens.device)
        return ImageFeatures(keys, values, present)

    def change(self, features: ImageFeatures, number: int, h: Float[Tensor, "batch prim width"]) -> Tensor:
        """What the adapter of a block adds to the rows after it; zero for dropped pictures."""
        change: Tensor = self.layers[number](h, features.keys[:, number], features.values[:, number])
        return change * features.present_rows[:, None, None].to(change.dtype)


class CrossAttention(nn.Module):
    """The rows of sketches attend to the tokens of their picture."""

    def __init__(self, rows_width: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(rows_width, elementwise_affine=False)
        self.query = nn.Linear(rows_width, width, bias=False)
        self.q_norm = nn.RMSNorm(width // heads)
        self.out = nn.Linear(width, rows_width, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, h: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The change of the rows; `h` has several sketches for each picture of `keys`."""
        query = self.query(self.norm(h)).unflatten(-1, (self.heads, -1))
        query = self.q_norm(query.float()).to(values.dtype)
        # All rows of all sketches of a picture as one sequence of queries.
        together = query.reshape(len(keys), -1, *query.shape[2:]).transpose(1, 2)
        mixed = functional.scaled_dot_product_attention(together, keys, values)
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(*h.shape[:2], -1))
        return out


def _waves_of_places(side: int, width: int) -> Float[Tensor, "token width"]:
    """sin and cos of the place of each token at wavelengths from twice the side down to two tokens."""
    steps = (torch.arange(side) + 0.5) / side
    octaves = width // 4
    frequency = math.pi * torch.exp(torch.linspace(0.0, math.log(max(2, side)), octaves))
    angles = steps[:, None] * frequency
    one = torch.cat([angles.sin(), angles.cos()], dim=-1)
    y, x = one[:, None].expand(side, side, -1), one[None].expand(side, side, -1)
    return torch.cat([x, y], dim=-1).flatten(0, 1)
