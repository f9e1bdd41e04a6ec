"""SketchDNN, the paper's system: a denoiser of rows reverses the joint process.

One config covers the paper's text, its authors' code and ours. The paper's network says where the clean parameters are;
ours is preconditioned, so that at small noise it only says how far off the noisy ones are, and is told what is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion import precondition
from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.given import Given
from sketchdnn.diffusion.likelihood import Elbo, elbo
from sketchdnn.diffusion.loss import Loss, authors_loss, our_loss, paper_loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import (
    JointProcess,
    Noise,
    Superposition,
    authors_process,
    our_process,
    paper_process,
)
from sketchdnn.diffusion.step_draws import StepDraws
from sketchdnn.diffusion.walk import OnStep
from sketchdnn.networks.dit import DiT, DiTConfig
from sketchdnn.networks.set_denoiser import NUM_GIVEN_FLAGS, SetDenoiser, SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction

from .sampling import draw_sketches
from .system import GivenFlags, RowForm, System

__all__ = ["GivenFlags", "SketchDNN", "SketchDNNConfig", "draw_given"]

# Whose process and loss: the text, the released code, or ours.
Form = Literal["ours", "paper", "authors"]

# Keeps the logarithm of a noise level finite at both ends of the schedule.
_FLOOR = 1e-8
# A certain label as logits: far enough that its cross entropy vanishes, near enough that no arithmetic overflows.
_CERTAIN = 30.0

_PROCESS: Mapping[Form, Callable[[int, float], JointProcess]] = {
    "ours": our_process,
    "paper": paper_process,
    "authors": authors_process,
}


@dataclass(frozen=True, slots=True)
class SketchDNNConfig:
    """Defaults are `ours`. `data_std` is the standard deviation of coordinates in the training set, in [−1, 1]."""

    network: SetDenoiserConfig | DiTConfig = field(default_factory=SetDenoiserConfig)
    form: Form = "ours"
    num_steps: int = 2000
    label_smoothing: float = 0.99
    superposition: Superposition = "expected"
    data_std: float = 0.55
    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.network, DiTConfig) and self.network.num_steps != self.num_steps:
            raise ValueError(f"the network knows {self.network.num_steps} steps, the process {self.num_steps}")


class SketchDNN(System):
    """A denoiser of the joint process: `loss` for training, `sample` to draw, `likelihood` to judge."""

    name: ClassVar[str] = "sketchdnn"

    def __init__(self, config: SketchDNNConfig) -> None:
        super().__init__()
        self.config = config
        self.network = DiT(config.network) if isinstance(config.network, DiTConfig) else SetDenoiser(config.network)
        process = _PROCESS[config.form](config.num_steps, config.label_smoothing)
        self.process = replace(process, superposition=config.superposition)

    @property
    def rows(self) -> RowForm:
        return RowForm(self.config.arc_scalar, self.config.none_construction, self.config.canonical_lines)

    def to_device(self, device: torch.device | str) -> SketchDNN:
        """Weights and schedules both."""
        self.to(device)
        self.process = self.process.to(device)
        return self

    def denoise(self, batch_t: SketchBatch, t: Int[Tensor, " batch"], given: GivenFlags | None = None) -> Prediction:
        """The clean sketch, as far as the network can tell. Given parts of `batch_t` are shown clean."""
        if isinstance(self.network, DiT):
            said: Prediction = self.network(batch_t, t)
            return said
        level = self.process.params.at(t)
        scaled = precondition.scale_input(batch_t.params, level, self.config.data_std)
        if given is None:
            flags = scaled.new_zeros((*scaled.shape[:2], NUM_GIVEN_FLAGS))
        else:
            scaled = torch.where(given.params[..., None], batch_t.params, scaled)
            flags = given.stacked().to(scaled.dtype)
        noise = torch.log((level.var + _FLOOR) / (level.alpha_bar + _FLOOR)).to(scaled.dtype) / 6
        raw = self.network(SketchBatch(batch_t.construction, batch_t.kind, scaled), noise, flags)
        params = precondition.denoised(batch_t.params, raw.params, level, self.config.data_std)
        return Prediction(raw.construction_logits, raw.kind_logits, params)

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, given: GivenFlags) -> Loss:
        """Loss of predicting x0 from its noisy self; what is given is shown clean and costs nothing.

        The paper's network has no flags to be told by: with it, nothing is given.
        """
        batch_t = self.process.diffuse(x0, t, noise)
        if isinstance(self.network, DiT):
            prediction = self.denoise(batch_t, t)
        else:
            prediction = _told(given, x0, self.denoise(_where(given, x0, batch_t), t, given))
        if self.config.form == "paper":
            return paper_loss(prediction, x0, t)
        if self.config.form == "authors":
            return authors_loss(prediction, x0, t)
        return our_loss(prediction, x0, self.process.params.at(t), self.config.data_std)

    def sample(
        self,
        noise: NoiseSource,
        *,
        sampler: str = "ancestral",
        steps: int | Sequence[int] | None = None,
        given: Given | None = None,
        on_step: OnStep | None = None,
    ) -> SketchBatch:
        """Sketches of some noise. `steps`: how many, or which; all T unless told. `given` parts stay as they are."""
        denoise = self.denoise
        if given is not None and given.way == "clean":
            if isinstance(self.network, DiT):
                raise ValueError("this network was not trained to see given parts clean: use Given(way='noised')")
            flags = GivenFlags(given.construction, given.kind, given.params.all(dim=-1))
            denoise = partial(self.denoise, given=flags)
        return draw_sketches(denoise, self.process, noise, sampler=sampler, steps=steps, given=given, on_step=on_step)

    def likelihood(self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws, *, bins: Bins | None = None) -> Elbo:
        """The bound on −log p, term by term; on a grid if `bins` are told."""
        return elbo(self.denoise, self.process, x0, noise, steps, bins=bins)


def draw_given(uniform: Float[Tensor, "batch number"], kind: Int[Tensor, "batch prim"], share: float) -> GivenFlags:
    """What is given in training: nothing, but for a `share` of sketches some rows, all kinds, or which rows are empty.

    Takes 3 + rows uniform numbers a sketch.
    """
    chance, task, part = uniform[:, 0:1], uniform[:, 1:2], uniform[:, 2:3]
    some = chance < share
    rows = some & (task < 0.4) & (uniform[:, 3:] < part)
    kinds = some & (task >= 0.4) & (task < 0.7)
    empty = some & (task >= 0.7) & (kind == layout.NONE)
    return GivenFlags(construction=rows | empty, kind=rows | kinds | empty, params=rows | empty)


def _where(given: GivenFlags, clean: SketchBatch, noisy: SketchBatch) -> SketchBatch:
    return SketchBatch(
        torch.where(given.construction[..., None], clean.construction, noisy.construction),
        torch.where(given.kind[..., None], clean.kind, noisy.kind),
        torch.where(given.params[..., None], clean.params, noisy.params),
    )


def _told(given: GivenFlags, x0: SketchBatch, said: Prediction) -> Prediction:
    """A prediction with the truth where it is given."""
    return Prediction(
        torch.where(given.construction[..., None], _CERTAIN * x0.construction, said.construction_logits),
        torch.where(given.kind[..., None], _CERTAIN * x0.kind, said.kind_logits),
        torch.where(given.params[..., None], x0.params, said.params),
    )
