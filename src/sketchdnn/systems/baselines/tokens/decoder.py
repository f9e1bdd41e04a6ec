"""A causal transformer over tokens: what comes next, from what came before.

A token is the sum of three learned vectors: of its value, of its place in the syntax (which coordinate it is) and of
its position. With a `Cache` tokens go in one at a time, and none is looked at twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.networks.attention import TransformerConfig
from sketchdnn.representation.settings import within

# One number a token.
Column = Int[Tensor, "batch token"]


@dataclass(frozen=True, slots=True)
class TokenDecoderConfig(TransformerConfig):
    """The size of the network; the defaults are Vitruvion's public configuration, 21 million parameters."""

    width: int = field(default=384, metadata=within(1, 16_384))
    expansion: int = field(default=4, metadata=within(1, 64))
    dropout: float = field(default=0.0, metadata=within(0, 1, with_high=False))


@dataclass(slots=True)
class Cache:
    """Keys and values of the previous tokens of each block; `length` of `capacity` are used."""

    capacity: int
    length: int = 0
    blocks: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def extend(self, block: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the key and value of a token, and return all: `batch, head, token, channel`."""
        if block == len(self.blocks):
            shape = (*key.shape[:2], self.capacity, key.shape[3])
            self.blocks.append((key.new_empty(shape), value.new_empty(shape)))
        keys, values = self.blocks[block]
        keys[:, :, self.length : self.length + 1] = key
        values[:, :, self.length : self.length + 1] = value
        return keys[:, :, : self.length + 1], values[:, :, : self.length + 1]


class TokenDecoder(nn.Module):
    """Values, places and positions in; logits of the value that follows each token out.

    Args:
        values: Number of values that may follow. One more, the start, comes in before the first token.
        places: Number of places that may come in, that of the start included.
        positions: Number of positions.
    """

    def __init__(self, config: TokenDecoderConfig, *, values: int, places: int, positions: int) -> None:
        super().__init__()
        self.config = config
        self.embed_value = nn.Embedding(values + 1, config.width)
        self.embed_place = nn.Embedding(places, config.width)
        self.embed_position = nn.Embedding(positions, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(_Block(config, number) for number in range(config.depth))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, values)
        _start_small(self, config.depth)

    def forward(
        self, value: Column, place: Column, position: Column, cache: Cache | None = None
    ) -> Float[Tensor, "batch token value"]:
        """Logits in float32. With a cache a single token goes in, the one after those that it holds."""
        h = self.dropout(self.embed_value(value) + self.embed_place(place) + self.embed_position(position))
        for block in self.blocks:
            h = block(h, cache)
        if cache is not None:
            cache.length += 1
        with torch.autocast(h.device.type, enabled=False):
            logits: Tensor = self.head(self.norm(h.float()))
        return logits


class _Block(nn.Module):
    """Attention to what came before, then a perceptron."""

    def __init__(self, config: TokenDecoderConfig, number: int) -> None:
        super().__init__()
        self.number, self.heads = number, config.heads
        self.attention_norm = nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.perceptron_norm = nn.LayerNorm(config.width)
        self.up = nn.Linear(config.width, config.expansion * config.width)
        self.down = nn.Linear(config.expansion * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, h: Tensor, cache: Cache | None) -> Tensor:
        h = h + self.dropout(self.out(self._attend(self.attention_norm(h), cache)))
        return torch.add(h, self.dropout(self.down(functional.gelu(self.up(self.perceptron_norm(h))))))

    def _attend(self, h: Tensor, cache: Cache | None) -> Tensor:
        query, key, value = self.qkv(h).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            key, value = cache.extend(self.number, key, value)
        # A single token is the last of all that are there: nothing to hide from it.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        return mixed.transpose(1, 2).flatten(2)


def _start_small(network: TokenDecoder, depth: int) -> None:
    """The usual start of decoders: small weights, and what blocks add shrunk by how many there are."""
    for name, weight in network.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(weight)
        elif weight.ndim == 2:
            adds = name.endswith(("out.weight", "down.weight"))
            nn.init.normal_(weight, std=0.02 / (2 * depth) ** 0.5 if adds else 0.02)
