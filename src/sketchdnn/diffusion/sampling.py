"""Sampling: conditioning, the options of a run, the registry of samplers, and the loop that the samplers share.

Conditioning fixes known parts of a sketch: whole rows, or single labels and parameters. The sampler replaces the
network's prediction of a known part by its value. The part then follows the forward process backwards to that value,
and the rest is generated to fit.

A transition from step t to step s replaces each part of a row (coordinates, or the logits of a label) by a weighted sum
of its state, its predictions and noise. Samplers differ in the weights, which are computed before the loop. Noise of
draw 0 starts a trajectory and every transition takes the next draw; nothing else is random. Control flow depends on
integers only, never on the value of a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sketchdnn.errors import SketchError
from sketchdnn.networks.image_encoder import ImageFeatures
from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, from_flat

from . import gaussian
from .gaussian import Level
from .noise import NoiseSource
from .process import (
    Denoiser,
    JointProcess,
    LogitBatch,
    Noise,
    begin_trajectory,
    check_shape,
    check_simplex,
    check_step,
    check_steps,
    choose,
    parts,
)

# `conditional`: the network sees known parts clean and must have been trained so. `repaint`: it sees them as noisy as
# the rest, which works with any network (RePaint, Lugmayr et al. 2022).
ConditioningMethod = Literal["conditional", "repaint"]
RowMask = Bool[Tensor, "batch prim"]


@dataclass(frozen=True, slots=True)
class Conditioning:
    """Values in `batch`, and masks of the labels and single parameters that are known.

    With `resamples` > 1 every stretch of `jump` steps is repeated that many times, with noise added in between, so that
    early decisions adapt to the known parts (RePaint). `image` is what an image-conditioned network takes of the
    picture of each sketch; it needs the method `conditional`.
    """

    batch: SketchBatch
    construction: RowMask
    kind: RowMask
    params: Bool[Tensor, "batch prim 14"]
    method: ConditioningMethod = "repaint"
    resamples: int = 1
    jump: int = 1
    image: ImageFeatures | None = None

    def __post_init__(self) -> None:
        check_shape(self.batch, "conditioning.batch")
        rows, params = self.batch.kind.shape[:2], self.batch.params.shape
        masks = (("construction", self.construction, rows), ("kind", self.kind, rows), ("params", self.params, params))
        for name, mask, shape in masks:
            if mask.dtype != torch.bool or mask.shape != shape:
                wrong = f"{mask.dtype} of {tuple(mask.shape)}"
                raise ValueError(f"conditioning.{name} must be a mask of shape {tuple(shape)}, not {wrong}")
        check_simplex(self.batch.construction[self.construction], "conditioning.batch.construction")
        check_simplex(self.batch.kind[self.kind], "conditioning.batch.kind")
        if not bool(self.batch.params[self.params].isfinite().all()):
            raise ValueError("conditioning.batch.params must be finite where the mask is set")
        if self.method not in get_args(ConditioningMethod):
            raise ValueError(f"conditioning.method must be one of {get_args(ConditioningMethod)}, not {self.method!r}")
        if self.resamples < 1 or self.jump < 1:
            raise ValueError(f"resamples and jump must be at least 1, not {self.resamples} and {self.jump}")
        if self.image is not None and (self.method != "conditional" or len(self.image) != len(self.batch)):
            raise ValueError("conditioning.image needs the method conditional and one picture for each sketch")

    @property
    def masks(self) -> tuple[Tensor, Tensor, Tensor]:
        """The masks, in shapes that broadcast against the parts of a batch."""
        return self.construction[..., None], self.kind[..., None], self.params

    def to(self, like: Tensor) -> Conditioning:
        """Move to the device and precision of the sampled state."""
        construction, kind, params = (mask.to(like.device) for mask in (self.construction, self.kind, self.params))
        return replace(self, batch=self.batch.to(like), construction=construction, kind=kind, params=params)

    def fill_logits(self, clean: LogitBatch, label_smoothing: float) -> LogitBatch:
        """The inputs of the reverse mean, with the known values in place."""
        return LogitBatch(*map(torch.where, self.masks, LogitBatch.from_sketch(self.batch, label_smoothing), clean))

    def fill_rows(self, batch: SketchBatch) -> SketchBatch:
        """The batch with the known values in place, to the bit."""
        return choose(self.masks, self.batch, batch)

    def fill_prediction(self, prediction: Prediction) -> Prediction:
        """The prediction with the known values in place; a known label has logits 0 and −inf."""
        known = self.batch.construction.log(), self.batch.kind.log(), self.batch.params
        return Prediction(*map(torch.where, self.masks, known, parts(prediction)))

    def visible(self, batch: SketchBatch) -> SketchBatch:
        """The batch as the network sees it: known parts clean if the method is `conditional`."""
        return self.fill_rows(batch) if self.method == "conditional" else batch


def condition_on_rows(
    batch: SketchBatch, rows: RowMask, *, method: ConditioningMethod = "repaint", resamples: int = 1, jump: int = 1
) -> Conditioning:
    """Conditioning on whole rows, as for the completion of a sketch."""
    return Conditioning(batch, rows, rows, rows[..., None].expand_as(batch.params), method, resamples, jump)


def condition_on_image(image: ImageFeatures, num_rows: int = layout.MAX_PRIMITIVES) -> Conditioning:
    """Conditioning on a picture of each sketch, with no known parts."""
    unknown = torch.zeros(len(image), num_rows, dtype=torch.bool, device=image.present.device)
    params = unknown[..., None].expand(-1, -1, layout.NUM_PARAMS)
    batch = from_flat(params.new_zeros((*unknown.shape, layout.ROW_WIDTH), dtype=torch.float32))
    return Conditioning(batch, unknown, unknown, params, "conditional", image=image)


SAMPLER_ENTRY_POINTS = "sketchdnn.samplers"


@dataclass(frozen=True, slots=True)
class Progress:
    """State after one transition: for a progress bar, a preview or an animation."""

    number: int  # from 1
    total: int
    t: int
    s: int
    batch: SketchBatch  # X_s; at s = 0 the sample itself
    prediction: Prediction  # of X_0, made at t
    active: Bool[Tensor, " batch"] | None = None  # sketches that still change; `prediction` is undefined for others


OnStep = Callable[[Progress], None]


class Start(NamedTuple):
    """A start other than pure noise: clean sketches, diffused to step t by the noise of draw 0."""

    t: int
    batch: SketchBatch


@runtime_checkable
class Sampler(Protocol):
    """A function from noise to sketches. Parameters of its own are keywords with defaults."""

    def __call__(
        self, denoise: Denoiser, process: JointProcess, noise: NoiseSource, options: SamplingOptions, /
    ) -> SketchBatch: ...


AnySampler = TypeVar("AnySampler", bound=Sampler)


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Options of one sampling run.

    Attributes:
        sampler: A registered name, or a function; None is the default of the system.
        steps: The number of steps, spaced quadratically (denser near 0), or the steps themselves, falling from T (or
            `start.t`) to 0; None is all of them.
        conditioning: Known parts of the sketches; they come out unchanged.
        start: Sketches to begin from in place of pure noise, for variations of them.
        on_step: Called after every denoising step.
    """

    sampler: str | Sampler | None = None
    steps: int | Sequence[int] | None = None
    conditioning: Conditioning | None = None
    start: Start | None = None
    on_step: OnStep | None = None

    @property
    def sampler_name(self) -> str:
        """The name of the sampler, for records."""
        return self.sampler if isinstance(self.sampler, str) else getattr(self.sampler, "__name__", "default")

    def sampler_function(self) -> Sampler:
        """The sampler itself, looked up if it is a name."""
        if self.sampler is None:
            raise ValueError("options.sampler must be a name or a function here; `System.resolve` chooses the default")
        return find_sampler(self.sampler) if isinstance(self.sampler, str) else self.sampler

    def first_step(self, num_steps: int) -> int:
        """The step that sampling starts at."""
        return num_steps if self.start is None else self.start.t

    def timesteps(self, num_steps: int) -> Sequence[int]:
        """The steps to visit, from the first to 0."""
        first = self.first_step(num_steps)
        check_step(first, num_steps, "start.t", lowest=1)
        if isinstance(self.steps, int):
            return step_sequence(first, self.steps, power=2)
        steps = range(first, -1, -1) if self.steps is None else self.steps
        check_steps(steps, num_steps)
        if steps[0] != first or steps[-1] != 0:
            raise ValueError(f"steps must go from {first} to 0, not from {steps[0]} to {steps[-1]}")
        return steps

    def transitions(self, num_steps: int) -> list[tuple[int, int]]:
        """Pairs (t, s) to go through: down the steps, and up again before each stretch that RePaint repeats.

        The last step is never repeated: nothing follows that could adapt to its result.
        """
        *down, end = pairwise(self.timesteps(num_steps))
        if self.conditioning is None:
            return [*down, end]
        resamples, jump = self.conditioning.resamples, self.conditioning.jump
        pairs: list[tuple[int, int]] = []
        for first in range(0, len(down), jump):
            stretch = down[first : first + jump]
            up = (stretch[-1][1], stretch[0][0])
            pairs += [*stretch, up] * (resamples - 1) + stretch
        return [*pairs, end]

    def check_shapes(self, noise: SketchBatch) -> None:
        """Refuse noise, a start and conditioning of different shapes."""
        check_shape(noise, "noise")
        for name, part in (("start", self.start), ("conditioning", self.conditioning)):
            if part is not None:
                check_shape(part.batch, f"{name}.batch", like=noise)


SAMPLERS: dict[str, Sampler] = {}
# The sampler of students of distillation, and the most steps for which a model with a student uses it by default.
FEW_STEP, MAX_FEW_STEPS = "few_step", 8


def register_sampler(name: str) -> Callable[[AnySampler], AnySampler]:
    """Decorator that makes a sampler available by name: `@register_sampler("mine")`.

    Packages may also declare one as an entry point of the group `sketchdnn.samplers`.

    Raises:
        ValueError: The name is taken by another sampler.
    """

    def register(sampler: AnySampler) -> AnySampler:
        if SAMPLERS.setdefault(name, sampler) is not sampler:
            raise ValueError(f"there is a sampler '{name}' already; register yours under another name")
        return sampler

    return register


def find_sampler(name: str) -> Sampler:
    """The sampler of that name; entry points are loaded when the name is not registered yet.

    Raises:
        SketchError: There is none.
    """
    if name not in SAMPLERS:
        for point in entry_points(group=SAMPLER_ENTRY_POINTS):
            if point.name not in SAMPLERS:
                register_sampler(point.name)(point.load())
    if name not in SAMPLERS:
        raise SketchError(f"'{name}' is no sampler; use one of {', '.join(SAMPLERS)}")
    return SAMPLERS[name]


def step_sequence(num_steps: int, count: int, power: int = 1) -> tuple[int, ...]:
    """`count` steps from T down to 0, spaced evenly; power 2 puts more of them near 0, where details form.

    >>> step_sequence(2000, 4), step_sequence(2000, 4, power=2)
    ((2000, 1500, 1000, 500, 0), (2000, 1125, 500, 125, 0))
    """
    if not 1 <= count <= num_steps:
        raise ValueError(f"count must lie in 1..{num_steps}, not {count}")
    whole = count**power
    # Rounded in whole numbers; the second term keeps steps apart where they would round to the same.
    return tuple(max((2 * num_steps * i**power + whole) // (2 * whole), i) for i in range(count, -1, -1))


class Weights(NamedTuple):
    """x_s = x_t·x_t + x0·x̂_0 + previous·(previous x̂_0) + std·noise; one number a transition each, float64."""

    x_t: Float[Tensor, " steps"]
    x0: Float[Tensor, " steps"]
    previous: Float[Tensor, " steps"]
    std: Float[Tensor, " steps"]


# (level_s, level_t, level one transition earlier) → weights. A prediction was made at the earlier level if it is
# noisier than t; there is none at the start of the loop and after going up again.
WeightRule = Callable[[Level, Level, Level], Weights]
# (level_s, level_t) → weight of the change of prediction between t and s.
CorrectionRule = Callable[[Level, Level], Float[Tensor, " steps"]]
# (prediction, extra noise on request) → x̂_0 of the weighted sum.
X0Rule = Callable[[Prediction, Callable[[], Noise]], LogitBatch]


def sampling_loop(
    denoise: Denoiser,
    process: JointProcess,
    noise: NoiseSource,
    options: SamplingOptions,
    weights: WeightRule,
    *,
    label_weights: WeightRule | None = None,
    estimate_x0: X0Rule | None = None,
    correction: CorrectionRule | None = None,
    end_on_prediction: bool = False,
    two_time: bool = False,
    end_one_hot: bool = False,
) -> SketchBatch:
    """Go from noise, or from `options.start`, to clean sketches.

    Args:
        weights: Of coordinates and, without `label_weights`, of labels.
        estimate_x0: Computes x̂_0 from a prediction, by default `process.x0_logits`. Its extra noise comes from draws
            that no transition uses.
        correction: Corrects the coordinates of a transition by the prediction made where it arrived, which the next
            transition needs anyway.
        end_on_prediction: Return the last prediction in place of the last state.
        two_time: Call the denoiser with t and with the step s that the transition goes to.
        end_one_hot: Return one-hot labels, and zeros in the parameters of other kinds.
    """
    pure = noise(0)
    options.check_shapes(pure)
    transitions = options.transitions(process.num_steps)
    conditioning = None if options.conditioning is None else options.conditioning.to(pure.params)
    estimate_x0 = estimate_x0 or (lambda prediction, _: process.x0_logits(prediction))
    table, corrections = _weight_table(process, transitions, weights, label_weights or weights, correction, pure.params)
    denoise = begin_trajectory(denoise)

    state = _initial_state(parts(pure), process, options.first_step(process.num_steps), conditioning, options.start)
    x0_hat = previous = state  # stand in for predictions before the first, with weight zero
    batch = _visible(state, conditioning)
    with torch.no_grad():
        for number, (t, s) in enumerate(transitions, start=1):
            fresh = parts(noise(number))
            if s < t:
                prediction = predict(denoise, batch, t, conditioning, s if two_time else None)
                latest = estimate_x0(prediction, partial(noise, len(transitions) + number))
                if conditioning is not None:
                    latest = conditioning.fill_logits(latest, process.label_smoothing)
                if corrections is not None and number > 1:
                    # The change of prediction in place of the change that was extrapolated from the two before.
                    change = corrections[number - 2] * (latest.params - x0_hat.params)
                    change = change + table[-1][number - 2, 2] * (x0_hat.params - previous.params)
                    state = state._replace(params=state.params + change)
                previous, x0_hat = x0_hat, latest
            rows = (part[number - 1] for part in table)
            state = LogitBatch(*map(_weighted_sum, rows, state, x0_hat, previous, fresh))
            batch = _visible(state, conditioning)
            if s == 0:
                batch = state.batch()
                if end_on_prediction:
                    batch = SketchBatch(prediction.construction, prediction.kind, x0_hat.params)
                if end_one_hot:
                    batch = batch.most_likely()
                batch = batch if conditioning is None else conditioning.fill_rows(batch)
            if s < t and options.on_step is not None:
                options.on_step(Progress(number, len(transitions), t, s, batch, prediction))
    return batch


def predict(
    denoise: Denoiser, batch: SketchBatch, t: int, conditioning: Conditioning | None, s: int | None = None
) -> Prediction:
    """The network's prediction, in the precision of the state, with known values in place.

    A denoiser that takes the next step too gets it as `s`.
    """
    steps = (t,) if s is None else (t, s)
    output = denoise(batch, *(torch.full((len(batch),), step, device=batch.params.device) for step in steps))
    check_shape(output, "the output of denoise", like=batch)
    prediction = Prediction(*(part.to(batch.params) for part in parts(output)))
    return prediction if conditioning is None else conditioning.fill_prediction(prediction)


def _weight_table(
    process: JointProcess,
    transitions: Sequence[tuple[int, int]],
    weights: WeightRule,
    label_weights: WeightRule,
    correction: CorrectionRule | None,
    like: Tensor,
) -> tuple[list[Float[Tensor, "transitions 4"]], Float[Tensor, " transitions"] | None]:
    """The weights of every transition for each part of a row, and of its correction (zero if it goes up); cast last."""
    t, s = torch.tensor(transitions).unbind(dim=1)
    down = s < t
    earlier = t.roll(1)
    low, high = torch.minimum(s, t), torch.maximum(s, t)
    table = []
    process = process.to("cpu")
    rules = ((process.construction, label_weights), (process.kind, label_weights), (process.params, weights))
    for schedule, rule in rules:
        backward = torch.stack(rule(schedule.at(low), schedule.at(high), schedule.at(earlier)), dim=-1)
        alpha_ts, var_ts = gaussian.transition(schedule.at(low), schedule.at(high))
        zero = torch.zeros_like(var_ts)
        forward = torch.stack(Weights(gaussian.root(alpha_ts), zero, zero, gaussian.root(var_ts)), dim=-1)
        table.append(torch.where(down[:, None], backward, forward).to(like))
    if correction is None:
        return table, None
    change = correction(process.params.at(low), process.params.at(high))
    return table, torch.where(down, change, 0.0).to(like)


def _weighted_sum(weights: Float[Tensor, " 4"], x_t: Tensor, x0: Tensor, previous: Tensor, noise: Tensor) -> Tensor:
    w = Weights(*weights.unbind())
    return w.x_t * x_t + w.x0 * x0 + w.previous * previous + w.std * noise


def _initial_state(
    noise: LogitBatch, process: JointProcess, t: int, conditioning: Conditioning | None, start: Start | None
) -> LogitBatch:
    """Noise, or the start diffused by it; known parts begin where the forward process takes them."""
    levels = process.levels(t)

    def diffused(batch: SketchBatch) -> LogitBatch:
        return LogitBatch(*map(gaussian.diffuse, LogitBatch.from_sketch(batch, process.label_smoothing), noise, levels))

    state = noise if start is None else diffused(start.batch.to(noise.params))
    if conditioning is None:
        return state
    return LogitBatch(*map(torch.where, conditioning.masks, diffused(conditioning.batch), state))


def _visible(state: LogitBatch, conditioning: Conditioning | None) -> SketchBatch:
    return state.batch() if conditioning is None else conditioning.visible(state.batch())
