"""SketchDNN (Cat.): multinomial diffusion of kind and construction (Hoogeboom 2021), and all else as in SketchDNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sketchdnn.diffusion.gaussian import authors_cosine, cosine
from sketchdnn.diffusion.likelihood import Bins, Elbo
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.sampling import SamplingOptions
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems.baselines.multinomial.likelihood import multinomial_elbo
from sketchdnn.systems.baselines.multinomial.process import MultinomialProcess, Reverse
from sketchdnn.systems.baselines.multinomial.sampler import sample_multinomial
from sketchdnn.systems.row_denoiser import RowDenoiser, RowDenoiserConfig
from sketchdnn.systems.system import DEFAULT_OPTIONS


@dataclass(frozen=True, slots=True)
class SketchDNNCatConfig(RowDenoiserConfig):
    """Settings of SketchDNN (Cat.). Labels use the schedule of the parameters.

    `reverse`: y_0 in the reverse step. `predicted` is the prediction (Hoogeboom et al. 2021). `expected` is the mean
    over all labels: equal in short steps, and exact in long ones.
    """

    reverse: Reverse = "expected"


class SketchDNNCat(RowDenoiser[MultinomialProcess]):
    """A denoiser of the multinomial process."""

    name: ClassVar[str] = "sketchdnn-cat"
    config_class: ClassVar[type[Any]] = SketchDNNCatConfig
    inference_only: ClassVar[tuple[str, ...]] = ("superposition", "reverse")
    config: SketchDNNCatConfig

    def __init__(self, config: SketchDNNCatConfig) -> None:
        schedule = authors_cosine(config.num_steps) if config.variant == "authors" else cosine(config.num_steps)
        super().__init__(config, MultinomialProcess(schedule, schedule, config.superposition, config.reverse))

    def sample(self, noise: NoiseSource, options: SamplingOptions = DEFAULT_OPTIONS) -> SketchBatch:
        """Sketches from noise. Labels are discrete, so the ancestral sampler is the only one."""
        options = self.resolve(options)
        return sample_multinomial(self.denoiser(options.conditioning), self.process, noise, options)

    def bound(
        self,
        x0: SketchBatch,
        noise: NoiseSource,
        steps: StepDraws,
        *,
        bins: Bins | None = None,
        last_variance: float | None = None,
    ) -> Elbo:
        return multinomial_elbo(self.denoise, self.process, x0, noise, steps, bins=bins, last_variance=last_variance)
