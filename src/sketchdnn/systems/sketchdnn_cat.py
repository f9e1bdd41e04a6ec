"""SketchDNN (Cat.): multinomial diffusion of kind and construction (Hoogeboom 2021), and all else as in SketchDNN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.cat_likelihood import cat_elbo
from sketchdnn.diffusion.cat_process import CatProcess, Reverse
from sketchdnn.diffusion.cat_sampler import cat_ancestral
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.likelihood import Elbo
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.schedule import authors_cosine, cosine
from sketchdnn.diffusion.step_draws import StepDraws
from sketchdnn.diffusion.walk import OnStep, Start
from sketchdnn.representation.batch import SketchBatch

from .row_denoiser import RowDenoiser, RowDenoiserConfig
from .sampling import sampler_of, steps_of


@dataclass(frozen=True, slots=True)
class SketchDNNCatConfig(RowDenoiserConfig):
    """Labels follow the schedule of the parameters: b̄ is made to change them at just its pace.

    `reverse`: what stands for a label in a reverse step. `predicted`, the prediction, is Hoogeboom's. `expected`, each
    label by its chance, comes to the same in short steps and stays right in long ones.
    """

    reverse: Reverse = "expected"


class SketchDNNCat(RowDenoiser[CatProcess]):
    """A denoiser of the multinomial process."""

    name: ClassVar[str] = "sketchdnn-cat"
    unlearned: ClassVar[tuple[str, ...]] = ("superposition", "reverse")
    config: SketchDNNCatConfig

    def __init__(self, config: SketchDNNCatConfig) -> None:
        schedule = authors_cosine(config.num_steps) if config.form == "authors" else cosine(config.num_steps)
        super().__init__(config, CatProcess(schedule, schedule, config.superposition, config.reverse))

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
        """Sketches of some noise. Labels jump, so there is no way between noise and sketch but the ancestral one."""
        sampler_of(self, sampler)  # refuses any other
        steps = steps_of(steps, self.process.num_steps if start is None else start.t)
        return cat_ancestral(
            self.denoiser(given), self.process, noise, steps=steps, given=given, on_step=on_step, start=start
        )

    def bound(
        self,
        x0: SketchBatch,
        noise: NoiseSource,
        steps: StepDraws,
        *,
        bins: Bins | None = None,
        last_variance: float | None = None,
    ) -> Elbo:
        return cat_elbo(self.denoise, self.process, x0, noise, steps, bins=bins, last_variance=last_variance)
