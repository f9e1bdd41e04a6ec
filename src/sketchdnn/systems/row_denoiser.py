"""What SketchDNN and its ablations share: a network that says what a noisy sketch was, row by row, and how it learns.

The processes differ in what noise does to a label. What the network puts out is one of three things: the clean
parameters (the paper's DiT), the noise in them, or, of ours, how far off the noisy ones are (see `precondition`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion import precondition
from sketchdnn.diffusion.bins import Bins
from sketchdnn.diffusion.conditioning import Conditioning, ConditioningMethod
from sketchdnn.diffusion.gaussian import like
from sketchdnn.diffusion.likelihood import Elbo
from sketchdnn.diffusion.loss import BOOST_UNTIL, MSE_BOOST, Loss, authors_loss, boost, our_loss, paper_loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, Noise, Process, Superposition
from sketchdnn.diffusion.schedule import Level
from sketchdnn.diffusion.step_draws import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.networks.dit import DiT, DiTConfig
from sketchdnn.networks.set_denoiser import NUM_GIVEN_FLAGS, SetDenoiser, SetDenoiserConfig
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.representation.prediction import Prediction
from sketchdnn.representation.settings import check_settings, within

from .hearing import SelfConditionedDenoiser, as_heard, every_other, rolled, step_before
from .nearness import near_noisy, near_said
from .system import ConditionMask, RowForm, System

# Whose process and loss: the text, the released code, or ours.
Form = Literal["ours", "paper", "authors"]
# What the network is to say of the parameters. Labels are always said clean: cross entropy knows no other way.
Predict = Literal["x0", "noise"]
# Where the squared error weighs λ = 16 times: for t ≤ 150, for every t, for none.
Boost = Literal["low", "everywhere", "nowhere"]

# Keeps the logarithm of a noise level finite at both ends of the schedule.
_FLOOR = 1e-8
# Noise cannot be turned into x_0 where nothing of x_0 is left. The least ᾱ that we divide by is the authors' own.
_LEAST_ALPHA_BAR = 1e-4


@dataclass(frozen=True, slots=True)
class RowDenoiserConfig:
    """Defaults are `ours`. `data_std` is the standard deviation of coordinates in the training set, in [−1, 1].

    A `boost` that is not said is the form's: below t = 150 for the paper and its authors, nowhere for ours.
    """

    network: SetDenoiserConfig | DiTConfig = field(default_factory=SetDenoiserConfig)
    form: Form = "ours"
    num_steps: int = field(default=2000, metadata=within(1, 100_000))
    superposition: Superposition = "expected"
    data_std: float = field(default=0.55, metadata=within(1e-6, 1e6))
    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True
    predict: Predict = "x0"
    boost: Boost | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.network, DiTConfig) and self.network.num_steps != self.num_steps:
            raise ValueError(f"the network knows {self.network.num_steps} steps, the process {self.num_steps}")


AnyProcess = TypeVar("AnyProcess", bound=Process)


class RowDenoiser(System, Generic[AnyProcess]):
    """A denoiser of rows: `loss` for training. How to draw and to judge is for those who know the process."""

    inference_only: ClassVar[tuple[str, ...]] = ("superposition",)
    config: RowDenoiserConfig

    def __init__(self, config: RowDenoiserConfig, process: AnyProcess) -> None:
        super().__init__()
        self.config = config
        self.network = DiT(config.network) if isinstance(config.network, DiTConfig) else SetDenoiser(config.network)
        self.process = process

    @property
    def rows(self) -> RowForm:
        return RowForm(self.config.arc_scalar, self.config.none_construction, self.config.canonical_lines)

    @property
    def max_steps(self) -> int:
        return self.config.num_steps

    @property
    def ordered(self) -> bool:
        return self.config.network.positions

    @property
    def hears(self) -> bool:
        """Whether the network is told what it said before; the paper's never is."""
        return isinstance(self.config.network, SetDenoiserConfig) and self.config.network.hears

    @property
    def knows_neighbours(self) -> bool:
        """Whether the network is told what lies near each end; the paper's never is."""
        return isinstance(self.config.network, SetDenoiserConfig) and self.config.network.neighbours

    @property
    def supports_auxiliary(self) -> bool:
        """Whether the network can be told that a sketch is not such as are to be drawn; the paper's cannot."""
        return isinstance(self.config.network, SetDenoiserConfig) and self.config.network.aside

    @property
    def conditioning_methods(self) -> tuple[ConditioningMethod, ...]:
        """The paper's network has no flags to be told by what is given: it sees given parts noised."""
        return ("repaint",) if isinstance(self.network, DiT) else ("conditional", "repaint")

    def to_device(self, device: torch.device | str) -> Self:
        """Weights and schedules both."""
        self.to(device)
        self.process = self.process.to(device)
        return self

    def denoise(
        self,
        batch_t: SketchBatch,
        t: Int[Tensor, " batch"],
        given: ConditionMask | None = None,
        before: Prediction | None = None,
    ) -> Prediction:
        """The clean sketch, as far as the network can tell. Given parts of `batch_t` are shown clean.

        `before` is what it said of the same sketch at more noise, if it hears that; see `denoiser` for a walk.
        """
        level = self.process.params.at(t)
        raw = self._put_out(batch_t, t, level, given, before)
        if self.config.predict == "noise":
            params = precondition.without_noise(batch_t.params, raw.params, _bounded(level))
        elif isinstance(self.network, DiT):
            return raw
        else:
            params = precondition.denoised(batch_t.params, raw.params, level, self.config.data_std)
        return Prediction(raw.construction_logits, raw.kind_logits, params)

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """Loss of predicting x0 from its noisy self; what is given is shown clean and costs nothing.

        The paper's network has no flags to be told by: with it, nothing is given. One that hears what it said before is
        told of every other sketch what it says at a little more noise, and of the rest nothing, as at the first step of
        a walk.
        """
        batch_t = self.process.diffuse(x0, t, noise)
        if isinstance(self.network, DiT):
            prediction = self.denoise(batch_t, t)
        else:
            visible = mask.fill_rows(x0, batch_t)
            before = self._said_before(x0, batch_t, t, noise, mask) if self.hears else None
            prediction = mask.fill_prediction(x0, self.denoise(visible, t, mask, before))
        return self._judged(prediction, x0, t)

    def denoiser(self, conditioning: Conditioning | None = None) -> Denoiser:
        """For one walk, told what is given if it can be, and what it said at the step before if it hears that.

        Where given parts are shown noised it is not told of them, and hears what it said of them itself.
        """
        denoise = self.denoise
        if conditioning is not None and conditioning.method == "conditional":
            if "conditional" not in self.conditioning_methods:
                raise ValueError("this network was not trained to see known parts: use Conditioning(method='repaint')")
            known = conditioning.construction, conditioning.kind, conditioning.params.all(dim=-1)
            denoise = partial(self.denoise, given=ConditionMask(*known))
        return SelfConditionedDenoiser(denoise) if self.hears else denoise

    @abstractmethod
    def bound(
        self,
        x0: SketchBatch,
        noise: NoiseSource,
        steps: StepDraws,
        *,
        bins: Bins | None = None,
        last_variance: float | None = None,
    ) -> Elbo:
        """The bound on −log p, term by term; parameters are read off with `last_variance`, else that of the noise.

        It is of the network without a memory: a bound looks at single steps, where nobody knows what a walk would have
        said before.
        """

    def likelihood(
        self, x0: SketchBatch, noise: NoiseSource, steps: StepDraws | None, *, bins: Bins | None = None
    ) -> Elbo:
        """The bound on −log p, term by term; on a grid if `bins` are told."""
        if steps is None:
            raise ValueError("a bound needs steps to look at: draw_steps draws them")
        return self.bound(x0, noise, steps, bins=bins)

    def draw_steps(self, batch: int, draws: int, generator: torch.Generator, *, width: float) -> StepDraws:
        """The sketch is read off where the noise is `width` wide."""
        process = self.process.to("cpu")
        return draw_steps(process, batch, draws, generator, read_at=step_as_noisy_as(process, width))

    def _adapt_config(self, config: Any) -> Any:
        """One that is told more begins with the weights of one told less: at first it counts for nothing."""
        mine, theirs = self.config.network, config.network
        if isinstance(mine, SetDenoiserConfig) and isinstance(theirs, SetDenoiserConfig):
            more = {name: getattr(mine, name) or getattr(theirs, name) for name in ("hears", "neighbours", "aside")}
            config = replace(config, network=replace(theirs, dropout=mine.dropout, **more))
        return super()._adapt_config(config)

    def _said_before(
        self, x0: SketchBatch, batch_t: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, given: ConditionMask
    ) -> Prediction:
        """What the network says of every other sketch a step earlier in a walk, when nothing was said before that.

        What it hears in a walk is older than what it sees; told here what it says of the very same noise, it would
        trust it too much. Noise levels are spread along the batch, so both halves have all of them.
        """
        some = slice(None, None, 2)
        at = t[some].clamp(max=self.process.num_steps - 1)
        earlier = step_before(at, self.process.num_steps)
        fresh = rolled(noise)[some]  # what another sketch was noised with
        noisier = given[some].fill_rows(x0[some], self.process.step_forward(batch_t[some], at, earlier, fresh))
        with torch.no_grad():
            return every_other(self.denoise(noisier, earlier, given[some]), len(x0))

    def _put_out(
        self,
        batch_t: SketchBatch,
        t: Int[Tensor, " batch"],
        level: Level,
        given: ConditionMask | None,
        before: Prediction | None,
    ) -> Prediction:
        """What the network says, as it says it."""
        if before is not None and not self.hears:
            raise ValueError("this network does not hear what it said before: network.hears is off")
        said: Prediction
        if isinstance(self.network, DiT):
            said = self.network(batch_t, t)
            return said
        scaled = precondition.scale_input(batch_t.params, level, self.config.data_std)
        if given is None:
            flags = scaled.new_zeros((*scaled.shape[:2], NUM_GIVEN_FLAGS))
        else:
            scaled = torch.where(given.params[..., None], batch_t.params, scaled)
            flags = given.stacked().to(scaled.dtype)
        noise = torch.log((level.var + _FLOOR) / (level.alpha_bar + _FLOOR)).to(scaled.dtype) / 6
        heard = None if before is None else as_heard(before, batch_t, given, self.config.data_std)
        near = near_before = None
        if self.knows_neighbours:
            near = near_noisy(batch_t, level, given)
            near_before = None if heard is None else near_said(heard, level, self.config.data_std)
        aside = None if given is None or given.auxiliary is None else given.auxiliary.to(scaled.dtype)
        if aside is not None and not self.supports_auxiliary:
            raise ValueError("this network cannot be told what is aside: network.aside is off")
        rows = SketchBatch(batch_t.construction, batch_t.kind, scaled)
        said = self.network(rows, noise, flags, heard, near, near_before, aside)
        return said

    def _judged(self, prediction: Prediction, x0: SketchBatch, t: Int[Tensor, " batch"]) -> Loss:
        """The form's loss, the squared error being that of what the network puts out."""
        config, level = self.config, self.process.params.at(t)
        if config.form == "ours" and config.predict == "x0":
            loss = our_loss(prediction, x0, level, config.data_std)
        else:
            average = authors_loss if config.form == "authors" else paper_loss
            loss = average(prediction, x0, t, mse_boost=1.0)
        weight = self._boost(t)
        if config.predict == "noise":
            # ε − ε̂ is √SNR times x_0 − x̂_0.
            weight = weight * like(_bounded(level).snr, prediction.params[:, 0, 0])
        return replace(loss, params_per_sample=weight * loss.params_per_sample)

    def _boost(self, t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        where = self.config.boost or ("nowhere" if self.config.form == "ours" else "low")
        until = {"low": BOOST_UNTIL, "everywhere": self.config.num_steps, "nowhere": 0}
        return boost(t, MSE_BOOST, until[where])


def _bounded(level: Level) -> Level:
    return Level(level.alpha_bar.clamp(min=_LEAST_ALPHA_BAR), level.var)
