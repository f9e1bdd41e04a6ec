"""Base class of SketchDNN and its ablations: a network that denoises sketches row by row, and its training loss.

The systems differ in the diffusion process of labels. The network outputs one of three things: the clean parameters
(the paper's DiT), the noise in them, or, in ours, the correction of a preconditioned estimate (`gaussian.denoised`).

Ours has extra inputs: its previous prediction (self-conditioning, Chen et al. 2023) and proximity features. A null
prediction, before the first step, has logits of −∞ everywhere: no label has any probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.diffusion import Bins, Elbo, gaussian, likelihood
from sketchdnn.diffusion.gaussian import Level, like, root
from sketchdnn.diffusion.loss import BOOST_UNTIL, MSE_BOOST, Loss, authors_loss, mse_weight, our_loss, paper_loss
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser, Noise, Process, Superposition, parts
from sketchdnn.diffusion.sampling import Conditioning, ConditioningMethod
from sketchdnn.diffusion.timesteps import StepDraws, draw_steps, step_as_noisy_as
from sketchdnn.networks.dit import DiT, DiTConfig
from sketchdnn.networks.image_encoder import ImageFeatures
from sketchdnn.networks.set_denoiser import (
    NUM_MASK_FLAGS,
    BlockChange,
    SetDenoiser,
    SetDenoiserConfig,
    proximity_features,
)
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch
from sketchdnn.representation.settings import check_settings, within

from .system import ConditionMask, System

# The process and loss of the text, of the released code, or ours.
Variant = Literal["ours", "paper", "authors"]
# What the network predicts of the parameters. Labels are always predicted clean, as cross entropy needs.
Predict = Literal["x0", "noise"]
# Where the squared error is weighted by λ = 16: for t ≤ 150, for every t, for none.
MseWeighting = Literal["low_noise", "all", "none"]

# Keeps the logarithm of a noise level finite at both ends of the schedule.
_FLOOR = 1e-8
# Noise cannot be converted to x_0 where no signal is left. The smallest ᾱ that is divided by is the authors' own.
_MIN_ALPHA_BAR = 1e-4
# Inputs of our network that can be switched on; a checkpoint without them can initialize a network with them.
_EXTRA_INPUTS = ("self_conditioning", "proximity_features", "auxiliary", "next_level")


@dataclass(frozen=True, slots=True)
class RowDenoiserConfig:
    """Settings of a row denoiser.

    Attributes:
        data_std: The standard deviation of coordinates in the training set, in [−1, 1].
        mse_weighting: None is the variant's: `low_noise` for the paper and its authors, `none` for ours.
        preconditioned: Whether our network predicts the correction of its input; otherwise it predicts x0 itself, as
            the paper's always does.
    """

    network: SetDenoiserConfig | DiTConfig = field(default_factory=SetDenoiserConfig)
    variant: Variant = "ours"
    num_steps: int = field(default=2000, metadata=within(1, 100_000))
    superposition: Superposition = "expected"
    data_std: float = field(default=0.55, metadata=within(1e-6, 1e6))
    arc_scalar: layout.ArcScalar = "sweep"
    none_construction: layout.NoneConstruction = "one_hot"
    canonical_lines: bool = True
    predict: Predict = "x0"
    mse_weighting: MseWeighting | None = None
    preconditioned: bool = field(default=True, metadata={"omit_if_default": True})

    def __post_init__(self) -> None:
        check_settings(self)
        if isinstance(self.network, DiTConfig) and self.network.num_steps != self.num_steps:
            raise ValueError(f"the network has {self.network.num_steps} steps, the process {self.num_steps}")


AnyProcess = TypeVar("AnyProcess", bound=Process)


class RowDenoiser(System, Generic[AnyProcess]):
    """A denoiser of rows with its training loss and bound. Subclasses add the samplers of their process."""

    inference_only: ClassVar[tuple[str, ...]] = ("superposition",)
    config: RowDenoiserConfig

    def __init__(
        self, config: RowDenoiserConfig, process: AnyProcess, elbo: Callable[..., Elbo] = likelihood.elbo
    ) -> None:
        super().__init__()
        self.config, self.elbo = config, elbo
        self.network = DiT(config.network) if isinstance(config.network, DiTConfig) else SetDenoiser(config.network)
        self.process = process

    @property
    def ordered(self) -> bool:
        return self.config.network.positions

    @property
    def self_conditioning(self) -> bool:
        """Whether the network takes its previous prediction."""
        return self._has_input("self_conditioning")

    @property
    def supports_auxiliary(self) -> bool:
        return self._has_input("auxiliary")

    @property
    def conditioning_methods(self) -> tuple[ConditioningMethod, ...]:
        """The paper's network has no mask as input: it sees known parts noisy."""
        return ("repaint",) if isinstance(self.network, DiT) else ("conditional", "repaint")

    def to_device(self, device: torch.device | str) -> Self:
        self.to(device)
        self.process = self.process.to(device)
        return self

    def denoise(
        self,
        batch_t: SketchBatch,
        t: Int[Tensor, " batch"],
        mask: ConditionMask | None = None,
        previous: Prediction | None = None,
        s: Int[Tensor, " batch"] | None = None,
    ) -> Prediction:
        """The network's estimate of the clean sketch.

        Args:
            batch_t: Noisy rows; parts in `mask` are clean.
            t: The step of each sketch.
            mask: The known parts.
            previous: The prediction at the step before, for a self-conditioned network (see `denoiser`).
            s: The step that the sampler goes to, for a student of distillation; default t.
        """
        level = self.process.params.at(t)
        if s is not None and not self._has_input("next_level"):
            raise ValueError("this network takes no next step: network.next_level is off")
        next_level = self.process.params.at(t if s is None else s)
        output = self._forward(batch_t, t, level, mask, previous, next_level)
        if self.config.predict == "noise":
            params = gaussian.remove_noise(batch_t.params, output.params, _bounded(level))
        elif isinstance(self.network, DiT) or not self.config.preconditioned:
            return output
        else:
            params = gaussian.denoised(batch_t.params, output.params, level, self.config.data_std)
        return Prediction(output.construction_logits, output.kind_logits, params)

    def loss(self, x0: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask) -> Loss:
        """The loss of predicting x0 from its diffused rows; known parts are shown clean and add nothing.

        The paper's network ignores the mask. A self-conditioned network gets, for every other sketch, its prediction at
        a noisier step, and a null prediction for the rest, as at the first step of sampling.
        """
        batch_t = self.process.diffuse(x0, t, noise)
        if isinstance(self.network, DiT):
            return self._loss(self.denoise(batch_t, t), x0, t)
        visible = mask.fill_rows(x0, batch_t)
        previous = self._previous_prediction(x0, batch_t, t, noise, mask) if self.self_conditioning else None
        return self._loss(mask.fill_prediction(x0, self.denoise(visible, t, mask, previous)), x0, t)

    def denoiser(self, conditioning: Conditioning | None = None) -> Denoiser:
        """The denoiser for a sampler, with the mask of `conditioning` and with self-conditioning.

        With the method `repaint` the network gets no mask, and its own predictions of the known parts.
        """
        denoise = self.denoise
        if conditioning is not None and conditioning.method == "conditional":
            if "conditional" not in self.conditioning_methods:
                raise ValueError("this network was not trained to see known parts: use Conditioning(method='repaint')")
            known = conditioning.construction, conditioning.kind, conditioning.params.all(dim=-1)
            denoise = partial(self.denoise, mask=ConditionMask(*known, image=conditioning.image))
        return SelfConditionedDenoiser(denoise) if self.self_conditioning else denoise

    def likelihood(
        self,
        x0: SketchBatch,
        noise: NoiseSource,
        steps: StepDraws | None,
        *,
        bins: Bins | None = None,
        last_variance: float | None = None,
    ) -> Elbo:
        """The bound on −log p, term by term.

        It is the bound without self-conditioning: it evaluates single steps, not trajectories.

        Args:
            last_variance: The variance of parameters in the reconstruction term; by default that of the noise there.
        """
        if steps is None:
            raise ValueError("a bound needs steps to evaluate: draw_steps draws them")
        return self.elbo(self.denoise, self.process, x0, noise, steps, bins=bins, last_variance=last_variance)

    def draw_steps(self, batch: int, draws: int, generator: torch.Generator, *, width: float) -> StepDraws:
        """Random steps; the sketch is read at the step where the noise is as wide as `width`."""
        process = self.process.to("cpu")
        return draw_steps(process, batch, draws, generator, read_at=step_as_noisy_as(process, width))

    def _has_input(self, name: str) -> bool:
        return bool(getattr(self.config.network, name, False))

    def _adapt_config(self, config: Any) -> Any:
        """Extra inputs are zero-initialized, so a checkpoint without them loads unchanged; dropout may differ too."""
        mine, theirs = self.config.network, config.network
        if isinstance(mine, SetDenoiserConfig) and isinstance(theirs, SetDenoiserConfig):
            extra = {name: getattr(mine, name) or getattr(theirs, name) for name in _EXTRA_INPUTS}
            config = replace(config, network=replace(theirs, dropout=mine.dropout, **extra))
        return super()._adapt_config(config)

    def _previous_prediction(
        self, x0: SketchBatch, batch_t: SketchBatch, t: Int[Tensor, " batch"], noise: Noise, mask: ConditionMask
    ) -> Prediction:
        """The network's prediction for every other sketch at a noisier step, itself made with a null prediction.

        In sampling the previous prediction comes from more noise than the input. One made here from the same noise
        would be trusted too much. Noise levels are spread along the batch, so both halves have all of them.
        """
        some = slice(None, None, 2)
        at = t[some].clamp(max=self.process.num_steps - 1)
        earlier = previous_step(at, self.process.num_steps)
        fresh = roll_noise(noise)[some]
        noisier = self.process.step_forward(batch_t[some], at, earlier, fresh)
        visible = mask[some].fill_rows(x0[some], noisier)
        with torch.no_grad():
            return interleave_null(self.denoise(visible, earlier, mask[some]), len(x0))

    def _forward(
        self,
        batch_t: SketchBatch,
        t: Int[Tensor, " batch"],
        level: Level,
        mask: ConditionMask | None,
        previous: Prediction | None,
        next_level: Level,
    ) -> Prediction:
        """The raw output of the network."""
        if previous is not None and not self.self_conditioning:
            raise ValueError("this network takes no previous prediction: network.self_conditioning is off")
        output: Prediction
        if isinstance(self.network, DiT):
            output = self.network(batch_t, t)
            return output
        scaled = gaussian.scale_input(batch_t.params, level, self.config.data_std)
        if mask is None:
            flags = scaled.new_zeros((*scaled.shape[:2], NUM_MASK_FLAGS))
        else:
            scaled = torch.where(mask.params[..., None], batch_t.params, scaled)
            flags = mask.stacked().to(scaled.dtype)
        noise_level = _noise_input(level, scaled.dtype)
        next_noise = _noise_input(next_level, scaled.dtype) if self._has_input("next_level") else None
        previous_rows = None if previous is None else prediction_rows(previous, batch_t, mask, self.config.data_std)
        proximity = previous_proximity = None
        if self._has_input("proximity_features"):
            proximity = noisy_proximity(batch_t, level, mask)
            if previous_rows is not None:
                previous_proximity = predicted_proximity(previous_rows, level, self.config.data_std)
        auxiliary = None if mask is None or mask.auxiliary is None else mask.auxiliary.to(scaled.dtype)
        if auxiliary is not None and not self.supports_auxiliary:
            raise ValueError("this network has no input for auxiliary samples: network.auxiliary is off")
        change = None if mask is None or mask.image is None else self._image_change(mask.image)
        rows = SketchBatch(batch_t.construction, batch_t.kind, scaled)
        inputs = flags, previous_rows, proximity, previous_proximity, auxiliary, next_noise, change
        output = self.network(rows, noise_level, *inputs)
        return output

    def _image_change(self, image: ImageFeatures) -> BlockChange:
        """What the pictures add after each block of the network (`ImageConditionedSystem`)."""
        raise ValueError("this network takes no pictures")

    def _loss(self, prediction: Prediction, x0: SketchBatch, t: Int[Tensor, " batch"]) -> Loss:
        """The variant's loss; the squared error is that of the network's output."""
        config, level = self.config, self.process.params.at(t)
        if config.variant == "ours" and config.predict == "x0":
            loss = our_loss(prediction, x0, level, config.data_std)
        else:
            average = authors_loss if config.variant == "authors" else paper_loss
            loss = average(prediction, x0, t, mse_boost=1.0)
        weight = self._mse_weight(t)
        if config.predict == "noise":
            # ε − ε̂ is √SNR times x_0 − x̂_0.
            weight = weight * like(_bounded(level).snr, prediction.params[:, 0, 0])
        return replace(loss, params_per_sample=weight * loss.params_per_sample)

    def _mse_weight(self, t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        weighting = self.config.mse_weighting or ("none" if self.config.variant == "ours" else "low_noise")
        until = {"low_noise": BOOST_UNTIL, "all": self.config.num_steps, "none": 0}
        return mse_weight(t, MSE_BOOST, until[weighting])


def _noise_input(level: Level, dtype: torch.dtype) -> Float[Tensor, " batch"]:
    """The noise level as an input of the network: −log SNR / 6, about −3 to 3."""
    return torch.log((level.var + _FLOOR) / (level.alpha_bar + _FLOOR)).to(dtype) / 6


def _bounded(level: Level) -> Level:
    return Level(level.alpha_bar.clamp(min=_MIN_ALPHA_BAR), level.var)


# Sampling runs that training prepares for, and the number of step lengths that a batch cycles through.
_MIN_SAMPLING_STEPS, _STRIDES = 25, 8
# Distances are measured in units of the noise, but of no less than this; the size of a sketch is 2.
_MIN_UNIT = 0.003
# A predicted place is about that much closer to the truth than the noisy place.
_PREDICTION_UNIT = 0.5


class SelfConditionedDenoiser:
    """A denoiser for one trajectory: every call gets the prediction of the call before, the first a null prediction."""

    def __init__(self, denoise: Callable[..., Prediction]) -> None:
        self.denoise = denoise
        self.previous: Prediction | None = None

    def __call__(
        self, batch_t: SketchBatch, t: Int[Tensor, " batch"], s: Int[Tensor, " batch"] | None = None
    ) -> Prediction:
        # The null prediction is passed, not left out, so that a compiled denoiser is one graph for all steps.
        previous = null_prediction(batch_t.params) if self.previous is None else self.previous
        next_step = {} if s is None else {"s": s}
        self.previous = self.denoise(batch_t, t, previous=previous, **next_step)
        return self.previous

    def fresh(self) -> SelfConditionedDenoiser:
        return SelfConditionedDenoiser(self.denoise)


def null_prediction(like: Float[Tensor, "batch prim 14"]) -> Prediction:
    """No prediction for any row."""
    labels = (layout.NUM_CONSTRUCTION, layout.NUM_KINDS)
    construction, kind = (like.new_full((*like.shape[:2], width), -math.inf) for width in labels)
    return Prediction(construction, kind, like.new_zeros((*like.shape[:2], layout.NUM_PARAMS)))


def previous_step(t: Int[Tensor, " batch"], num_steps: int) -> Int[Tensor, " batch"]:
    """For each t a noisier step, at most T, from which a sampling run of 25 or more steps may arrive at t.

    Sampling steps are spaced quadratically, so √t falls evenly: by 1/25 of √T or less, in turn along the batch.
    """
    strides = (torch.arange(len(t), device=t.device) % _STRIDES + 1) / _STRIDES
    noisier = num_steps * ((t / num_steps).sqrt() + strides / _MIN_SAMPLING_STEPS).square()
    return torch.maximum(noisier.round().long(), t + 1).clamp(max=num_steps)


def roll_noise(noise: Noise) -> Noise:
    """The noise of another sketch of the batch for each: as good as fresh, without a draw."""
    return Noise(*(part.roll(1, dims=0) for part in parts(noise)))


def interleave_null(prediction: Prediction, count: int) -> Prediction:
    """Predictions for sketches 0, 2, 4, … of `count`, and null predictions for those between them."""
    pairs = zip(parts(prediction), parts(null_prediction(prediction.params)), strict=True)
    return Prediction(*(torch.stack(pair, dim=1).flatten(0, 1)[:count] for pair in pairs))


def prediction_rows(
    previous: Prediction, batch_t: SketchBatch, mask: ConditionMask | None, data_std: float
) -> SketchBatch:
    """A previous prediction as input rows: probabilities of labels, and parameters scaled to unit variance.

    Known parts are taken from `batch_t`, which shows them clean. Rows of a null prediction are all zero.
    """
    construction, kind = _probabilities(previous.construction_logits), _probabilities(previous.kind_logits)
    rows = SketchBatch(construction, kind, previous.params)
    if mask is not None:
        rows = mask.fill_rows(batch_t, rows)
    exists = _exists(previous.kind_logits)
    return SketchBatch(rows.construction * exists, rows.kind * exists, rows.params * exists / data_std)


def noisy_proximity(
    batch_t: SketchBatch, level: Level, mask: ConditionMask | None
) -> Float[Tensor, "batch prim feature"]:
    """Proximity features of the noisy rows. Known parts, shown clean, are scaled to where noisy ones lie."""
    signal, unit = _signal_and_unit(level, batch_t.params)
    params = batch_t.params
    if mask is not None:
        params = torch.where(mask.params[..., None], signal * params, params)
    return _features(batch_t, params / unit)


def predicted_proximity(rows: SketchBatch, level: Level, data_std: float) -> Float[Tensor, "batch prim feature"]:
    """Proximity features of the previous prediction, as `prediction_rows` returns it."""
    signal, unit = _signal_and_unit(level, rows.params)
    return _features(rows, rows.params * (data_std * signal / (_PREDICTION_UNIT * unit)))


def _features(rows: SketchBatch, params: Tensor) -> Float[Tensor, "batch prim feature"]:
    # In float32: half precision cannot resolve small distances.
    with torch.autocast(params.device.type, enabled=False):
        return proximity_features(SketchBatch(rows.construction, rows.kind, params))


def _signal_and_unit(level: Level, params: Tensor) -> tuple[Tensor, Tensor]:
    """The scale of a sketch at this level, and the unit of distance: the standard deviation of the noise."""
    signal, noise = (like(root(part), params) for part in (level.alpha_bar, level.var))
    return signal, torch.maximum(noise, _MIN_UNIT * signal)


def _probabilities(logits: Float[Tensor, "batch prim cat"]) -> Float[Tensor, "batch prim cat"]:
    exists = _exists(logits)
    return torch.where(exists, logits, 0.0).softmax(dim=-1) * exists


def _exists(logits: Float[Tensor, "batch prim cat"]) -> Tensor:
    """Whether there is a prediction, by label. NaN counts as one: it must not pass for null."""
    return (logits != -math.inf).any(dim=-1, keepdim=True)
