"""How likely a sketch is, as a bound in named terms: −log p ≤ prior + diffusion + reconstruction (docs/equations.md).

The model is the ancestral sampler, all steps from T down to r (1 unless told). There it reads the sketch off x_r: the
kind and the flag of each row from the network's probabilities, each parameter of that kind from N(x̂_0, v). The variance
v is a choice, so a density depends on it and carries it along. Parameters of other kinds, and the flag of an empty row,
are then known: they cost nothing to reconstruct, but their noisy versions are part of x_r..x_T and so count in the
other terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch, relevant
from sketchdnn.representation.prediction import Prediction

from . import latent
from .bins import Bins
from .check import check_shape, check_simplex, check_step
from .gaussian import squared_norm_perp
from .latent import Latent
from .noise import NoiseSource
from .process import Denoiser, JointProcess, Noise, Process
from .schedule import Level, augment
from .step_draws import StepDraws

AnyProcess = TypeVar("AnyProcess", bound=Process)


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
    """The bound on −log p(sketch), in nats. Without `bins` a density, and so dependent on `last_variance`."""

    prior: Parts
    diffusion: Parts
    reconstruction: Parts
    last_variance: float
    read_at: int
    bins: Bins | None

    @property
    def nats(self) -> Float[Tensor, " batch"]:
        return self.prior.total + self.diffusion.total + self.reconstruction.total

    @property
    def bits(self) -> Float[Tensor, " batch"]:
        return self.nats / math.log(2)


def elbo(
    denoise: Denoiser,
    process: JointProcess,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    *,
    last_variance: float | None = None,
    bins: Bins | None = None,
) -> Elbo:
    """All three terms. Noise of draw 0 goes to the reconstruction, that of draw j to the j-th of `steps`.

    `last_variance` is v, by default 1 − ᾱ_r. With `bins` it is the probability of the sketch on a grid that is bounded;
    then r is best the step whose noise is about as wide as a cell (`step_as_noisy_as`): a finer x_r pays for telling
    what the grid does not ask.
    """
    return bound(denoise, process, x0, noise, steps, prior, diffusion, last_variance=last_variance, bins=bins)


def bound(
    denoise: Denoiser,
    process: AnyProcess,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    prior_of: Callable[[AnyProcess, SketchBatch], Parts],
    diffusion_of: Callable[[Denoiser, AnyProcess, SketchBatch, NoiseSource, StepDraws], Parts],
    *,
    last_variance: float | None = None,
    bins: Bins | None = None,
) -> Elbo:
    """The terms put together, for any process that says what its prior and its steps cost."""
    check_step(steps.read_at, process.num_steps - 1, "steps.read_at", lowest=1)
    variance = float(process.params.var[steps.read_at]) if last_variance is None else last_variance
    if not 0 < variance < math.inf:
        raise ValueError(f"last_variance must be above zero and finite, not {variance}")
    start = noise(0)
    _check_clean(process.num_steps, x0, start, steps)
    process = process.to(x0.params.device)
    with torch.no_grad():
        return Elbo(
            prior_of(process, x0),
            diffusion_of(denoise, process, x0, noise, steps),
            reconstruction(denoise, process, x0, start, variance, read_at=steps.read_at, bins=bins),
            variance,
            steps.read_at,
            bins,
        )


def prior(process: JointProcess, x0: SketchBatch) -> Parts:
    """KL(q(x_T | x_0) ‖ N(0, 1)), of logits up to a shift: nothing where ᾱ_T = 0."""
    at, rows = process.levels(process.num_steps), x0.kind.shape[1]
    construction, kind, params = _squared_lengths(_truth(process, x0))
    return Parts(
        kl_to_noise(construction, at.construction, rows * (layout.NUM_CONSTRUCTION - 1)),
        kl_to_noise(kind, at.kind, rows * (layout.NUM_KINDS - 1)),
        kl_to_noise(params, at.params, rows * layout.NUM_PARAMS),
    )


def diffusion(denoise: Denoiser, process: JointProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws) -> Parts:
    """Σ over t = r+1..T of KL(q(x_{t−1} | x_t, x_0) ‖ the sampler's step) = ½(SNR_{t−1} − SNR_t)·‖x_0 − x̂_0‖².

    x̂_0 is what the sampler puts into the reverse mean: superposed parameters, and logits in the process's own form.
    """
    truth = _truth(process, x0)

    def errors(said: Prediction) -> Squares:
        return _squared_lengths(Latent(*map(torch.sub, truth, latent.of_clean(process.clean(said)))))

    return _sum_over_steps(denoise, process, x0, noise, steps, errors)


def reconstruction(
    denoise: Denoiser,
    process: Process,
    x0: SketchBatch,
    noise: Noise,
    last_variance: float,
    *,
    read_at: int = 1,
    bins: Bins | None = None,
) -> Parts:
    """−log p(sketch | x_r): labels, and the parameters of the row's own kind, as a density or as cells of a grid."""
    t = torch.full((len(x0),), read_at, device=x0.params.device)
    said = said_of(denoise, process.diffuse(x0, t, noise), t)
    return unlikelihood(said, x0, last_variance, bins)


def unlikelihood(said: Prediction, x0: SketchBatch, variance: float, bins: Bins | None) -> Parts:
    """−log of the chance that a sketch read off a prediction (float64) is this one."""
    kind, std = x0.kind.argmax(dim=-1), math.sqrt(variance)
    flags = _log_prob(said.construction_logits, x0.construction.argmax(dim=-1))
    params = (
        -(((x0.params.double() - said.params) / std) ** 2) / 2 - math.log(std * math.sqrt(2 * math.pi))
        if bins is None
        else bins.log_mass(x0.params, said.params, std)
    )
    # Given the kind it is known which columns are zero, and that an empty row has no flag: neither has to be told.
    return Parts(
        -torch.where(kind == layout.NONE, 0.0, flags).sum(dim=-1),
        -_log_prob(said.kind_logits, kind).sum(dim=-1),
        -torch.where(relevant(kind), params, 0.0).sum(dim=(-2, -1)),
    )


def authors_estimate(
    denoise: Denoiser, process: JointProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws
) -> Parts:
    """The authors' "NLL", in nats: ½(SNR_{t−1} − SNR_t)·‖x_0 − x̂_0‖² summed over t, with labels as probabilities.

    Kept for comparison; it bounds nothing. It has no prior and no reconstruction term; a distance of probabilities is
    no KL; parameters of other kinds are left out, though their noisy zeros betray the kind; and labels are noised by
    f(ᾱ), whatever the model was trained on.
    """
    _check_clean(process.num_steps, x0, noise(0), steps)
    of_alpha_bar = replace(
        process,
        kind=augment(process.params, layout.NUM_KINDS, process.label_smoothing),
        construction=augment(process.params, layout.NUM_CONSTRUCTION, process.label_smoothing),
    ).to(x0.params.device)
    used = relevant(x0.kind.argmax(dim=-1))

    def errors(said: Prediction) -> Squares:
        return (
            torch.sum((x0.construction - said.construction) ** 2, dim=(-2, -1)),
            torch.sum((x0.kind - said.kind) ** 2, dim=(-2, -1)),
            torch.sum(torch.where(used, x0.params - said.params, 0.0) ** 2, dim=(-2, -1)),
        )

    with torch.no_grad():
        return _sum_over_steps(denoise, of_alpha_bar, x0, noise, steps, errors)


# A squared length, or error, of construction, kind and parameters: one number a sample each.
Squares = tuple[Tensor, Tensor, Tensor]


def _sum_over_steps(
    denoise: Denoiser,
    process: JointProcess,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    errors: Callable[[Prediction], Squares],
) -> Parts:
    """Σ_t ½(SNR_{t−1} − SNR_t)·error, from the steps drawn."""
    terms = []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.params.device), steps.count, strict=True), start=1):
        at_s, at_t = process.levels(t - 1), process.levels(t)
        construction, kind, params = errors(said_of(denoise, process.diffuse(x0, t, noise(draw)), t))
        terms.append(
            count.to(params)
            * torch.stack(
                [
                    kl_of_steps(construction, at_s.construction, at_t.construction),
                    kl_of_steps(kind, at_s.kind, at_t.kind),
                    kl_of_steps(params, at_s.params, at_t.params),
                ]
            )
        )
    return Parts(*torch.stack(terms).mean(dim=0))


def kl_of_steps(squared_error: Tensor, level_s: Level, level_t: Level) -> Tensor:
    """KL of two posteriors of equal variance whose x_0 differ by so much."""
    return (level_s.snr - level_t.snr) / 2 * squared_error


def kl_to_noise(squared_length: Tensor, level: Level, dimensions: int) -> Tensor:
    """KL(N(√ᾱ·x_0, 1 − ᾱ) ‖ N(0, 1))."""
    return (level.alpha_bar * squared_length - dimensions * (level.alpha_bar + level.var.log())) / 2


def _squared_lengths(v: Latent) -> Squares:
    """‖·‖²_⊥ of logits, ‖·‖² of parameters, summed over the rows."""
    return (
        squared_norm_perp(v.construction).sum(dim=-1),
        squared_norm_perp(v.kind).sum(dim=-1),
        torch.sum(v.params**2, dim=(-2, -1)),
    )


def _truth(process: JointProcess, x0: SketchBatch) -> Latent:
    return latent.of_sketch(x0.to(torch.float64), process.label_smoothing)


def said_of(denoise: Denoiser, batch_t: SketchBatch, t: Tensor) -> Prediction:
    """The prediction at X_t, in float64: what follows subtracts numbers that nearly agree."""
    said = denoise(batch_t, t)
    parts = SketchBatch(said.construction_logits, said.kind_logits, said.params)
    check_shape(parts, "what denoise returns", like=batch_t)
    return Prediction(said.construction_logits.double(), said.kind_logits.double(), said.params.double())


def _log_prob(logits: Tensor, label: Tensor) -> Tensor:
    return logits.log_softmax(dim=-1).gather(-1, label[..., None]).squeeze(-1)


def _check_clean(num_steps: int, x0: SketchBatch, start: Noise, steps: StepDraws) -> None:
    """A clean batch, noise like it, and steps for it."""
    check_shape(x0, "x0")
    check_simplex(x0.kind, "x0.kind")
    kind = x0.kind.argmax(dim=-1)
    check_simplex(x0.construction[kind != layout.NONE], "x0.construction")
    for name in ("kind", "construction"):
        label: Tensor = getattr(x0, name)
        if not bool(((label == 0) | (label == 1)).all()):
            raise ValueError(f"x0.{name} must be one-hot: a likelihood is that of a clean sketch")
    if not bool(x0.params.isfinite().all()):
        raise ValueError("x0.params must be finite")
    if bool(((x0.params != 0) & ~relevant(kind)).any()):
        raise ValueError("x0.params must be zero in the columns of other kinds")
    check_shape(start, "noise", like=x0)
    if steps.t.shape[1:] != (len(x0),) or steps.count.shape != steps.t.shape:
        shapes = tuple(steps.t.shape), tuple(steps.count.shape)
        raise ValueError(f"steps must hold draws for {len(x0)} samples, t and count alike, not of shapes {shapes}")
    check_step(steps.t, num_steps, "steps", lowest=steps.read_at + 1)
