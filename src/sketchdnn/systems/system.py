"""What training, generation and evaluation ask of any system, whatever is inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.likelihood import Elbo
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise
from sketchdnn.diffusion.step_draws import StepDraws
from sketchdnn.diffusion.walk import OnStep
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch


@dataclass(frozen=True, slots=True)
class RowForm:
    """How a system wants its rows written: what `representation.codec.expand` and the corpus are told."""

    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """Which labels and parameters of each row are known in training."""

    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim"]

    def stacked(self) -> Bool[Tensor, "batch prim 3"]:
        return torch.stack([self.construction, self.kind, self.params], dim=-1)


class System(nn.Module, ABC):
    """A network, what it learns and how it draws."""

    name: ClassVar[str]
    config: Any

    @property
    @abstractmethod
    def rows(self) -> RowForm: ...

    @abstractmethod
    def to_device(self, device: torch.device | str) -> System:
        """Weights, schedules and all."""

    @abstractmethod
    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, given: GivenFlags) -> Loss:
        """What is minimised; `noise` is standard normal, and parts in `given` are shown clean."""

    @abstractmethod
    def sample(
        self,
        noise: NoiseSource,
        *,
        sampler: str = "ancestral",
        steps: int | Sequence[int] | None = None,
        given: Given | None = None,
        on_step: OnStep | None = None,
    ) -> SketchBatch:
        """Sketches of some noise: the same noise gives the same sketches."""

    @abstractmethod
    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws, *, bins: Bins | None = None
    ) -> Elbo | Float[Tensor, " batch"]:
        """A bound on −log p with its terms, or exact nats."""
