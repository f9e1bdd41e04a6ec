"""SketchGen's generator of primitives (Para et al., NeurIPS 2021): a kind opens a primitive and says what must follow.

Its language has a syntax: kind, construction flag, then the parameters of that kind. The network is told where in the
syntax each token stands, and is asked only to choose among tokens that may stand there.

Simplified: no stage that generates constraints, hence no pointers; parameters are those of our rows (two ends of a
line, ends and sweep of an arc) and not those of SketchGraphs' files; primitives come from left to right; 64 levels, as
in the other token system; of the syntax tree the network sees the place of a token, which tells all that is above it;
one decoder, the same as Vitruvion's, so that only the language differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sketchdnn.representation.settings import check_settings, within
from sketchdnn.systems.baselines.tokens.decoder import TokenDecoderConfig
from sketchdnn.systems.baselines.tokens.syntax import ArcTokens
from sketchdnn.systems.baselines.tokens.tokens import Order

from .system import TokenSystem


@dataclass(frozen=True, slots=True)
class SketchGenConfig:
    """Defaults are SketchGen's language with our parameters."""

    network: TokenDecoderConfig = field(default_factory=TokenDecoderConfig)
    arcs: ArcTokens = "sweep"
    order: Order = "sorted"
    temperature: float = field(default=1.0, metadata=within(0, 100))
    top_p: float = field(default=0.9, metadata=within(0, 1, with_low=False))

    def __post_init__(self) -> None:
        check_settings(self)


class SketchGen(TokenSystem):
    """Knows the syntax: what cannot stand at a place has no chance there."""

    name: ClassVar[str] = "sketchgen"
    config_class: ClassVar[type[Any]] = SketchGenConfig
    knows_syntax: ClassVar[bool] = True
    position_of: ClassVar[Literal["primitive", "token"]] = "token"

    def __init__(self, config: SketchGenConfig) -> None:
        super().__init__(config)
