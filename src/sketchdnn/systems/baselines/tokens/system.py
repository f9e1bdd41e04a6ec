"""Vitruvion and SketchGen: autoregressive models of sketches as token sequences.

The likelihood is exact, of a sequence. With `order = "sorted"` a set of primitives has one sequence, sorted by
position, so order carries no information. With "stored" the rows are tokenized in their order, and another order is
another sequence. Noise, timesteps and condition masks of training are ignored.

The decoder is a causal transformer. A token is the sum of three learned vectors: of its value, of its place in the
syntax (which coordinate it is) and of its position. With a `Cache` tokens go in one at a time, each once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from sketchdnn.diffusion import Bins, Loss, Progress, SamplingOptions
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise
from sketchdnn.diffusion.sampling import OnStep
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.errors import SketchError
from sketchdnn.networks.attention import TransformerConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.baselines.tokens import tokens
from sketchdnn.systems.baselines.tokens.tokens import ArcTokens, Order, Tokens
from sketchdnn.systems.system import DEFAULT_OPTIONS, ConditionMask, System

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


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """Settings that every token system has."""

    network: TokenDecoderConfig = field(default_factory=TokenDecoderConfig)
    arcs: ArcTokens = "sweep"
    order: Order = "sorted"
    temperature: float = field(default=1.0, metadata=within(0, 100))
    top_p: float = field(default=0.9, metadata=within(0, 1, with_low=False))

    def __post_init__(self) -> None:
        check_settings(self)


class TokenSystem(System):
    """A decoder of tokens and its syntax.

    `masks_syntax`: illegal tokens have probability zero in training too, not only in sampling. `position_of`: what the
    position embedding counts.
    """

    masks_syntax: ClassVar[bool]
    position_of: ClassVar[Literal["primitive", "token"]]
    inference_only: ClassVar[tuple[str, ...]] = ("temperature", "top_p")
    config: TokenConfig

    def __init__(self, config: TokenConfig) -> None:
        super().__init__()
        self.config = config
        self.syntax = tokens.make_syntax(config.arcs)
        # Of primitives, with one position before the first token and one after the last, or of tokens.
        rows, places = layout.MAX_PRIMITIVES, self.syntax.end + 2
        positions = rows + 2 if self.position_of == "primitive" else self.syntax.length(rows)
        self.network = TokenDecoder(config.network, values=tokens.NUM_VALUES, places=places, positions=positions)

    @property
    def grid(self) -> Bins | None:
        """The grid of rows on which the likelihood is a probability; None with arcs as three points."""
        return tokens.TOKEN_GRID if self.config.arcs == "sweep" else None

    def to_device(self, device: torch.device | str) -> TokenSystem:
        """Weights and tables both."""
        self.to(device)
        self.syntax = self.syntax.to(device)
        return self

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """Nats per row, empty rows included."""
        sequences = tokens.tokenize(x0, self.syntax, self.config.order)
        nats = self._nats(sequences) / x0.kind.shape[1]
        flag, kind = (self.syntax.legal[sequences.place, value] for value in (tokens.FIRST_FLAG, tokens.STOP))
        return Loss(*((nats * sort).sum(dim=1) for sort in (~(flag | kind), kind, flag)))

    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None = None, *, bins: Bins | None = None
    ) -> Float[Tensor, " batch"] | None:
        """Exact nats of the sequences, including the stop token; None for `bins` other than `grid`."""
        if bins is not None and bins != self.grid:
            return None
        return self._nats(tokens.tokenize(x0, self.syntax, self.config.order)).double().sum(dim=1)

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sample token by token; `options.steps` is ignored."""
        options = self.resolve(options)
        if options.conditioning is not None or options.start is not None:
            raise SketchError(f"{self.name} cannot be conditioned on parts of a sketch, nor start from one")
        with torch.no_grad():
            return self._sample_tokens(noise(0), options.on_step)

    def _sample_tokens(self, noise: Noise, on_step: OnStep | None) -> SketchBatch:
        """Sample all tokens from one draw of noise: one number per token."""
        syntax, (batch, rows) = self.syntax, noise.kind.shape[:2]
        # Quantiles of the noise, in double precision for very unlikely tokens.
        uniform = torch.special.ndtr(noise.flat().flatten(1).double())
        length, places = syntax.length(rows), syntax.end + 1
        cache = Cache(length)
        value = uniform.new_full((batch,), tokens.START, dtype=torch.long)
        place, row = torch.zeros_like(value), torch.zeros_like(value)
        previous_place, position = torch.full_like(value, places), torch.zeros_like(value)
        # One more row, for tokens after the end.
        slots = value.new_zeros(batch, (rows + 1) * places)

        options = self.config.temperature, self.config.top_p
        for number in range(1, length + 1):
            logits = self.network(value[:, None], previous_place[:, None], position[:, None], cache)[:, 0]
            value = sample_token(logits, syntax.legal[place], uniform[:, number - 1], *options)
            slots.scatter_(1, (row * places + place)[:, None], value[:, None])
            position = row + 1 if self.position_of == "primitive" else torch.full_like(row, number)
            previous_place = place
            place, row = self._next_place(place, row, value, rows)
            done = length if bool((place == syntax.end).all()) else number
            if done == length or on_step is not None:
                drawn = tokens.slots_to_rows(slots.reshape(batch, rows + 1, places)[:, :rows], row, syntax)
            if on_step is not None:
                prediction = Prediction(drawn.construction.log(), drawn.kind.log(), drawn.params)
                on_step(Progress(done, length, length - done + 1, length - done, drawn, prediction))
            if done == length:
                break
        return drawn

    def _next_place(self, place: Tensor, row: Tensor, value: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """The place and the row of the next token."""
        chose_kind = place == tokens.KIND_PLACE
        kind = (value - tokens.FIRST_KIND).clamp(0, layout.NONE)
        onwards = torch.where(chose_kind, self.syntax.first[kind], self.syntax.after[place])
        row = row + (~chose_kind & (onwards == tokens.KIND_PLACE))
        return torch.where((row == rows) & (onwards == tokens.KIND_PLACE), self.syntax.end, onwards), row

    def _nats(self, sequences: Tokens) -> Float[Tensor, "batch token"]:
        """−log p of each token given the previous ones."""
        before = [_shifted(sequences.value, tokens.START), _shifted(sequences.place, self.syntax.end + 1)]
        if self.position_of == "primitive":
            position = _shifted(sequences.row + 1, 0)
        else:
            position = torch.arange(sequences.value.shape[1], device=sequences.value.device).expand_as(sequences.value)
        logits = self.network(*before, position)
        if self.masks_syntax:
            logits = logits.masked_fill(~self.syntax.legal[sequences.place], -torch.inf)
        log_probs = logits.log_softmax(dim=-1).gather(2, sequences.value[..., None])[..., 0]
        return torch.where(sequences.real, -log_probs, 0.0)


@dataclass(frozen=True, slots=True)
class VitruvionConfig(TokenConfig):
    """Settings. With `arcs = "sweep"` the likelihood is on the grid of the other systems (`grid`)."""

    arcs: ArcTokens = "points"


class Vitruvion(TokenSystem):
    """Vitruvion's model of primitives (Seff et al., ICLR 2022): one vocabulary, one softmax, token after token.

    It learns the syntax: its likelihood includes the probability of illegal tokens.

    As its paper has it: a primitive is its kind, its construction flag and its coordinates on 64 levels; lines by their
    ends, circles by center and radius, arcs by start, middle and end, points by their place; a stop token; the
    embeddings of value, coordinate and position (the number of the primitive) are summed; nucleus sampling.

    Departs from it: primitives are sorted from left to right, because a corpus need not keep the drawing order; no
    model of constraints, and no images or primers as context; levels are 1/30 apart and 0 is the middle of one
    (`tokens.py`); lines start at their smaller end, as in all systems here; tokens that break the syntax are masked
    during sampling.
    """

    name: ClassVar[str] = "vitruvion"
    config_class: ClassVar[type[Any]] = VitruvionConfig
    masks_syntax: ClassVar[bool] = False
    position_of: ClassVar[Literal["primitive", "token"]] = "primitive"


class SketchGen(TokenSystem):
    """SketchGen's generator of primitives (Para et al., NeurIPS 2021): the kind of a primitive sets its parameters.

    The network gets the place of each token in the syntax, and its output is restricted to legal tokens, in training
    and in sampling.

    Simplified: no stage for constraints, hence no pointers; the parameters are those of rows (two ends of a line, ends
    and sweep of an arc), not those of SketchGraphs' files; primitives are sorted from left to right; 64 levels, as in
    Vitruvion; the decoder is that of Vitruvion, so that only the syntax differs.
    """

    name: ClassVar[str] = "sketchgen"
    config_class: ClassVar[type[Any]] = TokenConfig
    masks_syntax: ClassVar[bool] = True
    position_of: ClassVar[Literal["primitive", "token"]] = "token"


def sample_token(
    logits: Float[Tensor, "batch value"],
    legal: Bool[Tensor, "batch value"],
    uniform: Float[Tensor, " batch"],
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Int[Tensor, " batch"]:
    """Sample a legal value by a quantile in [0, 1], with nucleus sampling (Holtzman et al. 2020).

    Temperature 0 selects the most likely value.
    """
    logits = logits.double().masked_fill(~legal, -torch.inf)
    if temperature == 0:
        return logits.argmax(dim=-1)
    chance, value = (logits / temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    kept = chance * (chance.cumsum(dim=-1) - chance < top_p)
    edges = kept.cumsum(dim=-1)
    at = torch.searchsorted(edges, uniform.double()[:, None] * edges[:, -1:], right=True)
    # A quantile of 1 belongs to the last value that is kept.
    at = torch.minimum(at, (kept > 0).sum(dim=-1, keepdim=True) - 1)
    return value.gather(1, at)[:, 0]


def _shifted(values: Int[Tensor, "batch token"], first: int) -> Int[Tensor, "batch token"]:
    """The values shifted by one token."""
    return torch.cat([torch.full_like(values[:, :1], first), values[:, :-1]], dim=1)
