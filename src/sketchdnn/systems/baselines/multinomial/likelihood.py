"""How likely a sketch is to the multinomial process: the same three terms, with the KL of categories for labels.

Only `prior` and `diffusion` differ from `likelihood`; the sketch is read off x_r as there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sketchdnn.diffusion.gaussian import Level
from sketchdnn.diffusion.likelihood import Bins, Elbo, Parts, bound, kl_of_steps, kl_to_noise, predict_double
from sketchdnn.diffusion.noise import NoiseSource
from sketchdnn.diffusion.process import Denoiser
from sketchdnn.diffusion.timesteps import StepDraws
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch

from . import transitions as multinomial
from .process import CatProcess, told_flag
from .transitions import Probabilities


def cat_elbo(
    denoise: Denoiser,
    process: CatProcess,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    *,
    last_variance: float | None = None,
    bins: Bins | None = None,
) -> Elbo:
    """All three terms, with noise and steps as in `likelihood.elbo`."""
    return bound(denoise, process, x0, noise, steps, cat_prior, cat_diffusion, last_variance=last_variance, bins=bins)


def cat_prior(process: CatProcess, x0: SketchBatch) -> Parts:
    """KL(q(x_T | x_0) ‖ labels all alike, and N(0, 1)): nothing where ᾱ_T = 0."""
    truth, at = _truth(x0), process.labels.at(process.num_steps)
    dimensions = x0.kind.shape[1] * layout.NUM_PARAMS
    squared = torch.sum(truth.params**2, dim=(-2, -1))
    return Parts(
        _kl_to_any(truth.construction, at),
        _kl_to_any(truth.kind, at),
        kl_to_noise(squared, process.params.at(process.num_steps), dimensions),
    )


def cat_diffusion(
    denoise: Denoiser, process: CatProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws
) -> Parts:
    """Σ over t = r+1..T of KL(q(x_{t−1} | x_t, x_0) ‖ the sampler's step)."""
    truth, terms = _truth(x0), []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.params.device), steps.count, strict=True), start=1):
        batch_t = process.diffuse(x0, t, noise(draw))
        said = predict_double(denoise, batch_t, t)
        squared = torch.sum((truth.params - process.clean_params(said)) ** 2, dim=(-2, -1))
        parts = [
            _kl_of_labels(process, truth.construction, said.construction, batch_t.construction.double(), t),
            _kl_of_labels(process, truth.kind, said.kind, batch_t.kind.double(), t),
            kl_of_steps(squared, process.params.at(t - 1), process.params.at(t)),
        ]
        terms.append(count.to(squared) * torch.stack(parts))
    return Parts(*torch.stack(terms).mean(dim=0))


def _kl_of_labels(
    process: CatProcess, y0: Probabilities, y0_hat: Probabilities, y_t: Probabilities, t: Tensor
) -> Tensor:
    """Between the true and the learned step from t, summed over the rows."""
    true = multinomial.posterior_probs(y0, y_t, process.labels.at(t - 1), process.labels.at(t))
    return multinomial.kl(true, process.reverse_probs(y0_hat, y_t, t - 1, t)).sum(dim=-1)


def _kl_to_any(y0: Probabilities, level: Level) -> Tensor:
    alike = torch.full_like(y0, 1 / y0.shape[-1])
    return multinomial.kl(multinomial.cumulative_probs(y0, level), alike).sum(dim=-1)


def _truth(x0: SketchBatch) -> SketchBatch:
    x0 = x0.to(torch.float64)
    return SketchBatch(told_flag(x0.construction), x0.kind, x0.params)
