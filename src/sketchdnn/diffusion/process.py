"""The joint process: Gaussian diffusion of coordinates and Gaussian-Softmax diffusion of labels, independent by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Literal, NamedTuple, Protocol, TypeVar, get_args, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, to_columns

from . import gaussian, gaussian_softmax
from .gaussian import Level, Schedule, augment, authors_cosine, check_smoothing, cosine
from .gaussian_softmax import REVERSE_LOGITS_METHODS, ReverseLogitsMethod

# Standard normal noise in the shape of a batch: the same three named tensors.
Noise = SketchBatch
# The weight of a prediction's parameters of each kind in the reverse mean: p/max p (paper), p, one for the most likely
# kind alone, or one for all.
Superposition = Literal["max", "expected", "most_likely", "none"]

# A step for all samples, or one a sample.
Step = int | Int[Tensor, " batch"]

Same = TypeVar("Same")


@runtime_checkable
class Denoiser(Protocol):
    """A network, or an oracle: a noisy batch and its step in, the clean sketch out."""

    def __call__(self, batch_t: SketchBatch, t: Int[Tensor, " batch"]) -> Prediction: ...


@runtime_checkable
class StatefulDenoiser(Denoiser, Protocol):
    """A denoiser whose output depends on its earlier calls, as with self-conditioning."""

    def fresh(self) -> Denoiser:
        """The denoiser without any earlier calls."""


def begin_trajectory(denoise: Denoiser) -> Denoiser:
    """The denoiser for a new trajectory: without state from another one."""
    return denoise.fresh() if isinstance(denoise, StatefulDenoiser) else denoise


@runtime_checkable
class Process(Protocol):
    """The interface of all processes: a schedule for each part of a row, and the forward transitions."""

    @property
    def params(self) -> Schedule: ...

    @property
    def kind(self) -> Schedule: ...

    @property
    def construction(self) -> Schedule: ...

    @property
    def num_steps(self) -> int: ...

    def to(self: Same, device: torch.device | str) -> Same: ...  # noqa: PYI019 - Self cannot be checked at run time

    def diffuse(self, x0: SketchBatch, t: Step, noise: Noise) -> SketchBatch: ...

    def step_forward(self, batch_s: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch: ...


@dataclass(frozen=True, slots=True)
class JointProcess:
    """The schedules of the three parts of a row, and the treatment of predictions in the reverse step.

    `superposition` weights a prediction's parameters: by p_kind / max p, as the paper does at inference; or by p_kind,
    which gives the expectation, since a network learns each kind's as if the row were of that kind; by one for the
    most likely kind and zero for the others, so that nothing is superposed; or not at all.
    """

    params: Schedule
    kind: Schedule
    construction: Schedule
    label_smoothing: float
    reverse_logits: ReverseLogitsMethod = "expected"
    superposition: Superposition = "max"

    def __post_init__(self) -> None:
        if self.reverse_logits not in REVERSE_LOGITS_METHODS:
            raise ValueError(f"reverse_logits must be one of {REVERSE_LOGITS_METHODS}, not {self.reverse_logits!r}")
        if self.superposition not in get_args(Superposition):
            raise ValueError(f"superposition must be one of {get_args(Superposition)}, not {self.superposition!r}")
        if not self.params.num_steps == self.kind.num_steps == self.construction.num_steps:
            raise ValueError("params, kind and construction must have schedules of the same number of steps")
        check_smoothing(self.label_smoothing)

    @property
    def num_steps(self) -> int:
        return self.params.num_steps

    def to(self, device: torch.device | str) -> JointProcess:
        """The process with its schedules on a device, which saves a copy in every step."""
        schedules = {name: getattr(self, name).to(device) for name in ("params", "kind", "construction")}
        return replace(self, **schedules)

    def levels(self, t: Step) -> Levels:
        """The noise level of each part at step t."""
        return Levels(self.construction.at(t), self.kind.at(t), self.params.at(t))

    def diffuse(self, x0: SketchBatch, t: Step, noise: Noise) -> SketchBatch:
        """X_t from a clean X_0 in one shot."""
        self._validate(x0, noise, t=t)
        levels = self.levels(t)
        diffuse = partial(gaussian_softmax.diffuse, label_smoothing=self.label_smoothing)
        construction, kind = map(diffuse, parts(x0)[:2], parts(noise), levels)
        return SketchBatch(construction, kind, gaussian.diffuse(x0.params, noise.params, levels.params))

    def step_forward(self, batch_s: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch:
        """X_t from X_s, whose labels have no zeros."""
        self._validate(batch_s, noise, s=s, t=t)
        at_s, at_t = self.levels(s), self.levels(t)
        construction, kind = map(gaussian_softmax.step_forward, parts(batch_s)[:2], parts(noise), at_s, at_t)
        params = gaussian.step_forward(batch_s.params, noise.params, at_s.params, at_t.params)
        return SketchBatch(construction, kind, params)

    def x0_logits(self, prediction: Prediction) -> LogitBatch:
        """Return x̂_0 as it enters the reverse mean: logits of the two labels, and superposed parameters."""
        labels = prediction.construction, prediction.kind
        settings = self.label_smoothing, self.reverse_logits
        construction, kind = (gaussian_softmax.reverse_logits(label, *settings) for label in labels)
        return LogitBatch(construction, kind, superpose(prediction.params, labels[1], self.superposition))

    def step_back(self, clean: LogitBatch, batch_t: SketchBatch, s: Step, t: Step, noise: Noise) -> SketchBatch:
        """X_s from X_t and a (predicted) clean sketch, by the posterior."""
        self._validate(batch_t, noise, s=s, t=t)
        at_s, at_t = self.levels(s), self.levels(t)
        mean, std = gaussian.posterior(clean.params, batch_t.params, at_s.params, at_t.params)
        construction, kind = map(gaussian_softmax.step_back, clean[:2], parts(batch_t), parts(noise), at_s, at_t)
        return SketchBatch(construction, kind, mean + std * noise.params)

    def _validate(self, batch: SketchBatch, noise: Noise, **steps: Step) -> None:
        """Shapes always: a wrong one would broadcast. Steps where they are plain numbers; tensors are assumed valid."""
        check_shape(noise, "noise", like=batch)
        for name, step in steps.items():
            if not isinstance(step, Tensor):
                check_step(step, self.num_steps, name)
            elif step.shape not in ((), (len(batch),)):
                raise ValueError(f"{name} must hold one step a sample, {len(batch)}, not the shape {tuple(step.shape)}")
        s, t = steps.get("s"), steps["t"]
        if isinstance(s, int) and isinstance(t, int) and s >= t:
            raise ValueError(f"s must be smaller than t, not s = {s} and t = {t}")


class LogitBatch(NamedTuple):
    """Rows in the space where all of it is Gaussian: logits of both labels, and parameters.

    Samplers keep their state here, so that nothing is lost to a softmax and the logarithm after it. Adding a constant
    to the logits of a label changes nothing.
    """

    construction: Float[Tensor, "batch prim 2"]
    kind: Float[Tensor, "batch prim 5"]
    params: Float[Tensor, "batch prim 14"]

    @classmethod
    def from_sketch(cls, x0: SketchBatch, label_smoothing: float) -> LogitBatch:
        """Clean rows, with their labels smoothed so that the logarithm is finite."""
        construction, kind = (gaussian_softmax.smooth(y0, label_smoothing).log() for y0 in (x0.construction, x0.kind))
        return cls(construction, kind, x0.params)

    def batch(self) -> SketchBatch:
        """The rows as the network sees them: labels on the simplex."""
        return SketchBatch(self.construction.softmax(dim=-1), self.kind.softmax(dim=-1), self.params)


class Levels(NamedTuple):
    """The noise level of each part of a row."""

    construction: Level
    kind: Level
    params: Level


def parts(rows: SketchBatch | Prediction) -> LogitBatch:
    """Construction, kind and parameters as a tuple; of a prediction, the logits of its labels."""
    if isinstance(rows, Prediction):
        return LogitBatch(rows.construction_logits, rows.kind_logits, rows.params)
    return LogitBatch(rows.construction, rows.kind, rows.params)


def choose(masks: Iterable[Tensor], if_true: SketchBatch, if_false: SketchBatch) -> SketchBatch:
    """`if_true` where the mask of a part is set, `if_false` elsewhere."""
    return SketchBatch(*map(torch.where, masks, parts(if_true), parts(if_false)))


def superpose(
    params: Float[Tensor, "batch prim 14"], kind: Float[Tensor, "batch prim 5"], by: Superposition = "max"
) -> Float[Tensor, "batch prim 14"]:
    """Weight each parameter by the probability of its kind."""
    if by == "none":
        return params
    if by == "most_likely":
        weight = functional.one_hot(kind.argmax(dim=-1), kind.shape[-1]).to(kind)
    else:
        weight = kind / kind.amax(dim=-1, keepdim=True) if by == "max" else kind
    return params * to_columns(weight[..., : layout.NONE].unbind(dim=-1))


def paper_process(num_steps: int = 2000, label_smoothing: float = 0.99) -> JointProcess:
    """The process of the text: cosine, f(ᾱ), log ŷ_0."""
    return _joint(cosine(num_steps), label_smoothing, "log")


def authors_process(num_steps: int = 2000, label_smoothing: float = 0.9999) -> JointProcess:
    """The process of the released code: clamped cosine, f(√ᾱ), 2·log ŷ_0."""
    return _joint(authors_cosine(num_steps), label_smoothing, "2log", of_root=True)


def our_process(num_steps: int = 2000, label_smoothing: float = 0.99) -> JointProcess:
    """The paper's process with the expected logit in the reverse mean."""
    return _joint(cosine(num_steps), label_smoothing, "expected")


def _joint(raw: Schedule, k: float, reverse_logits: ReverseLogitsMethod, *, of_root: bool = False) -> JointProcess:
    widths = layout.NUM_KINDS, layout.NUM_CONSTRUCTION
    kind, construction = (augment(raw, width, k, of_root=of_root) for width in widths)
    return JointProcess(raw, kind, construction, k, reverse_logits)


# How far a probability vector may be from summing to one: float32 rounding over the widest simplex we use.
SIMPLEX_TOLERANCE = 1e-4


def check_step(t: int | Int[Tensor, "*batch"], num_steps: int, name: str = "t", lowest: int = 0) -> None:
    """A step, or one a sample, lies in lowest..T."""
    if isinstance(t, Tensor):
        if t.is_floating_point() or t.is_complex() or t.numel() == 0:
            raise ValueError(f"{name} must hold whole numbers, at least one, not {t.dtype} of shape {tuple(t.shape)}")
        least, most = int(t.min()), int(t.max())
    elif not isinstance(t, Integral):
        raise ValueError(f"{name} must be a whole number, not {t}")
    else:
        least = most = int(t)
    if least < lowest or most > num_steps:
        wrong = least if least < lowest else most
        raise ValueError(f"{name} must lie in {lowest}..{num_steps}, not {wrong}")


def check_steps(steps: Sequence[int], num_steps: int) -> None:
    """The steps a sampler visits: falling, in 0..T, at least two."""
    for t in steps:
        check_step(t, num_steps, "steps")
    if len(steps) < 2 or any(s >= t for t, s in pairwise(steps)):
        raise ValueError(f"steps must be at least two that fall, not {list(steps)}")


def check_simplex(probabilities: Tensor, name: str) -> None:
    """Points of the simplex along the last axis."""
    if not probabilities.is_floating_point():
        raise ValueError(f"{name} must hold floating-point probabilities, not {probabilities.dtype}")
    # Written so that a NaN, which compares false, is refused too.
    if not bool((probabilities >= 0).all()):
        raise ValueError(f"{name} must hold probabilities, but one is negative or not a number")
    if not bool(((probabilities.sum(dim=-1) - 1).abs() <= SIMPLEX_TOLERANCE).all()):
        raise ValueError(f"{name} must sum to one along its last axis")


def check_shape(batch: SketchBatch | Prediction, name: str = "batch", like: SketchBatch | None = None) -> None:
    """Batch by rows by the widths of the layout, and the same as `like` (noise, say, beside the batch it goes to)."""
    tensors = parts(batch)
    rows = (tensors if like is None else like).kind.shape[:2]
    for part, tensor, width in zip(tensors._fields, tensors, layout.PART_WIDTHS, strict=True):
        if tensor.shape != (*rows, width) or len(rows) != 2:
            raise ValueError(f"{name}.{part} must have the shape {(*rows, width)}, not {tuple(tensor.shape)}")
