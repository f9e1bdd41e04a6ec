"""What training, generation and evaluation ask of any system, whatever is inside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.given import Given, Way
from sketchdnn.diffusion.likelihood import Elbo
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise
from sketchdnn.diffusion.step_draws import StepDraws
from sketchdnn.diffusion.walk import OnStep, Start
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch

from .known import Known


@dataclass(frozen=True, slots=True)
class RowForm:
    """How a system wants its rows written: what `representation.codec.expand` and the corpus are told."""

    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True


@dataclass(frozen=True, slots=True)
class GivenFlags:
    """What the network is told in training: which labels and parameters of each row are known.

    Of some sketches it is told as well that they are `aside`: there to learn from, but not such as are to be drawn.
    """

    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim"]
    aside: Bool[Tensor, " batch"] | None = None

    def stacked(self) -> Bool[Tensor, "batch prim 3"]:
        return torch.stack([self.construction, self.kind, self.params], dim=-1)

    def __getitem__(self, index: slice) -> GivenFlags:
        """Of some of the sketches."""
        aside = None if self.aside is None else self.aside[index]
        return GivenFlags(self.construction[index], self.kind[index], self.params[index], aside)


class System(nn.Module, ABC):
    """A network, what it learns and how it draws. `known` is what it remembers of its corpus, if it was told.

    `samplers` are the ways it can draw. A system that draws primitive by primitive, with no noise to take away, has one
    way, which is ancestral too, and no steps: whatever number of them is asked for means nothing.

    `unlearned` are the settings of its config that training knows nothing of: they change how it draws and is judged.
    """

    name: ClassVar[str]
    samplers: ClassVar[tuple[str, ...]] = ("ancestral",)
    unlearned: ClassVar[tuple[str, ...]] = ()
    config: Any
    known: Known | None = None

    @property
    def max_steps(self) -> int | None:
        """T, the most steps that it can draw in and the range of t in training; none if it knows no noise levels."""
        return None

    @property
    def default_sampler(self) -> str:
        """Which of them it draws with unless told."""
        return self.samplers[0]

    @property
    def ordered(self) -> bool:
        """Whether rows in another order are another sketch to it."""
        return True

    @property
    def given_ways(self) -> tuple[Way, ...]:
        """How it can be shown what is given when it draws; not at all if there are none."""
        return ()

    def starts_from(self, other: System) -> bool:
        """Whether it can begin with the weights of another: one like it in all but what training knows nothing of."""
        return bool(other.name == self.name and self._matched(other.config) == self.config)

    def draw_steps(self, batch: int, draws: int, generator: torch.Generator, *, width: float) -> StepDraws | None:
        """The steps at which `likelihood` looks, for sketches that need be told apart by no less than `width`.

        None if it looks at none: its likelihood is exact.
        """
        return None

    def _matched(self, config: Any) -> Any:
        """The config of another, with one's own in place of what need not be the same to begin with its weights."""
        return replace(config, **{name: getattr(self.config, name) for name in self.unlearned})

    @property
    @abstractmethod
    def rows(self) -> RowForm: ...

    @abstractmethod
    def to_device(self, device: torch.device | str) -> System:
        """Weights, schedules and all."""

    @property
    def knows_aside(self) -> bool:
        """Whether it can be told in training that a sketch is not such as are to be drawn."""
        return False

    @abstractmethod
    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, given: GivenFlags) -> Loss:
        """What is minimized; `noise` is standard normal, and parts in `given` are shown clean."""

    @abstractmethod
    def sample(
        self,
        noise: NoiseSource,
        *,
        sampler: str | None = None,
        steps: int | Sequence[int] | None = None,
        given: Given | None = None,
        on_step: OnStep | None = None,
        start: Start | None = None,
    ) -> SketchBatch:
        """Sketches of some noise: the same noise gives the same sketches. `start` has it walk back from given ones.

        Without a `sampler` it draws in its own way, `default_sampler`.
        """

    @abstractmethod
    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, *, bins: Bins | None = None
    ) -> Elbo | Float[Tensor, " batch"] | None:
        """A bound on −log p with its terms, or exact nats, or none where it cannot be had.

        With `bins` it is the probability of the sketch on that grid, else a density. `steps` are of `draw_steps`.
        """
