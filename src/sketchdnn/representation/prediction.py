"""What a denoiser says of the clean sketch: the one value that networks make and diffusion uses."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Prediction:
    """Label logits (before softmax) and the parameters of every kind."""

    construction_logits: Float[Tensor, "batch prim 2"]
    kind_logits: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    @property
    def construction(self) -> Float[Tensor, "batch prim 2"]:
        return self.construction_logits.softmax(dim=-1)

    @property
    def kind(self) -> Float[Tensor, "batch prim 5"]:
        return self.kind_logits.softmax(dim=-1)
