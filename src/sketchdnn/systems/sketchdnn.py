"""SketchDNN: joint Gaussian and Gaussian-Softmax diffusion of rows, in the paper's form, its authors', and ours.

The forms differ in the process and the loss they average. The paper's network says what the clean parameters are;
ours is preconditioned, so that at small noise it only says how far off the noisy ones are, and is told what is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.labels import ReverseLogits
from sketchdnn.diffusion.likelihood import Elbo, elbo
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import JointProcess, authors_process, our_process, paper_process
from sketchdnn.diffusion.step_draws import StepDraws
from sketchdnn.diffusion.walk import OnStep, Start
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.settings import within

from .closing import closing
from .given_flags import draw_given
from .row_denoiser import Form, RowDenoiser, RowDenoiserConfig
from .sampling import CLOSING, SAMPLER_NAMES, draw_sketches, sampler_of, walk_of
from .system import GivenFlags

__all__ = ["GivenFlags", "SketchDNN", "SketchDNNConfig", "SketchDNNPos", "draw_given"]

# Of labels: b̄, by which they change at the pace of ᾱ, or ᾱ itself.
LabelSchedule = Literal["augmented", "raw"]

_PROCESS: Mapping[Form, Callable[[int, float], JointProcess]] = {
    "ours": our_process,
    "paper": paper_process,
    "authors": authors_process,
}


@dataclass(frozen=True, slots=True)
class SketchDNNConfig(RowDenoiserConfig):
    """What is settled about labels besides. Logits of the reverse mean that are not said are the form's."""

    label_smoothing: float = field(default=0.99, metadata=within(0, 1, with_low=False, with_high=False))
    label_schedule: LabelSchedule = "augmented"
    reverse_logits: ReverseLogits | None = None


class SketchDNN(RowDenoiser[JointProcess]):
    """A denoiser of the joint process: `loss` for training, `sample` to draw, `likelihood` to judge."""

    name: ClassVar[str] = "sketchdnn"
    samplers: ClassVar[tuple[str, ...]] = SAMPLER_NAMES
    unlearned: ClassVar[tuple[str, ...]] = ("superposition", "reverse_logits")
    config: SketchDNNConfig

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__(config, _process(config))

    @property
    def default_sampler(self) -> str:
        """`closing` with expected logits (`python -m benchmarks samplers` compares); else the form's own.

        The authors' schedule ends at ᾱ_0 = 0.9999: the posterior would leave noise of 0.01 on every coordinate, so
        their sampler returns its last prediction.
        """
        if self.process.reverse_logits == "expected":
            return CLOSING
        return "authors" if self.config.form == "authors" else "ancestral"

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
        """Sketches of some noise. `steps`: how many, or which; all unless told. `given` parts stay as they are.

        `closing` shares steps out itself: it takes a number of them. For certain steps, name another sampler.

        With a `start`, other sketches are noised to its step and walked back from there: variations of them.
        """
        sampler = sampler_of(self, sampler)
        if sampler == CLOSING:
            walk = partial(self._walk, sampler=walk_of(sampler), given=given)
            return closing(walk, self.process, noise, steps=steps, on_step=on_step, start=start)
        return self._walk(noise, sampler=sampler, steps=steps, given=given, on_step=on_step, start=start)

    def _walk(
        self,
        noise: NoiseSource,
        *,
        sampler: str,
        steps: int | Sequence[int] | None,
        given: Given | None,
        on_step: OnStep | None,
        start: Start | None,
    ) -> SketchBatch:
        return draw_sketches(
            self.denoiser(given),
            self.process,
            noise,
            sampler=sampler,
            steps=steps,
            given=given,
            on_step=on_step,
            start=start,
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
        return elbo(self.denoise, self.process, x0, noise, steps, bins=bins, last_variance=last_variance)


class SketchDNNPos(SketchDNN):
    """The ablation SketchDNN (Pos.): each row has a learned position, and all else is the same."""

    name: ClassVar[str] = "sketchdnn-pos"

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__(replace(config, network=replace(config.network, positions=True)))


def _process(config: SketchDNNConfig) -> JointProcess:
    process = _PROCESS[config.form](config.num_steps, config.label_smoothing)
    process = replace(process, superposition=config.superposition)
    if config.label_schedule == "raw":
        process = replace(process, kind=process.params, construction=process.params)
    return process if config.reverse_logits is None else replace(process, reverse_logits=config.reverse_logits)
