"""The paper's denoiser: a diffusion transformer over the rows of a sketch, without gates and without positions.

A row is a token. There are no positions, so permuted rows give the permuted prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat
from sketchdnn.representation.settings import within

from .attention import TransformerConfig, attend

Tokens = Float[Tensor, "batch prim width"]
Condition = Float[Tensor, "batch width"]


@dataclass(frozen=True, slots=True)
class DiTConfig(TransformerConfig):
    """The shape of the network; the defaults are the paper's, 138,167,829 parameters.

    `positions` adds a learned vector to each row, as in the ablation SketchDNN (Pos.).
    """

    depth: int = field(default=32, metadata=within(1, 512))
    expansion: int = field(default=4, metadata=within(1, 64))
    num_steps: int = field(default=2000, metadata=within(1, 100_000))
    positions: bool = False


class DiT(nn.Module):
    """Denoises a batch: composite rows and their step in, label logits and the parameters of every kind out."""

    def __init__(self, config: DiTConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or DiTConfig()
        self.embed_rows = _mlp(layout.ROW_WIDTH, config.expansion * config.width, config.width)
        self.embed_step = nn.Embedding(config.num_steps, config.width)
        self.position = nn.Parameter(torch.zeros(layout.MAX_PRIMITIVES, config.width)) if config.positions else None
        self.blocks = nn.ModuleList(Block(config.width, config.heads, config.expansion) for _ in range(config.depth))
        self.norm = AdaptiveNorm(config.width)
        self.predict = _mlp(config.width, config.expansion * config.width, layout.ROW_WIDTH)
        if self.position is not None:
            nn.init.normal_(self.position, std=0.02)

    def forward(self, batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction:
        """The prediction at steps t in 1..T, one a sample."""
        # Both ends and the sum of the blocks in float32: a coordinate of three digits would hide a gap.
        with torch.autocast(batch_t.params.device.type, enabled=False):
            tokens = self.embed_rows(batch_t.flat())
        if self.position is not None:
            tokens = tokens + self.position[: tokens.shape[1]]
        condition = functional.silu(self.embed_step(t - 1))
        for block in self.blocks:
            tokens = block(tokens, condition)
        tokens = self.norm(tokens, condition)
        with torch.autocast(batch_t.params.device.type, enabled=False):
            rows = from_flat(self.predict(tokens.to(batch_t.params.dtype)))
        return Prediction(rows.construction, rows.kind, rows.params)


class Block(nn.Module):
    """Attention among rows, then a perceptron on each; both get the step through the scale and shift of their norm."""

    def __init__(self, width: int, heads: int, expansion: int) -> None:
        super().__init__()
        self.attention_norm = AdaptiveNorm(width)
        self.attention = Attention(width, heads)
        self.perceptron_norm = AdaptiveNorm(width)
        self.perceptron = _mlp(width, expansion * width, width)

    def forward(self, tokens: Tokens, condition: Condition) -> Tokens:
        attended: Tokens = tokens + self.attention(self.attention_norm(tokens, condition))
        refined: Tokens = attended + self.perceptron(self.perceptron_norm(attended, condition))
        return refined


class AdaptiveNorm(nn.Module):
    """Layer norm whose scale and shift come from the step. They start at one and zero: the step is ignored at first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(width, 2 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, tokens: Tokens, condition: Condition) -> Tokens:
        shift, scale = self.modulation(condition)[:, None].chunk(2, dim=-1)
        modulated: Tokens = functional.layer_norm(tokens, tokens.shape[-1:]) * (1 + scale) + shift
        return modulated


class Attention(nn.Module):
    """Every row attends to every row."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, tokens: Tokens) -> Tokens:
        mixed = attend(self.project_in(tokens).unflatten(-1, (3, self.heads, -1)))
        projected: Tokens = self.project_out(mixed.flatten(2))
        return projected


def _mlp(width_in: int, hidden: int, width_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width_in, hidden), nn.SiLU(), nn.Linear(hidden, width_out))
