"""What Vitruvion and SketchGen share: a sketch as a sequence of tokens, each drawn from what came before it.

Their likelihood is exact, and it is one of sequences. With `order = "sorted"` each set of primitives is told in one way
only, by place, so that the sequence is the set and order carries no bits. With "stored" rows are told as they lie, and
the same rows in another order are another sequence, which may be more or less likely. Corpora need not keep the order
of a file (`ours` sorts rows), and a sorted sketch that is turned or mirrored in training is sorted no more. Noise,
steps and what is given in training mean nothing to these systems.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sketchdnn.diffusion.likelihood import Bins
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise
from sketchdnn.diffusion.sampling import OnStep, Progress, SamplingOptions
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.errors import SketchError
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.systems.baselines.tokens.decoder import Cache, TokenDecoder, TokenDecoderConfig
from sketchdnn.systems.baselines.tokens.syntax import (
    FIRST_FLAG,
    FIRST_KIND,
    HIGH,
    KIND_PLACE,
    LEVEL_BITS,
    LOW,
    NUM_VALUES,
    START,
    STOP,
    ArcTokens,
    make_syntax,
)
from sketchdnn.systems.baselines.tokens.tokens import Order, Tokens, rows_of, tokenize
from sketchdnn.systems.system import DEFAULT_OPTIONS, ConditionMask, RowForm, System

# The cells in which the levels lie.
TOKEN_GRID = Bins(bits=LEVEL_BITS, low=LOW, high=HIGH)


class TokenConfig(Protocol):
    """What the config of every token system says."""

    @property
    def network(self) -> TokenDecoderConfig: ...
    @property
    def arcs(self) -> ArcTokens: ...
    @property
    def order(self) -> Order: ...
    @property
    def temperature(self) -> float: ...
    @property
    def top_p(self) -> float: ...


class TokenSystem(System):
    """A decoder and the language it speaks.

    `knows_syntax`: illegal tokens have no chance by construction. If not, the network has to learn that they have none,
    and only when it draws are they ruled out. `position_of` says what positions count.
    """

    knows_syntax: ClassVar[bool]
    position_of: ClassVar[Literal["primitive", "token"]]
    inference_only: ClassVar[tuple[str, ...]] = ("temperature", "top_p")
    config: TokenConfig

    @abstractmethod
    def __init__(self, config: TokenConfig) -> None:
        super().__init__()
        self.config = config
        self.syntax = make_syntax(config.arcs)
        positions = {
            # One for what stands before the first token, and one for what is drawn behind the last.
            "primitive": layout.MAX_PRIMITIVES + 2,
            "token": self.syntax.length(layout.MAX_PRIMITIVES),
        }
        self.network = TokenDecoder(
            config.network,
            values_in=NUM_VALUES + 1,
            places_in=self.syntax.end + 2,
            positions=positions[self.position_of],
            values_out=NUM_VALUES,
        )

    @property
    def rows(self) -> RowForm:
        return RowForm()

    @property
    def ordered(self) -> bool:
        """Always: its likelihood is that of one order, so there is nothing to be taken off for the others."""
        return True

    @property
    def grid(self) -> Bins | None:
        """The grid over rows on which its likelihood is a probability. With arcs as three points there is none."""
        return TOKEN_GRID if self.config.arcs == "sweep" else None

    def to_device(self, device: torch.device | str) -> TokenSystem:
        """Weights and tables both."""
        self.to(device)
        self.syntax = self.syntax.to(device)
        return self

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """Nats a row, empty ones included: a constant divisor, so that the most likely weights are the best."""
        tokens = tokenize(x0, self.syntax, self.config.order)
        nats = self._nats(tokens) / x0.kind.shape[1]
        flag, kind = (self.syntax.legal[tokens.place, value] for value in (FIRST_FLAG, STOP))
        return Loss(*((nats * sort).sum(dim=1) for sort in (~(flag | kind), kind, flag)))

    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None = None, *, bins: Bins | None = None
    ) -> Float[Tensor, " batch"] | None:
        """Exact nats of the sequences, stop included. Told `bins`, there are none unless they are its own `grid`."""
        if bins is not None and bins != self.grid:
            return None
        tokens = tokenize(x0, self.syntax, self.config.order)
        return self._nats(tokens).double().sum(dim=1)

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Token after token. The number of tokens is that of the sketch: `options.steps` is ignored."""
        options = self.resolve(options)
        if options.conditioning is not None or options.start is not None:
            raise SketchError(f"a {self.name} cannot be given parts of a sketch, nor start from one")
        with torch.no_grad():
            return self._draw(noise(0), options.on_step)

    def _draw(self, noise: Noise, on_step: OnStep | None) -> SketchBatch:
        """The noise of one draw decides all: a number for each token of each sketch."""
        syntax, (batch, rows) = self.syntax, noise.kind.shape[:2]
        # Normal numbers as places in [0, 1], in double precision so that no token is too unlikely for them.
        uniform = torch.special.ndtr(noise.flat().flatten(1).double())
        length, places = syntax.length(rows), syntax.end + 1
        cache = Cache(length)
        value = uniform.new_full((batch,), START, dtype=torch.long)
        place, row = torch.zeros_like(value), torch.zeros_like(value)
        came_from, position = torch.full_like(value, places), torch.zeros_like(value)
        # A row and a place more than there are, for what is drawn behind the end.
        slots = value.new_zeros(batch, (rows + 1) * places)

        for number in range(1, length + 1):
            logits = self.network(value[:, None], came_from[:, None], position[:, None], cache)[:, 0]
            value = choose(
                logits, syntax.legal[place], uniform[:, number - 1], self.config.temperature, self.config.top_p
            )
            slots.scatter_(1, (row * places + place)[:, None], value[:, None])
            position = row + 1 if self.position_of == "primitive" else torch.full_like(row, number)
            came_from = place
            place, row = self._onwards(place, row, value, rows)
            over = number == length or bool((place == syntax.end).all())
            if over or on_step is not None:
                drawn = rows_of(slots.reshape(batch, rows + 1, places)[:, :rows], row, syntax)
            if on_step is not None:
                done = length if over else number
                on_step(Progress(done, length, length - done + 1, length - done, drawn, _certain(drawn)))
            if over:
                break
        return drawn

    def _onwards(self, place: Tensor, row: Tensor, value: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """The place and the row of the token after this one."""
        chose_kind = place == KIND_PLACE
        kind = (value - FIRST_KIND).clamp(0, layout.NONE)
        onwards = torch.where(chose_kind, self.syntax.first[kind], self.syntax.after[place])
        row = row + (~chose_kind & (onwards == KIND_PLACE))
        return torch.where((row == rows) & (onwards == KIND_PLACE), self.syntax.end, onwards), row

    def _nats(self, tokens: Tokens) -> Float[Tensor, "batch token"]:
        """−log of the chance of each token, given those before it."""
        before = [_shifted(tokens.value, START), _shifted(tokens.place, self.syntax.end + 1)]
        if self.position_of == "primitive":
            position = _shifted(tokens.row + 1, 0)
        else:
            position = torch.arange(tokens.value.shape[1], device=tokens.value.device).expand_as(tokens.value)
        logits = self.network(*before, position)
        if self.knows_syntax:
            logits = logits.masked_fill(~self.syntax.legal[tokens.place], -torch.inf)
        chances = logits.log_softmax(dim=-1).gather(2, tokens.value[..., None])[..., 0]
        return torch.where(tokens.real, -chances, 0.0)


def choose(
    logits: Float[Tensor, "batch value"],
    legal: Bool[Tensor, "batch value"],
    uniform: Float[Tensor, " batch"],
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Int[Tensor, " batch"]:
    """A legal value each, by a number of [0, 1]: one of the likeliest that together have the share `top_p`.

    (Nucleus sampling, Holtzman et al. 2020.) Temperature 0 takes the likeliest.
    """
    logits = logits.double().masked_fill(~legal, -torch.inf)
    if temperature == 0:
        return logits.argmax(dim=-1)
    chance, value = (logits / temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    kept = chance * (chance.cumsum(dim=-1) - chance < top_p)
    edges = kept.cumsum(dim=-1)
    at = torch.searchsorted(edges, uniform.double()[:, None] * edges[:, -1:], right=True)
    # A product that is the whole belongs to the last that is kept.
    at = torch.minimum(at, (kept > 0).sum(dim=-1, keepdim=True) - 1)
    return value.gather(1, at)[:, 0]


def _shifted(values: Int[Tensor, "batch token"], first: int) -> Int[Tensor, "batch token"]:
    """What came before each token."""
    return torch.cat([torch.full_like(values[:, :1], first), values[:, :-1]], dim=1)


def _certain(batch: SketchBatch) -> Prediction:
    return Prediction(batch.construction.log(), batch.kind.log(), batch.params)
