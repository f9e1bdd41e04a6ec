"""The interface of every system, for training, generation and evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sketchdnn.diffusion.likelihood import Bins, Elbo
from sketchdnn.diffusion.loss import Loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Noise, choose, parts
from sketchdnn.diffusion.sampling import ConditioningMethod, SamplingOptions, find_sampler
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.errors import SketchError
from sketchdnn.networks.image_encoder import ImageFeatures
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch

from .aliases import current_sampler
from .training_index import TrainingIndex

DEFAULT_OPTIONS = SamplingOptions()

# A certain label as logits: large enough that its cross entropy vanishes, small enough that nothing overflows.
_CERTAIN = 30.0


@dataclass(frozen=True, slots=True)
class RowForm:
    """How a system encodes rows: passed to `representation.batch.expand` and to the corpus."""

    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True


# Listed here, because torch.compile does not trace `fields` of a class.
_ROW_SETTINGS = tuple(field.name for field in fields(RowForm))


@dataclass(frozen=True, slots=True)
class ConditionMask:
    """Which labels and parameters of each row are known in training; the network sees those clean.

    `auxiliary` marks samples that are trained on but are not of the target distribution. `image` is what the network
    takes of the picture of each sketch.
    """

    construction: Bool[Tensor, "batch prim"]
    kind: Bool[Tensor, "batch prim"]
    params: Bool[Tensor, "batch prim"]
    auxiliary: Bool[Tensor, " batch"] | None = None
    image: ImageFeatures | None = None

    def stacked(self) -> Bool[Tensor, "batch prim 3"]:
        return torch.stack([self.construction, self.kind, self.params], dim=-1)

    def __getitem__(self, index: slice) -> ConditionMask:
        """The mask of some of the sketches."""
        auxiliary = None if self.auxiliary is None else self.auxiliary[index]
        image = None if self.image is None else self.image[index]
        return ConditionMask(self.construction[index], self.kind[index], self.params[index], auxiliary, image)

    def fill_rows(self, clean: SketchBatch, noisy: SketchBatch) -> SketchBatch:
        """Noisy rows, clean where they are known."""
        return choose(self._masks, clean, noisy)

    def fill_prediction(self, x0: SketchBatch, prediction: Prediction) -> Prediction:
        """The prediction with the known values in place, so that they add nothing to the loss."""
        known = _CERTAIN * x0.construction, _CERTAIN * x0.kind, x0.params
        return Prediction(*map(torch.where, self._masks, known, parts(prediction)))

    @property
    def _masks(self) -> tuple[Tensor, Tensor, Tensor]:
        """The masks, in shapes that broadcast against the parts of a batch."""
        return self.construction[..., None], self.kind[..., None], self.params[..., None]


def sample_condition_mask(
    uniform: Float[Tensor, "batch number"], kind: Int[Tensor, "batch prim"], probability: float
) -> ConditionMask:
    """A random mask for training.

    With that probability one task a sketch: complete some known rows (0.4), generate from the kinds (0.3), or from the
    number of primitives, shown by the empty rows (0.3). Else nothing is known.

    Args:
        uniform: Numbers of [0, 1); the first 3 + rows of each sketch are used.
        kind: The true kind of each row.
        probability: That anything is known of a sketch.
    """
    chance, task, part = uniform[:, 0:1], uniform[:, 1:2], uniform[:, 2:3]
    some = chance < probability
    rows = some & (task < 0.4) & (uniform[:, 3 : 3 + kind.shape[1]] < part)
    kinds = some & (task >= 0.4) & (task < 0.7)
    empty = some & (task >= 0.7) & (kind == layout.NONE)
    return ConditionMask(construction=rows | empty, kind=rows | kinds | empty, params=rows | empty)


class System(nn.Module, ABC):
    """A network, its training loss and its samplers.

    Attributes:
        name: The name that presets and model files use.
        config_class: The dataclass of its config, which `__init__` takes.
        samplers: Names of the samplers it supports. An autoregressive system has one, `ancestral`, and no steps.
        inference_only: Settings of its config that do not affect training.
        training_index: Keys and statistics of the training set, where they were saved with the model.
        precision: Of matrix products in generation (`generation.engine.set_precision`).
    """

    name: ClassVar[str]
    config_class: ClassVar[type[Any]]
    samplers: ClassVar[Collection[str]] = ("ancestral",)
    inference_only: ClassVar[tuple[str, ...]] = ()
    config: Any
    training_index: TrainingIndex | None = None
    precision: str = "auto"

    @property
    def max_steps(self) -> int | None:
        """T: the most sampling steps and the range of t in training; None without noise levels."""
        return getattr(self.config, "num_steps", None)

    @property
    def available_samplers(self) -> tuple[str, ...]:
        """Those of `samplers` that this model can use."""
        return tuple(self.samplers)

    @property
    def default_sampler(self) -> str:
        return next(iter(self.samplers))

    @property
    def ordered(self) -> bool:
        """Whether the likelihood depends on the order of rows."""
        return True

    @property
    def conditioning_methods(self) -> tuple[ConditioningMethod, ...]:
        """The methods of conditioning it supports, the best first."""
        return ()

    @property
    def supports_auxiliary(self) -> bool:
        """Whether training samples can be marked as auxiliary."""
        return False

    def can_init_from(self, other: System) -> bool:
        """Whether training can start from the weights of `other`: same system, same config but for inference."""
        return bool(other.name == self.name and self._adapt_config(other.config) == self.config)

    def draw_steps(self, batch: int, draws: int, generator: torch.Generator, *, width: float) -> StepDraws | None:
        """The steps at which `likelihood` evaluates the network; None if the likelihood is exact.

        `width` is the resolution of coordinates that matters.
        """
        return None

    def resolve(self, options: SamplingOptions) -> SamplingOptions:
        """The options with the sampler chosen.

        Raises:
            SketchError: The system does not support the sampler or the number of steps.
        """
        sampler = self.default_sampler if options.sampler is None else options.sampler
        options = replace(options, sampler=current_sampler(sampler) if isinstance(sampler, str) else sampler)
        check_sampling(type(self), options, self.max_steps)
        return options

    @property
    def rows(self) -> RowForm:
        """By default as the settings of the config say, if it has them."""
        return RowForm(**{name: getattr(self.config, name) for name in _ROW_SETTINGS if hasattr(self.config, name)})

    @abstractmethod
    def to_device(self, device: torch.device | str) -> System:
        """Move weights, schedules and tables."""

    @abstractmethod
    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """The training loss. `noise` is standard normal; parts in `mask` are shown clean."""

    @abstractmethod
    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sketches from noise; the same noise gives the same sketches."""

    @abstractmethod
    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, *, bins: Bins | None = None
    ) -> Elbo | Float[Tensor, " batch"] | None:
        """A bound on −log p with its terms, or exact nats, or None where neither is available.

        With `bins` it is the probability of the sketch on that grid, else a density. `steps` come from `draw_steps`.
        """

    def _adapt_config(self, config: Any) -> Any:
        """The config of another system, with our own settings where they need not agree."""
        return replace(config, **{name: getattr(self.config, name) for name in self.inference_only})


def check_sampling(system: type[System], options: SamplingOptions, max_steps: int | None) -> None:
    """Refuse a sampler that the system does not support, and a number of steps that its process does not have.

    A function as a sampler is for systems that denoise rows, which support every registered sampler.
    """
    sampler = options.sampler
    if isinstance(sampler, str):
        sampler = current_sampler(sampler)
        if sampler not in system.samplers:
            find_sampler(sampler)
        if sampler not in system.samplers:
            raise SketchError(f"a '{system.name}' cannot draw with {sampler}; use {' or '.join(system.samplers)}")
    most = max_steps if options.start is None else options.start.t
    if isinstance(options.steps, int) and most is not None and not 1 <= options.steps <= most:
        raise SketchError(f"this model draws in 1 to {most} steps, not {options.steps}")
