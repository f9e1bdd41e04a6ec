"""Vitruvion's model of primitives (Seff et al., ICLR 2022): one vocabulary, one softmax, token after token.

As its paper has it: a primitive is its kind, its construction flag and its coordinates on 64 levels; lines by their
ends, circles by center and radius, arcs by start, middle and end, points by their place; a stop token; the embeddings
of value, coordinate and position (the number of the primitive) are summed; nucleus sampling.

Departs from it: primitives are sorted from left to right, because a corpus need not keep the drawing order; no model
of constraints, and no images or primers as context; levels are 1/30 apart and 0 is the middle of one (`syntax.py`);
lines start at their smaller end, as in all systems here; tokens that break the syntax are masked during sampling.
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
class VitruvionConfig:
    """Settings. With `arcs = "sweep"` the likelihood is on the grid of the other systems (`grid`)."""

    network: TokenDecoderConfig = field(default_factory=TokenDecoderConfig)
    arcs: ArcTokens = "points"
    order: Order = "sorted"
    temperature: float = field(default=1.0, metadata=within(0, 100))
    top_p: float = field(default=0.9, metadata=within(0, 1, with_low=False))

    def __post_init__(self) -> None:
        check_settings(self)


class Vitruvion(TokenSystem):
    """Learns the syntax: its likelihood includes the probability of illegal tokens."""

    name: ClassVar[str] = "vitruvion"
    config_class: ClassVar[type[Any]] = VitruvionConfig
    masks_syntax: ClassVar[bool] = False
    position_of: ClassVar[Literal["primitive", "token"]] = "primitive"

    def __init__(self, config: VitruvionConfig) -> None:
        super().__init__(config)
