"""SketchDNN: joint Gaussian and Gaussian-Softmax diffusion of rows, in the paper's variant, its authors', and ours.

The variants differ in the process and the loss. The paper's network predicts the clean parameters. Ours is
preconditioned: at small noise it predicts only the correction of the noisy ones. It also takes the mask of known parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import torch

from sketchdnn.diffusion import SAMPLERS, JointProcess, SamplingOptions, authors_process, our_process, paper_process
from sketchdnn.diffusion.gaussian_softmax import ReverseLogitsMethod
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.samplers import sample_few_step
from sketchdnn.diffusion.sampling import FEW_STEP, MAX_FEW_STEPS, Sampler
from sketchdnn.errors import SketchError
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.settings import within

from .row_denoiser import RowDenoiser, RowDenoiserConfig, Variant
from .system import DEFAULT_OPTIONS

if TYPE_CHECKING:
    from .image_conditioned import ImageConditionedSystem

# The schedule of labels: b̄, by which they change at the pace of ᾱ, or ᾱ itself.
LabelSchedule = Literal["augmented", "raw"]
# How a student of distillation was trained, and so how it is sampled (docs/few_steps.md).
FewStepMethod = Literal["none", "flow_map", "moment_matching"]
FEW_STEP_METHODS: tuple[FewStepMethod, ...] = get_args(FewStepMethod)

MakeProcess = Callable[[int, float], JointProcess]
_PROCESS: Mapping[Variant, MakeProcess] = {"ours": our_process, "paper": paper_process, "authors": authors_process}


@dataclass(frozen=True, slots=True)
class SketchDNNConfig(RowDenoiserConfig):
    """Adds the settings of labels. `reverse_logits` of None are the variant's.

    Attributes:
        few_step: The method of distillation, for a student; `none` for other models.
    """

    label_smoothing: float = field(default=0.99, metadata=within(0, 1, with_low=False, with_high=False))
    label_schedule: LabelSchedule = "augmented"
    reverse_logits: ReverseLogitsMethod | None = None
    few_step: FewStepMethod = field(default="none", metadata={"omit_if_default": True})


class SketchDNNSystem(RowDenoiser[JointProcess]):
    """A denoiser of the joint process.

    Attributes:
        student: A student of distillation, which samples in few steps.
        image: The model with an image encoder, which draws the sketch of a picture; loaded at its first use.
    """

    name: ClassVar[str] = "sketchdnn"
    config_class: ClassVar[type[Any]] = SketchDNNConfig
    samplers: ClassVar[Collection[str]] = SAMPLERS.keys()  # also those registered later
    inference_only: ClassVar[tuple[str, ...]] = ("superposition", "reverse_logits")
    config: SketchDNNConfig
    student: SketchDNNSystem | None = None

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__(config, _process(config))

    def attach_student(self, student: SketchDNNSystem | None) -> None:
        """Set or remove the student. It is no submodule: weights and training of this model do not include it."""
        self.__dict__["student"] = student

    @property
    def has_image(self) -> bool:
        """Whether there is an image-conditioned model; it may not be loaded yet."""
        return self.__dict__.get("_image") is not None

    @property
    def image(self) -> ImageConditionedSystem | None:
        image: Any = self.__dict__.get("_image")
        if image is not None and not isinstance(image, SketchDNNSystem):
            image = self.__dict__["_image"] = image(self)
        loaded: ImageConditionedSystem | None = image
        return loaded

    def attach_image(
        self, image: ImageConditionedSystem | Callable[[SketchDNNSystem], ImageConditionedSystem] | None
    ) -> None:
        """Set or remove the image-conditioned model, or a function of this model that loads it. It is no submodule."""
        self.__dict__["_image"] = image

    def to_device(self, device: torch.device | str) -> Self:
        others = self.student, self.__dict__.get("_image")
        for other in others:
            if isinstance(other, SketchDNNSystem):
                other.to_device(device)
        return super().to_device(device)

    def resolve(self, options: SamplingOptions) -> SamplingOptions:
        """The options with the sampler chosen: the student's for few steps if there is a student."""
        few = isinstance(options.steps, int) and options.steps <= MAX_FEW_STEPS
        if options.sampler is None and few and self.student is not None:
            options = replace(options, sampler=FEW_STEP)
        options = super().resolve(options)
        if options.sampler == FEW_STEP and FEW_STEP not in self.available_samplers:
            raise SketchError(f"this model has no student to draw with {FEW_STEP}; `sketchdnn distill` makes one")
        return options

    @property
    def available_samplers(self) -> tuple[str, ...]:
        """All samplers; that of students if this is one or has one."""
        is_few_step = self.student is not None or self.config.few_step != "none"
        return tuple(sampler for sampler in self.samplers if is_few_step or sampler != FEW_STEP)

    @property
    def default_sampler(self) -> str:
        """`restart` with expected logits (`python -m benchmarks samplers` compares); else the variant's own.

        The authors' schedule ends at ᾱ_0 = 0.9999: the posterior would leave noise of 0.01 on every coordinate, so
        their sampler returns its last prediction.
        """
        if self.config.few_step != "none":
            return FEW_STEP
        if self.process.reverse_logits == "expected":
            return "restart"
        return "authors" if self.config.variant == "authors" else "ancestral"

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sketches from noise, by a registered sampler or by a function."""
        options = self.resolve(options)
        system, sampler = self, options.sampler_function()
        if options.sampler == FEW_STEP:
            system, sampler = self.student or self, (self.student or self)._few_step_sampler()
        return sampler(system.denoiser(options.conditioning), self.process, noise, options)

    def _few_step_sampler(self) -> Sampler:
        return partial(sample_few_step, eta=0.0 if self.config.few_step == "flow_map" else 1.0)


class SketchDNNPos(SketchDNNSystem):
    """The ablation SketchDNN (Pos.): each row has a learned position, and all else is the same."""

    name: ClassVar[str] = "sketchdnn-pos"

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__(replace(config, network=replace(config.network, positions=True)))


def _process(config: SketchDNNConfig) -> JointProcess:
    process = _PROCESS[config.variant](config.num_steps, config.label_smoothing)
    process = replace(process, superposition=config.superposition)
    if config.label_schedule == "raw":
        process = replace(process, kind=process.params, construction=process.params)
    return process if config.reverse_logits is None else replace(process, reverse_logits=config.reverse_logits)
