"""SketchGen's generator of primitives (Para et al., NeurIPS 2021): the kind of a primitive determines its parameters.

The network gets the place of each token in the syntax, and its output is restricted to legal tokens.

Simplified: no stage for constraints, hence no pointers; the parameters are those of rows (two ends of a line, ends and
sweep of an arc), not those of SketchGraphs' files; primitives are sorted from left to right; 64 levels, as in
Vitruvion; the decoder is that of Vitruvion, so that only the syntax differs.
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
    """Settings; the defaults are SketchGen's syntax with the parameters of rows."""

    network: TokenDecoderConfig = field(default_factory=TokenDecoderConfig)
    arcs: ArcTokens = "sweep"
    order: Order = "sorted"
    temperature: float = field(default=1.0, metadata=within(0, 100))
    top_p: float = field(default=0.9, metadata=within(0, 1, with_low=False))

    def __post_init__(self) -> None:
        check_settings(self)


class SketchGen(TokenSystem):
    """Masks illegal tokens in training and sampling."""

    name: ClassVar[str] = "sketchgen"
    config_class: ClassVar[type[Any]] = SketchGenConfig
    masks_syntax: ClassVar[bool] = True
    position_of: ClassVar[Literal["primitive", "token"]] = "token"

    def __init__(self, config: SketchGenConfig) -> None:
        super().__init__(config)
