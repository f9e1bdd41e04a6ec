"""The likelihood bound of the multinomial process: as in `diffusion.likelihood`, with the KL of categorical labels.

Only the prior and diffusion terms differ; the reconstruction term is the same.
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
from .process import MultinomialProcess, fill_blank_flags
from .transitions import Probabilities


def multinomial_elbo(
    denoise: Denoiser,
    process: MultinomialProcess,
    x0: SketchBatch,
    noise: NoiseSource,
    steps: StepDraws,
    *,
    last_variance: float | None = None,
    bins: Bins | None = None,
) -> Elbo:
    """All three terms; noise and steps as in `likelihood.elbo`."""
    return bound(
        denoise,
        process,
        x0,
        noise,
        steps,
        multinomial_prior,
        multinomial_diffusion,
        last_variance=last_variance,
        bins=bins,
    )


def multinomial_prior(process: MultinomialProcess, x0: SketchBatch) -> Parts:
    """KL(q(x_T | x_0) ‖ uniform labels and N(0, 1)); zero if ᾱ_T = 0."""
    clean, at = _clean(x0), process.labels.at(process.num_steps)
    dimensions = x0.kind.shape[1] * layout.NUM_PARAMS
    squared = torch.sum(clean.params**2, dim=(-2, -1))
    return Parts(
        _kl_to_uniform(clean.construction, at),
        _kl_to_uniform(clean.kind, at),
        kl_to_noise(squared, process.params.at(process.num_steps), dimensions),
    )


def multinomial_diffusion(
    denoise: Denoiser, process: MultinomialProcess, x0: SketchBatch, noise: NoiseSource, steps: StepDraws
) -> Parts:
    """Σ over t = r+1..T of KL(q(x_{t−1} | x_t, x_0) ‖ the sampler's step)."""
    clean, terms = _clean(x0), []
    for draw, (t, count) in enumerate(zip(steps.t.to(x0.params.device), steps.count, strict=True), start=1):
        batch_t = process.diffuse(x0, t, noise(draw))
        prediction = predict_double(denoise, batch_t, t)
        squared = torch.sum((clean.params - process.clean_params(prediction)) ** 2, dim=(-2, -1))
        parts = [
            _kl_of_labels(process, clean.construction, prediction.construction, batch_t.construction.double(), t),
            _kl_of_labels(process, clean.kind, prediction.kind, batch_t.kind.double(), t),
            kl_of_steps(squared, process.params.at(t - 1), process.params.at(t)),
        ]
        terms.append(count.to(squared) * torch.stack(parts))
    return Parts(*torch.stack(terms).mean(dim=0))


def _kl_of_labels(
    process: MultinomialProcess, y0: Probabilities, y0_hat: Probabilities, y_t: Probabilities, t: Tensor
) -> Tensor:
    """KL between the true and the learned step from t, summed over the rows."""
    true = multinomial.posterior_probs(y0, y_t, process.labels.at(t - 1), process.labels.at(t))
    return multinomial.kl(true, process.reverse_probs(y0_hat, y_t, t - 1, t)).sum(dim=-1)


def _kl_to_uniform(y0: Probabilities, level: Level) -> Tensor:
    uniform = torch.full_like(y0, 1 / y0.shape[-1])
    return multinomial.kl(multinomial.cumulative_probs(y0, level), uniform).sum(dim=-1)


def _clean(x0: SketchBatch) -> SketchBatch:
    x0 = x0.to(torch.float64)
    return SketchBatch(fill_blank_flags(x0.construction), x0.kind, x0.params)
