"""The likelihood of a sketch, as a bound in named terms: −log p ≤ prior + diffusion + reconstruction.

The derivation is in docs/equations.md. The model is the ancestral sampler, all steps from T down to r (by default 1).
There it reads the sketch from x_r: the kind and the flag of each row from the network's probabilities, each parameter
of that kind from N(x̂_0, v). The variance v is a choice, so a density depends on it and carries it along. Parameters of
other kinds, and the flag of an empty row, are then determined: they cost nothing to reconstruct, but their noisy
versions are part of x_r..x_T and so count in the other terms. `Bins` turn a density into the probability of a cell, so
that bits can be compared with those of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import Prediction, SketchBatch, relevant

from .gaussian import Level, augment, squared_norm_perp
from .noise import NoiseSource
from .process import Denoiser, JointProcess, LogitBatch, Noise, Process, check_shape, check_simplex, check_step, parts
from .timesteps import StepDraws

Params = Float[Tensor, "*rows 14"]


@dataclass(frozen=True, slots=True)
class Bins:
    """2^bits equal cells between `low` and `high`, numbers for all columns or one for each of the 14.

    The outermost cells reach to infinity, so that the cells of a column share out all of its probability.
    """

    bits: int = 8
    low: float | tuple[float, ...] = -1.0
    high: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 24:
            raise ValueError(f"bits must lie in 1..24, not {self.bits}")
        for name, end in (("low", self.low), ("high", self.high)):
            if isinstance(end, tuple) and len(end) != layout.NUM_PARAMS:
                raise ValueError(f"{name} must be one number or {layout.NUM_PARAMS}, not {len(end)}")
        low, high = torch.as_tensor(self.low), torch.as_tensor(self.high)
        if not bool((low < high).all()) or not bool((high - low).isfinite().all()):
            raise ValueError(f"low must be below high, both finite, not {self.low} and {self.high}")

    @property
    def levels(self) -> int:
        return 1 << self.bits

    def index(self, params: Params) -> Int[Tensor, "*rows 14"]:
        """The cell of each number; numbers outside the range are in the outermost cells."""
        low, width = self._ends(params)
        return ((params.double() - low) / width).floor().clamp(0, self.levels - 1).long()

    def log_mass(self, params: Params, mean: Params, std: float) -> Params:
        """log of the probability that N(mean, std²) falls into the cell of `params`, float64."""
        low, width = self._ends(params)
        index = self.index(params)
        left = torch.where(index > 0, low + index * width, -math.inf)
        right = torch.where(index < self.levels - 1, low + (index + 1) * width, math.inf)
        return log_normal_between((left - mean) / std, (right - mean) / std)

    def _ends(self, params: Tensor) -> tuple[Tensor, Tensor]:
        """Where the grid starts, and the width of a cell."""
        low = torch.as_tensor(self.low, dtype=torch.float64, device=params.device)
        high = torch.as_tensor(self.high, dtype=torch.float64, device=params.device)
        return low, (high - low) / self.levels


def log_normal_between(left: Float[Tensor, "*shape"], right: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """log(Φ(right) − Φ(left)) for left < right, without canceling in either tail."""
    # Cells right of the mean are mirrored to its left, where Φ is small and its logarithm exact.
    mirrored = left > 0
    low, high = torch.where(mirrored, -right, left), torch.where(mirrored, -left, right)
    log_low, log_high = torch.special.log_ndtr(low), torch.special.log_ndtr(high)
    log_mass: Tensor = log_high + torch.log1p(-torch.exp(log_low - log_high))
    return log_mass


@dataclass(frozen=True, slots=True)
class Parts:
    """Nats of each part of a sketch, summed over its rows: one number a sample, float64."""

    construction: Float[Tensor, " batch"]
    kind: Float[Tensor, " batch"]
    params: Float[Tensor, " batch"]

    @property
    def total(self) -> Float[Tensor, " batch"]:
        return self.construction + self.kind + self.params


@dataclass(frozen=True, slots=True)
class Elbo:
    """The bound on −log p(sketch), in nats. Without bins a density, and so dependent on `last_variance`."""

    prior: Parts
    diffusion: Parts
    reconstruction: Parts
    last_variance: float
    read_at: int

    @property
    def nats(self) -> Float[Tensor, " batch"]:
        return self.prior.total + self.diffusion.total + self.reconstruction.total


def prior(process: JointProcess, x0: SketchBatch) -> Parts:
    """KL(q(x_T | x_0) ‖ N(0, 1)), of logits up to a shift: nothing where ᾱ_T = 0."""
    dimensions = (layout.NUM_CONSTRUCTION - 1, layout.NUM_KINDS - 1, layout.NUM_PARAMS)
    levels, squares = process.levels(process.num_steps), _squared_lengths(_target(process, x0))
    return Parts(*map(kl_to_noise, squares, levels, (x0.kind.shape[1] * number for number in dimensions)))


def diffusion(denoise: Denoiser, process: JointProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws) -> Parts:
    """Σ over t = r+1..T of KL(q(x_{t−1} | x_t, x_0) ‖ the sampler's step) = ½(SNR_{t−1} − SNR_t)·‖x_0 − x̂_0‖².

    x̂_0 is the input of the sampler's reverse mean: superposed parameters, and logits by `process.reverse_logits`.
    """
    target = _target(process, x0)

    def divergences(prediction: Prediction, _: SketchBatch, t: Tensor) -> Iterable[Tensor]:
        errors = _squared_lengths(LogitBatch(*map(torch.sub, target, process.x0_logits(prediction))))
        return map(kl_of_steps, errors, process.levels(t - 1), process.levels(t))

    return sum_over_steps(denoise, process, x0, noise, steps, divergences)


def reconstruction(
    denoise: Denoiser, process: Process, x0: SketchBatch, noise: Noise, variance: float, read_at: int, bins: Bins | None
) -> Parts:
    """−log p(sketch | x_r): labels, and the parameters of the row's own kind, as a density or as cells of a grid."""
    t = torch.full((len(x0),), read_at, device=x0.params.device)
    prediction = predict_double(denoise, process.diffuse(x0, t, noise), t)
    return nats_given_prediction(prediction, x0, variance, bins)


def nats_given_prediction(prediction: Prediction, x0: SketchBatch, variance: float, bins: Bins | None) -> Parts:
    """−log of the probability that a sketch read from a prediction (float64) is this one."""
    kind, std = x0.kind.argmax(dim=-1), math.sqrt(variance)
    flags = _log_prob(prediction.construction_logits, x0.construction.argmax(dim=-1))
    if bins is None:
        params = -(((x0.params.double() - prediction.params) / std) ** 2) / 2 - math.log(std * math.sqrt(2 * math.pi))
    else:
        params = bins.log_mass(x0.params, prediction.params, std)
    # The kind determines which columns are zero, and that an empty row has no flag: neither costs anything.
    return Parts(
        -torch.where(kind == layout.NONE, 0.0, flags).sum(dim=-1),
        -_log_prob(prediction.kind_logits, kind).sum(dim=-1),
        -torch.where(relevant(kind), params, 0.0).sum(dim=(-2, -1)),
    )


# The prior and the diffusion term of a process.
Terms = tuple[Callable[..., Parts], Callable[..., Parts]]


def elbo(
    denoise: Denoiser,
    process: Process,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    *,
    last_variance: float | None = None,
    bins: Bins | None = None,
    terms: Terms = (prior, diffusion),
) -> Elbo:
    """All three terms. Noise of draw 0 goes to the reconstruction, that of draw j to the j-th of `steps`.

    `last_variance` is v, by default 1 − ᾱ_r. With `bins` it is the probability of the sketch on a grid that is bounded;
    then r is best the step whose noise is about as wide as a cell (`step_as_noisy_as`): a finer x_r costs bits for
    detail below the grid. `terms` are by default those of the joint process.
    """
    check_step(steps.read_at, process.num_steps - 1, "steps.read_at", lowest=1)
    variance = float(process.params.var[steps.read_at]) if last_variance is None else last_variance
    if not 0 < variance < math.inf:
        raise ValueError(f"last_variance must be above zero and finite, not {variance}")
    start = noise(0)
    _check_clean(process.num_steps, x0, start, steps)
    process = process.to(x0.params.device)
    compute_prior, compute_diffusion = terms
    with torch.no_grad():
        prior_nats = compute_prior(process, x0)
        diffusion_nats = compute_diffusion(denoise, process, x0, noise, steps)
        reconstruction_nats = reconstruction(denoise, process, x0, start, variance, steps.read_at, bins)
    return Elbo(prior_nats, diffusion_nats, reconstruction_nats, variance, steps.read_at)


def authors_estimate(
    denoise: Denoiser, process: JointProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws
) -> Parts:
    """The authors' "NLL", in nats: ½(SNR_{t−1} − SNR_t)·‖x_0 − x̂_0‖² summed over t, with labels as probabilities.

    Kept for comparison; it bounds nothing. It has no prior and no reconstruction term; a distance of probabilities is
    no KL; parameters of other kinds are left out, though their noisy zeros reveal the kind; and labels are noised by
    f(ᾱ), whatever the model was trained on.
    """
    _check_clean(process.num_steps, x0, noise(0), steps)
    widths = layout.NUM_KINDS, layout.NUM_CONSTRUCTION
    kind, construction = (augment(process.params, width, process.label_smoothing) for width in widths)
    of_alpha_bar = replace(process, kind=kind, construction=construction).to(x0.params.device)
    used = relevant(x0.kind.argmax(dim=-1))

    def divergences(prediction: Prediction, _: SketchBatch, t: Tensor) -> Iterable[Tensor]:
        labels = x0.construction - prediction.construction, x0.kind - prediction.kind
        differences = *labels, torch.where(used, x0.params - prediction.params, 0.0)
        errors = (torch.sum(difference**2, dim=(-2, -1)) for difference in differences)
        return map(kl_of_steps, errors, of_alpha_bar.levels(t - 1), of_alpha_bar.levels(t))

    with torch.no_grad():
        return sum_over_steps(denoise, of_alpha_bar, x0, noise, steps, divergences)


Divergences = Callable[[Prediction, SketchBatch, Tensor], Iterable[Tensor]]


def sum_over_steps(
    denoise: Denoiser, process: Process, x0: SketchBatch, noise: NoiseSource, steps: StepDraws, divergences: Divergences
) -> Parts:
    """Σ_t of the divergences of a step, from the steps drawn. They depend on the prediction at X_t, X_t and t."""
    terms = []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.params.device), steps.count, strict=True), start=1):
        batch_t = process.diffuse(x0, t, noise(draw))
        nats = torch.stack(list(divergences(predict_double(denoise, batch_t, t), batch_t, t)))
        terms.append(count.to(nats) * nats)
    return Parts(*torch.stack(terms).mean(dim=0))


def kl_of_steps(squared_error: Tensor, level_s: Level, level_t: Level) -> Tensor:
    """KL of two posteriors of equal variance whose x_0 differ by so much."""
    return (level_s.snr - level_t.snr) / 2 * squared_error


def kl_to_noise(squared_length: Tensor, level: Level, dimensions: int) -> Tensor:
    """KL(N(√ᾱ·x_0, 1 − ᾱ) ‖ N(0, 1))."""
    return (level.alpha_bar * squared_length - dimensions * (level.alpha_bar + level.var.log())) / 2


def _squared_lengths(v: LogitBatch) -> tuple[Tensor, ...]:
    """‖·‖²_⊥ of logits, ‖·‖² of parameters, summed over the rows."""
    of_labels = (squared_norm_perp(logits).sum(dim=-1) for logits in (v.construction, v.kind))
    return *of_labels, torch.sum(v.params**2, dim=(-2, -1))


def _target(process: JointProcess, x0: SketchBatch) -> LogitBatch:
    return LogitBatch.from_sketch(x0.to(torch.float64), process.label_smoothing)


def predict_double(denoise: Denoiser, batch_t: SketchBatch, t: Tensor) -> Prediction:
    """The prediction at X_t, in float64: later steps subtract numbers that nearly agree."""
    output = denoise(batch_t, t)
    check_shape(output, "the output of denoise", like=batch_t)
    return Prediction(*(part.double() for part in parts(output)))


def _log_prob(logits: Tensor, label: Tensor) -> Tensor:
    return logits.log_softmax(dim=-1).gather(-1, label[..., None]).squeeze(-1)


def _check_clean(num_steps: int, x0: SketchBatch, start: Noise, steps: StepDraws) -> None:
    """A clean batch, noise like it, and steps for it."""
    check_shape(x0, "x0")
    check_simplex(x0.kind, "x0.kind")
    kind = x0.kind.argmax(dim=-1)
    check_simplex(x0.construction[kind != layout.NONE], "x0.construction")
    for name, label in (("kind", x0.kind), ("construction", x0.construction)):
        if not bool(((label == 0) | (label == 1)).all()):
            raise ValueError(f"x0.{name} must be one-hot: a likelihood is that of a clean sketch")
    if not bool(torch.where(relevant(kind), x0.params.isfinite(), x0.params == 0).all()):
        raise ValueError("x0.params must be finite, and zero in the columns of other kinds")
    check_shape(start, "noise", like=x0)
    if steps.t.shape[1:] != (len(x0),) or steps.count.shape != steps.t.shape:
        shapes = tuple(steps.t.shape), tuple(steps.count.shape)
        raise ValueError(f"steps must hold draws for {len(x0)} samples, t and count alike, not of shapes {shapes}")
    check_step(steps.t, num_steps, "steps", lowest=steps.read_at + 1)


def num_primitives(x0: SketchBatch) -> Int[Tensor, " batch"]:
    """How many rows of each sketch are not empty."""
    return (x0.kind.argmax(dim=-1) != layout.NONE).sum(dim=-1)


def log_arrangements(x0: SketchBatch, bins: Bins) -> Float[Tensor, " batch"]:
    """log of the number of different matrices that hold the same sketch, rows equal on the grid being interchangeable.

    With n distinct primitives in R rows it is log R!/(R − n)!. A model that is invariant to the order of rows gives
    each of them the same probability, so −log p(set) = −log p(matrix) − this.
    """
    kind = x0.kind.argmax(dim=-1)
    cells = torch.where(relevant(kind), bins.index(x0.params), 0)
    flag = torch.where(kind == layout.NONE, 0, x0.construction.argmax(dim=-1))
    rows = torch.cat([kind[..., None], flag[..., None], cells], dim=-1)
    same = (rows[:, :, None, :] == rows[:, None, :, :]).all(dim=-1)
    # Row i is the m-th of its equals so far; the product of all m is the product of m! over groups of equals.
    rank_among_equals = same.tril().sum(dim=-1).double()
    log_factorial = torch.lgamma(rank_among_equals.new_tensor(rows.shape[1] + 1))
    return log_factorial - rank_among_equals.log().sum(dim=-1)
